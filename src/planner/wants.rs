//! The revisions that are wanted, from the moment a diff named them until the
//! replicator took their documents: which are asked for next, together, and what
//! becomes of each answer. Knows ids and sizes, never bodies.

use std::collections::VecDeque;

use super::batch::Sizes;
use super::params::{Depth, is_first_generation};
use super::share::Share;
use super::slots::Slots;
use crate::error::{Failure, FailureKind};
use crate::request::{Answer, DocHandle, Entry, GotDoc};

/// Names a want; in the order of the feed.
pub(super) type WantId = u64;

/// Requests for one entry that may fail before the entry fails.
const MOST_TRIES: u8 = 6;
/// Tries of an entry whose own row was wrong: the server answered, and said no.
const MOST_ROW_TRIES: u8 = 3;
/// Streams that may break off at a document before its attachments are asked for
/// one by one.
const STREAM_TRIES: u8 = 3;
/// A stream of attachments aims at so many bytes; a document is never divided.
const STREAM_BYTES: u64 = 4_000_000;
/// Most documents of a stream.
const STREAM_DOCS: usize = 200;
/// Fewer documents wait for those that the feed is about to name.
const WORTH: usize = 100;
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

/// What a request may have at most.
#[derive(Debug)]
pub(super) struct Limits {
    /// Requests that may leave now.
    pub(super) room: usize,
    /// Entries.
    pub(super) most: usize,
    /// Streams of attachments in flight.
    pub(super) streams: usize,
    /// The server has streams.
    pub(super) streaming: bool,
    /// The feed is about to name more, and something is in flight.
    pub(super) more_to_come: bool,
    /// Bytes, as expected.
    pub(super) spare: u64,
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

    /// The entries of the next request: repeats first, then the queues. As many
    /// as are expected to fit into the memory; what comes first is not overtaken
    /// where it does not fit.
    pub(super) fn next_slice(&self, limits: &Limits, now: u64) -> Option<Slice> {
        let due = self.retries.iter().find(|retry| retry.not_before <= now);
        let mut at_once = false;
        let mut ids = match due {
            Some(retry) => retry.ids[..retry.most.min(retry.ids.len())].to_vec(),
            None => {
                // Streams of attachments leave room for the small documents around them.
                let crowded = limits.streams > limits.room && !self.queues[PLAIN].is_empty();
                let few = limits.more_to_come && self.queues[PLAIN].len() < WORTH;
                let (at, queue) = self
                    .queues
                    .iter()
                    .enumerate()
                    .find(|(at, queue)| match *at {
                        ATTACHED if crowded => false,
                        PLAIN if few => false,
                        _ => !queue.is_empty(),
                    })?;
                let room = if limits.more_to_come { 1 } else { limits.room };
                let streaming = self.fetch_attachments && limits.streaming;
                at_once = at == PLAIN && streaming && self.share.is_likely();
                queue.first(match at {
                    ATTACHED => self.stream_count(),
                    PLAIN if at_once => self.unsized_stream(queue.len(), room),
                    _ => self.sizes.slice(queue.len(), room),
                })
            }
        };
        ids.truncate(limits.most);
        while self.bytes(&ids, at_once) > limits.spare {
            ids.pop();
        }
        let mut slice = self.slice(ids)?;
        if at_once {
            slice.depth = Depth::Attached;
            slice.bytes = self.bytes(&slice.ids, true);
        }
        Some(slice)
    }

    /// How many documents of which only an average is known go into one stream, with
    /// so many queued and room for so many requests.
    fn unsized_stream(&self, queued: usize, room: usize) -> usize {
        let by_bytes = (STREAM_BYTES / self.share.bytes().max(1)) as usize;
        let shared = queued.div_ceil(room.max(1)).min(STREAM_DOCS);
        shared.min(by_bytes).max(1)
    }

    /// Bytes of a document with its attachments, as far as is known.
    fn whole(&self, id: WantId) -> u64 {
        match self.all[&id].expected {
            0 => self.share.bytes(),
            expected => expected,
        }
    }

    /// Of these wants, those that wait for a request, in one; however full the
    /// memory is.
    pub(super) fn slice_of(&self, ids: &[WantId], mut most: usize, now: u64) -> Option<Slice> {
        let due = self.retries.iter().filter(|retry| retry.not_before <= now);
        let mut ids: Vec<_> = ids
            .iter()
            .copied()
            .filter(|id| {
                let repeat = due.clone().find(|retry| retry.ids.contains(id));
                most = repeat.map_or(most, |repeat| most.min(repeat.most));
                repeat.is_some() || self.queues.iter().any(|queue| queue.contains(*id))
            })
            .collect();
        let first = &self.all[ids.first()?];
        let alike = |want: &Want| {
            want.depth == first.depth
                && want.by_leaves == first.by_leaves
                && want.piecewise == first.piecewise
        };
        ids.retain(|id| alike(&self.all[id]));
        ids.truncate(if first.by_leaves { 1 } else { most });
        self.slice(ids)
    }

    /// What the replicator asked for itself and did not take.
    pub(super) fn demanded(&self) -> Vec<WantId> {
        self.demanded.first(self.demanded.len())
    }

