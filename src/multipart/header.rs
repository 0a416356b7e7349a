//! Decides what the headers of a part, and the content type of a response,
//! say. It does not know whether a part may stand where it stands.
//!
//! CouchDB copies attachment names between the quotes as they are: with quotes,
//! backslashes, `%`, `;` or a lone line feed in them, and in UTF-8. A header
//! library that keeps to the RFCs would refuse or change them, so the lines are
//! read here: they end at CR LF, and a name ends at the last quote of its line.

use super::{AttachmentHeaders, MultipartError};

/// The end of a part's headers, together with the line break of the last one.
pub(super) const END_OF_HEADERS: &[u8] = b"\r\n\r\n";

/// What the response, or an outer part, is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json { error: bool },
    Multipart { boundary: String },
    Other,
}

/// Reads a `Content-Type`. As bytes, as everything here: where text may be cut
/// is a question that the bytes looked for, all ASCII, do not raise.
pub(super) fn kind(content_type: &str) -> Result<Kind, MultipartError> {
    let (media, parameters) = cut(content_type.as_bytes(), b";");
    let media = media.trim_ascii();
    if media.eq_ignore_ascii_case(b"application/json") {
        let error = parameter(parameters, b"error")?;
        return Ok(Kind::Json {
            error: error.is_some_and(|value| value == "true"),
        });
    }
    let (family, _) = cut(media, b"/");
    if !family.eq_ignore_ascii_case(b"multipart") {
        return Ok(Kind::Other);
    }
    match parameter(parameters, b"boundary")? {
        Some(boundary) => Ok(Kind::Multipart { boundary }),
        None => Err(MultipartError::ContentType),
    }
}

/// Reads the headers of a part, given from the line break before the first to
/// the empty line after the last.
pub(super) fn parse(head: &[u8]) -> Result<AttachmentHeaders, MultipartError> {
    let mut headers = AttachmentHeaders::default();
    let mut disposed = false;
    for line in Lines(head).filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|&b| b == b':');
        let (name, value) = line.split_at(colon.ok_or(MultipartError::BadHeader)?);
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return Err(MultipartError::BadHeader);
        }
        let value = value[1..].trim_ascii();
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"content-type") {
            set(&mut headers.content_type, text(value)?)?;
        } else if is(b"content-encoding") {
            set(&mut headers.content_encoding, text(value)?)?;
        } else if is(b"content-length") {
            set(&mut headers.content_length, length(value)?)?;
        } else if is(b"content-disposition") {
            if disposed {
                return Err(MultipartError::BadHeader);
            }
            disposed = true;
            headers.filename = filename(value)?;
        }
    }
    Ok(headers)
}

struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, rest) = self.0.split_at(end);
        self.0 = &rest[2..];
        Some(line)
    }
}

/// One that comes twice may be a name or type with a line break in it, which
/// pretends to be a header: which of the two is real cannot be told.
fn set<T>(place: &mut Option<T>, value: T) -> Result<(), MultipartError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(MultipartError::BadHeader),
    }
}

fn text(value: &[u8]) -> Result<String, MultipartError> {
    String::from_utf8(value.to_vec()).map_err(|_| MultipartError::BadHeader)
}

fn length(value: &[u8]) -> Result<u64, MultipartError> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = text(value)?.parse().ok().filter(|_| digits);
    number.ok_or(MultipartError::BadHeader)
}

fn filename(disposition: &[u8]) -> Result<Option<String>, MultipartError> {
    const KEY: &[u8] = b"filename=";
    let is_key = |at: &usize| {
        let here = &disposition[*at..];
        let apart = matches!(disposition[*at - 1], b';' | b' ' | b'\t');
        apart && here.len() >= KEY.len() && here[..KEY.len()].eq_ignore_ascii_case(KEY)
    };
    let Some(at) = (1..disposition.len()).find(is_key) else {
        return Ok(None);
    };
    let value = &disposition[at + KEY.len()..];
    let Some(quoted) = value.strip_prefix(b"\"") else {
        let (token, _) = cut(value, b";");
        return text(token.trim_ascii()).map(Some);
    };
    let last = quoted.iter().rposition(|&b| b == b'"');
    text(&quoted[..last.ok_or(MultipartError::BadHeader)?]).map(Some)
}

/// The value of a parameter, quoted or not; of the first, should it come twice.
/// Each stands behind a semicolon.
fn parameter(mut rest: &[u8], wanted: &[u8]) -> Result<Option<String>, MultipartError> {
    while let [b';', pair @ ..] = rest {
        let (name, after) = cut(pair, b";=");
        let [b'=', value @ ..] = after else {
            rest = after;
            continue;
        };
        let (value, after) = match value.trim_ascii_start() {
            [b'"', quoted @ ..] => unquote(quoted)?,
            _ => {
                let (value, after) = cut(value, b";");
                (value.trim_ascii().to_vec(), after)
            }
        };
        if name.trim_ascii().eq_ignore_ascii_case(wanted) {
            return text(&value).map(Some);
        }
        (_, rest) = cut(after, b";");
    }
    Ok(None)
}

