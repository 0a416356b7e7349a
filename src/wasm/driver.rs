//! The loop around the planner: polls it for requests, carries them out, hands
//! the answers in, and settles what the replicator waits for. Decides nothing.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Promise, Uint32Array};
use wasm_bindgen::prelude::*;

use super::ask::carry_out;
use super::host::{Host, join, now};
use super::http::Remote;
use super::pending::{Aborts, Promised, Timer, spawn};
use super::write::{self, Writing};
use crate::config::Config;
use crate::error::{Failure, FailureKind};
use crate::pace::Pace;
use crate::planner::{Planner, Taken, TakenRows};
use crate::request::{Batch, Entry, Event, RowHandle, Seq};
use crate::writes;

/// Both ends, and how the feed is asked for.
#[derive(Debug)]
pub(super) struct Ends {
    /// `None`: a database of this process, which the host's methods reach.
    pub(super) source: Option<Rc<Remote>>,
    /// The same of the target.
    pub(super) target: Option<Rc<Remote>>,
    /// The feed is asked for by POST, with this body.
    pub(super) feed_body: Option<String>,
}

pub(super) struct Driver {
    pub(super) planner: Planner,
    pub(super) ends: Ends,
    pub(super) host: Host,
    pub(super) aborts: Aborts,
    pub(super) closed: bool,
    waiting_rows: Option<(usize, Promised)>,
    waiting_docs: Vec<(String, Promised)>,
    timer: Timer,
    writing: Option<Rc<RefCell<Writing>>>,
    limits: (u32, u64),
}

impl Driver {
    pub(super) fn new(config: Config, ends: Ends, host: Host, since: Seq) -> Self {
        let limits = (config.max_concurrency, config.stall_ms);
        let mut planner = Planner::new(config, since);
        planner.handle_attachment_streams(ends.source.is_some());
        Self {
            limits,
            writing: None,
            planner,
            ends,
            host,
            aborts: Aborts::default(),
            closed: false,
            waiting_rows: None,
            waiting_docs: Vec::new(),
            timer: Timer::default(),
        }
    }

    /// Cloned, so that no borrow is held while the host runs.
    pub(super) fn host(&self) -> Host {
        JsValue::from(&self.host).unchecked_into()
    }

    /// For each revision of `text` (`key, count, rev…`) a digit: 1 missing, 0
    /// not, 2 unknown.
    pub(super) fn take_diff(&mut self, text: &str) -> String {
        let mut digits = String::new();
        let mut fields = text.split('\0');
        while let (Some(id), Some(count)) = (fields.next(), fields.next()) {
            let count = count.parse().unwrap_or(0);
            let revs: Vec<Rc<str>> = fields.by_ref().take(count).map(Rc::from).collect();
            let missing = self.planner.take_diff(id, &revs);
            digits.extend(revs.iter().map(|rev| match &missing {
                None => '2',
                Some(missing) if missing.contains(rev) => '1',
                Some(_) => '0',
            }));
        }
        digits
    }

    /// Of each entry of `text` (`key, rev`) how many documents there are, and
    /// their numbers; nothing where some are still on their way.
    fn documents(&mut self, text: &str) -> Result<Option<Array>, Failure> {
        if pairs(text).any(|(id, rev)| self.planner.is_pending(id, rev)) {
            return Ok(None);
        }
        let (mut counts, mut handles) = (Vec::new(), Vec::new());
        for (id, rev) in pairs(text) {
            let before = handles.len();
            match self.planner.take_docs(id, rev) {
                Taken::Docs(found) => handles.extend(found.iter().map(|doc| doc.handle.0)),
                Taken::Failed(failure) => return Err(failure),
                Taken::Pending | Taken::Unknown => {}
            }
            counts.push((handles.len() - before) as u32);
        }
        let flat = |numbers: &[u32]| JsValue::from(Uint32Array::from(numbers));
        Ok(Some(Array::of2(&flat(&counts), &flat(&handles))))
    }

    fn batch(&self, batch: &Batch) -> JsValue {
        let rows = batch.rows.iter().map(|(row, _)| row.0).collect();
        let seqs = join(&mut batch.rows.iter().map(|(_, seq)| &**seq));
        let pending = batch.pending.map_or(-1.0, |pending| pending as f64);
        self.host
            .batch(rows, &seqs, &batch.last_seq, pending, batch.end)
    }
}

/// `key, rev, key, rev…`, divided by NUL.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut fields = text.split('\0');
    std::iter::from_fn(move || Some((fields.next()?, fields.next()?)))
}

pub(super) fn take_rows(driver: &Rc<RefCell<Driver>>, limit: usize) -> Promise {
    let (promise, promised) = Promised::new();
    driver.borrow_mut().waiting_rows = Some((limit, promised));
    pump(driver);
    promise
}

/// Which of the entries were named neither by a row nor before.
pub(super) fn unknown(driver: &Rc<RefCell<Driver>>, text: &str) -> Vec<u32> {
    let planner = &driver.borrow().planner;
    let numbered = (0..).zip(pairs(text));
    let unknown = numbered.filter(|(_, (id, rev))| !planner.is_known(id, rev));
    unknown.map(|(at, _)| at).collect()
}

