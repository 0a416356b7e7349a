//! What becomes of a request on its way: an answer after a while, a failure, or
//! nothing at all.

use pouchdb_fast_sync::error::{Failure, FailureKind};
use pouchdb_fast_sync::request::Ask;

use crate::rng::Rng;
use crate::scenario::Scenario;

/// What becomes of it.
#[derive(Debug)]
pub(crate) enum Fate {
    /// An answer.
    Answer,
    /// An answer later than the stall timeout, whose bytes trickle.
    Slow,
    /// An answer with one result less than asked for.
    Short,
    /// Some results are errors.
    RowErrors,
    /// Some attachments are not what they should be.
    BadAttachments,
    /// A stream that ends after some of its documents.
    Broken(Failure),
    Fail(Failure),
    /// Nothing; or, long after it was given up, an answer.
    Silence {
        answers_late: bool,
    },
}

pub(crate) struct Network {
    left: u64,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            left: scenario.trouble.budget,
        }
    }

    /// The round trip's ms, never long enough for a stall, and the fate.
    pub(crate) fn carry(&mut self, ask: &Ask, scenario: &Scenario, rng: &mut Rng) -> (u64, Fate) {
        let base = if is_local(ask, scenario) {
            0
        } else {
            scenario.server.latency
        };
        let delay = base + rng.below(base + 20);
        if let Some(refusal) = refusal(ask, scenario) {
            return (delay, Fate::Fail(refusal));
        }
        if self.left == 0 || !rng.percent(scenario.trouble.rate) {
            return (delay, Fate::Answer);
        }
        let fate = trouble(ask, scenario, rng);
        self.left -= u64::from(!matches!(fate, Fate::Answer | Fate::Slow));
        (delay, fate)
    }
}

fn is_local(ask: &Ask, scenario: &Scenario) -> bool {
    match ask {
        Ask::Diff { .. } => !scenario.client.config.target_remote,
        _ => scenario.client.config.source_local,
    }
}

/// What this server always refuses.
fn refusal(ask: &Ask, scenario: &Scenario) -> Option<Failure> {
    let Ask::Docs { entries, params } = ask else {
        return None;
    };
    if params.single || scenario.client.config.source_local {
        return None;
    }
    if !scenario.server.bulk_get {
        return Some(status(FailureKind::Absent, 404, None));
    }
    if params.attachments && !params.piecewise && !scenario.server.multipart {
        return Some(status(FailureKind::Absent, 406, None));
    }
    (entries.len() > scenario.server.most_entries).then(|| status(FailureKind::Status, 413, None))
}

fn trouble(ask: &Ask, scenario: &Scenario, rng: &mut Rng) -> Fate {
    if is_local(ask, scenario) {
        return Fate::Fail(status(FailureKind::Status, 500, None));
    }
    let waits = !(matches!(ask, Ask::Feed { .. }) && scenario.client.config.filtered);
    let docs = matches!(ask, Ask::Docs { .. });
    if let Ask::Docs { params, .. } = ask
        && params.attachments
        && rng.percent(50)
    {
        let kind = *rng.pick(&[FailureKind::Network, FailureKind::Attachment]);
        return match params.piecewise {
            false if rng.percent(70) => Fate::Broken(Failure::new(kind, "broke off")),
            _ => Fate::BadAttachments,
        };
    }
    match rng.below(12) {
        0..3 => Fate::Fail(Failure::new(FailureKind::Network, "reset")),
        3 if waits => Fate::Silence {
            answers_late: rng.percent(30),
        },
        4 if waits => Fate::Slow,
        5 => Fate::Fail(status(
            FailureKind::Status,
            *rng.pick(&[500, 502, 504]),
            None,
        )),
        6 | 7 => {
            let after = *rng.pick(&[None, None, Some(0), Some(700), Some(5_000), Some(90_000)]);
            Fate::Fail(status(FailureKind::Status, *rng.pick(&[429, 503]), after))
        }
        8 => Fate::Fail(Failure::new(FailureKind::BadJson, "cut short")),
        9 if docs => Fate::RowErrors,
        10 if docs => Fate::Short,
        11 if docs && rng.percent(20) => Fate::Fail(status(FailureKind::Status, 401, None)),
        _ => Fate::Fail(Failure::new(FailureKind::BadShape, "HTML")),
    }
}

fn status(kind: FailureKind, status: u16, retry_after: Option<u64>) -> Failure {
    Failure {
        status,
        retry_after,
        ..Failure::new(kind, "no")
    }
}
