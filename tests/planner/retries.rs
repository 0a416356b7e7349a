//! What becomes of requests for documents that failed.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::error::{Failure, FailureKind};
use pouchdb_fast_sync::planner::Taken;
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{Asked, absent, config, reset, status};

/// One request at a time, for so many rows that fit into one.
fn desk(rows: usize) -> Desk {
    let mut desk = Desk::new(Config {
        max_concurrency: 1,
        ..config()
    });
    desk.feed_rows(rows);
    desk.end_feed(rows as u64);
    desk
}

/// The next request for documents, and how long it took until it could leave.
fn next(desk: &mut Desk) -> (Asked, u64) {
    desk.next_docs().expect("a request")
}

#[test]
fn the_first_repeat_is_at_once_and_later_ones_wait_longer_each_time() {
    let mut desk = desk(10);
    let mut waits = Vec::new();
    let mut asked = desk.ask_one();
    for _ in 0..5 {
        desk.fail(&asked, reset());
        let (again, wait) = next(&mut desk);
        assert_eq!(again.ids(), asked.ids());
        (asked, waits) = (again, [waits, vec![wait]].concat());
    }
    assert_eq!(waits[0], 0, "an idle connection that the server closed");
    for (at, wait) in waits[1..].iter().enumerate() {
        let base = 200 << at;
        assert!((base..base * 3 / 2).contains(wait), "{waits:?}");
    }
}

#[test]
fn what_failed_six_times_fails_with_its_name() {
    let mut desk = desk(1);
    let mut asked = desk.ask_one();
    for _ in 0..5 {
        desk.fail(&asked, reset());
        asked = next(&mut desk).0;
    }
    desk.fail(&asked, reset());
    assert!(desk.ask_docs().is_empty());
    assert_eq!(desk.take_count(10), Some(1));
    let Taken::Failed(failure) = desk.planner.take_docs("d0", "1-a") else {
        panic!("it cannot be had");
    };
    assert_eq!(failure.kind, FailureKind::Network);
    assert_eq!(failure.reason, "d0 at 1-a: reset");
    assert_eq!(desk.planner.stats().failures, 6);
}

#[test]
fn only_the_request_that_failed_is_repeated() {
    let mut desk = Desk::new(config());
    desk.feed_rows(200);
    let asked = desk.ask_docs();
    assert_eq!(asked.len(), 2);
    desk.fail(&asked[0], reset());
    desk.answer(&asked[1], 100);
    assert_eq!(desk.ask_one().ids(), asked[0].ids());
}

#[test]
fn an_entry_with_an_error_of_its_own_is_repeated_alone() {
    let mut desk = desk(10);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 100, |desk, entry| match &*entry.id {
        "d4" => Answer::Error("timeout".into()),
        _ => desk.doc(),
    });
    let (again, _) = next(&mut desk);
    assert_eq!(again.ids(), ["d4"]);
    desk.answer(&again, 100);
    assert_eq!(desk.take_count(10), Some(10));
}

#[test]
fn a_request_that_was_too_large_is_halved_until_it_passes() {
    let mut desk = desk(40);
    let mut sizes = Vec::new();
    let mut done = 0;
    while done < 40 {
        let (asked, wait) = next(&mut desk);
        assert_eq!(wait, 0);
        sizes.push(asked.entries.len());
        if asked.entries.len() > 12 {
            desk.fail(&asked, status(413));
        } else {
            done += asked.entries.len();
            desk.answer(&asked, 100);
        }
    }
    assert_eq!(sizes, [40, 20, 20, 10, 10, 10, 10]);
    assert_eq!(desk.take_count(10), Some(10));
}

#[test]
fn a_silent_request_is_given_up_and_repeated_in_halves() {
    let mut desk = desk(40);
    let asked = desk.ask_one();
    desk.planner.handle_progress(asked.id, 30_000);
    desk.now = 60_000;
    desk.planner.handle_timeout(desk.now);
    assert!(desk.ask_docs().is_empty(), "bytes came after 30 s");
    desk.now = 90_000;
    desk.planner.handle_timeout(desk.now);
    let again = desk.ask_one();
    assert!(desk.aborted.contains(&asked.id));
    assert_eq!(again.entries.len(), 20);
}

