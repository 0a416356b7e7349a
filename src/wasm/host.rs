//! What the engine needs of its JS side, and the small conversions between the
//! two. Which database a call reaches is the host's business.

use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use crate::error::Failure;

#[wasm_bindgen]
extern "C" {
    /// See `js/host.js`.
    pub type Host;

    /// A page of a local source's feed.
    #[wasm_bindgen(method, catch)]
    pub(super) fn feed(this: &Host, since: &str, limit: u32) -> Result<Promise, JsValue>;

    /// The path and query of `_changes`.
    #[wasm_bindgen(method, js_name = feedPath)]
    pub(super) fn feed_path(this: &Host, since: &str, limit: u32, interval: u32) -> String;

    /// What a page holds: `[first row, rows, last_seq, pending]`.
    #[wasm_bindgen(method, catch)]
    pub(super) fn page(this: &Host, page: &JsValue) -> Result<Array, JsValue>;

    /// The question of `_revs_diff` about rows.
    #[wasm_bindgen(method)]
    pub(super) fn revs(this: &Host, rows: Vec<u32>) -> JsValue;

    /// `revsDiff` of a local target.
    #[wasm_bindgen(method, catch, js_name = askDiff)]
    pub(super) fn ask_diff(this: &Host, revs: &JsValue) -> Result<Promise, JsValue>;

    /// A digit for each revision asked about, 1 where it is missing.
    #[wasm_bindgen(method, catch)]
    pub(super) fn diff(this: &Host, answer: &JsValue, rows: Vec<u32>) -> Result<String, JsValue>;

    /// The question of `_bulk_get`: documents of rows, revisions divided by NUL.
    #[wasm_bindgen(method)]
    pub(super) fn entries(this: &Host, rows: Vec<u32>, revs: &str) -> Array;

    /// `bulkGet` of a local source.
    #[wasm_bindgen(method, catch)]
    pub(super) fn docs(this: &Host, entries: &Array) -> Result<Promise, JsValue>;

    /// The same of a remote source, one GET a document.
    #[wasm_bindgen(method, catch)]
    pub(super) fn single(this: &Host, entries: &Array) -> Result<Promise, JsValue>;

    /// Gives the documents of an answer the attachments that it left out, from the
    /// target or one by one; `tick` is called as bytes arrive.
    #[wasm_bindgen(method, catch)]
    pub(super) fn complete(
        this: &Host,
        answer: &JsValue,
        entries: &Array,
        signal: &AbortSignal,
        tick: &Function,
    ) -> Result<Promise, JsValue>;

    /// Until a browser's page has got to what waits.
    #[wasm_bindgen(method, catch)]
    pub(super) fn breathe(this: &Host) -> Result<Promise, JsValue>;

    /// What the documents' answer holds: `[first document, counts, stubs, errors]`.
    #[wasm_bindgen(method, catch)]
    pub(super) fn results(
        this: &Host,
        answer: &JsValue,
        entries: &Array,
        latest: bool,
        revs: bool,
        stream: bool,
    ) -> Result<Array, JsValue>;

    /// A batch as the replicator takes it; `pending` below 0 is unknown.
    #[wasm_bindgen(method)]
    pub(super) fn batch(
        this: &Host,
        rows: Vec<u32>,
        seqs: &str,
        last: &str,
        pending: f64,
        end: bool,
    ) -> JsValue;

    /// A row is not needed any more.
    #[wasm_bindgen(method, js_name = dropRow)]
    pub(super) fn drop_row(this: &Host, row: u32);

    /// A document is not needed any more.
    #[wasm_bindgen(method, js_name = dropDoc)]
    pub(super) fn drop_doc(this: &Host, doc: u32);

    /// The answer to a GET that the host sent ahead: a promise, or nothing.
    #[wasm_bindgen(method)]
    pub(super) fn early(this: &Host, target: bool, path: &str) -> JsValue;

    /// A request through the user's own handle, of the target or of the source.
    #[wasm_bindgen(method, catch)]
    pub(super) fn through(
        this: &Host,
        target: bool,
        path: &str,
        init: &JsValue,
        accept: &str,
    ) -> Result<Promise, JsValue>;

    /// The text of a response; `tick` is called as bytes arrive.
    #[wasm_bindgen(method, catch, js_name = readText)]
    pub(super) fn read_text(
        this: &Host,
        response: &JsValue,
        tick: &Function,
    ) -> Result<Promise, JsValue>;

    /// The text of a feed page without the rows that `tick` was handed as they came,
    /// each time as [`page`](Self::page) answers them.
    #[wasm_bindgen(method, catch, js_name = readPage)]
    pub(super) fn read_page(
        this: &Host,
        response: &JsValue,
        tick: &Function,
    ) -> Result<Promise, JsValue>;

    /// The chunks of a response's body, to be asked for one after the other.
    #[wasm_bindgen(method, catch)]
    pub(super) fn chunks(this: &Host, response: &JsValue) -> Result<JsValue, JsValue>;

    /// The next chunk; anything else than a `Uint8Array` is the end.
    #[wasm_bindgen(method, catch, js_name = nextChunk)]
    pub(super) fn next_chunk(this: &Host, chunks: &JsValue) -> Result<Promise, JsValue>;

    /// UTF-8 as a string.
    #[wasm_bindgen(method)]
    pub(super) fn text(this: &Host, bytes: &Uint8Array) -> JsValue;

    /// An attachment begins, of so many bytes; below 0 where the stream tells none.
    #[wasm_bindgen(method)]
    pub(super) fn part(this: &Host, length: f64) -> JsValue;

    /// The next bytes of what [`part`](Self::part) answered.
    #[wasm_bindgen(method)]
    pub(super) fn piece(this: &Host, part: &JsValue, piece: &Uint8Array);

    /// Makes an entry of `_attachments` whole: its bytes, of that encoding.
    #[wasm_bindgen(method, catch)]
    pub(super) fn fill(
        this: &Host,
        entry: &JsValue,
        part: &JsValue,
        encoding: &str,
    ) -> Result<Promise, JsValue>;

    /// Of each document that the target holds, names a leaf as `atts_since`.
    #[wasm_bindgen(method, catch, js_name = nameAncestors)]
    pub(super) fn name_ancestors(this: &Host, entries: &Array) -> Result<Promise, JsValue>;

    /// Sends a document with its attachments behind it, and answers the response.
    #[wasm_bindgen(method, catch)]
    pub(super) fn upload(
        this: &Host,
        upload: &JsValue,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;

    /// The JSON text of the same document, its attachments in it.
    #[wasm_bindgen(method, catch)]
    pub(super) fn inline(this: &Host, upload: &JsValue) -> Result<Promise, JsValue>;

    /// Counts a request: what it was for and the bytes of its answer; below 0 where
    /// it failed, and nobody else counts that.
    #[wasm_bindgen(method)]
    pub(super) fn count(this: &Host, what: &str, bytes: f64);

    /// Calls after so many ms, unless what it answers is called before.
    #[wasm_bindgen(method)]
    pub(super) fn later(this: &Host, call: &Function, ms: f64) -> Function;

    #[wasm_bindgen(js_name = String)]
    pub(super) fn string(value: &JsValue) -> String;

    #[wasm_bindgen(js_name = Number)]
    pub(super) fn number(value: &JsValue) -> f64;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
}

/// ms on a clock that never goes back.
pub(super) fn now() -> u64 {
    performance_now() as u64
}

pub(super) fn get(value: &JsValue, name: &str) -> JsValue {
    Reflect::get(value, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

/// A property that is a number, otherwise 0.
pub(super) fn number_of(value: &JsValue, name: &str) -> f64 {
    get(value, name).as_f64().unwrap_or(0.0)
}

pub(super) fn set(object: &JsValue, name: &str, value: &JsValue) {
    // Fails on frozen objects only; the engine made these itself.
    let _ = Reflect::set(object, &name.into(), value);
}

/// What a promise of the engine rejects with.
pub(super) fn rejection(failure: &Failure) -> JsValue {
    let code = failure.code();
    let kind = code.strip_prefix("fast_sync_").unwrap_or(code);
    let retry_after = failure.retry_after.map(|wait| wait as f64);
    let value = Object::new();
    set(&value, "kind", &kind.into());
    set(&value, "status", &failure.status.into());
    set(&value, "retryAfter", &retry_after.into());
    set(&value, "reason", &failure.reason.as_str().into());
    set(&value, "code", &code.into());
    value.into()
}

/// One text, divided by NUL. `[&str]::join` would be ten times as large.
pub(super) fn join(texts: &mut dyn Iterator<Item = &str>) -> String {
    let mut joined = String::from(texts.next().unwrap_or_default());
    for text in texts {
        joined.push('\0');
        joined.push_str(text);
    }
    joined
}

/// The words of something that was thrown.
pub(super) fn words(thrown: &JsValue) -> String {
    let reason = [get(thrown, "reason"), get(thrown, "message")];
    reason
        .iter()
        .find_map(JsValue::as_string)
        .unwrap_or_else(|| string(thrown))
}
