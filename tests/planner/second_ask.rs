//! What is asked for and how, and what becomes of revisions that are missing.

use pouchdb_fast_sync::planner::Planner;
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{Asked, ONE, absent, config};

fn missing(desk: &mut Desk, asked: &Asked, ids: &[&str]) {
    desk.answer_with(asked, 100, |desk, entry| {
        if ids.contains(&&*entry.id) {
            Answer::Missing
        } else {
            desk.doc()
        }
    });
}

#[test]
fn histories_are_asked_for_unless_every_revision_is_the_first() {
    let mut desk = Desk::new(config());
    desk.feed(&[("a", ONE, Some(1)), ("b", ONE, Some(2))]);
    assert!(!desk.ask_one().params.revs);
    let mut desk = Desk::new(config());
    desk.feed(&[("a", ONE, Some(1)), ("b", &["2-b"], Some(2))]);
    assert!(desk.ask_one().params.revs);
}

#[test]
fn a_couchdb_is_asked_for_one_replicas_answer_and_others_are_not() {
    for couch in [true, false] {
        let mut planner = Planner::new(config(), "0".into());
        planner.handle_identity(couch);
        let mut desk = Desk::of(planner);
        desk.feed_rows(1);
        let params = desk.ask_one().params;
        assert_eq!((params.one_replica, params.latest), (couch, false));
    }
}

#[test]
fn what_is_missing_is_asked_for_again_with_its_leaves_and_a_quorum() {
    let mut desk = Desk::new(config());
    desk.feed_rows(3);
    let asked = desk.ask_one();
    missing(&mut desk, &asked, &["d1"]);
    let again = desk.ask_one();
    assert_eq!(again.ids(), ["d1"]);
    let params = again.params;
    assert!(params.latest && params.revs && !params.one_replica);
    assert_eq!(desk.take_count(10), None, "it may still be there");
    desk.answer(&again, 100);
    assert_eq!(desk.take_count(10), Some(3));
    assert_eq!(desk.take_docs("d1", "1-a"), 1);
    assert_eq!(desk.planner.stats().gone, 0);
}

#[test]
fn what_is_missing_twice_is_passed_over_and_named() {
    let mut desk = Desk::new(config());
    desk.feed_rows(2);
    let asked = desk.ask_one();
    missing(&mut desk, &asked, &["d1"]);
    let again = desk.ask_one();
    missing(&mut desk, &again, &["d1"]);
    assert!(
        desk.ask_docs().is_empty(),
        "it is not asked for a third time"
    );
    assert_eq!(desk.take_count(10), Some(2));
    assert_eq!(desk.take_docs("d0", "1-a"), 1);
    assert_eq!(desk.take_docs("d1", "1-a"), 0);
    let stats = desk.planner.stats();
    assert_eq!(
        (stats.gone, &stats.gone_revisions[..]),
        (1, &["d1@1-a".into()][..])
    );
}

#[test]
fn several_leaves_may_answer_for_one_revision() {
    let mut desk = Desk::new(config());
    desk.feed_rows(1);
    let asked = desk.ask_one();
    missing(&mut desk, &asked, &["d0"]);
    let again = desk.ask_one();
    desk.answer_with(&again, 100, |desk, _| desk.docs(2, None));
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_docs("d0", "1-a"), 2);
}

#[test]
fn second_asks_travel_together_before_what_comes_later_in_the_feed() {
    let mut desk = Desk::new(config());
    desk.planner.handle_expectation(100_000.0);
    desk.feed_rows(1_000);
    let asked = desk.ask_docs();
    missing(&mut desk, &asked[0], &["d0", "d1", "d2"]);
    let again = desk.ask_docs();
    assert_eq!(again[0].ids(), ["d0", "d1", "d2"]);
    assert!(!again[1].params.latest);
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
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(1);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    let stream = desk.ask_one();
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
fn a_server_without_streams_is_asked_the_plain_way_from_then_on() {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(2);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    let stream = desk.ask_one();
    desk.fail(&stream, absent());
    let plain = desk.ask_one();
    assert!(!plain.params.attachments && !plain.params.single);
    desk.answer_with(&plain, 100, |desk, _| desk.docs(1, Some(10)));
    assert_eq!(desk.take_count(10), Some(2));
}

/// Replaced between the ask for the document and the ask for its attachments.
#[test]
fn a_document_that_is_gone_when_its_stream_is_asked_for_has_its_leaves_answer() {
    let mut desk = Desk::new(config());
    desk.planner.handle_attachment_streams(true);
    desk.feed_rows(1);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, _| desk.docs(1, Some(10)));
    let stream = desk.ask_one();
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
        let stream = asked.params.attachments;
        desk.answer_with(&asked, 100, |desk, _| match stream {
            true => Answer::Missing,
            false => desk.docs(1, Some(10)),
        });
    }
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(
        desk.take_docs("d0", "1-a"),
        1,
        "the host fetches its attachments"
    );
}
