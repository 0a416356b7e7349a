//! Stock's replicator, as PouchDB 9 has it: it asks for rows while fewer than so
//! many batches wait, and works through them one after the other: diff, documents,
//! write, checkpoint.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use pouchdb_fast_sync::request::Seq;

use crate::ledger::{DocInfo, RowInfo};

pub(crate) type Revs = Vec<(Rc<str>, Vec<Rc<str>>)>;

/// Rows that came together.
pub(crate) struct InHand {
    pub(crate) rows: Vec<RowInfo>,
    pub(crate) last_seq: Seq,
}

/// What the current batch waits for.
pub(crate) enum Stage {
    Idle,
    /// The target's own diff of what the planner does not know.
    Diff {
        known: Revs,
        unknown: Revs,
    },
    /// The planner's documents.
    Docs(Vec<(Rc<str>, Rc<str>)>),
    /// The target.
    Write(Vec<DocInfo>),
    /// The checkpoint.
    Checkpoint,
}

pub(crate) struct Replicator {
    limit: usize,
    /// It asked for rows.
    pub(crate) waits: bool,
    /// Rows are being handed over.
    pub(crate) handing: Option<InHand>,
    /// The feed's end came, with this seq.
    pub(crate) end: Option<Seq>,
    /// The feed failed.
    pub(crate) feed_failed: bool,
    pub(crate) ahead: VecDeque<InHand>,
    pub(crate) current: Option<InHand>,
    pub(crate) stage: Stage,
}

impl Replicator {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            waits: false,
            handing: None,
            end: None,
            feed_failed: false,
            ahead: VecDeque::new(),
            current: None,
            stage: Stage::Idle,
        }
    }

    /// It is time to ask for rows.
    pub(crate) fn asks(&mut self) {
        let asks = !self.waits
            && self.handing.is_none()
            && self.end.is_none()
            && !self.feed_failed
            && self.ahead.len() < self.limit;
        self.waits |= asks;
    }

    /// Nothing in hand.
    pub(crate) fn is_idle(&self) -> bool {
        self.handing.is_none() && self.ahead.is_empty() && self.current.is_none()
    }

    /// Revisions that the rows in hand name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Rc<str>, &Rc<str>)> {
        let batches = self.current.iter().chain(&self.handing).chain(&self.ahead);
        let rows = batches.flat_map(|batch| &batch.rows);
        rows.flat_map(|row| row.revs.iter().map(|rev| (&row.id, rev)))
    }

    /// Rows and documents were taken, and not all of them are done with.
    pub(crate) fn begins(&mut self) -> Option<Revs> {
        if self.current.is_some() {
            return None;
        }
        self.current = Some(self.ahead.pop_front()?);
        let rows = &self.current.as_ref()?.rows;
        // An object with ids as keys: the last row of an id counts.
        let mut last = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            last.insert(row.id.clone(), at);
        }
        let kept = rows.iter().enumerate();
        let kept = kept.filter(|(at, row)| last[&row.id] == *at);
        Some(
            kept.map(|(_, row)| (row.id.clone(), row.revs.clone()))
                .collect(),
        )
    }
}
