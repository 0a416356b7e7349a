//! What the replicator takes: rows, what a diff said of them, documents. Knows
//! nothing of the requests that brought them.

use std::rc::Rc;

use super::wants::State;
use super::{Planner, rows};
use crate::error::Failure;
use crate::request::{Batch, Entry, GotDoc};

/// What came of a revision that the replicator asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its documents; none where the revision is gone from the source.
    Docs(Vec<GotDoc>),
    /// It is on its way.
    Pending,
    /// It is not known here: see [`Planner::want`].
    Unknown,
    /// It cannot be had.
    Failed(Failure),
}

/// What the replicator gets when it asks for rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenRows {
    /// A batch, or the end of the feed.
    Batch(Batch),
    /// Not yet.
    Pending,
    /// The feed failed, and everything before was handed over.
    Failed(Failure),
}

impl Planner {
    /// Rows for the replicator, `limit` at most.
    pub fn take_rows(&mut self, limit: usize) -> TakenRows {
        self.hungry = true;
        // To a server, a batch more is a round trip more.
        let may_be_small = !self.config.batch_fixed && !self.config.target_remote;
        let eager = may_be_small && !self.writing && !self.rows.anything_handed();
        let full = self.buffered() >= self.config.max_buffer_bytes / 2 && !self.docs_in_flight();
        let demand = rows::Demand {
            limit,
            eager,
            full,
            most_bytes: self.config.max_buffer_bytes / 2,
            short: self.feed.is_short(),
        };
        if let Some(batch) = self.rows.take(&demand, &self.wants) {
            self.hungry = false;
            for want in std::mem::take(&mut self.rows.replaced) {
                self.drop_want(want);
            }
            return TakenRows::Batch(batch);
        }
        if !self.rows.is_empty() {
            return TakenRows::Pending;
        }
        if let Some(failure) = self.feed.failure() {
            return TakenRows::Failed(failure.clone());
        }
        let Some(last_seq) = self.feed.end().cloned() else {
            return TakenRows::Pending;
        };
        self.hungry = false;
        TakenRows::Batch(Batch {
            rows: Vec::new(),
            last_seq,
            pending: self.feed.pending,
            end: true,
        })
    }

    /// Of a row that was handed over: the revisions that the target lacks, or
    /// `None` where the target itself has to be asked (the row is not known, it
    /// named other revisions, or its document came before in this run).
    pub fn take_diff(&mut self, id: &str, revs: &[Rc<str>]) -> Option<Vec<Rc<str>>> {
        self.rows.take_diff(id, revs)
    }

    /// The documents of one revision, for good.
    pub fn take_docs(&mut self, id: &str, rev: &str) -> Taken {
        let Some(want) = self.rows.handed(id, rev) else {
            return Taken::Unknown;
        };
        match self.wants.get(want).map(|want| &want.state) {
            None => Taken::Unknown,
            Some(State::Open) => Taken::Pending,
            Some(State::Failed(failure)) => {
                let failure = failure.clone();
                self.rows.forget(id, rev);
                self.drop_want(want);
                Taken::Failed(failure)
            }
            Some(State::Ready | State::Gone) => {
                self.rows.forget(id, rev);
                let docs = self.remove_want(want);
                self.stats.docs += docs.len() as u64;
                if docs.is_empty() {
                    self.stats.passed_over(id, rev);
                }
                // Nothing is written where there is nothing to write.
                self.writing |= !docs.is_empty();
                Taken::Docs(docs)
            }
        }
    }

    /// It was named, and is on its way.
    pub fn is_pending(&self, id: &str, rev: &str) -> bool {
        let want = self
            .rows
            .handed(id, rev)
            .and_then(|want| self.wants.get(want));
        want.is_some_and(|want| want.state == State::Open)
    }

    /// It was named, by a row or by [`want`](Self::want), and not taken.
    pub fn is_known(&self, id: &str, rev: &str) -> bool {
        self.rows.handed(id, rev).is_some()
    }

    /// Asks for a revision that no row of this run named.
    pub fn want(&mut self, entry: Entry) {
        let (id, rev) = (entry.id.clone(), entry.rev.clone());
        let want = self.wants.add(entry, None);
        self.rows.hand(id, rev, want);
    }

    /// A revision that was handed over is not going to be asked for: the target
    /// turned out to have it.
    pub fn drop_handed(&mut self, id: &str, rev: &str) {
        let Some(want) = self.rows.handed(id, rev) else {
            return;
        };
        self.rows.forget(id, rev);
        self.drop_want(want);
    }

    /// As far as is known, nothing is left to be fetched.
    pub fn has_everything(&self) -> bool {
        self.feed.is_nearly_over() && self.rows.is_complete() && !self.docs_in_flight()
    }
}
