//! How much is read ahead, and what is asked for when the memory is full.

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::request::Answer;

use crate::support::Desk;
use crate::words::{Asked, config, reset, status};

/// Room for so many documents of 10,000 bytes.
fn room_for(docs: u64) -> Config {
    Config {
        max_buffer_bytes: docs * 10_000,
        ..config()
    }
}

fn desk(docs: u64, rows: usize) -> Desk {
    let mut desk = Desk::new(room_for(docs));
    desk.planner.handle_expectation(10_000.0);
    desk.feed_rows(rows);
    desk
}

fn entries(asked: &[Asked]) -> usize {
    asked.iter().map(|asked| asked.entries.len()).sum()
}

#[test]
fn requests_are_cut_to_what_fits_into_the_memory() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_docs();
    assert_eq!(entries(&asked), 8);
    assert_eq!(desk.planner.buffered(), 80_000);
}

#[test]
fn reading_ahead_goes_on_when_documents_were_taken() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_one();
    desk.answer(&asked, 10_000);
    assert!(desk.ask_docs().is_empty(), "the memory is full");
    assert_eq!(desk.take_count(10), Some(4));
    assert!(
        desk.ask_docs().is_empty(),
        "and stays so until they are taken"
    );
    for at in 0..4 {
        desk.take_docs(&format!("d{at}"), "1-a");
    }
    assert_eq!(entries(&desk.ask_docs()), 4);
}

#[test]
fn what_came_is_counted_as_it_was() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_one();
    desk.answer(&asked, 500);
    assert_eq!(desk.planner.buffered(), 8 * 500);
    assert_eq!(desk.planner.stats().peak_buffer_bytes, 8 * 500);
}

#[test]
fn missing_revisions_weigh_nothing_and_the_others_all() {
    let mut desk = desk(8, 8);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 60_000, |desk, entry| match &*entry.id {
        "d7" => desk.doc(),
        _ => Answer::Missing,
    });
    assert_eq!(desk.planner.buffered(), 60_000);
}

#[test]
fn a_document_that_does_not_fit_is_fetched_alone_when_it_is_waited_for() {
    let mut desk = Desk::new(Config {
        max_buffer_bytes: 1_000,
        ..config()
    });
    desk.planner.handle_expectation(10_000.0);
    desk.feed_rows(3);
    assert!(desk.ask_docs().is_empty(), "nobody waits");
    assert_eq!(desk.take_count(10), None);
    let asked = desk.ask_one();
    assert_eq!(asked.ids(), ["d0"]);
    assert!(desk.ask_docs().is_empty(), "one at a time");
    desk.answer(&asked, 10_000);
    assert_eq!(desk.take_count(10), Some(1));
    assert_eq!(desk.take_count(10), None);
    assert!(
        desk.ask_docs().is_empty(),
        "its document has to be taken first"
    );
    desk.take_docs("d0", "1-a");
    assert_eq!(desk.ask_one().ids(), ["d1"]);
}

/// The first row is missing at first; by then the memory is full of later ones.
#[test]
fn the_second_ask_of_the_first_row_leaves_however_full_the_memory_is() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_one();
    desk.answer_with(&asked, 12_000, |desk, entry| match &*entry.id {
        "d0" => Answer::Missing,
        _ => desk.doc(),
    });
    assert!(desk.planner.buffered() > 80_000);
    assert_eq!(desk.take_count(10), None);
    let again = desk.ask_one();
    assert_eq!(again.ids(), ["d0"]);
    assert!(again.params.latest);
}

/// What the oracle deadlocked on: the repeat of something that nobody waits for
/// came first, did not fit, and nothing else was looked at.
#[test]
fn a_repeat_of_rows_far_ahead_does_not_hold_back_the_first_row() {
    let mut desk = Desk::new(Config {
        max_concurrency: 2,
        ..room_for(200)
    });
    desk.planner.handle_expectation(10_000.0);
    desk.feed_rows(200);
    let asked = desk.ask_docs();
    assert_eq!((asked.len(), entries(&asked)), (2, 200));
    // The documents are twice as large as was thought.
    desk.answer_with(&asked[0], 25_000, |desk, entry| match &*entry.id {
        "d0" => Answer::Missing,
        _ => desk.doc(),
    });
    desk.fail(&asked[1], reset());
    assert!(desk.planner.buffered() > 2_000_000);
    assert_eq!(desk.take_count(10), None);
    assert_eq!(desk.ask_one().ids(), ["d0"]);
    assert!(desk.ask_docs().is_empty());
}

/// It asks for rows while up to ten batches wait: it has enough to do.
#[test]
fn batches_that_wait_to_be_written_are_no_reason_to_go_beyond_the_bound() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_one();
    desk.answer(&asked, 10_000);
    assert_eq!(desk.take_count(10), Some(4));
    assert_eq!(desk.take_count(10), Some(4));
    assert_eq!(desk.take_count(10), None);
    assert!(desk.ask_docs().is_empty());
    assert_eq!(
        desk.planner.poll_timeout(),
        Some(60_000),
        "but for the feed's own"
    );
}

#[test]
fn what_the_replicator_asks_for_itself_leaves_however_full_the_memory_is() {
    let mut desk = desk(8, 100);
    let asked = desk.ask_one();
    desk.answer(&asked, 10_000);
    assert_eq!(desk.take_count(10), Some(4));
    desk.want("x", "2-x");
    let asked = desk.ask_one();
    assert_eq!(asked.ids(), ["x"]);
    desk.answer_with(&asked, 0, |_, _| Answer::Missing);
    let again = desk.ask_one();
    assert_eq!(again.ids(), ["x"], "its second ask as well");
}

#[test]
fn a_halved_repeat_stays_halved_beyond_the_bound() {
    let mut desk = Desk::new(Config {
        max_buffer_bytes: 10,
        ..config()
    });
    for at in 0..8 {
        desk.want(&format!("x{at}"), "2-x");
    }
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let (asked, _) = desk.next_docs().expect("the repeat");
        sizes.push(asked.entries.len());
        desk.fail(&asked, status(413));
    }
    assert_eq!(sizes, [8, 4, 2, 1]);
}

#[test]
fn the_memory_is_empty_when_everything_was_taken() {
    let mut desk = desk(8, 20);
    for _ in 0..20 {
        desk.answer_all(7_777);
        while let Some(batch) = desk.take(10) {
            for (row, _) in batch.rows {
                // Handles count up with the rows, from 1.
                desk.take_docs(&format!("d{}", row.0 - 1), "1-a");
            }
        }
    }
    assert_eq!(desk.planner.buffered(), 0);
    assert_eq!(desk.planner.stats().docs, 20);
}
