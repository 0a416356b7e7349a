//! Whether the target is asked which revisions it lacks. The rule is the one of
//! CouchDB's own replicator: where nearly everything was missing lately, asking
//! is a waste, and now and then it is looked at again.

/// Weight of the newest page in the average.
const WEIGHT: f64 = 0.5;
/// From this average share of missing revisions on, it is not asked.
const SKIP_FROM: f64 = 0.95;
/// After so long (ms) one page is asked about again.
const LOOK_AGAIN_MS: u64 = 37_000;

/// The moving share of revisions that were missing.
#[derive(Debug)]
pub(super) struct DiffPolicy {
    always_missing: bool,
    share: f64,
    asked_at: u64,
}

impl DiffPolicy {
    /// `empty`: the target held nothing when the run began.
    pub(super) fn new(empty: bool) -> Self {
        Self {
            always_missing: empty,
            share: 0.0,
            asked_at: 0,
        }
    }

    /// Rows that come now are taken for missing.
    pub(super) fn skip(&self, now: u64) -> bool {
        self.always_missing
            || self.share > SKIP_FROM && now.saturating_sub(self.asked_at) < LOOK_AGAIN_MS
    }

    pub(super) fn answered(&mut self, asked: usize, missing: usize, now: u64) {
        if asked > 0 {
            self.asked_at = now;
            self.share += WEIGHT * (missing as f64 / asked as f64 - self.share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_target_is_never_asked() {
        assert!(DiffPolicy::new(true).skip(0));
    }

    #[test]
    fn it_takes_several_pages_to_stop_asking_and_one_to_start_again() {
        let mut policy = DiffPolicy::new(false);
        for _ in 0..4 {
            policy.answered(1000, 1000, 5);
            assert!(!policy.skip(5));
        }
        policy.answered(1000, 1000, 5);
        assert!(policy.skip(5));
        assert!(!policy.skip(5 + LOOK_AGAIN_MS));
        policy.answered(1000, 0, 6);
        assert!(!policy.skip(6));
    }
}
