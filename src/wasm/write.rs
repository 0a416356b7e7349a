//! Carries out one write to a remote target: the loop around
//! [`Writes`](crate::writes::Writes).

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::AbortController;

use super::host::{Host, clear_timeout, get, now, rejection, set, set_timeout};
use super::http::{Call, Remote};
use crate::error::{Failure, FailureKind};
use crate::request::RequestId;
use crate::writes::{Outcome, Writes};

/// One write under way.
pub(super) struct Writing {
    writes: Writes,
    target: Remote,
    host: Host,
    /// JSON texts of the documents.
    texts: Array,
    /// What the server said of single documents.
    rows: Array,
    aborts: HashMap<RequestId, AbortController>,
    resolve: Function,
    reject: Function,
    timer: Option<(JsValue, u64, Closure<dyn FnMut()>)>,
    over: bool,
}

/// Writes documents given as JSON texts; `{ rows, too_large }` when all are sent.
pub(super) fn write(
    target: &Remote,
    host: Host,
    texts: Array,
    (max_concurrency, stall_ms): (u32, u64),
) -> (Promise, Rc<RefCell<Writing>>) {
    let bytes: Vec<u64> = texts.iter().map(|text| get_length(&text)).collect();
    let mut made = None;
    let promise = Promise::new(&mut |resolve, reject| made = Some((resolve, reject)));
    let (resolve, reject) = made.unwrap_or_else(|| (Function::default(), Function::default()));
    let writing = Rc::new(RefCell::new(Writing {
        writes: Writes::new(&bytes, max_concurrency, stall_ms),
        target: target.clone(),
        host,
        texts,
        rows: Array::new(),
        aborts: HashMap::new(),
        resolve,
        reject,
        timer: None,
        over: false,
    }));
    pump(&writing);
    (promise, writing)
}

fn get_length(text: &JsValue) -> u64 {
    u64::from(text.unchecked_ref::<js_sys::JsString>().length())
}

impl Writing {
    /// Ends every request.
    pub(super) fn cancel(&mut self) {
        if !self.over {
            self.finish(Outcome::Failed(Failure::new(
                FailureKind::Network,
                "cancelled",
            )));
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        self.over = true;
        if let Some((timer, ..)) = self.timer.take() {
            clear_timeout(&timer);
        }
        for (_, abort) in self.aborts.drain() {
            abort.abort();
        }
        let _ = match outcome {
            Outcome::Failed(failure) => {
                self.reject.call1(&JsValue::UNDEFINED, &rejection(&failure))
            }
            Outcome::Done(too_large) => {
                let out = js_sys::Object::new();
                let list: Array = too_large
                    .iter()
                    .map(|(at, _)| JsValue::from(*at as f64))
                    .collect();
                set(&out, "rows", &self.rows);
                set(&out, "tooLarge", &list);
                self.resolve.call1(&JsValue::UNDEFINED, &out)
            }
        };
    }
}

fn pump(writing: &Rc<RefCell<Writing>>) {
    loop {
        let inner = &mut *writing.borrow_mut();
        if inner.over {
            return;
        }
        let Some((id, docs)) = inner.writes.poll_request(now()) else {
            break;
        };
        let Ok(abort) = AbortController::new() else {
            break;
        };
        let signal = abort.signal();
        inner.aborts.insert(id, abort);
        spawn_local(send(writing.clone(), id, docs, signal));
    }
    let outcome = writing.borrow_mut().writes.poll_outcome();
    match outcome {
        Some(outcome) => writing.borrow_mut().finish(outcome),
        None => set_timer(writing),
    }
}

async fn send(
    writing: Rc<RefCell<Writing>>,
    id: RequestId,
    docs: Range<usize>,
    signal: web_sys::AbortSignal,
) {
    let (target, host, body) = {
        let inner = writing.borrow();
        let part = inner.texts.slice(docs.start as u32, docs.end as u32);
        let body = format_body(&part);
        (
            inner.target.clone(),
            JsValue::from(&inner.host).unchecked_into::<Host>(),
            body,
        )
    };
    let tick = Function::default();
    let call = Call {
        path: "_bulk_docs",
        body: Some(body),
        signal: &signal,
        tick: &tick,
        what: "write",
        stream: false,
    };
    let result = target.json(&host, call).await;
    {
        let inner = &mut *writing.borrow_mut();
        if inner.over {
            return;
        }
        inner.aborts.remove(&id);
        match result {
            Err(failure) => inner.writes.handle_failure(id, failure, now()),
            Ok(json) if !Array::is_array(&json.value) => {
                let failure = Failure::new(FailureKind::BadShape, "a write answered with no list");
                inner.writes.handle_failure(id, failure, now());
            }
            Ok(json) => {
                for row in Array::from(&json.value)
                    .iter()
                    .filter(|row| get(row, "error").is_truthy())
                {
                    inner.rows.push(&row);
                }
                inner.writes.handle_written(id);
            }
        }
    }
    pump(&writing);
}

/// The texts are joined by the host: they never pass through Rust.
fn format_body(texts: &Array) -> JsValue {
    let open = js_sys::JsString::from("{\"new_edits\":false,\"docs\":[");
    open.concat(&texts.join(",")).concat(&"]}".into()).into()
}

fn set_timer(writing: &Rc<RefCell<Writing>>) {
    let due = writing.borrow().writes.poll_timeout(now());
    let inner = &mut *writing.borrow_mut();
    if inner.timer.as_ref().map(|(_, at, _)| *at) == due {
        return;
    }
    if let Some((timer, ..)) = inner.timer.take() {
        clear_timeout(&timer);
    }
    let Some(at) = due else { return };
    let again = Rc::downgrade(writing);
    let call = Closure::once(move || {
        let Some(writing) = again.upgrade() else {
            return;
        };
        {
            let inner = &mut *writing.borrow_mut();
            inner.timer = None;
            for id in inner.writes.stalled(now()) {
                if let Some(abort) = inner.aborts.remove(&id) {
                    abort.abort();
                }
                let failure = Failure::new(FailureKind::Stalled, "no answer in time");
                inner.writes.handle_failure(id, failure, now());
            }
        }
        pump(&writing);
    });
    let timer = set_timeout(
        call.as_ref().unchecked_ref(),
        at.saturating_sub(now()) as f64,
    );
    inner.timer = Some((timer, at, call));
}
