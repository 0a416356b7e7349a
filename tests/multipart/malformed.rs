//! Streams that no server should send: each has its code, none a panic, and
//! none is read differently when it is cut differently.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use pouchdb_fast_sync::multipart::{Limits, MultipartError, Parser};

use crate::reading::{cut, read};
use crate::writing::answers;

const MIXED: &str = "multipart/mixed; boundary=o";
const JSON: &str = "Content-Type: application/json\r\n\r\n";
const RELATED: &str = "Content-Type: multipart/related; boundary=i\r\n\r\n";

/// Reads it whole and byte by byte.
fn code(stream: &str) -> &'static str {
    let whole = read(MIXED, [stream.as_bytes()]);
    assert_eq!(read(MIXED, cut(stream.as_bytes(), &[1])), whole, "{stream}");
    whole.result.map_or_else(MultipartError::code, |()| "none")
}

#[test]
fn responses_that_are_no_multipart() {
    for content_type in [
        "",
        "application/json",
        "multipart/mixed",
        "multipart/mixed; boundary=\"\"",
    ] {
        let refused = Parser::new(content_type).err();
        assert_eq!(
            refused.map(MultipartError::code),
            Some("multipart_content_type")
        );
    }
}

#[test]
fn streams_that_end_early() {
    for stream in [
        "".to_owned(),
        "{\"error\":\"unknown_error\"}".to_owned(),
        "\r\n--o".to_owned(),
        "\r\n--o-".to_owned(),
        format!("\r\n--o\r\n{JSON}{{}}"),
        format!("\r\n--o\r\n{JSON}{{}}\r\n--o\r\n"),
        format!("\r\n--o\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--i--"),
        // The server gave up in the middle of a document and closed neatly.
        format!("\r\n--o\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--o--\r\n"),
        format!("\r\n--o\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--i\r\n\r\nab\r\n--o--\r\n"),
    ] {
        assert_eq!(code(&stream), "multipart_truncated", "{stream}");
    }
}

#[test]
fn lengths_that_are_not_the_delimiters() {
    let attachment = |length: &str| {
        format!(
            "\r\n--o\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--i\r\n\
             Content-Length: {length}\r\n\r\nabc\r\n--i--\r\n--o--\r\n"
        )
    };
    assert_eq!(code(&attachment("3")), "none");
    for wrong in ["0", "1", "2", "4", "9"] {
        assert_eq!(
            code(&attachment(wrong)),
            "multipart_length_mismatch",
            "{wrong}"
        );
    }
    // A length beyond the stream leaves it incomplete.
    assert_eq!(code(&attachment("99")), "multipart_truncated");
    assert_eq!(
        code(&attachment("18446744073709551615")),
        "multipart_truncated"
    );
    assert_eq!(
        code(&attachment("18446744073709551616")),
        "multipart_bad_header"
    );
    // JSON is held to its length in the same way.
    let json = |length| format!("\r\n--o\r\nContent-Length: {length}\r\n{JSON}{{}}\r\n--o--");
    assert_eq!(code(&json(2)), "none");
    assert_eq!(code(&json(1)), "multipart_length_mismatch");
    assert_eq!(code(&json(4)), "multipart_length_mismatch");
}

#[test]
fn parts_that_have_no_meaning_where_they_are() {
    for part in [
        "\r\nno type".to_owned(),
        "Content-Type: text/plain\r\n\r\n{}".to_owned(),
        format!("{RELATED}--i--"),
        format!("{RELATED}--i\r\nContent-Type: text/plain\r\n\r\n{{}}"),
        format!("{RELATED}--i\r\nContent-Type: application/json; error=true\r\n\r\n{{}}"),
    ] {
        assert_eq!(
            code(&format!("--o\r\n{part}\r\n--o--")),
            "multipart_unexpected_part",
            "{part}"
        );
    }
    assert_eq!(
        code(&format!("--o\r\n{RELATED}--i\r\n{RELATED}--i")),
        "multipart_too_deep"
    );
}

#[test]
fn text_around_a_documents_own_multipart() {
    for part in [
        format!("{RELATED}text\r\n--i\r\n{JSON}{{}}\r\n--i--\r\n--o--"),
        format!("{RELATED}--i\r\n{JSON}{{}}\r\n--i--text\r\n--o--"),
        format!("{RELATED}--i\r\n{JSON}{{}}\r\n--i--\r\n--x\r\n--o--"),
        format!("{RELATED}--x\r\n{JSON}{{}}\r\n--i--\r\n--o--"),
    ] {
        assert_eq!(
            code(&format!("--o\r\n{part}")),
            "multipart_stray_bytes",
            "{part}"
        );
    }
}

#[test]
fn delimiters_that_do_not_end_their_line() {
    for end in ["x", "-x", "\n", "\rx", " x", "o\r\n"] {
        let stream = format!("\r\n--o\r\n{JSON}{{}}\r\n--o{end}");
        assert_eq!(code(&stream), "multipart_bad_delimiter", "{end:?}");
    }
}

#[test]
fn boundaries_of_a_document_that_cannot_be() {
    let part = |header: &str| format!("--o\r\nContent-Type: multipart/related{header}\r\n\r\n");
    assert_eq!(code(&part("")), "multipart_content_type");
    assert_eq!(code(&part("; boundary=é")), "multipart_content_type");
    assert_eq!(code(&part("; boundary=\"i")), "multipart_bad_header");
    assert_eq!(code(&part("; boundary=o")), "multipart_bad_header");
}

