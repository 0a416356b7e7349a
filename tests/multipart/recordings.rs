//! Every multipart answer among the recordings of a real CouchDB.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use pouchdb_fast_sync::multipart::{MultipartError, pair_attachments};

use crate::reading::{Reading, Seen, cut, read};

struct Recording {
    name: String,
    content_type: String,
    body: Vec<u8>,
}

/// The empty one is among them: CouchDB's answer to a request for nothing.
fn recordings() -> Vec<Recording> {
    let file = include_str!("../fixtures/couchdb-3.5.2.json");
    let exchanges: Vec<Value> = serde_json::from_str(file).unwrap();
    let multipart = exchanges.iter().filter_map(|exchange| {
        let response = &exchange["response"];
        let content_type = response["headers"]["content-type"].as_str()?;
        let body = match response["bodyBase64"].as_str() {
            Some(body) => BASE64_STANDARD.decode(body).unwrap(),
            None => response["body"].as_str()?.as_bytes().to_vec(),
        };
        content_type.starts_with("multipart/").then(|| Recording {
            name: exchange["name"].as_str().unwrap_or_default().to_owned(),
            content_type: content_type.to_owned(),
            body,
        })
    });
    let recordings: Vec<Recording> = multipart.collect();
    assert_eq!(recordings.len(), 5, "recordings were lost");
    recordings
}

fn full(recording: &Recording) -> Option<Reading> {
    let reading = read(&recording.content_type, [&recording.body[..]]);
    let empty = recording.body.is_empty();
    assert_eq!(reading.result.is_err(), empty, "{}", recording.name);
    (!empty).then_some(reading)
}

#[test]
fn every_cut_in_two_reads_alike() {
    for recording in recordings() {
        let Some(whole) = full(&recording) else {
            continue;
        };
        for at in 0..=recording.body.len() {
            let (a, b) = recording.body.split_at(at);
            let reading = read(&recording.content_type, [a, b]);
            assert_eq!(reading, whole, "{} cut at {at}", recording.name);
        }
    }
}

#[test]
fn bytes_one_by_one_and_random_chunks_read_alike() {
    let mut runner = TestRunner::new(Config::with_cases(100));
    for recording in recordings() {
        let Some(whole) = full(&recording) else {
            continue;
        };
        let lengths = proptest::collection::vec(1usize..400, 1..12);
        let check = |lengths: &[usize]| {
            let reading = read(&recording.content_type, cut(&recording.body, lengths));
            assert_eq!(reading, whole, "{} in {lengths:?}", recording.name);
        };
        (1..100).for_each(|length| check(&[length]));
        let run = runner.run(&lengths, |lengths| {
            check(&lengths);
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn every_cut_off_is_truncated() {
    for recording in recordings() {
        for end in 0..recording.body.len().saturating_sub(2) {
            let reading = read(&recording.content_type, [&recording.body[..end]]);
            assert_eq!(reading.result, Err(MultipartError::Truncated), "at {end}");
        }
    }
}

/// The recording's request asked for these, the last of which does not exist.
#[test]
fn documents_attachments_and_errors_come_in_the_order_of_the_request() {
    let recordings = recordings();
    let mixed = recordings
        .iter()
        .find(|r| r.name == "bulk-get-multipart-mixed");
    let reading = full(mixed.unwrap()).unwrap();
    let story: Vec<String> = reading.seen.iter().map(tell).collect();
    let attachment = |name, length, encoding| format!("{name} {length} {encoding:?}");
    let expected = [
        "attached".to_owned(),
        attachment("note.txt", 38, Some("gzip")),
        attachment("pixel.bin", 10, None),
        attachment("empty.txt", 20, Some("gzip")),
        "end".into(),
        "plain".into(),
        "end".into(),
        "attached-one".into(),
        attachment("dir/a+b %é.txt", 28, Some("gzip")),
        "end".into(),
        "conflicted".into(),
        "end".into(),
        "gone".into(),
        "end".into(),
        "not_found".into(),
        "End".into(),
    ];
    let told: Vec<String> = story.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(told, expected);
    let pixel = reading.seen.iter().find_map(|seen| match seen {
        Seen::Attachment(headers, data) if headers.content_encoding.is_none() => Some(data),
        _ => None,
    });
    assert_eq!(pixel.unwrap(), b"\x00\x01\x02\xfa\xfb\r\n--\xff");
}

fn tell(seen: &Seen) -> String {
    let field = |json: &[u8], name: &str| {
        let json: Value = serde_json::from_slice(json).unwrap();
        json[name].as_str().unwrap_or_default().to_owned()
    };
    match seen {
        Seen::Document(json) => field(json, "_id"),
        Seen::Error(json) => field(json, "error"),
        Seen::Attachment(headers, data) => {
            let name = headers.filename.as_deref().unwrap_or_default();
            let encoding = headers.content_encoding.as_deref();
            format!("{name} {} {encoding:?}", data.len())
        }
        Seen::AttachmentEnd => String::new(),
        Seen::DocumentEnd => "end".into(),
        Seen::End => "End".into(),
    }
}

/// The stream says the same of an attachment as the JSON entry it belongs to.
#[test]
fn attachments_are_those_that_their_document_names() {
    let readings: Vec<Reading> = recordings().iter().filter_map(full).collect();
    let mut compared = 0;
    for seen in readings
        .iter()
        .flat_map(|reading| reading.seen.split(|seen| *seen == Seen::DocumentEnd))
    {
        let Some(Seen::Document(json)) = seen.first() else {
            continue;
        };
        let json: Value = serde_json::from_slice(json).unwrap();
        let follows: Vec<(&String, &Value)> = match json["_attachments"].as_object() {
            Some(entries) => entries
                .iter()
                .filter(|(_, entry)| entry["follows"] == true)
                .collect(),
            None => Vec::new(),
        };
        let came = seen.iter().filter_map(|seen| match seen {
            Seen::Attachment(headers, data) => Some((headers, data)),
            _ => None,
        });
        let (headers, data): (Vec<_>, Vec<_>) = came.unzip();
        let names: Vec<&str> = follows.iter().map(|(name, _)| name.as_str()).collect();
        let files: Vec<Option<&str>> = headers.iter().map(|h| h.filename.as_deref()).collect();
        for (place, entry) in pair_attachments(&names, &files)
            .unwrap()
            .into_iter()
            .enumerate()
        {
            let (name, entry) = follows[entry];
            let stored = entry.get("encoded_length").unwrap_or(&entry["length"]);
            assert_eq!(headers[place].filename.as_ref(), Some(name));
            assert_eq!(
                headers[place].content_type.as_deref(),
                entry["content_type"].as_str()
            );
            assert_eq!(
                headers[place].content_encoding.as_deref(),
                entry["encoding"].as_str()
            );
            assert_eq!(Some(data[place].len() as u64), stored.as_u64());
            compared += 1;
        }
    }
    assert_eq!(compared, 4 + 4 + 3);
}