pub(super) fn want(driver: &Rc<RefCell<Driver>>, text: &str, rows: &[u32]) {
    for ((id, rev), &row) in pairs(text).zip(rows) {
        let (row, id, rev) = (RowHandle(row), id.into(), rev.into());
        driver.borrow_mut().planner.want(Entry { row, id, rev });
    }
}

pub(super) fn take_docs(driver: &Rc<RefCell<Driver>>, text: String) -> Promise {
    let (promise, promised) = Promised::new();
    driver.borrow_mut().waiting_docs.push((text, promised));
    pump(driver);
    promise
}

/// The replicator writes one batch after the other, so one write is under way.
pub(super) fn write(driver: &Rc<RefCell<Driver>>, docs: Array) -> Promise {
    let inner = &mut *driver.borrow_mut();
    let Some(target) = &inner.ends.target else {
        return Promise::reject(&"only a remote target is written by the engine".into());
    };
    let host = inner.host();
    let (most, stall_ms) = inner.limits;
    let before = inner
        .writing
        .as_ref()
        .map(|writing| writing.borrow().pace());
    let pace = before.unwrap_or_else(|| Pace::new(most, writes::IDLE));
    let (promise, writing) = write::write(target, host, docs, pace, stall_ms);
    inner.writing = Some(writing);
    promise
}

/// Lets the planner go as far as it can.
pub(super) fn pump(driver: &Rc<RefCell<Driver>>) {
    if driver.borrow().closed {
        return;
    }
    loop {
        while let Some(event) = next_event(driver) {
            let inner = &mut *driver.borrow_mut();
            match event {
                Event::Ready => {}
                Event::Abort(id) => inner.aborts.abort(id),
                Event::DropRow(row) => inner.host.drop_row(row.0),
                Event::DropDoc(doc) => inner.host.drop_doc(doc.0),
            }
        }
        let settled = settle_rows(driver) | settle_docs(driver);
        if !settled && !launch(driver) {
            break;
        }
    }
    set_timer(driver);
}

fn next_event(driver: &Rc<RefCell<Driver>>) -> Option<Event> {
    driver.borrow_mut().planner.poll_event()
}

/// Sends the requests that may leave now. Answers whether there was one.
fn launch(driver: &Rc<RefCell<Driver>>) -> bool {
    let mut any = false;
    loop {
        let Some(request) = driver.borrow_mut().planner.poll_request(now()) else {
            return any;
        };
        any = true;
        let Some(signal) = driver.borrow_mut().aborts.add(request.id) else {
            return false;
        };
        spawn(Box::pin(carry_out(driver.clone(), request, signal)));
    }
}

fn settle_rows(driver: &Rc<RefCell<Driver>>) -> bool {
    let inner = &mut *driver.borrow_mut();
    let Some((limit, _)) = &inner.waiting_rows else {
        return false;
    };
    let taken = inner.planner.take_rows(*limit);
    if taken == TakenRows::Pending {
        return false;
    }
    let Some((_, promised)) = inner.waiting_rows.take() else {
        return false;
    };
    match taken {
        TakenRows::Batch(batch) => promised.resolve(&inner.batch(&batch)),
        TakenRows::Failed(failure) => promised.reject(&failure),
        TakenRows::Pending => {}
    }
    true
}

fn settle_docs(driver: &Rc<RefCell<Driver>>) -> bool {
    let inner = &mut *driver.borrow_mut();
    let waiting = std::mem::take(&mut inner.waiting_docs);
    let before = waiting.len();
    for (entries, promised) in waiting {
        match inner.documents(&entries) {
            Ok(Some(found)) => promised.resolve(&found),
            Ok(None) => inner.waiting_docs.push((entries, promised)),
            Err(failure) => promised.reject(&failure),
        }
    }
    inner.waiting_docs.len() < before
}

fn set_timer(driver: &Rc<RefCell<Driver>>) {
    let again = Rc::downgrade(driver);
    let inner = &mut *driver.borrow_mut();
    let due = inner.planner.poll_timeout();
    inner.timer.set(&inner.host, due, &|| {
        let again = again.clone();
        Closure::once(move || {
            let Some(driver) = again.upgrade() else {
                return;
            };
            driver.borrow_mut().timer.fired();
            if !driver.borrow().closed {
                driver.borrow_mut().planner.handle_timeout(now());
                pump(&driver);
            }
        })
    });
}

pub(super) fn cancel(driver: &Rc<RefCell<Driver>>) {
    let inner = &mut *driver.borrow_mut();
    if inner.closed {
        return;
    }
    inner.closed = true;
    inner.timer.clear();
    inner.aborts.abort_all();
    if let Some(writing) = inner.writing.take() {
        writing.borrow_mut().cancel();
    }
    let failure = Failure::new(FailureKind::Network, "cancelled");
    if let Some((_, promised)) = inner.waiting_rows.take() {
        promised.reject(&failure);
    }
    for (_, promised) in std::mem::take(&mut inner.waiting_docs) {
        promised.reject(&failure);
    }
}