#[test]
fn an_answer_that_comes_after_all_is_dropped() {
    let mut desk = desk(1);
    let asked = desk.ask_one();
    desk.fail(&asked, reset());
    desk.answer(&asked, 100);
    assert_eq!(desk.dropped(), 1);
    let again = desk.ask_one();
    desk.answer(&again, 100);
    assert_eq!(desk.take_count(10), Some(1));
}

#[test]
fn an_answer_with_too_few_results_is_no_answer() {
    let mut desk = desk(3);
    let asked = desk.ask_one();
    let answers = vec![desk.doc(), desk.doc()];
    desk.planner.handle_docs(asked.id, answers, 200, 0);
    assert_eq!(desk.dropped(), 2);
    assert_eq!(desk.planner.buffered(), 0);
    let (again, _) = next(&mut desk);
    assert!(
        again
            .entries
            .iter()
            .all(|entry| asked.entries.contains(entry))
    );
}

/// CouchDB before 3.3 breaks off an answer where one document cannot be read.
#[test]
fn one_document_that_spoils_every_answer_is_closed_in_on() {
    let mut desk = desk(64);
    let mut had = 0;
    while let Some((asked, _)) = desk.next_docs() {
        if asked.has("d40") {
            desk.fail(&asked, Failure::new(FailureKind::BadJson, "cut short"));
        } else {
            had += asked.entries.len();
            desk.answer(&asked, 100);
        }
    }
    assert!(had >= 60, "{had} of 64");
    assert_eq!(desk.take_count(10), Some(10));
}

#[test]
fn a_server_without_bulk_get_is_asked_for_documents_one_by_one() {
    let mut desk = desk(10);
    let asked = desk.ask_one();
    assert!(!asked.params.single);
    desk.fail(&asked, absent());
    let (again, wait) = next(&mut desk);
    assert!(again.params.single && wait == 0);
    assert_eq!(again.entries.len(), 6, "GETs at once");
    assert!(desk.planner.stats().single_until > desk.now);
}

#[test]
fn after_ten_minutes_a_server_is_asked_again_whether_it_has_bulk_get() {
    let mut desk = desk(10);
    let asked = desk.ask_one();
    desk.fail(&asked, absent());
    let (again, _) = next(&mut desk);
    desk.answer(&again, 100);
    desk.now = 600_000;
    assert!(!desk.ask_one().params.single);
}

#[test]
fn requests_that_left_before_the_first_refusal_lose_no_try() {
    let mut desk = Desk::new(config());
    desk.feed_rows(200);
    let asked = desk.ask_docs();
    assert_eq!(asked.len(), 2);
    desk.fail(&asked[0], absent());
    desk.fail(&asked[1], absent());
    assert_eq!(desk.planner.stats().retries, 0);
    assert!(desk.ask_docs().iter().all(|asked| asked.params.single));
}

#[test]
fn a_login_that_is_refused_ends_after_the_single_gets_are_refused_too() {
    let mut desk = desk(10);
    let mut requests = 0;
    while let Some(asked) = desk.ask_docs().pop() {
        requests += 1;
        assert!(requests < 30, "asking again cannot help");
        desk.fail(&asked, status(401));
    }
    assert_eq!(desk.take_count(10), Some(1));
    assert!(matches!(desk.planner.take_docs("d0", "1-a"), Taken::Failed(f) if f.status == 401));
}

#[test]
fn one_get_that_is_refused_does_not_fail_those_beside_it() {
    let mut desk = desk(6);
    let asked = desk.ask_one();
    desk.fail(&asked, absent());
    while let Some(asked) = desk.ask_docs().pop() {
        if asked.has("d3") {
            desk.fail(&asked, status(403));
        } else {
            desk.answer(&asked, 100);
        }
    }
    assert_eq!(desk.take_count(10), Some(3));
    assert_eq!(desk.take_count(10), Some(1));
    assert!(matches!(
        desk.planner.take_docs("d3", "1-a"),
        Taken::Failed(_)
    ));
    assert_eq!(desk.take_count(10), Some(2));
}
