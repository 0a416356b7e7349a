//! Carries out one write to a remote target: the loop around
//! [`Writes`](crate::writes::Writes).

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Array, Function, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::host::{Host, get, now, number_of, set};
use super::http::{Call, Json, Remote, network};
use super::pending::{Aborts, Promised, Timer, spawn};
use crate::error::{Failure, FailureKind};
use crate::pace::Pace;
use crate::request::RequestId;
use crate::writes::{Form, Outcome, Outgoing, Writes};

/// One write under way.
pub(super) struct Writing {
    writes: Writes,
    target: Rc<Remote>,
    host: Host,
    /// The documents: JSON texts, or what the host sends with attachments behind.
    docs: Array,
    /// What the server said of single documents, by where their requests began:
    /// kept in that order, since sorting would add 2 kB to the engine.
    rows: Vec<(usize, Array)>,
    aborts: Aborts,
    promised: Promised,
    timer: Timer,
    over: bool,
}

/// Writes documents; `{ rows, tooLarge, refusesMultipart }` when all are sent.
pub(super) fn write(
    target: &Rc<Remote>,
    host: Host,
    docs: Array,
    pace: Pace,
    stall_ms: u64,
) -> (Promise, Rc<RefCell<Writing>>) {
    let outgoing = docs.iter().map(|doc| Outgoing {
        bytes: get_length(&doc),
        multipart: !doc.is_string(),
    });
    let (promise, promised) = Promised::new();
    let writing = Rc::new(RefCell::new(Writing {
        writes: Writes::new(outgoing.collect(), pace, stall_ms, now()),
        target: target.clone(),
        host,
        docs,
        rows: Vec::new(),
        aborts: Aborts::default(),
        promised,
        timer: Timer::default(),
        over: false,
    }));
    pump(&writing);
    (promise, writing)
}

/// UTF-16 units of a text, or the bytes that the host counted.
fn get_length(doc: &JsValue) -> u64 {
    number_of(doc, "length") as u64
}

impl Writing {
    /// What the next write begins with.
    pub(super) fn pace(&self) -> Pace {
        self.writes.pace().clone()
    }

    /// Ends every request.
    pub(super) fn cancel(&mut self) {
        if !self.over {
            self.finish(Outcome::Failed(Failure::new(
                FailureKind::Network,
                "cancelled",
            )));
        }
    }

    fn give_up_stalled(&mut self) {
        self.timer.fired();
        for id in self.writes.stalled(now()) {
            self.aborts.abort(id);
            let failure = Failure::new(FailureKind::Stalled, "no answer in time");
            self.writes.handle_failure(id, failure, now());
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        self.over = true;
        // The driver keeps this for its pace.
        self.docs = Array::new();
        self.timer.clear();
        self.aborts.abort_all();
        match outcome {
            Outcome::Failed(failure) => self.promised.reject(&failure),
            Outcome::Done(too_large) => {
                let list = Array::new();
                for (at, _) in too_large {
                    list.push(&JsValue::from(at as f64));
                }
                let mut rows = Array::new();
                for (_, told) in &self.rows {
                    rows = rows.concat(told);
                }
                let refuses = self.writes.refuses_multipart();
                let out = Object::new();
                set(&out, "rows", &rows);
                set(&out, "tooLarge", &list);
                set(&out, "refusesMultipart", &refuses.into());
                self.promised.resolve(&out);
            }
        }
    }
}

fn pump(writing: &Rc<RefCell<Writing>>) {
    loop {
        let inner = &mut *writing.borrow_mut();
        if inner.over {
            return;
        }
        let Some((id, docs, form)) = inner.writes.poll_request(now()) else {
            break;
        };
        let Some(signal) = inner.aborts.add(id) else {
            break;
        };
        spawn(Box::pin(send(writing.clone(), id, docs, form, signal)));
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
    form: Form,
    signal: AbortSignal,
) {
    let (target, host, part) = {
        let inner = writing.borrow();
        (
            inner.target.clone(),
            JsValue::from(&inner.host).unchecked_into::<Host>(),
            inner.docs.slice(docs.start as u32, docs.end as u32),
        )
    };
    let result = put(&target, &host, &part, form, &signal).await;
    {
        let inner = &mut *writing.borrow_mut();
        if inner.over {
            return;
        }
        inner.aborts.remove(id);
        match result {
            Err(failure) => {
                host.count("write", -1.0);
                inner.writes.handle_failure(id, failure, now());
            }
            Ok(Json { value, .. }) if form != Form::Multipart && !Array::is_array(&value) => {
                let failure = Failure::new(FailureKind::BadShape, "a write answered with no list");
                inner.writes.handle_failure(id, failure, now());
            }
            Ok(Json { value, .. }) => {
                if form != Form::Multipart {
                    let told = Array::new();
                    for row in Array::from(&value) {
                        if get(&row, "error").is_truthy() {
                            told.push(&row);
                        }
                    }
                    let at = inner.rows.partition_point(|(from, _)| *from < docs.start);
                    inner.rows.insert(at, (docs.start, told));
                }
                inner.writes.handle_written(id, now());
            }
        }
    }
    pump(&writing);
}

async fn put(
    target: &Remote,
    host: &Host,
    part: &Array,
    form: Form,
    signal: &AbortSignal,
) -> Result<Json, Failure> {
    let tick = Closure::<dyn FnMut()>::new(|| {});
    let tick: &Function = tick.as_ref().unchecked_ref();
    let upload = part.get(0);
    let (body, upload) = match form {
        Form::Bulk => (Some(format_body(part)), None),
        Form::Multipart => (None, Some(&upload)),
        Form::Inline => {
            let text = host.inline(&upload).map_err(network)?;
            let text = JsFuture::from(text).await.map_err(network)?;
            (Some(format_body(&Array::of1(&text))), None)
        }
    };
    let call = Call {
        path: "_bulk_docs",
        body,
        upload,
        signal,
        tick,
        what: "write",
        stream: false,
    };
    target.json(host, call).await
}

/// The texts are joined by the host: they never pass through Rust.
fn format_body(texts: &Array) -> JsValue {
    let open = js_sys::JsString::from("{\"new_edits\":false,\"docs\":[");
    open.concat(&texts.join(",")).concat(&"]}".into()).into()
}

fn set_timer(writing: &Rc<RefCell<Writing>>) {
    let again = Rc::downgrade(writing);
    let inner = &mut *writing.borrow_mut();
    let due = inner.writes.poll_timeout();
    inner.timer.set(&inner.host, due, &|| {
        let again = again.clone();
        Closure::once(move || {
            let Some(writing) = again.upgrade() else {
                return;
            };
            writing.borrow_mut().give_up_stalled();
            pump(&writing);
        })
    });
}