fn unquote(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), MultipartError> {
    let mut value = Vec::new();
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'"', _) => return Ok((value, after)),
            (b'\\', [escaped, after @ ..]) => {
                value.push(*escaped);
                rest = after;
            }
            _ => value.push(*byte),
        }
    }
    Err(MultipartError::BadHeader)
}

/// Before and from the first of the `marks`.
fn cut<'a>(bytes: &'a [u8], marks: &[u8]) -> (&'a [u8], &'a [u8]) {
    let mark = bytes.iter().position(|byte| marks.contains(byte));
    bytes.split_at(mark.unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Option<String> {
        let head = format!("\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\n");
        parse(head.as_bytes()).unwrap().filename
    }

    #[test]
    fn names_are_taken_as_they_stand_between_the_quotes() {
        for name in [
            "note.txt",
            "",
            " ",
            "dir/a+b %é.txt",
            "100%.txt",
            "say \"hi\".txt",
            "\"",
            "a\"; filename=\"b",
            "back\\slash\\",
            "a;b=c",
            "line\nfeed",
            "carriage\rreturn",
            "日本語 🎉",
        ] {
            assert_eq!(named(name).as_deref(), Some(name));
        }
    }

    #[test]
    fn other_ways_to_name_a_file() {
        let name = |value: &str| {
            let head = format!("\r\ncontent-disposition:{value}\r\n\r\n");
            parse(head.as_bytes()).map(|headers| headers.filename)
        };
        assert_eq!(name("attachment;FILENAME=\"a\""), Ok(Some("a".into())));
        assert_eq!(
            name("attachment; size=1; filename=a.txt ; x=y"),
            Ok(Some("a.txt".into()))
        );
        assert_eq!(name("attachment"), Ok(None));
        assert_eq!(name("attachment; filename*=utf-8''a"), Ok(None));
        assert_eq!(name(""), Ok(None));
        assert_eq!(
            name("attachment; filename=\"a"),
            Err(MultipartError::BadHeader)
        );
    }

    #[test]
    fn headers_that_cannot_be_meant_are_refused() {
        for bad in [
            "no colon",
            ": no name",
            " folded: line",
            "two words: x",
            "Content-Length: ",
            "Content-Length: -1",
            "Content-Length: +1",
            "Content-Length: 1,1",
            "Content-Length: 18446744073709551616",
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Type: a/b\r\ncontent-type: a/b",
            "Content-Disposition: x\r\nContent-Disposition: x",
        ] {
            let head = format!("\r\n{bad}\r\n\r\n");
            assert_eq!(
                parse(head.as_bytes()),
                Err(MultipartError::BadHeader),
                "{bad}"
            );
        }
        let bytes = b"\r\nContent-Type: \xff\r\n\r\n";
        assert_eq!(parse(bytes), Err(MultipartError::BadHeader));
    }

    #[test]
    fn headers_without_meaning_here_are_passed_over() {
        let head = b"\r\nX-Doc-Id: \xff: \"\r\nContent-Length:  7 \r\n\r\n";
        let headers = parse(head).unwrap();
        assert_eq!(headers.content_length, Some(7));
        assert_eq!(parse(END_OF_HEADERS), Ok(AttachmentHeaders::default()));
    }

    #[test]
    fn boundaries_come_quoted_and_unquoted() {
        let boundary = |content_type: &str| match kind(content_type) {
            Ok(Kind::Multipart { boundary }) => boundary,
            other => panic!("{content_type}: {other:?}"),
        };
        assert_eq!(boundary("multipart/mixed; boundary=\"--a b\""), "--a b");
        assert_eq!(boundary("Multipart/Related;Boundary=--a ;x=y"), "--a");
        assert_eq!(
            boundary("multipart/mixed; x; y=\"boundary=no;\"; boundary=a"),
            "a"
        );
        assert_eq!(
            boundary("multipart/mixed; boundary=\"a\\\"\\\\b\""),
            "a\"\\b"
        );
        for bad in [
            "multipart/mixed",
            "multipart/mixed; boundary",
            "multipart/x;;;",
        ] {
            assert_eq!(kind(bad), Err(MultipartError::ContentType), "{bad}");
        }
        assert_eq!(
            kind("multipart/mixed; boundary=\"a"),
            Err(MultipartError::BadHeader)
        );
    }

    #[test]
    fn error_parts_are_told_from_documents() {
        let json = |error| Ok(Kind::Json { error });
        assert_eq!(kind("application/json"), json(false));
        assert_eq!(kind("application/json; error=\"true\""), json(true));
        assert_eq!(
            kind("Application/JSON ; charset=utf-8; Error=true"),
            json(true)
        );
        assert_eq!(kind("application/json; error=\"false\""), json(false));
        assert_eq!(kind("text/plain; error=\"true\""), Ok(Kind::Other));
        assert_eq!(kind(""), Ok(Kind::Other));
    }
}
