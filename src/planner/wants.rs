//! The revisions that are wanted, from the moment a diff named them until the
//! replicator took their documents. Which are asked for next, together, is decided
//! in `slices`, what becomes of each answer in `outcomes`. Knows ids and sizes,
//! never bodies.

mod outcomes;
mod slices;

use std::collections::VecDeque;

use super::batch::Sizes;
use super::params::Depth;
use super::share::Share;
use super::slots::Slots;
use crate::error::Failure;
use crate::request::{Entry, GotDoc};

pub(super) use self::outcomes::Settled;
pub(super) use self::slices::{Limits, Slice};

/// Names a want; in the order of the feed.
pub(super) type WantId = u64;

/// Ids that wait, in order. Most are added behind the last and taken from the front.
#[derive(Debug, Default)]
struct Queue(VecDeque<WantId>);

impl Queue {
    fn insert(&mut self, id: WantId) {
        if let Err(at) = self.0.binary_search(&id) {
            self.0.insert(at, id);
        }
    }

    fn remove(&mut self, id: WantId) {
        if let Ok(at) = self.0.binary_search(&id) {
            self.0.remove(at);
        }
    }

    fn contains(&self, id: WantId) -> bool {
        self.0.binary_search(&id).is_ok()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn first(&self, count: usize) -> Vec<WantId> {
        self.0.iter().take(count).copied().collect()
    }
}

/// What came of a want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for a request, or is in one.
    Open,
    /// Its documents are here.
    Ready,
    /// The server has it no more, and no leaf below it.
    Gone,
    /// It cannot be had, and the replication has to say so.
    Failed(Failure),
}

#[derive(Debug)]
pub(super) struct Want {
    pub(super) entry: Entry,
    /// Index of the feed row it belongs to; `None` for one asked on demand.
    pub(super) row: Option<u64>,
    pub(super) state: State,
    pub(super) bytes: u64,
    pub(super) docs: Vec<GotDoc>,
    depth: Depth,
    /// Its leaves answered for it, and are to answer again.
    by_leaves: bool,
    /// Bytes that it is going to have with its attachments; 0 where not known.
    expected: u64,
    /// Its attachments are not had from a stream.
    piecewise: bool,
    tries: u8,
}

/// Entries that failed together and are repeated together, in requests of at most
/// `most`. There is at least one, and they are of one depth.
#[derive(Debug)]
struct Retry {
    ids: Vec<WantId>,
    not_before: u64,
    most: usize,
}

/// All wants, and the queues of those that wait for a request.
#[derive(Debug)]
pub(super) struct Wants {
    all: Slots<Want>,
    /// What the replicator asked for itself.
    demanded: Queue,
    /// In the order in which they are served; see [`Want::queue`].
    queues: [Queue; 4],
    retries: Vec<Retry>,
    pub(super) ready_bytes: u64,
    pub(super) sizes: Sizes,
    pub(super) share: Share,
    /// Documents that came with stubs are asked for again, with their bytes.
    pub(super) fetch_attachments: bool,
    seed: u64,
}

const DEMANDED: usize = 0;
const LATEST: usize = 1;
const ATTACHED: usize = 2;
const PLAIN: usize = 3;

impl Want {
    /// What is wrong, and with which document. Formatting would be larger.
    fn named(&self, reason: &str) -> String {
        let Entry { id, rev, .. } = &self.entry;
        String::from_iter([id, " at ", rev, ": ", reason])
    }

    /// The queue that it waits in: what somebody waits for, second asks,
    /// attachments, the feed's order.
    fn queue(&self) -> usize {
        match self.depth {
            Depth::Plain if self.row.is_none() => DEMANDED,
            Depth::Latest => LATEST,
            Depth::Attached => ATTACHED,
            Depth::Plain => PLAIN,
        }
    }
}

impl Wants {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            all: Slots::new(),
            demanded: Queue::default(),
            queues: Default::default(),
            retries: Vec::new(),
            ready_bytes: 0,
            sizes: Sizes::new(),
            share: Share::default(),
            fetch_attachments: false,
            seed: seed | 1,
        }
    }

    pub(super) fn add(&mut self, entry: Entry, row: Option<u64>) -> WantId {
        let demanded = row.is_none();
        let want = Want {
            entry,
            row,
            state: State::Open,
            bytes: 0,
            docs: Vec::new(),
            depth: Depth::Plain,
            by_leaves: false,
            expected: 0,
            piecewise: false,
            tries: 0,
        };
        let queue = want.queue();
        let id = self.all.push(want);
        if demanded {
            self.demanded.insert(id);
        }
        self.queues[queue].insert(id);
        id
    }

    pub(super) fn get(&self, id: WantId) -> Option<&Want> {
        self.all.get(&id)
    }

    /// Removes a want whose documents are taken or not needed.
    pub(super) fn remove(&mut self, id: WantId) -> Option<Want> {
        self.unqueue(id);
        self.demanded.remove(id);
        let want = self.all.remove(&id)?;
        self.ready_bytes -= want.bytes;
        Some(want)
    }

    fn unqueue(&mut self, id: WantId) {
        for queue in &mut self.queues {
            queue.remove(id);
        }
        for retry in &mut self.retries {
            retry.ids.retain(|&other| other != id);
        }
        self.retries.retain(|retry| !retry.ids.is_empty());
    }

    /// What the replicator asked for itself and did not take.
    pub(super) fn demanded(&self) -> Vec<WantId> {
        self.demanded.first(self.demanded.len())
    }

    /// The slice leaves: its entries wait in no queue any more.
    pub(super) fn sent(&mut self, slice: &Slice) {
        for &id in &slice.ids {
            self.unqueue(id);
            if let Some(want) = self.all.get_mut(&id) {
                want.depth = slice.depth;
            }
        }
    }

    /// When the next repeat is due that was not due yet at `time`.
    pub(super) fn due_after(&self, time: u64) -> Option<u64> {
        let due = self.retries.iter().map(|retry| retry.not_before);
        due.filter(|&at| at > time).min()
    }

    /// Not in a stream: the document that one could not be read at.
    pub(super) fn without_stream(&mut self, id: WantId) {
        if let Some(want) = self.all.get_mut(&id) {
            want.piecewise = true;
        }
    }

    /// The endpoint cannot be used: the same entries another way, at once.
    pub(super) fn requeue(&mut self, ids: Vec<WantId>) {
        for id in ids {
            if let Some(want) = self.all.get(&id) {
                self.queues[want.queue()].insert(id);
            }
        }
    }
}
