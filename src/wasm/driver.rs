//! The loop around the planner: polls it for requests, carries them out, hands
//! the answers in, and settles what the replicator waits for. Decides nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::AbortController;

use super::ask::carry_out;
use super::host::{Host, clear_timeout, get, key, now, rejection, set, set_timeout};
use super::http::Remote;
use super::slab::Slab;
use super::write::{self, Writing};
use crate::config::Config;
use crate::error::{Failure, FailureKind};
use crate::planner::{Planner, Taken, TakenRows};
use crate::request::{Batch, Entry, Event, RequestId, RowHandle, Seq};

/// Both ends, and how the feed is asked for.
#[derive(Debug)]
pub(super) struct Ends {
    /// `None`: a database of this process, which the host's methods reach.
    pub(super) source: Option<Remote>,
    /// The same of the target.
    pub(super) target: Option<Remote>,
    /// Query of `_changes`, but for `since`, `limit` and `seq_interval`.
    pub(super) feed_query: String,
    /// Its body where it is a POST.
    pub(super) feed_body: Option<String>,
}

/// What the planner names by number.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) rows: Slab,
    pub(super) docs: Slab,
}

/// A promise that somebody holds.
struct Promised {
    resolve: Function,
    reject: Function,
}

pub(super) struct Driver {
    pub(super) planner: Planner,
    pub(super) ends: Ends,
    pub(super) host: Host,
    pub(super) kept: Kept,
    pub(super) aborts: HashMap<RequestId, AbortController>,
    pub(super) closed: bool,
    waiting_rows: Option<(usize, Promised)>,
    waiting_docs: Vec<(Array, Promised)>,
    timer: Option<(JsValue, u64, Closure<dyn FnMut()>)>,
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
            kept: Kept::default(),
            aborts: HashMap::new(),
            closed: false,
            waiting_rows: None,
            waiting_docs: Vec::new(),
            timer: None,
        }
    }

    pub(super) fn take_diff(&mut self, revs: &JsValue) -> JsValue {
        let (known, unknown) = (Object::new(), Object::new());
        for pair in Object::entries(revs.unchecked_ref()).iter() {
            let pair: Array = pair.unchecked_into();
            let (id, asked) = (pair.get(0), pair.get(1));
            let asked_revs: Array = asked.clone().unchecked_into();
            let names: Option<Vec<_>> = asked_revs.iter().map(|rev| key(&rev)).collect();
            let missing = match (key(&id), names) {
                (Some(id), Some(names)) => self.planner.take_diff(&id, &names),
                _ => None,
            };
            match missing {
                Some(missing) if missing.is_empty() => {}
                Some(missing) => {
                    let list: Array = missing.iter().map(|rev| JsValue::from(&**rev)).collect();
                    let of = Object::new();
                    set(&of, "missing", &list);
                    let _ = Reflect::set(&known, &id, &of);
                }
                None => {
                    let _ = Reflect::set(&unknown, &id, &asked);
                }
            }
        }
        let out = Object::new();
        set(&out, "known", &known);
        set(&out, "unknown", &unknown);
        out.into()
    }

    /// `_bulk_get`'s answer to `entries`, where everything is there.
    fn results(&mut self, entries: &Array) -> Result<Option<JsValue>, Failure> {
        let names = entries.iter().map(|entry| {
            let (id, rev) = (key(&get(&entry, "id")), key(&get(&entry, "rev")));
            id.zip(rev)
                .ok_or_else(|| Failure::new(FailureKind::BadShape, "an entry without id or rev"))
        });
        let names: Vec<_> = names.collect::<Result<_, _>>()?;
        if names
            .iter()
            .any(|(id, rev)| self.planner.is_pending(id, rev))
        {
            return Ok(None);
        }
        let results = Array::new();
        for (at, (id, rev)) in names.iter().enumerate() {
            let entry = entries.get(at as u32);
            let docs = Array::new();
            match self.planner.take_docs(id, rev) {
                Taken::Docs(found) => {
                    for doc in found {
                        let item = Object::new();
                        set(&item, "ok", &self.kept.docs.take(doc.handle.0));
                        docs.push(&item);
                    }
                }
                Taken::Failed(failure) => return Err(failure),
                Taken::Pending | Taken::Unknown => {}
            }
            let result = Object::new();
            set(&result, "id", &get(&entry, "id"));
            set(&result, "docs", &docs);
            results.push(&result);
        }
        let out = Object::new();
        set(&out, "results", &results);
        Ok(Some(out.into()))
    }

    fn batch(&mut self, batch: Batch) -> JsValue {
        let (rows, seqs) = (Array::new(), Array::new());
        let parse = |seq: &Seq| JSON::parse(seq).unwrap_or(JsValue::NULL);
        for (row, seq) in &batch.rows {
            rows.push(&self.kept.rows.take(row.0));
            seqs.push(&parse(seq));
        }
        let out = Object::new();
        set(&out, "rows", &rows);
        set(&out, "seqs", &seqs);
        set(&out, "last_seq", &parse(&batch.last_seq));
        set(
            &out,
            "pending",
            &batch
                .pending
                .map_or(JsValue::NULL, |n| JsValue::from(n as f64)),
        );
        set(&out, "end", &batch.end.into());
        out.into()
    }
}

