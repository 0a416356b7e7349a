//! Whether the target is asked which revisions it lacks, and what it says.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::planner::Planner;

use crate::support::Desk;
use crate::words::{ONE, config, reset, retry_after, revs, status};

fn filled() -> Config {
    Config {
        target_empty: false,
        ..config()
    }
}

#[test]
fn an_empty_target_is_not_asked() {
    let mut desk = Desk::new(config());
    desk.feed(&[("a", &["2-a", "2-b"], Some(1))]);
    assert_eq!(desk.ask_one().entries.len(), 2);
    assert!(desk.ask_diff().is_none());
}

#[test]
fn only_what_the_target_lacks_is_fetched() {
    let mut desk = Desk::new(filled());
    desk.feed(&[
        ("a", &["2-a", "2-b"], Some(1)),
        ("b", ONE, Some(2)),
        ("c", ONE, Some(3)),
    ]);
    let (id, rows) = desk.ask_diff().expect("a diff");
    assert_eq!(rows.len(), 3);
    let missing = vec![revs(&["2-b"]), Vec::new(), revs(&["1-a"])];
    desk.planner.handle_diff(id, missing, 0);
    let asked = desk.ask_one();
    assert_eq!(asked.ids(), ["a", "c"]);
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(3));
    let diff = desk.planner.take_diff("a", &revs(&["2-a", "2-b"]));
    assert_eq!(diff, Some(revs(&["2-b"])));
    assert_eq!(desk.planner.take_diff("b", &revs(ONE)), Some(Vec::new()));
    assert_eq!(desk.planner.take_diff("b", &revs(ONE)), None, "only once");
}

#[test]
fn flags_say_the_same_in_the_rows_order() {
    let mut desk = Desk::new(filled());
    desk.feed(&[("a", &["2-a", "2-b"], Some(1)), ("b", ONE, Some(2))]);
    let (id, _) = desk.ask_diff().expect("a diff");
    desk.planner.handle_diff_flags(id, &[false, true, true], 0);
    let asked = desk.ask_one();
    let asked: Vec<_> = asked
        .entries
        .iter()
        .map(|entry| (&*entry.id, &*entry.rev))
        .collect();
    assert_eq!(asked, [("a", "2-b"), ("b", "1-a")]);
}

#[test]
fn fewer_flags_than_revisions_leave_the_diff_to_the_replicator() {
    let mut desk = Desk::new(filled());
    desk.feed(&[("a", &["2-a", "2-b"], Some(1)), ("b", ONE, Some(2))]);
    let (id, _) = desk.ask_diff().expect("a diff");
    desk.planner.handle_diff_flags(id, &[false, true], 0);
    assert_eq!(desk.take_count(10), Some(2));
    assert_eq!(desk.planner.take_diff("b", &revs(ONE)), None);
}

#[test]
fn a_large_page_is_compared_in_parts_while_documents_come() {
    let mut desk = Desk::new(Config {
        batch_size: 2_500,
        ..filled()
    });
    desk.feed_rows(2_500);
    let (id, rows) = desk.ask_diff().expect("a diff");
    assert_eq!(rows.len(), 1_000);
    assert!(desk.ask_diff().is_none(), "one after the other");
    desk.planner.handle_diff(id, vec![Vec::new(); 1_000], 0);
    assert_eq!(desk.ask_diff().expect("the next part").1.len(), 1_000);
}

#[test]
fn where_nearly_everything_was_missing_the_target_is_not_asked_for_a_while() {
    let mut desk = Desk::new(filled());
    for seq in 1..=5 {
        a_row(&mut desk, seq);
        let (id, _) = desk.ask_diff().expect("a diff");
        desk.planner.handle_diff(id, vec![revs(ONE)], desk.now);
        desk.answer_all(100);
    }
    a_row(&mut desk, 6);
    assert!(desk.ask_diff().is_none());
    assert_eq!(desk.ask_one().ids(), ["d6"]);
    desk.now += 37_000;
    a_row(&mut desk, 7);
    assert!(
        desk.ask_diff().is_some(),
        "now and then it is looked at again"
    );
}

fn a_row(desk: &mut Desk, seq: u64) {
    let (id, ..) = desk.ask_feed().expect("a page");
    desk.page(id, &[(format!("d{seq}").as_str(), ONE, Some(seq))], seq, 9);
}

#[test]
fn a_diff_that_failed_is_left_to_the_replicators_own() {
    let mut desk = Desk::new(filled());
    desk.feed_rows(2);
    let (id, _) = desk.ask_diff().expect("a diff");
    desk.planner.handle_failure(id, status(500), 0);
    assert!(
        desk.ask_diff().is_none(),
        "a local database says the same again"
    );
    assert_eq!(desk.take_count(10), Some(2));
    assert_eq!(desk.planner.take_diff("d0", &revs(ONE)), None);
}

#[test]
fn a_diff_over_the_network_is_repeated() {
    let mut desk = Desk::new(Config {
        target_remote: true,
        ..filled()
    });
    desk.feed_rows(2);
    let (id, rows) = desk.ask_diff().expect("a diff");
    desk.planner.handle_failure(id, reset(), 0);
    let (id, again) = desk.ask_diff().expect("again");
    assert_eq!(rows, again);
    desk.planner.handle_diff(id, vec![revs(ONE), Vec::new()], 0);
    assert_eq!(desk.ask_one().ids(), ["d0"]);
}

#[test]
fn revisions_that_the_row_did_not_name_are_asked_of_the_target() {
    let mut desk = Desk::new(config());
    desk.feed_rows(1);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.planner.take_diff("d0", &revs(&["1-a", "1-b"])), None);
}

/// What its first row brings is not written yet.
#[test]
fn a_document_that_came_before_is_asked_of_the_target_when_its_turn_comes() {
    let mut desk = Desk::new(filled());
    desk.feed(&[("a", &["2-a"], Some(1)), ("a", &["3-a"], Some(2))]);
    let (id, rows) = desk.ask_diff().expect("a diff");
    assert_eq!(rows.len(), 1, "a diff has ids for keys, each once");
    desk.planner.handle_diff(id, vec![revs(&["2-a"])], 0);
    let asked = desk.ask_one();
    assert_eq!(asked.entries.len(), 1);
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(2));
    assert_eq!(desk.planner.take_diff("a", &revs(&["3-a"])), None);
}

#[test]
fn the_source_is_not_asked_for_documents_before_it_said_who_it_is() {
    let mut desk = Desk::of(Planner::new(config(), "0".into()));
    desk.feed_rows(2);
    assert!(desk.ask_docs().is_empty());
    desk.planner.handle_identity(true);
    assert!(desk.ask_one().params.one_replica);
}

#[test]
fn a_server_that_names_a_time_is_not_asked_for_a_diff_before() {
    let mut desk = Desk::new(Config {
        target_remote: true,
        ..filled()
    });
    desk.feed_rows(2);
    let (diff, _) = desk.ask_diff().expect("a diff");
    let failure = retry_after(2_000);
    desk.planner.handle_failure(diff, failure, desk.now);
    assert!(desk.ask_diff().is_none());
    assert_eq!(desk.planner.poll_timeout(), Some(desk.now + 2_000));
    desk.now += 2_000;
    assert!(desk.ask_diff().is_some());
}
