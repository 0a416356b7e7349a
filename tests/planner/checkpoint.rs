//! The checkpoint that is written behind: it may lag, never lead.

use pouchdb_fast_sync::checkpoint::Checkpoint;
use proptest::prelude::*;

use crate::support::Desk;
use crate::words::config;

/// What the host is told when the replicator writes: the last one may be near.
#[test]
fn everything_is_here_when_the_feed_is_over_and_no_document_is_under_way() {
    let mut desk = Desk::new(config());
    assert!(!desk.planner.has_everything());
    desk.feed_rows(2);
    let asked = desk.ask_one();
    assert!(!desk.planner.has_everything(), "documents are under way");
    desk.answer(&asked, 100);
    assert!(desk.planner.has_everything());
}

/// What happens to a checkpoint.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put(bool),
    Flush,
    Poll,
    Written,
    Failed,
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<bool>().prop_map(Step::Put),
        Just(Step::Flush),
        Just(Step::Poll),
        Just(Step::Poll),
        Just(Step::Written),
        Just(Step::Failed),
        (0..2_000u64).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn one_is_in_flight_and_none_is_older_than_what_was_written(steps in steps()) {
        let mut checkpoint = Checkpoint::default();
        let (mut now, mut wanted, mut written) = (0, 0, 0);
        let mut flying = None;
        for step in steps {
            match step {
                Step::Put(near_end) => {
                    checkpoint.handle_put(near_end, now);
                    wanted += 1;
                }
                Step::Flush => checkpoint.handle_flush(),
                Step::Later(ms) => now += ms,
                Step::Poll => {
                    let Some(version) = checkpoint.poll_write(now) else { continue };
                    prop_assert_eq!(flying, None);
                    prop_assert_eq!(version, wanted, "the newest");
                    prop_assert!(version > written);
                    flying = Some(version);
                }
                Step::Written => {
                    written = flying.take().unwrap_or(written);
                    checkpoint.handle_written();
                }
                Step::Failed => {
                    flying = None;
                    checkpoint.handle_failure();
                }
            }
        }
    }

    #[test]
    fn the_last_one_is_written_once_somebody_waits_for_it(puts in 1..20u32, at in 0..5_000u64) {
        let mut checkpoint = Checkpoint::default();
        for _ in 0..puts {
            checkpoint.handle_put(true, at);
            if checkpoint.poll_write(at).is_some() {
                checkpoint.handle_written();
            }
        }
        checkpoint.handle_flush();
        if let Some(version) = checkpoint.poll_write(at) {
            prop_assert_eq!(version, puts);
            checkpoint.handle_written();
        }
        prop_assert_eq!(checkpoint.poll_timeout(), None);
    }
}
