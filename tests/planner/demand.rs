//! Revisions that no row brought: the replicator asks for them itself.

use crate::support::Desk;
use crate::words::{config, status};
use pouchdb_fast_sync::planner::Taken;

#[test]
fn it_is_asked_for_before_everything_that_is_read_ahead() {
    let mut desk = Desk::new(config());
    desk.feed_rows(100);
    desk.want("x", "3-x");
    let asked = desk.ask_docs();
    assert_eq!(asked[0].ids(), ["x"]);
}

#[test]
fn it_is_pending_until_it_came_and_known_until_it_is_taken() {
    let mut desk = Desk::new(config());
    assert!(!desk.planner.is_known("x", "3-x"));
    desk.want("x", "3-x");
    assert!(desk.planner.is_pending("x", "3-x"));
    assert_eq!(desk.planner.take_docs("x", "3-x"), Taken::Pending);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert!(!desk.planner.is_pending("x", "3-x"));
    assert_eq!(desk.take_docs("x", "3-x"), 1);
    assert!(!desk.planner.is_known("x", "3-x"));
    assert_eq!(desk.planner.take_docs("x", "3-x"), Taken::Unknown);
}

#[test]
fn its_row_is_given_back_when_it_is_taken() {
    let mut desk = Desk::new(config());
    let row = desk.want("x", "3-x");
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    desk.dropped();
    assert!(desk.dropped_rows.is_empty());
    desk.take_docs("x", "3-x");
    desk.dropped();
    assert_eq!(desk.dropped_rows, [row]);
}

#[test]
fn what_comes_after_it_was_dropped_is_dropped_too() {
    let mut desk = Desk::new(config());
    let row = desk.want("x", "3-x");
    let asked = desk.ask_one();
    desk.planner.drop_handed("x", "3-x");
    desk.answer(&asked, 100);
    assert_eq!(desk.dropped(), 1);
    assert_eq!(desk.dropped_rows, [row]);
    assert_eq!(desk.planner.buffered(), 0);
}

#[test]
fn what_the_target_turned_out_to_have_is_dropped() {
    let mut desk = Desk::new(config());
    desk.feed_rows(1);
    let asked = desk.ask_one();
    desk.answer(&asked, 100);
    assert_eq!(desk.take_count(10), Some(1));
    desk.planner.drop_handed("d0", "1-a");
    assert_eq!(desk.dropped(), 1);
    assert!(!desk.planner.is_known("d0", "1-a"));
}

#[test]
fn a_refusal_of_it_is_told_to_who_asked() {
    let mut desk = Desk::new(config());
    desk.want("x", "3-x");
    desk.end_feed(0);
    while let Some((asked, _)) = desk.next_docs() {
        desk.fail(&asked, status(401));
    }
    let Taken::Failed(failure) = desk.planner.take_docs("x", "3-x") else {
        panic!("it failed");
    };
    assert_eq!(failure.status, 401);
    assert!(failure.reason.contains('x'));
}
