//! What the recordings do not show, one small stream each.

use pouchdb_fast_sync::multipart::{AttachmentHeaders, Event, Parser, Piece};

use crate::reading::{Seen, cut, read};

const MIXED: &str = "multipart/mixed; boundary=o";
const DOCUMENT: &str = "\r\n--o\r\nContent-Type: multipart/related; boundary=\"i\"\r\n\r\n\
                        --i\r\nContent-Type: application/json\r\n\r\n{}";

/// One document with these parts after its JSON, read whole and byte by byte.
fn attachments(parts: &str) -> Vec<(AttachmentHeaders, String)> {
    let stream = format!("{DOCUMENT}{parts}\r\n--i--\r\n--o--\r\n");
    let whole = read(MIXED, [stream.as_bytes()]);
    assert_eq!(read(MIXED, cut(stream.as_bytes(), &[1])), whole);
    assert_eq!(whole.result, Ok(()), "{stream}");
    let found = whole.seen.into_iter().filter_map(|seen| match seen {
        Seen::Attachment(headers, data) => Some((headers, String::from_utf8(data).unwrap())),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_document_may_have_a_multipart_without_attachments() {
    assert_eq!(attachments(""), []);
}

#[test]
fn empty_attachments_are_attachments() {
    let found = attachments("\r\n--i\r\n\r\n\r\n--i\r\nContent-Length: 0\r\n\r\n");
    let lengths: Vec<_> = found
        .iter()
        .map(|(headers, _)| headers.content_length)
        .collect();
    assert_eq!(lengths, [None, Some(0)]);
    assert!(found.iter().all(|(_, data)| data.is_empty()));
}

/// Users store what they like: a saved e-mail, or an error of another server.
#[test]
fn attachments_are_never_read_as_anything_else() {
    let mail = "--x\r\n\r\ntext\r\n--x--";
    let found = attachments(&format!(
        "\r\n--i\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n{mail}\
         \r\n--i\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{{}}"
    ));
    let data: Vec<&str> = found.iter().map(|(_, data)| data.as_str()).collect();
    assert_eq!(data, [mail, "{}"]);
}

/// A stored copy of an answer has whole delimiters in it.
#[test]
fn a_length_lets_an_attachment_hold_its_own_delimiters() {
    let data = "a\r\n--i\r\n\r\nb\r\n--i--\r\n--o--\r\n";
    let length = data.len();
    let found = attachments(&format!(
        "\r\n--i\r\nContent-Length: {length}\r\n\r\n{data}"
    ));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, data);
}

#[test]
fn spaces_after_a_delimiter_are_passed_over() {
    let found = attachments("\r\n--i \t \r\nContent-Length: 1\r\n\r\na\r\n--i\t\r\n\r\nb");
    assert_eq!(found.len(), 2);
}

#[test]
fn an_outer_body_without_parts_is_complete() {
    assert_eq!(read(MIXED, [&b"\r\n--o--"[..]]).seen, [Seen::End]);
}

#[test]
fn bytes_are_named_by_their_place_in_the_chunk() {
    let mut parser = Parser::new(MIXED).unwrap();
    parser.handle_chunk(DOCUMENT.as_bytes()).unwrap();
    assert_eq!(parser.poll_event(), None, "JSON is handed out whole");
    parser.handle_chunk(b"\r\n--i\r\n\r\nab\r\n-").unwrap();
    let events = [
        Event::Document(Piece::Carried(b"{}".to_vec())),
        Event::AttachmentStart(AttachmentHeaders::default()),
        Event::AttachmentChunk(Piece::InChunk(9..11)),
    ];
    for event in events {
        assert_eq!(parser.poll_event(), Some(event));
    }
    assert_eq!(parser.poll_event(), None);
    parser.handle_chunk(b"x\r\n--i--\r\n--o--").unwrap();
    let events = [
        Event::AttachmentChunk(Piece::Carried(b"\r\n-".to_vec())),
        Event::AttachmentChunk(Piece::InChunk(0..1)),
        Event::AttachmentEnd,
        Event::DocumentEnd,
        Event::End,
    ];
    for event in events {
        assert_eq!(parser.poll_event(), Some(event));
    }
    assert_eq!(parser.handle_end(), Ok(()));
}
