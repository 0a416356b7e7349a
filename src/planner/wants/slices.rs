//! Which wants go into the next request, together: what somebody waits for first,
//! then repeats, second asks, attachments, the feed's order; as many as are worth
//! it and fit into the memory.

use super::super::params::{Depth, is_first_generation};
use super::{ATTACHED, PLAIN, Want, WantId, Wants};
use crate::request::Entry;

/// A stream of attachments aims at so many bytes; a document is never divided.
const STREAM_BYTES: u64 = 4_000_000;
/// Most documents of a stream.
const STREAM_DOCS: usize = 200;

/// What a request may have at most.
#[derive(Debug)]
pub(in crate::planner) struct Limits {
    /// Requests that may leave now.
    pub(in crate::planner) room: usize,
    /// Entries.
    pub(in crate::planner) most: usize,
    /// Streams of attachments in flight.
    pub(in crate::planner) streams: usize,
    /// The server has streams.
    pub(in crate::planner) streaming: bool,
    /// The feed is about to name more, and something is in flight.
    pub(in crate::planner) more_to_come: bool,
    /// Bytes, as expected.
    pub(in crate::planner) spare: u64,
}

/// The entries of one request.
#[derive(Debug)]
pub(in crate::planner) struct Slice {
    pub(in crate::planner) ids: Vec<WantId>,
    pub(in crate::planner) entries: Vec<Entry>,
    pub(in crate::planner) depth: Depth,
    pub(in crate::planner) piecewise: bool,
    pub(in crate::planner) by_leaves: bool,
    pub(in crate::planner) bytes: u64,
    pub(in crate::planner) first_generation: bool,
}

impl Wants {
    /// The entries of the next request: repeats first, then the queues. As many
    /// as are expected to fit into the memory; what comes first is not overtaken
    /// where it does not fit.
    pub(in crate::planner) fn next_slice(&self, limits: &Limits, now: u64) -> Option<Slice> {
        let due = self.retries.iter().find(|retry| retry.not_before <= now);
        let mut at_once = false;
        let mut ids = match due {
            Some(retry) => retry.ids[..retry.most.min(retry.ids.len())].to_vec(),
            None => {
                let room = if limits.more_to_come { 1 } else { limits.room };
                let streaming = self.fetch_attachments && limits.streaming;
                let likely = streaming && self.share.is_likely();
                let plain = |queued| match likely {
                    true => self.unsized_stream(queued, room),
                    false => self.sizes.slice(queued, room),
                };
                // Streams of attachments leave room for the small documents around them.
                let crowded = limits.streams > limits.room && !self.queues[PLAIN].is_empty();
                // Less than a whole request waits for what the feed is about to name.
                let whole = plain(usize::MAX).min(limits.most);
                let few = limits.more_to_come && self.queues[PLAIN].len() < whole;
                let (at, queue) = self
                    .queues
                    .iter()
                    .enumerate()
                    .find(|(at, queue)| match *at {
                        ATTACHED if crowded => false,
                        PLAIN if few => false,
                        _ => !queue.is_empty(),
                    })?;
                at_once = at == PLAIN && likely;
                queue.first(match at {
                    ATTACHED => self.stream_count(),
                    PLAIN => plain(queue.len()),
                    _ => self.sizes.slice(queue.len(), room),
                })
            }
        };
        ids.truncate(limits.most);
        while self.bytes(&ids, at_once) > limits.spare {
            ids.pop();
        }
        self.slice(ids, at_once)
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
    pub(in crate::planner) fn slice_of(
        &self,
        ids: &[WantId],
        mut most: usize,
        now: u64,
    ) -> Option<Slice> {
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
        self.slice(ids, false)
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

    /// `at_once`: with attachments, whatever they waited for.
    fn slice(&self, ids: Vec<WantId>, at_once: bool) -> Option<Slice> {
        let first = &self.all[ids.first()?];
        let entries: Vec<_> = ids.iter().map(|id| self.all[id].entry.clone()).collect();
        Some(Slice {
            bytes: self.bytes(&ids, at_once),
            by_leaves: first.depth == Depth::Latest || first.by_leaves,
            first_generation: entries.iter().all(|entry| is_first_generation(&entry.rev)),
            depth: if at_once {
                Depth::Attached
            } else {
                first.depth
            },
            piecewise: first.piecewise,
            ids,
            entries,
        })
    }
}
