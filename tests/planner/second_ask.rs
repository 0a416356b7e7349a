//! What is asked for and how, and what becomes of revisions that are missing.

use pouchdb_fast_sync::planner::Planner;
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{Asked, ONE, config};

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