    /// How many of the documents that wait for their attachments go into one
    /// stream: their sizes are known. Leaves that answer for another revision
    /// can only be told apart in a stream of their own.
    fn stream_count(&self) -> usize {
        let (mut count, mut bytes, mut piecewise) = (0, 0, false);
        for id in &self.queues[ATTACHED].0 {
            let want = &self.all[id];
            bytes += self.whole(*id);
            let full = bytes > STREAM_BYTES || count == STREAM_DOCS;
            if count > 0 && (full || want.by_leaves || want.piecewise != piecewise) {
                break;
            }
            piecewise = want.piecewise;
            count += 1;
            if want.by_leaves {
                break;
            }
        }
        count
    }

    /// Expected bytes of their documents; `whole`: with attachments.
    fn bytes(&self, ids: &[WantId], whole: bool) -> u64 {
        let sized = |id: &WantId| self.all[id].depth == Depth::Attached;
        match whole || ids.first().is_some_and(sized) {
            true => ids.iter().map(|&id| self.whole(id)).sum(),
            false => self.sizes.estimate(ids.len()),
        }
    }

    fn slice(&self, ids: Vec<WantId>) -> Option<Slice> {
        let first = &self.all[ids.first()?];
        let entries: Vec<_> = ids.iter().map(|id| self.all[id].entry.clone()).collect();
        Some(Slice {
            bytes: self.bytes(&ids, false),
            by_leaves: first.depth == Depth::Latest || first.by_leaves,
            first_generation: entries.iter().all(|entry| is_first_generation(&entry.rev)),
            depth: first.depth,
            piecewise: first.piecewise,
            ids,
            entries,
        })
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
        let kind = match answer {
            Answer::Attachment(_) => FailureKind::Attachment,
            _ => FailureKind::Row,
        };
        match answer {
            Answer::Docs(docs) => {
                let stubs: u64 = docs.iter().filter_map(|doc| doc.stubs).sum();
                let stubbed = docs.iter().any(|doc| doc.stubs.is_some());
                if stubbed && self.fetch_attachments && want.depth != Depth::Attached {
                    want.by_leaves = want.depth == Depth::Latest;
                    want.depth = Depth::Attached;
                    want.expected = bytes + stubs;
                    self.queues[ATTACHED].insert(id);
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
                // The document came, its stream does not: not in turns for ever.
                if want.depth == Depth::Attached {
                    want.tries += 1;
                    want.piecewise |= want.tries >= STREAM_TRIES;
                    if want.tries >= MOST_TRIES {
                        let reason = want.named("missing with attachments");
                        return self.settle(
                            id,
                            State::Failed(Failure::new(FailureKind::Attachment, reason)),
                        );
                    }
                }
                want.depth = Depth::Latest;
                self.queues[LATEST].insert(id);
                Settled::default()
            }
            Answer::Attachment(_) if !want.piecewise => {
                want.tries += 1;
                want.piecewise = true;
                self.queues[ATTACHED].insert(id);
                Settled::default()
            }
            Answer::Error(reason) | Answer::Attachment(reason) => {
                want.tries += 1;
                if want.tries >= MOST_ROW_TRIES {
                    let reason = want.named(&reason);
                    return self.settle(id, State::Failed(Failure::new(kind, reason)));
                }
                let tries = want.tries;
                let not_before = now + self.wait(tries);
                self.retries.push(Retry {
                    ids: vec![id],
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
        let several = ids.len() > 1;
        // A refusal is of one document: the others do not share its lot.
        let refused = failure.is_final();
        let shrinks = several && (failure.wants_smaller() || refused);
        // Alone, a document that is too much does not get smaller.
        let hopeless = !several && (refused || failure.status == 413);
        // One document may spoil an answer for all. A server whose every answer is
        // spoilt must not be asked for each: here, halves count as tries.
        let spoilt = matches!(failure.kind, FailureKind::BadJson | FailureKind::BadShape);
        let most = match several {
            true if refused => 1,
            true if shrinks || spoilt => ids.len().div_ceil(2),
            _ => ids.len(),
        };
        let (mut again, mut settled, mut tries) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            let Some(want) = self.all.get_mut(&id) else {
                continue;
            };
            // Halving ends by itself, and each half is another request.
            want.tries += u8::from(!shrinks);
            want.piecewise |= want.depth == Depth::Attached && want.tries >= STREAM_TRIES;
            tries = tries.max(want.tries);
            if want.tries >= MOST_TRIES || hopeless {
                let mut own = failure.clone();
                own.reason = want.named(&own.reason);
                settled.push(self.settle(id, State::Failed(own)));
            } else {
                again.push(id);
            }
        }
        if !again.is_empty() {
            let not_before = hold.unwrap_or_else(|| now + self.wait(tries));
            self.retries.push(Retry {
                ids: again,
                not_before,
                most,
            });
        }
        settled
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
    pub(super) piecewise: bool,
    pub(super) by_leaves: bool,
    pub(super) bytes: u64,
    pub(super) first_generation: bool,
}

/// What an answer settled.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Bodies that are not needed.
    pub(super) drop: Vec<DocHandle>,
    /// The feed row that has one open want less.
    pub(super) row: Option<u64>,
}
