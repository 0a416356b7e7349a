//! What a loop around the planner or a write keeps of the platform: the requests
//! that it can abort, the one timer, and promises that somebody holds. Lists of a
//! handful, so nothing is hashed.

use std::pin::Pin;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{AbortController, AbortSignal};

use super::host::{Host, now, rejection};
use crate::error::Failure;
use crate::request::RequestId;

/// Requests in flight.
#[derive(Default)]
pub(super) struct Aborts(Vec<(RequestId, AbortController)>);

impl Aborts {
    /// A request leaves, with the signal that ends it.
    pub(super) fn add(&mut self, id: RequestId) -> Option<AbortSignal> {
        let abort = AbortController::new().ok()?;
        let signal = abort.signal();
        self.0.push((id, abort));
        Some(signal)
    }

    /// It is over.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<AbortController> {
        let at = self.0.iter().position(|(name, _)| *name == id)?;
        Some(self.0.swap_remove(at).1)
    }

    /// It is ended, if it is still in flight.
    pub(super) fn abort(&mut self, id: RequestId) {
        end(self.remove(id).into_iter().collect());
    }

    pub(super) fn abort_all(&mut self) {
        end(self.0.drain(..).map(|(_, abort)| abort).collect());
    }
}

/// Not at once: a `fetch` of the user's may listen, and call the replication that is
/// just being worked on.
fn end(aborts: Vec<AbortController>) {
    spawn(Box::pin(async move {
        aborts.iter().for_each(AbortController::abort);
    }));
}

/// At most one timer.
#[derive(Default)]
pub(super) struct Timer(Option<Running>);

struct Running {
    end: Function,
    at: u64,
    /// Kept for as long as it may be called.
    _call: Closure<dyn FnMut()>,
}

impl Timer {
    /// Has `make`'s closure called at `due`; at the same time as before, nothing
    /// changes.
    pub(super) fn set(
        &mut self,
        host: &Host,
        due: Option<u64>,
        make: &dyn Fn() -> Closure<dyn FnMut()>,
    ) {
        if self.0.as_ref().map(|running| running.at) == due {
            return;
        }
        self.clear();
        let Some(at) = due else { return };
        let call = make();
        let wait = at.saturating_sub(now()) as f64;
        let end = host.later(call.as_ref().unchecked_ref(), wait);
        let _call = call;
        self.0 = Some(Running { end, at, _call });
    }

    /// It is being called, and over.
    pub(super) fn fired(&mut self) {
        self.0 = None;
    }

    pub(super) fn clear(&mut self) {
        if let Some(running) = self.0.take() {
            let _ = running.end.call0(&JsValue::UNDEFINED);
        }
    }
}

/// A promise that somebody holds: what resolves and what rejects it.
#[derive(Default)]
pub(super) struct Promised(Option<(Function, Function)>);

impl Promised {
    pub(super) fn new() -> (Promise, Self) {
        let mut promised = Self::default();
        let promise = Promise::new(&mut |resolve, reject| promised.0 = Some((resolve, reject)));
        (promise, promised)
    }

    pub(super) fn resolve(&self, value: &JsValue) {
        if let Some((resolve, _)) = &self.0 {
            let _ = resolve.call1(&JsValue::UNDEFINED, value);
        }
    }

    pub(super) fn reject(&self, failure: &Failure) {
        if let Some((_, reject)) = &self.0 {
            let _ = reject.call1(&JsValue::UNDEFINED, &rejection(failure));
        }
    }
}

/// Carries on by itself. Boxed, because the machinery around a future is there
/// once for each kind of it.
pub(super) fn spawn(future: Pin<Box<dyn Future<Output = ()>>>) {
    spawn_local(future);
}
