//! The revisions that are wanted, from the moment a diff named them until the
//! replicator took their documents: which are asked for next, together, and what
//! becomes of each answer. Knows ids and sizes, never bodies.

use std::collections::{HashMap, VecDeque};

use super::batch::Sizes;
use super::params::{Depth, is_first_generation};
use crate::error::{Failure, FailureKind};
use crate::request::{Answer, DocHandle, Entry, GotDoc};

/// Names a want; in the order of the feed.
pub(super) type WantId = u64;

/// Requests for one entry that may fail before the entry fails.
const MOST_TRIES: u8 = 6;
/// Tries of an entry whose own row was wrong: the server answered, and said no.
const MOST_ROW_TRIES: u8 = 3;
/// A stream of attachments aims at so many bytes; a document is never divided.
const STREAM_BYTES: u64 = 4_000_000;
/// Most documents of a stream.
const STREAM_DOCS: usize = 100;
/// Wait (ms) before the second repeat; doubles. The first repeat is at once.
const RETRY_MS: u64 = 200;

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
    /// Bytes that it is going to have with its attachments.
    expected: u64,
    tries: u8,
}

/// Entries that failed together and are repeated together, in requests of at most
/// `most`.
#[derive(Debug)]
struct Retry {
    ids: Vec<WantId>,
    depth: Depth,
    not_before: u64,
    most: usize,
}

/// All wants, and the queues of those that wait for a request.
#[derive(Debug)]
pub(super) struct Wants {
    all: HashMap<WantId, Want>,
    next: WantId,
    urgent: Queue,
    plain: Queue,
    latest: Queue,
    attached: Queue,
    retries: Vec<Retry>,
    pub(super) ready_bytes: u64,
    pub(super) sizes: Sizes,
    /// Stubs are asked for again with their bytes; otherwise the host fetches them.
    pub(super) fetch_attachments: bool,
    seed: u64,
}

