//! How many requests are in flight, and which times the driver is told.

use pouchdb_fast_sync::config::Config;

use crate::support::Desk;
use crate::words::{Asked, config, reset, retry_after, status};

/// Ten documents a request: there is always one more to be asked for.
fn desk(most: u32) -> Desk {
    let mut desk = Desk::new(Config {
        max_concurrency: most,
        ..config()
    });
    desk.planner.handle_expectation(100_000.0);
    desk.feed_rows(1_000);
    desk.end_feed(1_000);
    desk
}

/// Answers one request after the other until the window is as large as it gets.
fn grown(desk: &mut Desk) -> Vec<Asked> {
    let mut flying = desk.ask_docs();
    for _ in 0..10 {
        let asked = flying.remove(0);
        desk.answer(&asked, 100_000);
        flying.extend(desk.ask_docs());
        assert_eq!(flying.len(), desk.planner.docs_in_flight_count());
    }
    flying
}

#[test]
fn requests_in_flight_grow_with_success_up_to_the_bound() {
    for most in 1..=6 {
        assert_eq!(grown(&mut desk(most)).len(), most as usize);
    }
}

#[test]
fn a_failure_halves_them() {
    let mut desk = desk(6);
    let flying = grown(&mut desk);
    desk.fail(&flying[0], reset());
    for asked in &flying[1..4] {
        assert!(desk.ask_docs().is_empty(), "the repeat waits for room");
        desk.answer(asked, 100_000);
    }
    assert_eq!(desk.ask_one().ids(), flying[0].ids());
}

#[test]
fn an_overloaded_server_is_asked_nothing_until_the_time_it_named() {
    let mut desk = desk(4);
    let asked = desk.ask_docs();
    assert_eq!(asked.len(), 3);
    desk.now = 100;
    desk.fail(&asked[0], retry_after(3_000));
    desk.answer(&asked[1], 100_000);
    desk.answer(&asked[2], 100_000);
    assert!(desk.ask_docs().is_empty());
    assert_eq!(desk.planner.poll_timeout(), Some(3_100));
    desk.now = 3_099;
    assert!(desk.ask_docs().is_empty());
    desk.now = 3_100;
    assert!(!desk.ask_docs().is_empty());
}

#[test]
fn an_overloaded_server_that_names_no_time_is_left_alone_longer_each_time() {
    let mut desk = desk(1);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let asked = desk.ask_one();
        desk.fail(&asked, status(503));
        let from = desk.now;
        assert!(desk.ask_docs().is_empty());
        desk.wait();
        waits.push(desk.now - from);
    }
    assert_eq!(waits, [500, 1_000, 2_000, 4_000]);
}

/// The driver would set a timer for it again and again, without anything to do.
#[test]
fn a_time_that_has_come_and_waits_for_room_is_not_named() {
    let mut desk = desk(1);
    let asked = desk.ask_one();
    desk.fail(&asked, reset());
    let again = desk.ask_one();
    desk.fail(&again, reset());
    desk.wait();
    // Something else was quicker.
    desk.now -= 1;
    desk.want("x", "1-x");
    assert_eq!(desk.ask_one().ids(), ["x"]);
    desk.now += 1;
    assert!(desk.ask_docs().is_empty(), "there is room for one");
    let named = desk.planner.poll_timeout().expect("the request may stall");
    assert_eq!(named, desk.now - 1 + 60_000);
}

/// The clock goes on between the polling and the setting of the timer.
#[test]
fn a_time_that_comes_after_the_polling_is_named_though_it_has_passed() {
    let mut desk = desk(1);
    let asked = desk.ask_one();
    desk.now = 1_000;
    desk.fail(&asked, retry_after(50));
    desk.now = 1_049;
    assert!(desk.ask_docs().is_empty());
    desk.now = 1_051;
    assert_eq!(desk.planner.poll_timeout(), Some(1_050));
}

#[test]
fn nothing_is_waited_for_when_nothing_is_left_to_do() {
    let mut desk = Desk::new(config());
    desk.end_feed(5);
    assert!(desk.ask_docs().is_empty() && desk.ask_feed().is_none());
    assert_eq!(desk.planner.poll_timeout(), None);
}