/// CouchDB copies ids and names into headers, also those with line breaks.
#[test]
fn ids_and_names_that_break_their_header() {
    let id =
        |id: &str| format!("--o\r\nX-Doc-Id: {id}\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--i--\r\n--o--");
    assert_eq!(code(&id("a\nb")), "none");
    assert_eq!(code(&id("a\r\nb")), "multipart_bad_header");
    assert_eq!(code(&id("a\r\n\r\nb")), "multipart_unexpected_part");
    assert_eq!(
        code(&id("a\r\nContent-Type: application/json")),
        "multipart_bad_header"
    );
    let name = |name: &str| {
        format!(
            "--o\r\n{RELATED}--i\r\n{JSON}{{}}\r\n--i\r\n\
             Content-Disposition: attachment; filename=\"{name}\"\r\n\
             Content-Length: 1\r\n\r\na\r\n--i--\r\n--o--"
        )
    };
    assert_eq!(code(&name("a\rb\nc\n\r")), "none");
    assert_eq!(code(&name("a\r\nb")), "multipart_bad_header");
    assert_eq!(
        code(&name("a\"\r\n\r\n")),
        "none",
        "no length: read to the delimiter"
    );
    assert_eq!(
        code(&name("a\"\r\nContent-Length: 9\r\nx: ")),
        "multipart_bad_header"
    );
}

#[test]
fn headers_and_json_are_bounded() {
    let limits = Limits {
        header_bytes: 100,
        json_bytes: 50,
    };
    let read = |stream: &str, length: usize| {
        let mut parser = Parser::with_limits(MIXED, limits).unwrap();
        for chunk in cut(stream.as_bytes(), &[length]) {
            while parser.poll_event().is_some() {}
            parser.handle_chunk(chunk)?;
        }
        parser.handle_end()
    };
    for length in [1, 7, 1000] {
        // The limit counts the line break before the headers and all after them.
        let headers = |name: usize| {
            format!(
                "--o\r\n{}: \r\n{JSON}{{}}\r\n--o--",
                "x".repeat(name - JSON.len() - 6)
            )
        };
        assert_eq!(read(&headers(100), length), Ok(()));
        assert_eq!(
            read(&headers(101), length),
            Err(MultipartError::HeaderTooLarge)
        );
        let endless = format!("--o\r\n{}", "x".repeat(1000));
        assert_eq!(read(&endless, length), Err(MultipartError::HeaderTooLarge));
        let json = |size: usize, header: &str| {
            format!("--o\r\n{header}{JSON}{}\r\n--o--", "1".repeat(size))
        };
        assert_eq!(read(&json(50, ""), length), Ok(()));
        assert_eq!(
            read(&json(51, ""), length),
            Err(MultipartError::JsonTooLarge)
        );
        let measured = json(51, "Content-Length: 51\r\n");
        assert_eq!(read(&measured, length), Err(MultipartError::JsonTooLarge));
    }
}

#[test]
fn events_have_to_be_drained() {
    let mut parser = Parser::new(MIXED).unwrap();
    parser.handle_chunk(b"--o--").unwrap();
    assert_eq!(parser.handle_chunk(b"x"), Err(MultipartError::Undrained));
    assert_eq!(MultipartError::Undrained.code(), "multipart_undrained");
}

#[derive(Debug, Clone)]
enum Damage {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Move(Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bit = prop_oneof![
        "\r\n|\r\n--|--|\r\n\r\n|\"|: ".prop_map(String::into_bytes),
        vec(any::<u8>(), 1..5),
    ];
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (at(), bit).prop_map(|(at, bit)| Damage::Insert(at, bit)),
        (at(), 1usize..40).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at(), 1usize..200).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (at(), at(), 1usize..100).prop_map(|(from, to, length)| Damage::Move(from, to, length)),
    ]
}

fn apply(stream: &mut Vec<u8>, damage: Damage) {
    if stream.is_empty() {
        return;
    }
    let range = |at: usize, length: usize, len: usize| at..(at + length).min(len);
    let len = stream.len();
    match damage {
        Damage::Replace(at, byte) => stream[at.index(len)] = byte,
        Damage::Insert(at, bytes) => drop(stream.splice(at.index(len)..at.index(len), bytes)),
        Damage::Remove(at, length) => drop(stream.drain(range(at.index(len), length, len))),
        Damage::Repeat(at, length) => {
            let copy = stream[range(at.index(len), length, len)].to_vec();
            stream.splice(at.index(len)..at.index(len), copy);
        }
        Damage::Move(from, to, length) => {
            let moved: Vec<u8> = stream.drain(range(from.index(len), length, len)).collect();
            let to = to.index(stream.len() + 1);
            stream.splice(to..to, moved);
        }
    }
}

proptest! {
    #[test]
    fn damaged_streams_are_read_alike_however_they_are_cut(
        answer in answers(),
        damages in vec(damage(), 1..6),
        lengths in vec(1usize..60, 1..6),
    ) {
        let mut stream = answer.write();
        damages.into_iter().for_each(|damage| apply(&mut stream, damage));
        let whole = read(&answer.content_type(), [&stream[..]]);
        for lengths in [&[1][..], &lengths] {
            let reading = read(&answer.content_type(), cut(&stream, lengths));
            prop_assert_eq!(&reading, &whole);
        }
    }
}
