//! Requests to a CouchDB: through the platform's `fetch`, or through the user's
//! handle where only that carries the right cookies or the user's own `fetch`.

use gloo_net::http::Headers;
use js_sys::{Array, Function, JsString, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, RequestCredentials, RequestInit};

use super::attachments;
use super::host::{Host, get, number, number_of, string, words};
use crate::error::{Failure, FailureKind};

#[wasm_bindgen]
extern "C" {
    /// The global one. gloo-net's own `send` calls the same, but panics on
    /// rejections that are no `Error`.
    #[wasm_bindgen(js_name = fetch)]
    fn fetch(url: &str, init: &RequestInit) -> Promise;

    /// The host's own parser: bodies never pass through another one.
    #[wasm_bindgen(js_namespace = JSON, catch)]
    pub(super) fn parse(text: &JsValue) -> Result<JsValue, JsValue>;
}

/// Where a database is, and how it is reached.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    /// The database's URL with its final slash, without credentials.
    pub(super) base: String,
    /// What stock would send, `Authorization` among them.
    pub(super) headers: Vec<(String, String)>,
    /// Through the handle.
    pub(super) through: bool,
    /// It is the target: the host has to know whose handle.
    pub(super) is_target: bool,
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) path: &'a str,
    /// JSON text; without it the request is a GET.
    pub(super) body: Option<JsValue>,
    /// A document that the host sends with its attachments, instead.
    pub(super) upload: Option<&'a JsValue>,
    pub(super) signal: &'a AbortSignal,
    pub(super) tick: &'a Function,
    pub(super) what: &'a str,
    /// Documents with their attachments: as a stream, where the server can.
    pub(super) stream: bool,
}

/// JSON that came, and how many bytes (UTF-16 units) its text had.
pub(super) struct Json {
    pub(super) value: JsValue,
    pub(super) bytes: u64,
    /// A stream broke off: what `value` holds came before.
    pub(super) cut: Option<Failure>,
}

impl Json {
    /// How many results of a `_bulk_get` there are.
    pub(super) fn results(&self) -> u32 {
        Array::from(&get(&self.value, "results")).length()
    }
}

impl Remote {
    /// Asks for JSON.
    pub(super) async fn json(&self, host: &Host, call: Call<'_>) -> Result<Json, Failure> {
        let sent = self.send(host, &call).map_err(network)?;
        let response = JsFuture::from(sent).await.map_err(network)?;
        let status = number_of(&response, "status") as u16;
        let content_type = header(&response, "content-type").unwrap_or_default();
        if call.stream && status == 200 && content_type.starts_with("multipart/") {
            let read = attachments::read(host, &response, &content_type, call.tick).await?;
            host.count("attachments", read.bytes as f64);
            return Ok(read);
        }
        let text = if call.what == "feed" && status == 200 {
            host.read_page(&response, call.tick)
        } else {
            host.read_text(&response, call.tick)
        };
        let text = text.map(JsFuture::from).map_err(network)?;
        let text = text.await.map_err(|thrown| Failure {
            status,
            ..network(thrown)
        })?;
        let bytes = f64::from(text.unchecked_ref::<JsString>().length());
        host.count(call.what, bytes);
        let parsed = parse(&text).ok();
        if (200..300).contains(&status) {
            let value = parsed.ok_or_else(|| Failure {
                status,
                ..Failure::new(
                    FailureKind::BadJson,
                    "the answer is no JSON, or was cut short",
                )
            })?;
            return Ok(Json {
                value,
                bytes: bytes as u64,
                cut: None,
            });
        }
        Err(refusal(status, parsed, retry_after(&response)))
    }

    /// A promise of the response.
    fn send(&self, host: &Host, call: &Call<'_>) -> Result<Promise, JsValue> {
        if let Some(upload) = call.upload {
            return host.upload(upload, call.signal);
        }
        if call.body.is_none() {
            let early = host.early(self.is_target, call.path);
            if let Ok(early) = early.dyn_into() {
                return Ok(early);
            }
        }
        let accept = if call.stream {
            "multipart/mixed"
        } else {
            "application/json"
        };
        let init = RequestInit::new();
        init.set_method(if call.body.is_some() { "POST" } else { "GET" });
        init.set_signal(Some(call.signal));
        if let Some(body) = &call.body {
            init.set_body(body);
        }
        if self.through {
            // The handle makes the headers, and puts its own credentials in.
            return host.through(self.is_target, call.path, &init, accept);
        }
        let headers = Headers::new();
        headers.set("Accept", accept);
        if call.body.is_some() {
            // On a GET it would do nothing but force a preflight.
            headers.set("Content-Type", "application/json");
        }
        for (name, value) in &self.headers {
            headers.append(name, value);
        }
        init.set_credentials(RequestCredentials::Include);
        init.set_headers(&headers.into_raw());
        let mut url = self.base.clone();
        url.push_str(call.path);
        Ok(fetch(&url, &init))
    }
}

/// `fetch` rejected, or the body broke off.
pub(super) fn network(thrown: JsValue) -> Failure {
    Failure::new(FailureKind::Network, words(&thrown))
}

/// A status that is no success. A 4xx without JSON is a proxy's word, not
/// CouchDB's: it may be another one next time.
fn refusal(status: u16, body: Option<JsValue>, retry_after: Option<u64>) -> Failure {
    let error = body
        .as_ref()
        .and_then(|body| get(body, "error").as_string());
    let Some(error) = error else {
        let login = matches!(status, 401 | 403);
        let overload = matches!(status, 408 | 413 | 429) || status >= 500;
        let kind = if login || overload {
            FailureKind::Status
        } else {
            FailureKind::BadJson
        };
        return Failure {
            kind,
            status,
            retry_after,
            reason: String::from_iter(["status ", &string(&status.into())]),
        };
    };
    let reason = body
        .and_then(|body| get(&body, "reason").as_string())
        .unwrap_or_default();
    let gone = status == 404 && (reason == "Database does not exist." || reason == "no_db_file");
    let absent = matches!(status, 400 | 404 | 405 | 406 | 415 | 501) && !gone;
    let kind = if absent {
        FailureKind::Absent
    } else {
        FailureKind::Status
    };
    Failure {
        kind,
        status,
        retry_after,
        reason: String::from_iter([&*error, ": ", &reason]),
    }
}

/// By structure: the response may be another library's.
fn header(response: &JsValue, name: &str) -> Option<String> {
    let headers = get(response, "headers");
    let read: Function = get(&headers, "get").dyn_into().ok()?;
    read.call1(&headers, &name.into()).ok()?.as_string()
}

/// `Retry-After` in ms: seconds, or a date.
fn retry_after(response: &JsValue) -> Option<u64> {
    let text = header(response, "retry-after")?;
    let seconds = number(&JsValue::from(&*text));
    if seconds.is_finite() {
        return Some((seconds.max(0.0) * 1000.0) as u64);
    }
    let wait = js_sys::Date::parse(&text) - js_sys::Date::now();
    wait.is_finite().then_some(wait.max(0.0) as u64)
}
