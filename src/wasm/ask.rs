//! Carries out one request of the planner: over HTTP, or on a database of this
//! process, and hands the answer in.

use std::cell::RefCell;
use std::rc::Rc;

use gloo_net::http::QueryParams;
use js_sys::{Array, Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::answers;
use super::driver::{Driver, pump};
use super::host::{Host, get, json_text, now, set, words};
use super::http::{Call, Json, Remote};
use crate::error::{Failure, FailureKind};
use crate::request::{Ask, Entry, Params, Request, RequestId, RowHandle};

type Shared = Rc<RefCell<Driver>>;

/// Carries it out, and goes on.
pub(super) async fn carry_out(driver: Shared, request: Request, signal: AbortSignal) {
    let Request { id, ask } = request;
    let asking = Asking {
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
    driver: Shared,
    id: RequestId,
    signal: AbortSignal,
}

impl Asking {
    async fn feed(&self, since: &str, limit: u32, interval: Option<u32>) -> Result<(), Failure> {
        let since = JSON::parse(since).unwrap_or(JsValue::NULL);
        let (source, query, body) = {
            let driver = self.driver.borrow();
            (
                driver.ends.source.clone(),
                driver.ends.feed_query.clone(),
                driver.ends.feed_body.clone(),
            )
        };
        let answer = match source {
            None => self.local(self.host().feed(&since, limit)).await?,
            Some(source) => {
                let params = QueryParams::new();
                params.append(
                    "since",
                    &match since.as_string() {
                        Some(text) => text,
                        None => String::from(&*json_text(&since)),
                    },
                );
                params.append("limit", &limit.to_string());
                if let Some(interval) = interval {
                    params.append("seq_interval", &interval.to_string());
                }
                let more = if query.is_empty() { "" } else { "&" };
                let path = format!("_changes?{query}{more}{params}");
                self.remote(&source, &path, body.map(JsValue::from), "feed")
                    .await?
            }
        };
        let driver = &mut *self.driver.borrow_mut();
        if !driver.closed {
            let page = answers::page(&answer.value, &mut driver.kept)?;
            driver.planner.handle_feed_page(self.id, page, now());
        }
        Ok(())
    }

    async fn diff(&self, rows: Vec<RowHandle>) -> Result<(), Failure> {
        // Without a prototype: an id may be the name of anything.
        let revs = Object::create(JsValue::NULL.unchecked_ref());
        let target = {
            let driver = self.driver.borrow();
            for row in &rows {
                let row = driver.kept.rows.peek(row.0);
                let changes: Array = get(&row, "changes").unchecked_into();
                let of: Array = changes.iter().map(|change| get(&change, "rev")).collect();
                let _ = Reflect::set(&revs, &get(&row, "id"), &of);
            }
            driver.ends.target.clone()
        };
        let answer = match target {
            None => self.local(self.host().diff(&revs)).await?,
            Some(target) => {
                self.remote(&target, "_revs_diff", text(&revs), "diff")
                    .await?
            }
        };
        let driver = &mut *self.driver.borrow_mut();
        if !driver.closed {
            let missing = answers::diff(&answer.value, &rows, &driver.kept)?;
            driver.planner.handle_diff(self.id, missing, now());
        }
        Ok(())
    }

    async fn docs(&self, entries: Vec<Entry>, mut params: Params) -> Result<(), Failure> {
        let (source, list) = {
            let driver = self.driver.borrow();
            let list: Array = entries
                .iter()
                .map(|entry| {
                    let item = Object::new();
                    set(&item, "id", &get(&driver.kept.rows.peek(entry.row.0), "id"));
                    set(&item, "rev", &(&*entry.rev).into());
                    JsValue::from(item)
                })
                .collect();
            (driver.ends.source.clone(), list)
        };
        let answer = match source {
            None => {
                // A database of this process is asked as stock does.
                params.latest = true;
                self.local(self.host().docs(&list)).await?
            }
            Some(_) if params.single => self.local(self.host().single(&list)).await?,
            Some(source) => {
                if params.attachments {
                    self.name_ancestors(&list).await?;
                }
                let query = QueryParams::new();
                let named = [
                    ("revs", params.revs),
                    ("latest", params.latest),
                    ("attachments", params.attachments),
                ];
                for (name, on) in named {
                    if on {
                        query.append(name, "true");
                    }
                }
                if params.one_replica {
                    query.append("r", "1");
                }
                let body = Object::new();
                set(&body, "docs", &list);
                let query = query.to_string();
                let mark = if query.is_empty() { "" } else { "?" };
                let path = format!("_bulk_get{mark}{query}");
                self.remote(
                    &source,
                    &path,
                    text(&body),
                    if params.attachments {
                        "attachments"
                    } else {
                        "docs"
                    },
                )
                .await?
            }
        };
        let driver = &mut *self.driver.borrow_mut();
        if !driver.closed {
            if params.attachments && params.latest {
                answers::gather(&answer.value);
            }
            let read = answers::docs(&answer.value, &entries, params, &mut driver.kept)?;
            driver
                .planner
                .handle_docs(self.id, read, answer.bytes, now());
        }
        Ok(())
    }

    /// Attachments that a leaf of the target has already are left out.
    async fn name_ancestors(&self, list: &Array) -> Result<(), Failure> {
        let leaves = self.local(self.host().ancestors(list)).await?;
        let leaves = Array::from(&leaves.value);
        for (item, leaf) in list.iter().zip(leaves.iter()) {
            if leaf.is_string() {
                set(&item, "atts_since", &Array::of1(&leaf));
            }
        }
        Ok(())
    }

    /// Cloned, so that no borrow is held while the host runs.
    fn host(&self) -> Host {
        JsValue::from(&self.driver.borrow().host).unchecked_into()
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
        let host = self.host();
        let (driver, id) = (self.driver.clone(), self.id);
        let tick = Closure::<dyn FnMut()>::new(move || {
            // The planner may be the one that is reading this very answer.
            if let Ok(mut driver) = driver.try_borrow_mut() {
                driver.planner.handle_progress(id, now());
            }
        });
        let tick_fn: &Function = tick.as_ref().unchecked_ref();
        let call = Call {
            path,
            body,
            signal: &self.signal,
            tick: tick_fn,
            what,
            stream: what == "attachments",
        };
        remote.json(&host, call).await
    }
}

fn text(value: &Object) -> Option<JsValue> {
    JSON::stringify(value).ok().map(JsValue::from)
}
