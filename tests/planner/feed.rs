//! Reading the feed ahead, and the sequence that each row is handed over with.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::error::FailureKind;
use pouchdb_fast_sync::planner::{Planner, TakenRows};

use crate::support::Desk;
use crate::words::{ONE, config, reset, retry_after, seqs, status};

#[test]
fn the_feed_is_asked_for_before_the_server_said_who_it_is() {
    let mut desk = Desk::of(Planner::new(config(), "\"7-g1\"".into()));
    let (_, since, limit, interval) = desk.ask_feed().expect("a page");
    assert_eq!((since.as_str(), limit, interval), ("\"7-g1\"", 1_000, None));
}

#[test]
fn pages_after_the_first_are_larger() {
    let mut desk = Desk::of(Planner::new(config(), "0".into()));
    let (first, _, limit, _) = desk.ask_feed().expect("a page");
    assert_eq!(limit, 1_000);
    desk.page(first, &[("a", ONE, Some(1))], 1, 9);
    let (_, since, limit, _) = desk.ask_feed().expect("a page");
    assert_eq!((since.as_str(), limit), ("1", 4_000));
}

#[test]
fn one_page_is_asked_for_at_a_time() {
    let mut desk = Desk::new(config());
    assert!(desk.ask_feed().is_some());
    assert!(desk.ask_feed().is_none());
}

#[test]
fn a_row_without_a_seq_is_handed_over_with_the_last_one_before_it() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    let rows = [
        ("a", ONE, None),
        ("b", ONE, Some(2)),
        ("c", ONE, None),
        ("d", ONE, Some(4)),
    ];
    desk.page(first, &rows, 4, 0);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    let batch = desk.take(10).expect("a batch");
    assert_eq!(seqs(&batch), ["0", "2", "2", "4"]);
    assert_eq!(&*batch.last_seq, "4");
}

#[test]
fn the_last_row_of_an_unfiltered_page_may_have_the_pages_own_seq() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.page(first, &[("a", ONE, Some(1)), ("b", ONE, None)], 2, 5);
    assert_eq!(desk.ask_feed().expect("a page").1, "2");
}

#[test]
fn a_filtered_feed_is_paged_by_its_last_row_and_without_intervals() {
    let mut desk = Desk::new(Config {
        filtered: true,
        ..config()
    });
    let (first, _, _, interval) = desk.ask_feed().expect("a page");
    assert_eq!(interval, None);
    // The server looked as far as 90, and stopped sending at the limit.
    desk.page(first, &[("a", ONE, Some(3))], 90, 8);
    let (_, since, _, interval) = desk.ask_feed().expect("a page");
    assert_eq!((since.as_str(), interval), ("3", None));
}

/// CouchDB computes a seq where the rows left of `limit` are a multiple of the
/// interval.
#[test]
fn the_last_row_of_every_batch_has_a_seq_of_its_own() {
    let mut desk = Desk::new(config());
    let mut seq = 0;
    // A page that the server cut short, and then whole ones.
    for most in [7, 5_000, 5_000] {
        let (id, _, limit, interval) = desk.ask_feed().expect("a page");
        let interval = u64::from(interval.expect("it is CouchDB"));
        let count = u64::from(limit).min(most);
        let names: Vec<_> = (0..count).map(|at| format!("d{}", seq + at)).collect();
        let rows = names.iter().zip(0..).map(|(id, at)| {
            let named = (u64::from(limit) - at).is_multiple_of(interval);
            (id.as_str(), ONE, named.then_some(seq + at + 1))
        });
        let rows: Vec<_> = rows.collect();
        seq += count;
        desk.page(id, &rows, seq, 9_999);
        for (at, (_, _, own)) in (seq - count..).zip(&rows) {
            assert_eq!(own.is_some(), at % 10 == 9, "row {at} of the run");
        }
    }
}

#[test]
fn a_server_that_is_not_couchdb_gets_no_interval() {
    let mut planner = Planner::new(config(), "0".into());
    planner.handle_identity(false);
    let (.., interval) = Desk::of(planner).ask_feed().expect("a page");
    assert_eq!(interval, None);
}