impl Wants {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            all: HashMap::new(),
            next: 0,
            urgent: Queue::default(),
            plain: Queue::default(),
            latest: Queue::default(),
            attached: Queue::default(),
            retries: Vec::new(),
            ready_bytes: 0,
            sizes: Sizes::new(),
            fetch_attachments: false,
            seed: seed | 1,
        }
    }

    pub(super) fn add(&mut self, entry: Entry, row: Option<u64>) -> WantId {
        let id = self.next;
        self.next += 1;
        if row.is_some() {
            &mut self.plain
        } else {
            &mut self.urgent
        }
        .insert(id);
        let want = Want {
            entry,
            row,
            state: State::Open,
            bytes: 0,
            docs: Vec::new(),
            depth: Depth::Plain,
            by_leaves: false,
            expected: 0,
            tries: 0,
        };
        self.all.insert(id, want);
        id
    }

    pub(super) fn get(&self, id: WantId) -> Option<&Want> {
        self.all.get(&id)
    }

    /// Removes a want whose documents are taken or not needed.
    pub(super) fn remove(&mut self, id: WantId) -> Option<Want> {
        for queue in [
            &mut self.urgent,
            &mut self.plain,
            &mut self.latest,
            &mut self.attached,
        ] {
            queue.remove(id);
        }
        let want = self.all.remove(&id)?;
        self.ready_bytes -= want.bytes;
        Some(want)
    }

    /// The entries of the next request: repeats first, then what somebody waits
    /// for, then second asks, then the feed's order. Answers also how many bytes
    /// are expected and whether somebody waits for it.
    pub(super) fn next_slice(
        &mut self,
        room: usize,
        most: usize,
        streams: usize,
        now: u64,
    ) -> Option<Slice> {
        while let Some(at) = self
            .retries
            .iter()
            .position(|retry| retry.not_before <= now)
        {
            let retry = &mut self.retries[at];
            let take = retry.most.min(most).min(retry.ids.len());
            let ids: Vec<_> = retry.ids.drain(..take).collect();
            let depth = retry.depth;
            if retry.ids.is_empty() {
                self.retries.swap_remove(at);
            }
            if let Some(slice) = self.slice(ids, depth) {
                return Some(slice);
            }
        }
        for (depth, urgent) in [
            (Depth::Plain, true),
            (Depth::Latest, false),
            (Depth::Attached, false),
            (Depth::Plain, false),
        ] {
            let queued = self.queue(depth, urgent).len();
            // Streams of attachments leave room for the small documents around them.
            let crowded = depth == Depth::Attached && streams > room && !self.plain.is_empty();
            if queued == 0 || crowded {
                continue;
            }
            let count = match depth {
                Depth::Attached => self.stream_count(),
                _ => self.sizes.slice(queued, room).min(most),
            };
            let ids = self.queue(depth, urgent).first(count);
            return self.slice(ids, depth);
        }
        None
    }

    /// How many of the documents that wait for their attachments go into one
    /// stream: their sizes are known. Leaves that answer for another revision
    /// can only be told apart in a stream of their own.
    fn stream_count(&self) -> usize {
        let (mut count, mut bytes) = (0, 0);
        for id in &self.attached.0 {
            let want = &self.all[id];
            bytes += want.expected;
            if count > 0 && (want.by_leaves || bytes > STREAM_BYTES || count == STREAM_DOCS) {
                break;
            }
            count += 1;
            if want.by_leaves {
                break;
            }
        }
        count
    }

    fn queue(&mut self, depth: Depth, urgent: bool) -> &mut Queue {
        match (depth, urgent) {
            (_, true) => &mut self.urgent,
            (Depth::Plain, _) => &mut self.plain,
            (Depth::Latest, _) => &mut self.latest,
            (Depth::Attached, _) => &mut self.attached,
        }
    }

    fn slice(&self, ids: Vec<WantId>, depth: Depth) -> Option<Slice> {
        // A want may have been removed while its repeat waited.
        let ids: Vec<_> = ids
            .into_iter()
            .filter(|id| self.all.contains_key(id))
            .collect();
        let entries: Vec<_> = ids.iter().map(|id| self.all[id].entry.clone()).collect();
        let bytes = match depth {
            Depth::Attached => ids.iter().map(|id| self.all[id].expected).sum(),
            _ => self.sizes.estimate(ids.len()),
        };
        (!ids.is_empty()).then(|| Slice {
            bytes,
            by_leaves: depth == Depth::Latest || self.all[&ids[0]].by_leaves,
            first_generation: entries.iter().all(|entry| is_first_generation(&entry.rev)),
            urgent: ids.iter().any(|id| self.all[id].row.is_none()),
            ids,
            entries,
            depth,
        })
    }

    /// The slice leaves: its entries wait in no queue any more.
    pub(super) fn sent(&mut self, slice: &Slice) {
        for id in &slice.ids {
            for queue in [
                &mut self.urgent,
                &mut self.plain,
                &mut self.latest,
                &mut self.attached,
            ] {
                queue.remove(*id);
            }
        }
    }

    /// The slice stays: a repeat goes back to where it came from.
    pub(super) fn not_sent(&mut self, slice: Slice) {
        let queued = slice.ids.iter().any(|id| {
            [&self.urgent, &self.plain, &self.latest, &self.attached]
                .iter()
                .any(|q| q.contains(*id))
        });
        if !queued {
            let most = slice.ids.len();
            self.retries.insert(
                0,
                Retry {
                    ids: slice.ids,
                    depth: slice.depth,
                    not_before: 0,
                    most,
                },
            );
        }
    }

    /// One entry in a request of its own, unless its repeat is not due.
    pub(super) fn alone(&mut self, id: WantId, now: u64) -> Option<Slice> {
        let depth = self.all.get(&id)?.depth;
        for retry in &mut self.retries {
            if retry.ids.contains(&id) {
                if retry.not_before > now {
                    return None;
                }
                retry.ids.retain(|other| *other != id);
            }
        }
        self.slice(vec![id], depth)
    }

    /// When the next repeat is due; one that is due already waits for room.
    pub(super) fn due_at(&self, now: u64) -> Option<u64> {
        let waiting = self.retries.iter().map(|retry| retry.not_before);
        waiting.filter(|&at| at > now).min()
    }

    /// One entry's answer. Answers the bodies that turned out not to be needed,
    /// and whether the want is settled now.
    pub(super) fn answer(&mut self, id: WantId, answer: Answer, bytes: u64, now: u64) -> Settled {
        let Some(want) = self.all.get_mut(&id) else {
            let Answer::Docs(docs) = answer else {
                return Settled::default();
            };
            return Settled {
                drop: docs.iter().map(|doc| doc.handle).collect(),
                row: None,
            };
        };
        match answer {
            Answer::Docs(docs) => {
                let stubs: u64 = docs.iter().filter_map(|doc| doc.stubs).sum();
                let stubbed = docs.iter().any(|doc| doc.stubs.is_some());
                if stubbed && self.fetch_attachments && want.depth != Depth::Attached {
                    want.by_leaves = want.depth == Depth::Latest;
                    want.depth = Depth::Attached;
                    want.expected = bytes + stubs;
                    self.attached.insert(id);
                    return Settled {
                        drop: docs.iter().map(|doc| doc.handle).collect(),
                        row: None,
                    };
                }
                let bytes = bytes.max(want.expected);
                want.docs = docs;
                want.bytes = bytes;
                self.ready_bytes += bytes;
                self.settle(id, State::Ready)
            }
            Answer::Missing if want.depth == Depth::Latest => self.settle(id, State::Gone),
            Answer::Missing => {
                want.depth = Depth::Latest;
                self.latest.insert(id);
                Settled::default()
            }
            Answer::Error(reason) => {
                want.tries += 1;
                if want.tries >= MOST_ROW_TRIES {
                    let rev = &want.entry.rev;
                    let reason = format!("{} at {rev}: {reason}", want.entry.id);
                    return self.settle(id, State::Failed(Failure::new(FailureKind::Row, reason)));
                }
                let (depth, tries) = (want.depth, want.tries);
                let not_before = now + self.wait(tries);
                self.retries.push(Retry {
                    ids: vec![id],
                    depth,
                    not_before,
                    most: 1,
                });
                Settled::default()
            }
        }
    }

    /// The whole request failed: it is repeated alone, after `hold` or its own
    /// wait, and smaller where that may help. Answers the entries that are out
    /// of tries.
    pub(super) fn failed(
        &mut self,
        ids: Vec<WantId>,
        failure: &Failure,
        hold: Option<u64>,
        now: u64,
    ) -> Vec<Settled> {
        let Some(depth) = ids.iter().find_map(|id| Some(self.all.get(id)?.depth)) else {
            return Vec::new();
        };
        let shrinks = failure.wants_smaller() && ids.len() > 1;
        let most = if shrinks {
            ids.len().div_ceil(2)
        } else {
            ids.len()
        };
        let (mut again, mut settled, mut tries) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            let Some(want) = self.all.get_mut(&id) else {
                continue;
            };
            // Halving ends by itself, and each half is another request.
            want.tries += u8::from(!shrinks);
            tries = tries.max(want.tries);
            if want.tries >= MOST_TRIES {
                let mut own = failure.clone();
                own.reason = format!("{} at {}: {}", want.entry.id, want.entry.rev, own.reason);
                settled.push(self.settle(id, State::Failed(own)));
            } else {
                again.push(id);
            }
        }
        if !again.is_empty() {
            let not_before = hold.unwrap_or_else(|| now + self.wait(tries));
            self.retries.push(Retry {
                ids: again,
                depth,
                not_before,
                most,
            });
        }
        settled
    }

    /// The server does not stream attachments: the host fetches them one by one.
    pub(super) fn without_streams(&mut self, ids: Vec<WantId>) {
        self.fetch_attachments = false;
        let waiting = std::mem::take(&mut self.attached).0;
        for id in ids.into_iter().chain(waiting) {
            if let Some(want) = self.all.get_mut(&id) {
                want.depth = if want.by_leaves {
                    Depth::Latest
                } else {
                    Depth::Plain
                };
                self.requeue(vec![id]);
            }
        }
    }

    /// The endpoint cannot be used: the same entries another way, at once.
    pub(super) fn requeue(&mut self, ids: Vec<WantId>) {
        for id in ids {
            if let Some(want) = self.all.get(&id) {
                let (depth, urgent) =
                    (want.depth, want.row.is_none() && want.depth == Depth::Plain);
                self.queue(depth, urgent).insert(id);
            }
        }
    }

    fn settle(&mut self, id: WantId, state: State) -> Settled {
        let Some(want) = self.all.get_mut(&id) else {
            return Settled::default();
        };
        want.state = state;
        Settled {
            drop: Vec::new(),
            row: want.row,
        }
    }

    /// 0, then 200 ms doubling, each with up to half of itself as jitter, so that
    /// many clients of one server do not come back together.
    fn wait(&mut self, tries: u8) -> u64 {
        if tries <= 1 {
            return 0;
        }
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let base = RETRY_MS << (tries - 2).min(6);
        base + self.seed % (base / 2)
    }
}

/// The entries of one request.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) ids: Vec<WantId>,
    pub(super) entries: Vec<Entry>,
    pub(super) depth: Depth,
    pub(super) by_leaves: bool,
    pub(super) bytes: u64,
    pub(super) first_generation: bool,
    pub(super) urgent: bool,
}

/// What an answer settled.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Bodies that are not needed.
    pub(super) drop: Vec<DocHandle>,
    /// The feed row that has one open want less.
    pub(super) row: Option<u64>,
}
