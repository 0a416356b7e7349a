//! What the replicator is handed at once.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::planner::{Taken, TakenRows};
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{ONE, config, seqs};

#[test]
fn a_batch_size_that_the_caller_named_is_kept() {
    let mut desk = Desk::new(config());
    desk.feed_rows(1_000);
    desk.answer_all(100);
    assert_eq!(desk.take_count(10), Some(10));
}

#[test]
fn half_a_batch_is_kept_back_while_more_rows_are_to_come() {
    let mut desk = Desk::new(Config {
        batch_size: 600,
        ..config()
    });
    let (first, _, limit, _) = desk.ask_feed().expect("a page");
    let names: Vec<_> = (0..limit).map(|at| format!("d{at}")).collect();
    let rows = names
        .iter()
        .zip(1..)
        .map(|(id, seq)| (id.as_str(), ONE, Some(seq)));
    desk.page(first, &rows.collect::<Vec<_>>(), u64::from(limit), 500);
    desk.answer_all(100);
    assert_eq!(desk.take_count(600), Some(600));
    assert_eq!(
        desk.take_count(600),
        None,
        "the others wait for the next page"
    );
}

#[test]
fn the_rest_of_the_feed_is_a_batch() {
    let mut desk = Desk::new(config());
    desk.feed_rows(13);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(10));
    assert_eq!(desk.take_count(10), Some(3));
    assert_eq!(desk.take_count(10), None);
}

#[test]
fn an_idle_replicator_gets_less_where_the_size_is_ours_to_choose() {
    let mut desk = Desk::new(Config {
        batch_size: 1_000,
        batch_fixed: false,
        ..config()
    });
    desk.planner.handle_expectation(1_000.0);
    desk.feed_rows(1_000);
    let asked = desk.ask_docs();
    desk.answer(&asked[0], 100);
    let count = desk.take_count(1_000).expect("what is there");
    assert!((200..1_000).contains(&count));
    // It writes them, and meanwhile the rest may arrive.
    for at in 0..count {
        desk.take_docs(&format!("d{at}"), "1-a");
    }
    assert_eq!(desk.take_count(1_000), None);
}

#[test]
fn what_came_first_waits_for_what_the_feed_named_first() {
    let mut desk = Desk::new(config());
    desk.feed_rows(200);
    let asked = desk.ask_docs();
    assert!(asked.len() > 1 && asked[0].has("d0"));
    desk.answer(&asked[1], 100);
    assert_eq!(desk.take_count(10), None);
    desk.answer(&asked[0], 100);
    let batch = desk.take(10).expect("a batch");
    assert_eq!(seqs(&batch)[0], "1");
}

#[test]
fn a_batch_is_cut_where_its_documents_are_half_the_memory() {
    let mut desk = Desk::new(Config {
        max_buffer_bytes: 40_000,
        ..config()
    });
    desk.planner.handle_expectation(5_000.0);
    desk.feed_rows(8);
    let asked = desk.ask_one();
    desk.answer(&asked, 5_000);
    assert_eq!(desk.take_count(10), Some(4));
    assert_eq!(desk.take_count(10), Some(4));
}

#[test]
fn a_document_larger_than_the_memory_is_a_batch() {
    let mut desk = Desk::new(Config {
        max_buffer_bytes: 1_000,
        ..config()
    });
    desk.feed_rows(1);
    assert_eq!(desk.take_count(10), None);
    let asked = desk.ask_one();
    desk.answer(&asked, 5_000_000);
    assert_eq!(desk.take_count(10), Some(1));
}

#[test]
fn a_row_that_failed_is_a_batch_of_its_own_after_those_before_it() {
    let mut desk = Desk::new(config());
    desk.feed_rows(5);
    desk.end_feed(5);
    let mut expected = vec!["d0", "d1", "d2", "d3", "d4"];
    while let Some((asked, _)) = desk.next_docs() {
        assert_eq!(asked.ids(), expected, "the others are not asked for again");
        desk.answer_with(&asked, 100, |desk, entry| match &*entry.id {
            "d2" => Answer::Error("forbidden".into()),
            _ => desk.doc(),
        });
        expected = vec!["d2"];
    }
    assert_eq!(desk.take_count(10), Some(2));
    assert_eq!(desk.take_count(10), Some(1));
    let Taken::Failed(failure) = desk.planner.take_docs("d2", "1-a") else {
        panic!("it cannot be had");
    };
    assert_eq!(failure.reason, "d2 at 1-a: forbidden");
    assert_eq!(desk.take_count(10), Some(2));
}

#[test]
fn pending_counts_what_lies_behind_the_batch() {
    let mut desk = Desk::new(Config {
        batch_size: 2,
        ..config()
    });
    let (first, ..) = desk.ask_feed().expect("a page");
    let rows = [
        ("a", ONE, Some(1)),
        ("b", ONE, Some(2)),
        ("c", ONE, Some(3)),
    ];
    desk.page(first, &rows, 3, 40);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take(2).expect("a batch").pending, Some(41));
    assert_eq!(desk.take(2).expect("a batch").pending, Some(40));
}

#[test]
fn nothing_is_handed_over_before_its_documents_are_here() {
    let mut desk = Desk::new(config());
    desk.feed_rows(10);
    let asked = desk.ask_one();
    assert_eq!(desk.planner.take_rows(10), TakenRows::Pending);
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(10));
    assert_eq!(desk.take_docs("d9", "1-a"), 1);
}

/// The replicator keys its rows by id: it asks for the last row's revisions only.
#[test]
fn of_two_rows_of_a_document_in_one_batch_the_firsts_body_is_dropped() {
    let mut desk = Desk::new(config());
    desk.feed(&[
        ("a", &["2-a", "2-b"], Some(1)),
        ("b", ONE, Some(2)),
        ("a", &["3-a", "2-b"], Some(3)),
    ]);
    let asked = desk.ask_one();
    assert_eq!(
        asked.ids(),
        ["a", "a", "b"],
        "and nothing of the second row"
    );
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(3));
    assert_eq!(desk.dropped(), 1, "2-a");
    assert!(!desk.planner.is_known("a", "2-a"));
    assert!(desk.planner.is_known("a", "2-b"), "it is a leaf still");
    assert_eq!(
        desk.planner.take_diff("a", &["3-a".into(), "2-b".into()]),
        None
    );
}

#[test]
fn of_two_rows_in_two_batches_both_are_written() {
    let mut desk = Desk::new(Config {
        batch_size: 1,
        ..config()
    });
    desk.feed(&[("a", &["2-a"], Some(1)), ("a", &["3-a"], Some(2))]);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(1), Some(1));
    assert_eq!(
        desk.take_count(1),
        Some(1),
        "it is left to the target's diff"
    );
    assert_eq!(desk.take_docs("a", "2-a"), 1);
    desk.want("a", "3-a");
    assert_eq!(desk.ask_one().entries[0].rev, "3-a".into());
}

#[test]
fn a_revision_that_a_row_names_twice_is_kept_once() {
    let mut desk = Desk::new(config());
    desk.feed(&[("a", &["1-a", "1-a"], Some(1))]);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.dropped(), 1);
    assert_eq!(desk.take_docs("a", "1-a"), 1);
    assert_eq!(desk.planner.buffered(), 0);
}
