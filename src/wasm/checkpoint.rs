//! Hands the checkpoint's write-behind to JS.

use wasm_bindgen::prelude::*;

use crate::checkpoint;

/// One `_local` document that is written behind; see
/// [`checkpoint::Checkpoint`] for what each call means.
#[wasm_bindgen]
#[derive(Default)]
pub struct Checkpoint(checkpoint::Checkpoint);

#[wasm_bindgen]
impl Checkpoint {
    /// Nothing was written yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The replicator wants to write; answers the version.
    pub fn put(&mut self) -> u32 {
        self.0.handle_put()
    }

    /// The version to write now, if any.
    #[wasm_bindgen(js_name = nextWrite)]
    pub fn next_write(&mut self) -> Option<u32> {
        self.0.poll_write()
    }

    /// The write in flight succeeded.
    pub fn written(&mut self) {
        self.0.handle_written();
    }

    /// The write in flight failed.
    pub fn failed(&mut self) {
        self.0.handle_failure();
    }

    /// Nothing waits and nothing is in flight.
    #[wasm_bindgen(js_name = isSettled)]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }
}
