//! Carries out one request of the planner: over HTTP, or on a database of this
//! process, and hands the answer in. The host reads the JSON; here arrive flat
//! lists, text divided by NUL.

use std::cell::RefCell;
use std::rc::Rc;

use gloo_net::http::QueryParams;
use js_sys::{Array, Float64Array, Function, Int32Array, JSON, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::driver::{Driver, pump};
use super::host::{Host, get, now, set, words};
use super::http::{Call, Json, Remote};
use crate::error::{Failure, FailureKind};
use crate::request::{
    Answer, Ask, DocHandle, Entry, FeedPage, FeedRow, GotDoc, Params, Request, RequestId, RowHandle,
};

/// Carries it out, and goes on.
pub(super) async fn carry_out(driver: Rc<RefCell<Driver>>, request: Request, signal: AbortSignal) {
    let Request { id, ask } = request;
    let asking = Asking {
        host: driver.borrow().host(),
        driver: driver.clone(),
        id,
        signal,
    };
    let result = match ask {
        Ask::Feed {
            since,
            limit,
            seq_interval,
        } => asking.feed(&since, limit, seq_interval).await,
        Ask::Diff { rows } => asking.diff(rows).await,
        Ask::Docs { entries, params } => asking.docs(entries, params).await,
    };
    if driver.borrow().closed {
        return;
    }
    if let Err(failure) = result {
        driver
            .borrow_mut()
            .planner
            .handle_failure(id, failure, now());
    }
    driver.borrow_mut().aborts.remove(&id);
    pump(&driver);
}

struct Asking {
    host: Host,
    driver: Rc<RefCell<Driver>>,
    id: RequestId,
    signal: AbortSignal,
}

impl Asking {
    async fn feed(&self, since: &str, limit: u32, interval: Option<u32>) -> Result<(), Failure> {
        let (source, body) = {
            let driver = self.driver.borrow();
            (driver.ends.source.clone(), driver.ends.feed_body.clone())
        };
        let answer = match source {
            None => self.local(self.host.feed(since, limit)).await?,
            Some(source) => {
                let path = self.host.feed_path(since, limit, interval.unwrap_or(0));
                let body = body.map(JsValue::from);
                self.remote(&source, &path, body, "feed").await?
            }
        };
        self.hand_in(|driver| {
            let flat = self.host.page(&answer.value).map_err(bad)?;
            driver.planner.handle_feed_page(self.id, page(&flat), now());
            Ok(())
        })
    }

    async fn diff(&self, rows: Vec<RowHandle>) -> Result<(), Failure> {
        let rows: Vec<u32> = rows.iter().map(|row| row.0).collect();
        let revs = self.host.revs(rows.clone());
        let target = self.driver.borrow().ends.target.clone();
        let answer = match target {
            None => self.local(self.host.ask_diff(&revs)).await?,
            Some(target) => {
                self.remote(&target, "_revs_diff", text(&revs), "diff")
                    .await?
            }
        };
        self.hand_in(|driver| {
            let digits = self.host.diff(&answer.value, rows).map_err(bad)?;
            let missing: Vec<bool> = digits.bytes().map(|digit| digit == b'1').collect();
            driver.planner.handle_diff_flags(self.id, &missing, now());
            Ok(())
        })
    }

    async fn docs(&self, entries: Vec<Entry>, mut params: Params) -> Result<(), Failure> {
        let rows = entries.iter().map(|entry| entry.row.0).collect();
        let revs: Vec<&str> = entries.iter().map(|entry| &*entry.rev).collect();
        let list = self.host.entries(rows, &revs.join("\0"));
        let source = self.driver.borrow().ends.source.clone();
        let answer = match source {
            None => {
                // A database of this process is asked as stock does.
                (params.latest, params.revs) = (true, true);
                self.local(self.host.docs(&list)).await?
            }
            Some(_) if params.single => {
                (params.latest, params.revs) = (true, true);
                self.local(self.host.single(&list)).await?
            }
            Some(source) => {
                if params.attachments {
                    self.name_ancestors(&list).await?;
                }
                let body = Object::new();
                set(&body, "docs", &list);
                let what = if params.attachments {
                    "attachments"
                } else {
                    "docs"
                };
                self.remote(&source, &bulk_get(params), text(&body), what)
                    .await?
            }
        };
        self.hand_in(|driver| {
            let Params {
                latest,
                revs,
                attachments,
                ..
            } = params;
            let flat = self
                .host
                .results(&answer.value, &list, latest, revs, attachments)
                .map_err(bad)?;
            driver
                .planner
                .handle_docs(self.id, answers(&flat), answer.bytes, now());
            Ok(())
        })
    }

    fn hand_in(
        &self,
        read: impl FnOnce(&mut Driver) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let driver = &mut *self.driver.borrow_mut();
        if driver.closed { Ok(()) } else { read(driver) }
    }

    /// Attachments that a leaf of the target has already are left out.
    async fn name_ancestors(&self, list: &Array) -> Result<(), Failure> {
        let leaves = self.local(self.host.ancestors(list)).await?;
        for (item, leaf) in list.iter().zip(Array::from(&leaves.value).iter()) {
            if leaf.is_string() {
                set(&item, "atts_since", &Array::of1(&leaf));
            }
        }
        Ok(())
    }

    /// A database of this process. What it throws is told again when the
    /// replicator asks it itself.
    async fn local(&self, promise: Result<Promise, JsValue>) -> Result<Json, Failure> {
        let thrown = |thrown: JsValue| {
            let status = get(&thrown, "status").as_f64().unwrap_or(0.0) as u16;
            let kind = if status == 0 {
                FailureKind::Network
            } else {
                FailureKind::Status
            };
            Failure {
                status,
                ..Failure::new(kind, words(&thrown))
            }
        };
        let value = JsFuture::from(promise.map_err(thrown)?)
            .await
            .map_err(thrown)?;
        let bytes = get(&value, "bytes").as_f64().unwrap_or(0.0) as u64;
        Ok(Json { value, bytes })
    }

    async fn remote(
        &self,
        remote: &Remote,
        path: &str,
        body: Option<JsValue>,
        what: &str,
    ) -> Result<Json, Failure> {
        let (driver, id) = (self.driver.clone(), self.id);
        let tick = Closure::<dyn FnMut()>::new(move || {
            // The planner may be the one that is reading this very answer.
            if let Ok(mut driver) = driver.try_borrow_mut() {
                driver.planner.handle_progress(id, now());
            }
        });
        let tick: &Function = tick.as_ref().unchecked_ref();
        let call = Call {
            path,
            body,
            upload: None,
            signal: &self.signal,
            tick,
            what,
            stream: what == "attachments",
        };
        remote.json(&self.host, call).await
    }
}

fn bulk_get(params: Params) -> String {
    let query = QueryParams::new();
    let named = [
        ("revs", params.revs),
        ("latest", params.latest),
        ("attachments", params.attachments),
    ];
    for (name, _) in named.into_iter().filter(|(_, on)| *on) {
        query.append(name, "true");
    }
    if params.one_replica {
        query.append("r", "1");
    }
    let query = query.to_string();
    let mark = if query.is_empty() { "" } else { "?" };
    ["_bulk_get", mark, &query].concat()
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
        _ => Answer::Error(errors.next().unwrap_or_default().into()),
    };
    counts.into_iter().map(answer).collect()
}
