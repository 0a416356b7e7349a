//! The only exports: [`Engine`], one run of one direction, and [`Checkpoint`],
//! one `_local` document that is written behind.

mod answers;
mod ask;
mod attachments;
mod checkpoint;
mod driver;
mod host;
mod http;
mod settings;
mod slab;
mod write;

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;

use self::driver::Driver;
use self::host::Host;

/// One run: the feed of a source after one sequence, and its documents.
///
/// The host is an object with the methods of `js/host.js`; promises reject with
/// plain objects `{ code, kind, status, reason }`.
#[wasm_bindgen]
pub struct Engine {
    driver: Rc<RefCell<Driver>>,
}

#[wasm_bindgen]
impl Engine {
    /// A run with `config` (see `settings`) after the sequence `since`. Nothing is asked before
    /// [`start`](Self::start).
    #[wasm_bindgen(constructor)]
    pub fn new(config: &JsValue, host: Host, since: &JsValue) -> Engine {
        let driver = Driver::new(
            settings::config(config),
            settings::ends(config),
            host,
            host::json_text(since),
        );
        Engine {
            driver: Rc::new(RefCell::new(driver)),
        }
    }

    /// Begins to read ahead.
    pub fn start(&self) {
        driver::pump(&self.driver);
    }

    /// The source said that it is CouchDB.
    pub fn couch(&self) {
        self.driver.borrow_mut().planner.handle_couch();
        driver::pump(&self.driver);
    }

    /// The source's own figure of bytes per document.
    pub fn expect(&self, bytes_per_doc: f64) {
        self.driver
            .borrow_mut()
            .planner
            .handle_expectation(bytes_per_doc);
    }

    /// A batch of rows, `limit` at most: `{ rows, seqs, last_seq, pending, end }`,
    /// when it is ready.
    #[wasm_bindgen(js_name = takeRows)]
    pub fn take_rows(&self, limit: u32) -> Promise {
        driver::take_rows(&self.driver, limit as usize)
    }

    /// Of `revs` (id to revisions) those that the target lacks, as far as the
    /// run knows; `unknown` is what the target itself has to be asked.
    #[wasm_bindgen(js_name = takeDiff)]
    pub fn take_diff(&self, revs: &JsValue) -> JsValue {
        self.driver.borrow_mut().take_diff(revs)
    }

    /// The documents of `entries` (`{ id, rev }`), in `_bulk_get`'s shape, when
    /// they are all there.
    #[wasm_bindgen(js_name = takeDocs)]
    pub fn take_docs(&self, entries: Array) -> Promise {
        driver::take_docs(&self.driver, entries)
    }

    /// A revision that was handed over is not going to be asked for.
    pub fn drop(&self, id: JsValue, rev: &str) {
        if let Some(id) = host::key(&id) {
            self.driver.borrow_mut().planner.drop_handed(&id, rev);
            driver::pump(&self.driver);
        }
    }

    /// Writes documents, given as JSON texts, to a remote target, as they are:
    /// `{ rows, tooLarge }` when all were sent. `rows` is what the server said of
    /// single ones, `tooLarge` the indices of those that it took not even alone.
    pub fn write(&self, texts: Array) -> Promise {
        driver::write(&self.driver, texts)
    }

    /// The replicator wrote what it took.
    pub fn written(&self) {
        self.driver.borrow_mut().planner.handle_written();
        driver::pump(&self.driver);
    }

    /// Figures so far.
    pub fn stats(&self) -> Result<JsValue, JsError> {
        let driver = self.driver.borrow();
        Ok(serde_wasm_bindgen::to_value(driver.planner.stats())?)
    }

    /// Ends every request and forgets everything; what waits is rejected.
    pub fn cancel(&self) {
        driver::cancel(&self.driver);
    }
}
