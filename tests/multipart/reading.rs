//! Reads a stream through the parser and notes what came, in a form that no
//! longer shows where the chunks were cut, so that two readings can be compared.
//! On the way it checks what must hold of any stream, however damaged. The fuzz
//! target uses this file too.

use pouchdb_fast_sync::multipart::{AttachmentHeaders, Event, MultipartError, Parser, Piece};

/// More than a delimiter is never held back: CR LF, two dashes, 70 of boundary.
const MAX_HELD_BACK: usize = 74;

/// What came, the bytes of an attachment joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Document(Vec<u8>),
    Attachment(AttachmentHeaders, Vec<u8>),
    AttachmentEnd,
    DocumentEnd,
    Error(Vec<u8>),
    End,
}

/// Everything that came, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) seen: Vec<Seen>,
    pub(crate) result: Result<(), MultipartError>,
}

/// Reads the chunks to their end or to the first error.
pub(crate) fn read<'a>(content_type: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut seen = Vec::new();
    let result = Parser::new(content_type).and_then(|mut parser| {
        for chunk in chunks {
            let result = parser.handle_chunk(chunk);
            while let Some(event) = parser.poll_event() {
                note(&mut seen, event, chunk);
            }
            if result.is_err() {
                assert_eq!(parser.handle_chunk(b""), result, "an error is final");
                assert_eq!(parser.handle_end(), result, "an error is final");
            }
            result?;
        }
        let result = parser.handle_end();
        assert_eq!(
            parser.poll_event(),
            None,
            "the end of a stream tells nothing new"
        );
        result
    });
    let ended = seen.last() == Some(&Seen::End);
    assert!(
        !ended || result.is_ok(),
        "what follows the end means nothing"
    );
    assert!(
        ended || result.is_err(),
        "no stream is complete without its end"
    );
    Reading { seen, result }
}

fn note(seen: &mut Vec<Seen>, event: Event, chunk: &[u8]) {
    check_order(seen.last(), &event);
    match event {
        Event::Document(json) => seen.push(Seen::Document(bytes(json, chunk))),
        Event::ErrorPart(json) => seen.push(Seen::Error(bytes(json, chunk))),
        Event::AttachmentStart(headers) => seen.push(Seen::Attachment(headers, Vec::new())),
        Event::AttachmentChunk(piece) => {
            if let Piece::Carried(held) = &piece {
                assert!(held.len() <= MAX_HELD_BACK, "held back {}", held.len());
            }
            let more = bytes(piece, chunk);
            assert!(!more.is_empty(), "no event for nothing");
            if let Some(Seen::Attachment(_, data)) = seen.last_mut() {
                data.extend(more);
            }
        }
        Event::AttachmentEnd => {
            if let Some(Seen::Attachment(headers, data)) = seen.last() {
                let length = headers.content_length.unwrap_or(data.len() as u64);
                assert_eq!(data.len() as u64, length, "a short attachment, in silence");
            }
            seen.push(Seen::AttachmentEnd);
        }
        Event::DocumentEnd => seen.push(Seen::DocumentEnd),
        Event::End => seen.push(Seen::End),
    }
}

fn check_order(before: Option<&Seen>, event: &Event) {
    let right = match event {
        Event::Document(_) | Event::ErrorPart(_) | Event::End => {
            matches!(before, None | Some(Seen::DocumentEnd | Seen::Error(_)))
        }
        Event::AttachmentStart(_) | Event::DocumentEnd => {
            matches!(before, Some(Seen::Document(_) | Seen::AttachmentEnd))
        }
        Event::AttachmentChunk(_) | Event::AttachmentEnd => {
            matches!(before, Some(Seen::Attachment(..)))
        }
    };
    assert!(right, "{event:?} after {before:?}");
}

fn bytes(piece: Piece, chunk: &[u8]) -> Vec<u8> {
    match piece {
        Piece::InChunk(range) => chunk[range].to_vec(),
        Piece::Carried(bytes) => bytes,
    }
}

/// Cuts the stream after each of the lengths in turn, over and over.
pub(crate) fn cut<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while !stream.is_empty() {
        let length = lengths.next().map_or(stream.len(), |&length| length.max(1));
        let (chunk, rest) = stream.split_at(length.min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks
}