#[test]
fn reading_ahead_stops_at_the_bound_of_rows_until_some_are_taken() {
    let mut desk = Desk::new(Config {
        max_rows_ahead: 10,
        ..config()
    });
    desk.feed_rows(20);
    desk.answer_all(100);
    assert!(desk.ask_feed().is_none());
    assert_eq!(desk.take_count(10), Some(10));
    assert!(desk.ask_feed().is_none(), "ten rows are still there");
    assert_eq!(desk.take_count(10), Some(10));
    assert!(desk.ask_feed().is_some());
}

/// A `batch_size` of 20,000 is more than is read ahead.
#[test]
fn a_batch_larger_than_the_bound_of_rows_fills_up_all_the_same() {
    let mut desk = Desk::new(Config {
        batch_size: 600,
        max_rows_ahead: 10,
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
    assert!(desk.ask_feed().is_none(), "there is a batch");
    assert_eq!(desk.take_count(600), Some(600));
    assert_eq!(desk.take_count(600), None);
    assert!(desk.ask_feed().is_some(), "599 rows are not a batch");
}

#[test]
fn an_empty_page_ends_the_feed_with_its_own_seq() {
    let mut desk = Desk::new(config());
    desk.feed_rows(2);
    desk.end_feed(77);
    desk.answer_all(100);
    assert_eq!(desk.take_count(10), Some(2));
    let end = desk.take(10).expect("the end");
    assert!(end.end && end.rows.is_empty());
    assert_eq!(&*end.last_seq, "77");
    assert!(desk.ask_feed().is_none());
}

#[test]
fn a_page_without_any_seq_fails_instead_of_being_read_for_ever() {
    let mut desk = Desk::new(Config {
        filtered: true,
        ..config()
    });
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.page(first, &[("a", ONE, None)], 1, 0);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    let batch = desk.take(10).expect("what came is handed over");
    assert_eq!(&*batch.last_seq, "0", "and does not move the checkpoint");
    let TakenRows::Failed(failure) = desk.planner.take_rows(10) else {
        panic!("then the feed fails");
    };
    assert_eq!(failure.kind, FailureKind::BadShape);
}

#[test]
fn a_page_that_broke_off_is_asked_for_again_at_once_and_then_later() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.planner.handle_failure(first, reset(), desk.now);
    let (second, ..) = desk
        .ask_feed()
        .expect("at once: an idle connection was closed");
    desk.planner.handle_failure(second, reset(), desk.now);
    assert!(desk.ask_feed().is_none());
    desk.wait();
    let (third, ..) = desk.ask_feed().expect("after a while");
    desk.planner.handle_failure(third, reset(), desk.now);
    assert!(desk.ask_feed().is_none());
    assert!(matches!(desk.planner.take_rows(10), TakenRows::Failed(_)));
}

#[test]
fn a_page_that_stalls_is_given_up_and_asked_for_again() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.wait();
    assert_eq!(desk.now, 60_000);
    let (second, since, ..) = desk.ask_feed().expect("again");
    assert_eq!((&desk.aborted[..], since.as_str()), (&[first][..], "0"));
    assert_ne!(first, second);
}

#[test]
fn a_server_that_names_a_time_is_asked_for_the_page_then() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.planner.handle_failure(first, retry_after(4_000), 100);
    assert_eq!(desk.planner.poll_timeout(), Some(4_100));
    desk.now = 4_099;
    assert!(desk.ask_feed().is_none());
    desk.now = 4_100;
    assert!(desk.ask_feed().is_some());
}

#[test]
fn a_server_that_names_a_time_far_off_ends_the_feed() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.planner
        .handle_failure(first, retry_after(3_600_000), 0);
    assert!(desk.ask_feed().is_none());
    let failed = desk.planner.take_rows(10);
    assert!(
        matches!(failed, TakenRows::Failed(_)),
        "PouchDB's own back-off waits better"
    );
}

