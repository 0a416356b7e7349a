//! Short forms of what the planner is told, and of what it asks.

use std::rc::Rc;

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::error::{Failure, FailureKind};
use pouchdb_fast_sync::request::{Batch, Entry, Params, RequestId};

/// A row: id, revisions, seq.
pub(crate) type Row<'a> = (&'a str, &'a [&'a str], Option<u64>);

/// The revisions of a row that names one, the first of its document.
pub(crate) const ONE: &[&str] = &["1-a"];

/// An empty target, and a batch of ten rows that the caller asked for.
pub(crate) fn config() -> Config {
    Config {
        batch_size: 10,
        batch_fixed: true,
        target_empty: true,
        max_concurrency: 4,
        ..Config::default()
    }
}

/// A request for documents.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: RequestId,
    pub(crate) entries: Vec<Entry>,
    pub(crate) params: Params,
}

impl Asked {
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| &*entry.id).collect()
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids().contains(&id)
    }
}

pub(crate) fn seqs(batch: &Batch) -> Vec<&str> {
    batch.rows.iter().map(|(_, seq)| &**seq).collect()
}

pub(crate) fn revs(revs: &[&str]) -> Vec<Rc<str>> {
    revs.iter().map(|rev| (*rev).into()).collect()
}

pub(crate) fn reset() -> Failure {
    Failure::new(FailureKind::Network, "reset")
}

pub(crate) fn status(status: u16) -> Failure {
    Failure {
        status,
        ..Failure::new(FailureKind::Status, "no")
    }
}

pub(crate) fn retry_after(ms: u64) -> Failure {
    Failure {
        retry_after: Some(ms),
        ..status(429)
    }
}

pub(crate) fn absent() -> Failure {
    Failure {
        status: 404,
        ..Failure::new(FailureKind::Absent, "no such endpoint")
    }
}
