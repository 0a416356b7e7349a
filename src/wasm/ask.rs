//! Carries out one request of the planner: over HTTP, or on a database of this
//! process, and hands the answer in. The host reads the JSON; here arrive flat
//! lists, text divided by NUL.
//!
//! What is asked and what becomes of the answer is told without waiting, and
//! there is one place for each thing that is waited for: every other one would
//! add the whole state of a request to the engine's size.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use js_sys::{Array, Float64Array, Function, Int32Array, JSON, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::driver::{Driver, pump};
use super::host::{Host, join, now, number_of, set, words};
use super::http::{Call, Json, Remote};
use crate::error::{Failure, FailureKind};
use crate::planner::Planner;
use crate::request::{
    Answer, Ask, DocHandle, FeedPage, FeedRow, GotDoc, Params, Request, RequestId, RowHandle,
};

/// Carries it out, and goes on.
pub(super) async fn carry_out(driver: Rc<RefCell<Driver>>, request: Request, signal: AbortSignal) {
    let Request { id, ask } = request;
    let host = driver.borrow().host();
    let entries = entries(&host, &ask);
    let asking = Asking {
        host,
        driver,
        id,
        ask,
        entries,
        signal,
    };
    let answer = asking.answer().await;
    let Asking { driver, .. } = &asking;
    if driver.borrow().closed {
        return;
    }
    // What is left of a broken stream keeps no connection.
    let is_read = answer.as_ref().is_ok_and(|answer| answer.cut.is_none());
    let result = answer.and_then(|answer| asking.hand_in(answer));
    {
        let inner = &mut *driver.borrow_mut();
        if let Err(failure) = result {
            inner.planner.handle_failure(id, failure, now());
        }
        if is_read {
            inner.aborts.remove(id);
        } else {
            inner.aborts.abort(id);
        }
    }
    pump(driver);
}

/// The documents of `ask`, as `_bulk_get` names them.
fn entries(host: &Host, ask: &Ask) -> Array {
    let Ask::Docs { entries, .. } = ask else {
        return Array::new();
    };
    let rows = entries.iter().map(|entry| entry.row.0).collect();
    let revs = join(&mut entries.iter().map(|entry| &*entry.rev));
    host.entries(rows, &revs)
}

struct Asking {
    host: Host,
    driver: Rc<RefCell<Driver>>,
    id: RequestId,
    ask: Ask,
    entries: Array,
    signal: AbortSignal,
}

impl Asking {
    async fn answer(&self) -> Result<Json, Failure> {
        let what = self.what();
        if what == "attachments" {
            local(self.host.name_ancestors(&self.entries)).await?;
        }
        let (driver, id) = (self.driver.clone(), self.id);
        // Called as bytes arrive; of a feed page, with the rows that came.
        let tick = Closure::<dyn FnMut(JsValue)>::new(move |came: JsValue| {
            if let Ok(flat) = came.dyn_into::<Array>() {
                let rows = page(&flat).rows;
                driver
                    .borrow_mut()
                    .planner
                    .handle_feed_rows(id, rows, now());
                return pump(&driver);
            }
            // The planner may be the one that is reading this very answer.
            if let Ok(mut driver) = driver.try_borrow_mut() {
                driver.planner.handle_progress(id, now());
            }
        });
        let tick: &Function = tick.as_ref().unchecked_ref();
        let answer = match self.remote() {
            None => local(self.ask_here()).await?,
            Some(remote) => {
                let (path, body) = self.question();
                let call = Call {
                    path: &path,
                    body,
                    upload: None,
                    signal: &self.signal,
                    tick,
                    what,
                    stream: what == "attachments",
                };
                remote.json(&self.host, call).await?
            }
        };
        if let Ask::Docs { params, .. } = &self.ask {
            let host = &self.host;
            let ready = if params.attachments {
                host.complete(&answer.value, &self.entries, &self.signal, tick)
            } else {
                host.breathe()
            };
            local(ready).await?;
        }
        Ok(answer)
    }

    /// Where it is asked; `None` where the host asks.
    fn remote(&self) -> Option<Rc<Remote>> {
        let ends = &self.driver.borrow().ends;
        match &self.ask {
            Ask::Diff { .. } => ends.target.clone(),
            Ask::Docs { params, .. } if params.single => None,
            Ask::Feed { .. } | Ask::Docs { .. } => ends.source.clone(),
        }
    }