#[test]
fn a_page_that_is_refused_ends_the_feed_after_what_came_before() {
    let mut desk = Desk::new(config());
    desk.feed_rows(3);
    let (id, ..) = desk.ask_feed().expect("a page");
    desk.planner.handle_failure(id, status(401), 0);
    assert_eq!(desk.planner.take_rows(10), TakenRows::Pending);
    desk.answer_all(100);
    assert_eq!(desk.take_count(10), Some(3));
    let failed = desk.planner.take_rows(10);
    assert!(matches!(failed, TakenRows::Failed(failure) if failure.status == 401));
}

#[test]
fn a_page_that_comes_after_it_was_given_up_is_dropped() {
    let mut desk = Desk::new(config());
    let (first, ..) = desk.ask_feed().expect("a page");
    desk.wait();
    desk.page(first, &[("late", ONE, Some(1))], 1, 0);
    desk.dropped();
    assert_eq!(desk.dropped_rows.len(), 1);
}

#[test]
fn a_filtered_feed_may_be_silent_for_as_long_as_it_likes() {
    let mut desk = Desk::new(Config {
        filtered: true,
        ..config()
    });
    assert!(desk.ask_feed().is_some());
    assert_eq!(desk.planner.poll_timeout(), None);
}

#[test]
fn rows_of_a_page_that_is_still_coming_are_fetched_at_once() {
    let mut desk = Desk::new(config());
    let (page, ..) = desk.ask_feed().expect("a page");
    desk.rows(page, &[("a", ONE, Some(1)), ("b", ONE, Some(2))]);
    let asked = desk.ask_one();
    assert_eq!(asked.ids(), ["a", "b"]);
    desk.answer(&asked, 100);
    desk.page(page, &[("c", ONE, Some(3))], 3, 0);
    let asked = desk.ask_one();
    assert_eq!(asked.ids(), ["c"]);
    desk.answer(&asked, 100);
    let batch = desk.take(10).expect("a batch");
    assert_eq!(seqs(&batch), ["1", "2", "3"]);
    assert_eq!(desk.ask_feed().expect("a page").1, "3");
}

#[test]
fn a_page_that_breaks_off_goes_on_after_the_rows_that_came() {
    let mut desk = Desk::new(config());
    let (page, ..) = desk.ask_feed().expect("a page");
    desk.rows(page, &[("a", ONE, Some(1))]);
    desk.planner.handle_failure(page, reset(), desk.now);
    assert_eq!(desk.ask_feed().expect("a page").1, "1");
}

#[test]
fn a_page_of_which_all_rows_came_before_its_end_is_not_the_feeds_end() {
    let mut desk = Desk::new(config());
    let (page, ..) = desk.ask_feed().expect("a page");
    desk.rows(page, &[("a", ONE, Some(1))]);
    desk.page(page, &[], 1, 0);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    let (end, since, ..) = desk.ask_feed().expect("another page");
    assert_eq!(since, "1");
    assert_eq!(desk.take_count(10), Some(1));
    desk.page(end, &[], 1, 0);
    assert!(matches!(desk.planner.take_rows(10), TakenRows::Batch(batch) if batch.end));
}

#[test]
fn a_few_rows_wait_for_those_behind_them_where_something_is_under_way() {
    let mut desk = Desk::new(config());
    let (page, ..) = desk.ask_feed().expect("a page");
    desk.rows(page, &[("a", ONE, Some(1))]);
    let first = desk.ask_one();
    desk.rows(page, &[("b", ONE, Some(2))]);
    assert!(desk.ask_docs().is_empty());
    desk.rows(page, &[("c", ONE, Some(3))]);
    desk.answer(&first, 100);
    assert_eq!(desk.ask_one().ids(), ["b", "c"]);
}

#[test]
fn a_whole_request_waits_for_nothing() {
    let mut desk = Desk::new(config());
    // Two of them are as much as one request is meant to bring.
    desk.planner.handle_expectation(2_000_000.0);
    let (page, ..) = desk.ask_feed().expect("a page");
    desk.rows(page, &[("a", ONE, Some(1))]);
    desk.ask_one();
    desk.rows(page, &[("b", ONE, Some(2)), ("c", ONE, Some(3))]);
    assert_eq!(desk.ask_one().ids(), ["b", "c"]);
}
