//! Keeps JS values under small numbers, so that the planner can name them.

use wasm_bindgen::JsValue;

/// The kept values.
#[derive(Default)]
pub(super) struct Slab {
    kept: Vec<Option<JsValue>>,
    free: Vec<u32>,
}

impl Slab {
    pub(super) fn keep(&mut self, value: JsValue) -> u32 {
        if let Some(at) = self.free.pop() {
            self.kept[at as usize] = Some(value);
            return at;
        }
        self.kept.push(Some(value));
        self.kept.len() as u32 - 1
    }

    pub(super) fn peek(&self, at: u32) -> JsValue {
        self.kept
            .get(at as usize)
            .cloned()
            .flatten()
            .unwrap_or(JsValue::UNDEFINED)
    }

    pub(super) fn take(&mut self, at: u32) -> JsValue {
        let Some(value) = self.kept.get_mut(at as usize).and_then(Option::take) else {
            return JsValue::UNDEFINED;
        };
        self.free.push(at);
        value
    }
}
