//! The only exports: [`Engine`], one run of one direction, and [`Checkpoint`],
//! one `_local` document that is written behind.

mod ask;
mod attachments;
mod checkpoint;
mod driver;
mod host;
mod http;
mod pending;
mod settings;
mod write;

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use self::driver::Driver;
use self::host::Host;

/// Rust's own allocator for wasm is 3 kB of the engine, gzipped. Text of some MB
/// crosses, so memory that is returned has to become one piece again.
struct SmallAllocator;

impl rlsf::GlobalTlsfOptions for SmallAllocator {
    const COALESCE_POOLS: bool = true;
    const ENABLE_REALLOCATION: bool = false;
}

#[global_allocator]
static ALLOCATOR: rlsf::GlobalTlsf<SmallAllocator> = rlsf::GlobalTlsf::new();

/// One run: the feed of a source after one sequence, and its documents.
///
/// The host is an object with the methods of `js/host.js`. Text that crosses is
/// divided by NUL (`js/flat.js`). Promises reject with plain objects `{ code, kind, status, reason }`.
#[wasm_bindgen]
pub struct Engine {
    driver: Rc<RefCell<Driver>>,
}

#[wasm_bindgen]
impl Engine {
    /// A run with `config` (see `settings`) after the sequence `since`, as the
    /// host numbers it. Nothing is asked before [`start`](Self::start).
    #[wasm_bindgen(constructor)]
    pub fn new(config: &JsValue, host: Host, since: &str) -> Engine {
        let config_of = settings::config(config);
        let driver = Driver::new(config_of, settings::ends(config), host, since.into());
        Engine {
            driver: Rc::new(RefCell::new(driver)),
        }
    }

    /// Begins to read ahead.
    pub fn start(&self) {
        driver::pump(&self.driver);
    }

    /// The source said whether it is CouchDB.
    pub fn identity(&self, couch: bool) {
        self.driver.borrow_mut().planner.handle_identity(couch);
        driver::pump(&self.driver);
    }

    /// The source's own figure of bytes per document.
    pub fn expect(&self, bytes_per_doc: f64) {
        self.driver
            .borrow_mut()
            .planner
            .handle_expectation(bytes_per_doc);
    }

    /// A batch of rows, `limit` at most, as the host's `batch` made it, when it is
    /// ready.
    #[wasm_bindgen(js_name = takeRows)]
    pub fn take_rows(&self, limit: u32) -> Promise {
        driver::take_rows(&self.driver, limit as usize)
    }

    /// For each revision of `text` (`key, count, rev…`) a digit: 1 the target
    /// lacks it, 0 it does not, 2 the target itself has to be asked.
    #[wasm_bindgen(js_name = takeDiff)]
    pub fn take_diff(&self, text: &str) -> String {
        self.driver.borrow_mut().take_diff(text)
    }

    /// Which of the entries of `text` (`key, rev…`) no row named.
    pub fn unknown(&self, text: &str) -> Vec<u32> {
        driver::unknown(&self.driver, text)
    }

    /// Asks for entries that no row named; `rows` are the host's numbers.
    pub fn want(&self, text: &str, rows: &[u32]) {
        driver::want(&self.driver, text, rows);
    }

    /// The documents of the entries of `text` (`key, rev…`), when they are all
    /// there: of each entry how many, and the numbers of all.
    #[wasm_bindgen(js_name = takeDocs)]
    pub fn take_docs(&self, text: String) -> Promise {
        driver::take_docs(&self.driver, text)
    }

    /// A revision that was handed over is not going to be asked for.
    pub fn drop(&self, key: &str, rev: &str) {
        self.driver.borrow_mut().planner.drop_handed(key, rev);
        driver::pump(&self.driver);
    }

    /// Writes documents to a remote target, each given as JSON text or as what the
    /// host's `upload` sends: `{ rows, tooLarge, refusesMultipart }` when all were
    /// sent. `rows` is what the server said of single ones, `tooLarge` the indices
    /// of those that it took not even alone.
    pub fn write(&self, docs: Array) -> Promise {
        driver::write(&self.driver, docs)
    }

    /// The replicator wrote what it took.
    pub fn written(&self) {
        self.driver.borrow_mut().planner.handle_written();
        driver::pump(&self.driver);
    }

    /// Nothing is left to be fetched.
    #[wasm_bindgen(js_name = hasEverything)]
    pub fn has_everything(&self) -> bool {
        self.driver.borrow().planner.has_everything()
    }

    /// Figures so far.
    pub fn stats(&self) -> JsValue {
        let driver = self.driver.borrow();
        let serializer = serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true);
        let stats = driver.planner.stats().serialize(&serializer);
        stats.unwrap_or(JsValue::UNDEFINED)
    }

    /// Ends every request and forgets everything; what waits is rejected.
    pub fn cancel(&self) {
        driver::cancel(&self.driver);
    }
}