    fn what(&self) -> &'static str {
        match &self.ask {
            Ask::Feed { .. } => "feed",
            Ask::Diff { .. } => "diff",
            Ask::Docs { params, .. } if is_stream(params) => "attachments",
            Ask::Docs { .. } => "docs",
        }
    }

    fn ask_here(&self) -> Result<Promise, JsValue> {
        match &self.ask {
            Ask::Feed { since, limit, .. } => self.host.feed(since, *limit),
            Ask::Diff { rows } => self.host.ask_diff(&self.host.revs(numbers(rows))),
            Ask::Docs { params, .. } if params.single => self.host.single(&self.entries),
            Ask::Docs { .. } => self.host.docs(&self.entries),
        }
    }

    /// The path, and the body, where there is one.
    fn question(&self) -> (String, Option<JsValue>) {
        match &self.ask {
            Ask::Feed {
                since,
                limit,
                seq_interval,
            } => {
                let interval = seq_interval.unwrap_or(0);
                let path = self.host.feed_path(since, *limit, interval);
                let body = self.driver.borrow().ends.feed_body.clone();
                (path, body.map(JsValue::from))
            }
            Ask::Diff { rows } => ("_revs_diff".into(), text(&self.host.revs(numbers(rows)))),
            Ask::Docs { params, .. } => {
                let body = Object::new();
                set(&body, "docs", &self.entries);
                (bulk_get(*params), text(&body))
            }
        }
    }

    fn hand_in(&self, answer: Json) -> Result<(), Failure> {
        let value = &answer.value;
        match &self.ask {
            Ask::Feed { .. } => {
                let page = page(&self.host.page(value).map_err(bad)?);
                self.planner().handle_feed_page(self.id, page, now());
            }
            Ask::Diff { rows } => {
                let digits = self.host.diff(value, numbers(rows)).map_err(bad)?;
                let missing: Vec<bool> = digits.bytes().map(|digit| digit == b'1').collect();
                self.planner().handle_diff_flags(self.id, &missing, now());
            }
            Ask::Docs { params, .. } => {
                // What the host asks for itself, it asks as stock does.
                let whole = self.remote().is_none();
                let (latest, revs) = (params.latest || whole, params.revs || whole);
                let entries = match &answer.cut {
                    None => self.entries.clone(),
                    // Which leaves answer for a revision is known at the end only.
                    Some(failure) if latest => return Err(failure.clone()),
                    Some(_) => self.entries.slice(0, answer.results()),
                };
                let flat = self
                    .host
                    .results(value, &entries, latest, revs, is_stream(params))
                    .map_err(bad)?;
                let (id, answers, bytes) = (self.id, answers(&flat), answer.bytes);
                let mut planner = self.planner();
                match answer.cut {
                    None => planner.handle_docs(id, answers, bytes, now()),
                    Some(cut) => planner.handle_broken_stream(id, answers, bytes, cut, now()),
                }
            }
        }
        Ok(())
    }

    fn planner(&self) -> RefMut<'_, Planner> {
        RefMut::map(self.driver.borrow_mut(), |driver| &mut driver.planner)
    }
}

/// Documents and their attachments in one answer.
fn is_stream(params: &Params) -> bool {
    params.attachments && !params.piecewise
}

/// A database of this process. What it throws is told again when the replicator
/// asks it itself.
async fn local(promise: Result<Promise, JsValue>) -> Result<Json, Failure> {
    let answer = match promise {
        Ok(promise) => JsFuture::from(promise).await,
        Err(thrown) => Err(thrown),
    };
    let value = answer.map_err(|thrown| {
        let status = number_of(&thrown, "status") as u16;
        let kind = if status == 0 {
            FailureKind::Network
        } else {
            FailureKind::Status
        };
        Failure {
            status,
            ..Failure::new(kind, words(&thrown))
        }
    })?;
    let bytes = number_of(&value, "bytes") as u64;
    Ok(Json {
        value,
        bytes,
        cut: None,
    })
}

fn numbers(rows: &[RowHandle]) -> Vec<u32> {
    rows.iter().map(|row| row.0).collect()
}

fn bulk_get(params: Params) -> String {
    let mut path = String::from("_bulk_get");
    let named = [
        (params.revs, "revs=true"),
        (params.latest, "latest=true"),
        (is_stream(&params), "attachments=true"),
        (params.one_replica, "r=1"),
    ];
    let mut mark = '?';
    for (on, parameter) in named {
        if on {
            path.push(mark);
            path.push_str(parameter);
            mark = '&';
        }
    }
    path
}

fn text(value: &JsValue) -> Option<JsValue> {
    JSON::stringify(value).ok().map(JsValue::from)
}

/// What the host said of a shape that was not asked for.
fn bad(thrown: JsValue) -> Failure {
    Failure::new(FailureKind::BadShape, words(&thrown))
}

fn page(flat: &Array) -> FeedPage {
    let first = flat.get(0).as_f64().unwrap_or(0.0) as u32;
    let text = flat.get(1).as_string().unwrap_or_default();
    let pending = flat.get(3).as_f64().filter(|&pending| pending >= 0.0);
    let mut fields = text.split('\0');
    let mut rows = Vec::new();
    while let (Some(id), Some(seq), Some(count)) = (fields.next(), fields.next(), fields.next()) {
        let count = count.parse().unwrap_or(0);
        rows.push(FeedRow {
            handle: RowHandle(first + rows.len() as u32),
            id: id.into(),
            revs: fields.by_ref().take(count).map(Rc::from).collect(),
            seq: (!seq.is_empty()).then(|| seq.into()),
        });
    }
    FeedPage {
        rows,
        last_seq: flat.get(2).as_string().unwrap_or_default().into(),
        pending: pending.map(|pending| pending as u64),
    }
}

fn answers(flat: &Array) -> Vec<Answer> {
    let mut next = flat.get(0).as_f64().unwrap_or(0.0) as u32;
    let counts = Int32Array::from(flat.get(1)).to_vec();
    let mut stubs = Float64Array::from(flat.get(2)).to_vec().into_iter();
    let errors = flat.get(3).as_string().unwrap_or_default();
    let mut errors = errors.split('\0');
    let mut document = || {
        let handle = DocHandle(next);
        next += 1;
        let stubs = stubs.next().filter(|&bytes| bytes >= 0.0);
        GotDoc {
            handle,
            stubs: stubs.map(|bytes| bytes as u64),
        }
    };
    let answer = |count: i32| match count {
        0 => Answer::Missing,
        1.. => Answer::Docs((0..count).map(|_| document()).collect()),
        -1 => Answer::Error(errors.next().unwrap_or_default().into()),
        _ => Answer::Attachment(errors.next().unwrap_or_default().into()),
    };
    counts.into_iter().map(answer).collect()
}
