//! Reads a stream of documents and attachments into `_bulk_get`'s JSON shape.
//! The parser names ranges of the chunk that it was handed; the host's own array
//! is sliced there, so that attachments are not copied back out of the engine.

use js_sys::{Array, Function, Object, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::host::{Host, get, set, words};
use super::http::{Json, network, parse};
use crate::error::{Failure, FailureKind};
use crate::multipart::{AttachmentHeaders, Event, MultipartError, Parser, Piece, pair_attachments};

/// One attachment so far.
struct Part {
    headers: AttachmentHeaders,
    /// What the host makes of its bytes.
    bytes: JsValue,
}

/// What was read so far.
struct Reader<'a> {
    host: &'a Host,
    results: Array,
    /// Promises of attachments that the host still puts together.
    filling: Array,
    doc: JsValue,
    parts: Vec<Part>,
}

/// Reads the whole response, or as many of its documents as can be read.
pub(super) async fn read(
    host: &Host,
    response: &JsValue,
    content_type: &str,
    tick: &Function,
) -> Result<Json, Failure> {
    let parser = Parser::new(content_type).map_err(malformed)?;
    let mut reader = Reader {
        host,
        results: Array::new(),
        filling: Array::new(),
        doc: JsValue::UNDEFINED,
        parts: Vec::new(),
    };
    let mut bytes = 0;
    let read = reader.read(response, parser, tick, &mut bytes).await;
    let filled = Promise::all(&reader.filling);
    JsFuture::from(filled)
        .await
        .map_err(|thrown| broken(words(&thrown)))?;
    let value = Object::new();
    set(&value, "results", &reader.results);
    Ok(Json {
        value: value.into(),
        bytes,
        cut: read.err(),
    })
}

impl Reader<'_> {
    async fn read(
        &mut self,
        response: &JsValue,
        mut parser: Parser,
        tick: &Function,
        bytes: &mut u64,
    ) -> Result<(), Failure> {
        let chunks = self.host.chunks(response).map_err(network)?;
        loop {
            let next = self.host.next_chunk(&chunks).map_err(network)?;
            let chunk = JsFuture::from(next).await.map_err(network)?;
            let Ok(chunk) = chunk.dyn_into::<Uint8Array>() else {
                return parser.handle_end().map_err(malformed);
            };
            let _ = tick.call0(&JsValue::UNDEFINED);
            *bytes += u64::from(chunk.length());
            let parsed = parser.handle_chunk(&chunk.to_vec());
            while let Some(event) = parser.poll_event() {
                self.take(event, &chunk)?;
            }
            parsed.map_err(malformed)?;
        }
    }

    fn take(&mut self, event: Event, chunk: &Uint8Array) -> Result<(), Failure> {
        match event {
            Event::Document(piece) => {
                self.doc = self.json(piece, chunk)?;
                self.parts.clear();
            }
            Event::AttachmentStart(headers) => {
                let length = headers.content_length.map_or(-1.0, |length| length as f64);
                let bytes = self.host.part(length);
                self.parts.push(Part { headers, bytes });
            }
            Event::AttachmentChunk(piece) => {
                if let Some(part) = self.parts.last() {
                    self.host.piece(&part.bytes, &bytes_of(piece, chunk));
                }
            }
            Event::AttachmentEnd | Event::End => {}
            Event::DocumentEnd => {
                self.fill()?;
                self.push("ok", "_id", &self.doc);
            }
            Event::ErrorPart(piece) => {
                let error = self.json(piece, chunk)?;
                self.push("error", "id", &error);
            }
        }
        Ok(())
    }

    fn push(&self, kind: &str, id: &str, value: &JsValue) {
        let (result, item) = (Object::new(), Object::new());
        set(&item, kind, value);
        set(&result, "id", &get(value, id));
        set(&result, "docs", &Array::of1(&item));
        self.results.push(&result);
    }

    fn json(&self, piece: Piece, chunk: &Uint8Array) -> Result<JsValue, Failure> {
        let text = self.host.text(&bytes_of(piece, chunk));
        parse(&text).map_err(|_| broken("a part that is no JSON"))
    }

    /// Gives each attachment of the document its bytes.
    fn fill(&mut self) -> Result<(), Failure> {
        let attachments = get(&self.doc, "_attachments");
        if !attachments.is_object() {
            return if self.parts.is_empty() {
                Ok(())
            } else {
                Err(malformed(MultipartError::AttachmentCount))
            };
        }
        let follows: Vec<(String, JsValue)> =
            Object::entries(attachments.unchecked_ref::<Object>())
                .iter()
                .map(|pair| Array::from(&pair))
                .filter(|pair| get(&pair.get(1), "follows").is_truthy())
                .map(|pair| (pair.get(0).as_string().unwrap_or_default(), pair.get(1)))
                .collect();
        let names: Vec<&str> = follows.iter().map(|(name, _)| name.as_str()).collect();
        let files: Vec<Option<&str>> = self
            .parts
            .iter()
            .map(|part| part.headers.filename.as_deref())
            .collect();
        let pairs = pair_attachments(&names, &files).map_err(malformed)?;
        for (part, at) in self.parts.iter().zip(pairs) {
            let encoding = part.headers.content_encoding.as_deref().unwrap_or_default();
            let filling = self.host.fill(&follows[at].1, &part.bytes, encoding);
            let filling = filling.map_err(|thrown| broken(words(&thrown)))?;
            self.filling.push(&filling);
        }
        Ok(())
    }
}

fn bytes_of(piece: Piece, chunk: &Uint8Array) -> Uint8Array {
    match piece {
        Piece::InChunk(range) => chunk.subarray(range.start as u32, range.end as u32),
        Piece::Carried(bytes) => Uint8Array::from(&bytes[..]),
    }
}

fn malformed(error: MultipartError) -> Failure {
    broken(error.code())
}

fn broken(reason: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Attachment, reason)
}
