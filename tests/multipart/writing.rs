//! Writes answers byte for byte as CouchDB does, and strategies that make up
//! their contents.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use pouchdb_fast_sync::multipart::AttachmentHeaders;

use crate::reading::Seen;

/// One attachment, and whether its part says how long it is. CouchDB's always
/// do; without that, the delimiter alone ends it.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) headers: AttachmentHeaders,
    pub(crate) data: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Document(String, Vec<Attachment>),
    Error(String),
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) outer: String,
    pub(crate) inner: String,
    pub(crate) parts: Vec<Part>,
}

impl Answer {
    pub(crate) fn content_type(&self) -> String {
        let quoted = self.outer.replace('\\', "\\\\").replace('"', "\\\"");
        format!("multipart/mixed; boundary=\"{quoted}\"")
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let Self {
            outer,
            inner,
            parts,
        } = self;
        let mut out = Vec::new();
        for part in parts {
            let (kind, json, attachments) = match part {
                Part::Error(json) => ("application/json; error=\"true\"".to_owned(), json, &[][..]),
                Part::Document(json, attachments) if attachments.is_empty() => {
                    ("application/json".to_owned(), json, &[][..])
                }
                Part::Document(json, attachments) => (
                    format!("multipart/related; boundary={inner}"),
                    json,
                    attachments.as_slice(),
                ),
            };
            out.extend(format!("\r\n--{outer}").bytes());
            if !attachments.is_empty() {
                out.extend(b"\r\nX-Doc-Id: a\r\nX-Rev-Id: 1-a");
            }
            out.extend(format!("\r\nContent-Type: {kind}\r\n\r\n").bytes());
            if attachments.is_empty() {
                out.extend(json.bytes());
                continue;
            }
            let head = format!("--{inner}\r\nContent-Type: application/json\r\n\r\n{json}");
            out.extend(head.bytes());
            for attachment in attachments {
                out.extend(format!("\r\n--{inner}").bytes());
                write_attachment(attachment, &mut out);
            }
            out.extend(format!("\r\n--{inner}--").bytes());
        }
        out.extend(format!("\r\n--{outer}--\r\n").bytes());
        out
    }

    /// What a reading of it has to show.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for part in &self.parts {
            match part {
                Part::Error(json) => seen.push(Seen::Error(json.clone().into_bytes())),
                Part::Document(json, attachments) => {
                    seen.push(Seen::Document(json.clone().into_bytes()));
                    for Attachment { headers, data } in attachments {
                        seen.push(Seen::Attachment(headers.clone(), data.clone()));
                        seen.push(Seen::AttachmentEnd);
                    }
                    seen.push(Seen::DocumentEnd);
                }
            }
        }
        seen.push(Seen::End);
        seen
    }
}

fn write_attachment(attachment: &Attachment, out: &mut Vec<u8>) {
    let headers = &attachment.headers;
    if let Some(name) = &headers.filename {
        let line = format!("\r\nContent-Disposition: attachment; filename=\"{name}\"");
        out.extend(line.bytes());
    }
    if let Some(content_type) = &headers.content_type {
        out.extend(format!("\r\nContent-Type: {content_type}").bytes());
    }
    if let Some(length) = headers.content_length {
        out.extend(format!("\r\nContent-Length: {length}").bytes());
    }
    if let Some(encoding) = &headers.content_encoding {
        out.extend(format!("\r\nContent-Encoding: {encoding}").bytes());
    }
    out.extend(b"\r\n\r\n");
    out.extend(&attachment.data);
}

/// Answers with boundaries of their own and contents that look like delimiters.
pub(crate) fn answers() -> impl Strategy<Value = Answer> {
    let boundaries = ("[ -~]{0,69}[!-~]", "[0-9A-Za-z'()+_,./:=?-]{1,70}");
    let differ = boundaries.prop_filter("boundaries differ", |(outer, inner)| outer != inner);
    differ.prop_flat_map(|(outer, inner)| {
        let parts = vec(part(&outer, &inner), 0..5);
        parts.prop_map(move |parts| Answer {
            outer: outer.clone(),
            inner: inner.clone(),
            parts,
        })
    })
}

fn part(outer: &str, inner: &str) -> impl Strategy<Value = Part> + use<> {
    let json = "\\{\"[ -~é\n-]{0,40}\"\\}";
    prop_oneof![
        1 => json.prop_map(Part::Error),
        4 => (json, vec(attachment(outer, inner), 0..4))
            .prop_map(|(json, attachments)| Part::Document(json, attachments)),
    ]
}

fn attachment(outer: &str, inner: &str) -> impl Strategy<Value = Attachment> + use<> {
    let delimiter = format!("\r\n--{inner}").into_bytes();
    let headers = (
        proptest::option::weighted(0.9, name()),
        proptest::option::weighted(0.9, select(CONTENT_TYPES)),
        any::<bool>(),
        proptest::bool::weighted(0.7),
    );
    (headers, data(outer, inner)).prop_map(move |((filename, kind, gzip, measured), data)| {
        // Nothing but a length tells a delimiter in the data from the real one.
        let measured = measured || data.windows(delimiter.len()).any(|w| w == delimiter);
        let headers = AttachmentHeaders {
            filename,
            content_type: kind.map(str::to_owned),
            content_encoding: gzip.then(|| "gzip".to_owned()),
            content_length: measured.then_some(data.len() as u64),
        };
        Attachment { headers, data }
    })
}

const CONTENT_TYPES: &[&str] = &[
    "text/plain",
    "application/octet-stream",
    "application/json; error=\"true\"",
    "multipart/mixed; boundary=x",
    "text/plain; charset=\"",
    "",
];

/// A line break as CouchDB's headers have it would end the header; anything
/// else may be in a name.
fn name() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        4 => any::<char>(),
        1 => select(&['"', '\\', '%', '+', '/', ';', '=', '\r', '\n', ' '][..]),
    ];
    let chars = vec(char, 0..12).prop_map(|chars| chars.into_iter().collect());
    chars.prop_filter("no line break", |name: &String| !name.contains("\r\n"))
}

/// Bytes made of what delimiters are made of.
fn data(outer: &str, inner: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let outer = format!("\r\n--{outer}--\r\n").into_bytes();
    let inner = format!("\r\n--{inner}--\r\n").into_bytes();
    let begun =
        |delimiter: Vec<u8>| (0..=delimiter.len()).prop_map(move |end| delimiter[..end].to_vec());
    let bits = prop_oneof![
        2 => select(&["\r", "\n", "\r\n", "-", "--", "\r\n--", "\r\n\r\n"][..])
            .prop_map(|bit| bit.as_bytes().to_vec()),
        2 => begun(inner),
        1 => begun(outer),
        2 => vec(any::<u8>(), 0..20),
    ];
    vec(bits, 0..12).prop_map(|bits| bits.concat())
}
