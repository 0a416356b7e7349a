//! How attachments are asked for: in streams, in pieces where those fail, and what
//! becomes of documents whose attachments cannot be had.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::error::{Failure, FailureKind};
use pouchdb_fast_sync::planner::{Planner, Taken};
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{Asked, absent, config, reset, status};

fn missing(desk: &mut Desk, asked: &Asked, ids: &[&str]) {
    desk.answer_with(asked, 100, |desk, entry| match ids.contains(&&*entry.id) {
        true => Answer::Missing,
        false => desk.doc(),
    });
}

#[test]
fn documents_with_attachments_are_asked_for_again_in_a_stream() {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(3);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, entry| match &*entry.id {
        "d1" => desk.docs(1, Some(9_000)),
        _ => desk.doc(),
    });
    assert_eq!(desk.dropped(), 1, "the document with stubs");
    let stream = desk.ask_one();
    assert_eq!(stream.ids(), ["d1"]);
    assert!(stream.params.attachments && !stream.params.latest);
    desk.answer(&stream, 9_100);
    assert_eq!(desk.take_count(10), Some(3));
}

#[test]
fn a_stub_that_a_stream_brings_is_left_to_the_host() {
    let (mut desk, stream) = stream_of(1);
    desk.answer_with(&stream, 100, |desk, _| desk.docs(1, Some(10)));
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_docs("d0", "1-a"), 1);
}

#[test]
fn leaves_with_attachments_have_a_stream_each() {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(2);
    let asked = desk.ask_one();
    missing(&mut desk, &asked, &["d0", "d1"]);
    let again = desk.ask_one();
    desk.answer_with(&again, 100, |desk, _| desk.docs(2, Some(10)));
    for stream in desk.ask_docs() {
        assert_eq!(
            stream.entries.len(),
            1,
            "leaves do not say what they answer"
        );
        assert!(stream.params.latest && stream.params.attachments);
        assert!(!stream.params.one_replica && stream.params.revs);
    }
}

#[test]
fn a_server_without_streams_is_asked_for_attachments_one_by_one() {
    let (mut desk, stream) = stream_of(2);
    assert!(!stream.params.piecewise);
    desk.fail(&stream, absent());
    let pieces = desk.ask_one();
    assert!(pieces.params.attachments && pieces.params.piecewise && !pieces.params.single);
    assert_eq!(pieces.ids(), ["d0", "d1"]);
    desk.answer(&pieces, 100);
    assert_eq!(desk.take_count(10), Some(2));
    assert!(desk.planner.stats().piecewise_until > desk.now);
}

#[test]
fn streams_are_asked_of_couchdb_only() {
    let mut desk = Desk::of(Planner::new(config(), "0".into()));
    desk.planner.handle_identity(false);
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(1);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    assert!(desk.ask_one().params.piecewise);
    assert_eq!(
        desk.planner.stats().piecewise_until,
        0,
        "that is no word of the server's"
    );
}

#[test]
fn what_a_server_lacks_is_known_from_an_earlier_run() {
    let mut desk = Desk::new(Config {
        single_until: 1_000,
        piecewise_until: 2_000,
        ..config()
    });
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(1);
    let asked = desk.ask_one();
    assert!(asked.params.single);
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    desk.now = 1_500;
    let pieces = desk.ask_one();
    assert!(!pieces.params.single && pieces.params.piecewise);
    desk.fail(&pieces, status(500));
    desk.now = 2_500;
    assert!(!desk.ask_one().params.piecewise);
}

#[test]
fn what_a_broken_stream_brought_is_kept() {
    let (mut desk, stream) = stream_of(5);
    desk.break_after(&stream, 2, reset());
    assert_eq!(desk.take_count(2), Some(2));
    // The one at which it broke off has been tried, those behind it have not.
    let again = desk.ask_docs();
    for (again, ids) in again.iter().zip([vec!["d2"], vec!["d3", "d4"]]) {
        assert_eq!(again.ids(), ids);
        assert!(!again.params.piecewise);
        desk.answer(again, 100);
    }
    assert_eq!(desk.take_count(3), Some(3));
}

#[test]
fn the_document_that_cannot_be_read_in_a_stream_is_asked_for_in_pieces() {
    let (mut desk, stream) = stream_of(5);
    let broken = Failure::new(FailureKind::Attachment, "attachment order");
    desk.break_after(&stream, 2, broken);
    let mut again = desk.ask_docs();
    again.sort_by_key(|asked| asked.entries.len());
    assert_eq!(again[0].ids(), ["d2"]);
    assert!(again[0].params.piecewise);
    assert_eq!(again[1].ids(), ["d3", "d4"]);
    assert!(!again[1].params.piecewise);
    again.iter().for_each(|asked| desk.answer(asked, 100));
    assert_eq!(desk.take_count(10), Some(5));
}

#[test]
fn an_attachment_that_is_not_what_it_should_be_is_tried_in_pieces_and_then_reported() {
    let (mut desk, stream) = stream_of(3);
    desk.answer_with(&stream, 100, |desk, entry| match &*entry.id {
        "d1" => Answer::Attachment("too short".into()),
        _ => desk.doc(),
    });
    for _ in 0..2 {
        let (pieces, _) = desk.next_docs().expect("another try");
        assert_eq!(pieces.ids(), ["d1"]);
        assert!(pieces.params.piecewise);
        desk.answer_with(&pieces, 100, |_, _| Answer::Attachment("too short".into()));
    }
    assert!(desk.next_docs().is_none());
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_docs("d0", "1-a"), 1);
    desk.planner.handle_written();
    assert_eq!(desk.take_count(10), Some(1));
    match desk.planner.take_docs("d1", "1-a") {
        Taken::Failed(failure) => {
            assert_eq!(failure.code(), "fast_sync_attachment");
            assert_eq!(failure.reason, "d1 at 1-a: too short");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_that_fails_again_and_again_is_given_up_for_its_documents() {
    let (mut desk, stream) = stream_of(1);
    let mut asked = stream;
    for _ in 0..3 {
        assert!(!asked.params.piecewise);
        desk.fail(&asked, reset());
        (asked, _) = desk.next_docs().expect("another try");
    }
    assert!(asked.params.piecewise);
    assert_eq!(desk.planner.stats().piecewise_until, 0);
}

/// The stream of so many documents, which came with stubs.
fn stream_of(docs: usize) -> (Desk, Asked) {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(docs);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    let stream = desk.ask_one();
    (desk, stream)
}

/// Replaced between the ask for the document and the ask for its attachments.
#[test]
fn a_document_that_is_gone_when_its_stream_is_asked_for_has_its_leaves_answer() {
    let (mut desk, stream) = stream_of(1);
    missing(&mut desk, &stream, &["d0"]);
    let again = desk.ask_one();
    assert!(again.params.latest);
    desk.answer(&again, 100);
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_docs("d0", "1-a"), 1);
}

/// A server that sends the document, and never its stream.
#[test]
fn asking_in_turns_for_a_document_and_its_stream_comes_to_an_end() {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(1);
    let mut asks = 0;
    while let Some(asked) = desk.ask_docs().pop() {
        asks += 1;
        assert!(asks < 20, "it goes on for ever");
        let stream = asked.params.attachments && !asked.params.piecewise;
        desk.answer_with(&asked, 100, |desk, _| match stream {
            true => Answer::Missing,
            false => desk.docs(1, Some(10)),
        });
    }
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_docs("d0", "1-a"), 1);
}
