//! Reads what JS sets a run up with. By hand: serde's way of saying what it did
//! not expect brings the formatting of floats along, a fifth of the engine's size.

use std::rc::Rc;

use js_sys::Array;
use wasm_bindgen::JsValue;

use super::driver::Ends;
use super::host::get;
use super::http::Remote;
use crate::config::Config;

/// A number or a truth value that JS left out keeps its default.
pub(super) fn config(value: &JsValue) -> Config {
    let default = Config::default();
    let number =
        |name: &str, otherwise: u64| get(value, name).as_f64().map_or(otherwise, |n| n as u64);
    let truth = |name: &str, otherwise: bool| get(value, name).as_bool().unwrap_or(otherwise);
    Config {
        batch_size: number("batchSize", default.batch_size.into()) as u32,
        batch_fixed: truth("batchFixed", default.batch_fixed),
        target_empty: truth("targetEmpty", default.target_empty),
        target_remote: truth("targetRemote", default.target_remote),
        source_local: truth("sourceLocal", default.source_local),
        filtered: truth("filtered", default.filtered),
        read_ahead: truth("readAhead", default.read_ahead),
        max_concurrency: number("maxConcurrency", default.max_concurrency.into()) as u32,
        max_buffer_bytes: number("maxBufferBytes", default.max_buffer_bytes),
        max_rows_ahead: number("maxRowsAhead", default.max_rows_ahead.into()) as u32,
        stall_ms: number("stallMs", default.stall_ms),
        single_until: number("singleUntil", default.single_until),
        piecewise_until: number("piecewiseUntil", default.piecewise_until),
        seed: number("seed", default.seed),
    }
}

/// The two ends, and how the feed is asked for.
pub(super) fn ends(value: &JsValue) -> Ends {
    Ends {
        source: remote(&get(value, "source"), false),
        target: remote(&get(value, "target"), true),
        feed_body: get(value, "feedBody").as_string(),
    }
}

/// `{ base, headers, through }`, or nothing for a database of this process.
fn remote(value: &JsValue, is_target: bool) -> Option<Rc<Remote>> {
    let base = get(value, "base").as_string()?;
    let header = |pair: JsValue| {
        let pair = Array::from(&pair);
        Some((pair.get(0).as_string()?, pair.get(1).as_string()?))
    };
    let headers = Array::from(&get(value, "headers"));
    Some(Rc::new(Remote {
        base,
        headers: headers.iter().filter_map(header).collect(),
        through: get(value, "through").as_bool().unwrap_or(false),
        is_target,
    }))
}
