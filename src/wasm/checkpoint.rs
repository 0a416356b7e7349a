//! Hands the checkpoint's write-behind to JS.

use wasm_bindgen::prelude::*;

use super::host::now;
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

    /// The replicator wants to write; `near_end`: nothing is left to be fetched.
    pub fn put(&mut self, near_end: bool) {
        self.0.handle_put(near_end, now());
    }

    /// Somebody waits until everything is written.
    pub fn flush(&mut self) {
        self.0.handle_flush();
    }

    /// The newest version is to be written now.
    #[wasm_bindgen(js_name = mayWrite)]
    pub fn may_write(&mut self) -> bool {
        self.0.poll_write(now()).is_some()
    }

    /// ms until the next write, should one wait.
    #[wasm_bindgen(js_name = nextIn)]
    pub fn next_in(&self) -> Option<u32> {
        let due = self.0.poll_timeout()?;
        Some(due.saturating_sub(now()) as u32)
    }

    /// The write in flight succeeded.
    pub fn written(&mut self) {
        self.0.handle_written();
    }

    /// The write in flight failed.
    pub fn failed(&mut self) {
        self.0.handle_failure();
    }
}