pub(super) fn take_rows(driver: &Rc<RefCell<Driver>>, limit: usize) -> Promise {
    let mut settle = |resolve: Function, reject: Function| {
        driver.borrow_mut().waiting_rows = Some((limit, Promised { resolve, reject }));
    };
    let promise = Promise::new(&mut settle);
    pump(driver);
    promise
}

pub(super) fn take_docs(driver: &Rc<RefCell<Driver>>, entries: Array) -> Promise {
    {
        let inner = &mut *driver.borrow_mut();
        for entry in entries.iter() {
            let (Some(id), Some(rev)) = (key(&get(&entry, "id")), key(&get(&entry, "rev"))) else {
                continue;
            };
            if !inner.planner.is_known(&id, &rev) {
                let row = RowHandle(inner.kept.rows.keep(entry));
                inner.planner.want(Entry { row, id, rev });
            }
        }
    }
    let mut settle = |resolve: Function, reject: Function| {
        driver
            .borrow_mut()
            .waiting_docs
            .push((entries.clone(), Promised { resolve, reject }));
    };
    let promise = Promise::new(&mut settle);
    pump(driver);
    promise
}

/// The replicator writes one batch after the other, so one write is under way.
pub(super) fn write(driver: &Rc<RefCell<Driver>>, texts: Array) -> Promise {
    let inner = &mut *driver.borrow_mut();
    let Some(target) = &inner.ends.target else {
        return Promise::reject(&"only a remote target is written by the engine".into());
    };
    let host = JsValue::from(&inner.host).unchecked_into();
    let (promise, writing) = write::write(target, host, texts, inner.limits);
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
                Event::Abort(id) => {
                    if let Some(abort) = inner.aborts.remove(&id) {
                        abort.abort();
                    }
                }
                Event::DropRow(row) => drop(inner.kept.rows.take(row.0)),
                Event::DropDoc(doc) => drop(inner.kept.docs.take(doc.0)),
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
        let Ok(abort) = AbortController::new() else {
            return false;
        };
        let signal = abort.signal();
        driver.borrow_mut().aborts.insert(request.id, abort);
        spawn_local(carry_out(driver.clone(), request, signal));
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
        TakenRows::Batch(batch) => promised.resolve(&inner.batch(batch)),
        TakenRows::Failed(failure) => promised.reject(&rejection(&failure)),
        TakenRows::Pending => {}
    }
    true
}

fn settle_docs(driver: &Rc<RefCell<Driver>>) -> bool {
    let inner = &mut *driver.borrow_mut();
    let waiting = std::mem::take(&mut inner.waiting_docs);
    let before = waiting.len();
    for (entries, promised) in waiting {
        match inner.results(&entries) {
            Ok(Some(results)) => promised.resolve(&results),
            Ok(None) => inner.waiting_docs.push((entries, promised)),
            Err(failure) => promised.reject(&rejection(&failure)),
        }
    }
    inner.waiting_docs.len() < before
}

impl Promised {
    fn resolve(&self, value: &JsValue) {
        let _ = self.resolve.call1(&JsValue::UNDEFINED, value);
    }

    fn reject(&self, value: &JsValue) {
        let _ = self.reject.call1(&JsValue::UNDEFINED, value);
    }
}

fn set_timer(driver: &Rc<RefCell<Driver>>) {
    let now = now();
    let due = driver.borrow().planner.poll_timeout(now);
    let inner = &mut *driver.borrow_mut();
    if inner.timer.as_ref().map(|(_, at, _)| *at) == due {
        return;
    }
    if let Some((timer, ..)) = inner.timer.take() {
        clear_timeout(&timer);
    }
    let Some(at) = due else { return };
    let again = Rc::downgrade(driver);
    let call = Closure::once(move || {
        let Some(driver) = again.upgrade() else {
            return;
        };
        driver.borrow_mut().timer = None;
        if !driver.borrow().closed {
            driver.borrow_mut().planner.handle_timeout(self::now());
            pump(&driver);
        }
    });
    let wait = at.saturating_sub(now) as f64;
    let timer = set_timeout(call.as_ref().unchecked_ref(), wait);
    inner.timer = Some((timer, at, call));
}

pub(super) fn cancel(driver: &Rc<RefCell<Driver>>) {
    let inner = &mut *driver.borrow_mut();
    if inner.closed {
        return;
    }
    inner.closed = true;
    if let Some((timer, ..)) = inner.timer.take() {
        clear_timeout(&timer);
    }
    for (_, abort) in inner.aborts.drain() {
        abort.abort();
    }
    if let Some(writing) = inner.writing.take() {
        writing.borrow_mut().cancel();
    }
    inner.kept = Kept::default();
    let failure = rejection(&Failure::new(FailureKind::Network, "cancelled"));
    if let Some((_, promised)) = inner.waiting_rows.take() {
        promised.reject(&failure);
    }
    for (_, promised) in inner.waiting_docs.drain(..) {
        promised.reject(&failure);
    }
}
