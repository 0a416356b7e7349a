//! One `_bulk_docs` of the replicator as several requests: how it is divided,
//! what is repeated, and when it has failed. Knows sizes, not documents. Since
//! `new_edits` is false, a repeated write writes nothing twice.

use std::ops::Range;

use crate::error::{Failure, FailureKind};
use crate::pace::Pace;
use crate::request::RequestId;

/// A request aims at so many bytes: proxies take 1 MB where they are not told more.
const AIM_BYTES: u64 = 1_000_000;
/// Most documents of a request.
const MOST: usize = 500;
/// Fewer are not worth a request of their own.
const LEAST: usize = 50;
/// Most requests that a write is shared out among, where so many may leave.
const SHARES: usize = 4;
/// Connections that are idle at the first write: those of the database's and the
/// server's first requests.
pub const IDLE: u32 = 2;
/// Tries of a request before the write fails.
const MOST_TRIES: u32 = 6;
/// The write fails where for so many times the stall timeout nothing was answered.
const MOST_STALLS: u64 = 4;
/// Wait (ms) before the second repeat; doubles. The first repeat is at once.
const RETRY_MS: u64 = 200;
/// Bytes per ms that the slowest upload makes. What was sent of a request is not
/// seen, so its size is taken into account before it counts as stalled.
const SLOWEST: u64 = 16;

/// A document to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Bytes that it is sent with.
    pub bytes: u64,
    /// It goes with its attachments behind it, in a request of its own.
    pub multipart: bool,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `_bulk_docs`.
    Bulk,
    /// `PUT` of one document, its attachments behind it.
    Multipart,
    /// `_bulk_docs` of one document that was refused as the former.
    Inline,
}

/// What remains to be written of one part.
#[derive(Clone, Debug)]
struct Part {
    docs: Range<usize>,
    form: Form,
    tries: u32,
    not_before: u64,
}

impl Part {
    fn new(docs: Range<usize>, form: Form) -> Self {
        Self {
            docs,
            form,
            tries: 0,
            not_before: 0,
        }
    }
}

/// A request on its way.
#[derive(Debug)]
struct Flight {
    id: RequestId,
    part: Part,
    deadline: u64,
}

/// What came of the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was sent; these documents were too large even alone.
    Done(Vec<(usize, Failure)>),
    /// It failed; what was written stays written.
    Failed(Failure),
}

/// The parts of one write, in flight and waiting.
#[derive(Debug)]
pub struct Writes {
    docs: Vec<Outgoing>,
    parts: Vec<Part>,
    flights: Vec<Flight>,
    next: u32,
    pace: Pace,
    stall_ms: u64,
    /// When something was answered last.
    alive_at: u64,
    /// When it was last asked for a request: what is due later has to be told.
    polled_at: u64,
    refuses_multipart: bool,
    too_large: Vec<(usize, Failure)>,
    failure: Option<Failure>,
}

impl Writes {
    /// A write at the pace that the one before had come to.
    pub fn new(docs: Vec<Outgoing>, pace: Pace, stall_ms: u64, now: u64) -> Self {
        Self {
            parts: parts(&docs, pace.room(0, now).clamp(1, SHARES)),
            docs,
            flights: Vec::new(),
            next: 0,
            pace,
            stall_ms,
            alive_at: now,
            polled_at: now,
            refuses_multipart: false,
            too_large: Vec::new(),
            failure: None,
        }
    }

    /// What the next write begins with.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The server takes no documents with their attachments behind them.
    pub fn refuses_multipart(&self) -> bool {
        self.refuses_multipart
    }

    /// The documents of the next request, if one may leave now.
    pub fn poll_request(&mut self, now: u64) -> Option<(RequestId, Range<usize>, Form)> {
        self.polled_at = now;
        if self.failure.is_some() || self.pace.room(self.flights.len(), now) == 0 {
            return None;
        }
        let at = self.parts.iter().position(|part| part.not_before <= now)?;
        let part = self.parts.remove(at);
        let (id, docs, form) = (RequestId(self.next), part.docs.clone(), part.form);
        self.next += 1;
        let bytes: u64 = self.docs[docs.clone()].iter().map(|doc| doc.bytes).sum();
        let deadline = now + self.stall_ms + bytes / SLOWEST;
        self.flights.push(Flight { id, part, deadline });
        Some((id, docs, form))
    }

    /// The server took them; what it says of single documents is the host's.
    pub fn handle_written(&mut self, id: RequestId, now: u64) {
        if self.land(id).is_some() {
            self.alive_at = now;
            self.pace.succeeded();
        }
    }

    /// The request failed: it may have been written all the same.
    pub fn handle_failure(&mut self, id: RequestId, failure: Failure, now: u64) {
        let Some(mut part) = self.land(id) else {
            return;
        };
        // Halving a request that was too large ends by itself; one that got no
        // answer may get none for its halves either.
        let too_large = failure.status == 413;
        part.tries += u32::from(!too_large);
        let stalled = failure.kind == FailureKind::Stalled;
        if !stalled {
            self.alive_at = now;
        }
        let dead = stalled && part.tries > 1 && self.alive_at + MOST_STALLS * self.stall_ms <= now;
        if part.tries >= MOST_TRIES || dead || failure.is_final() {
            return self.given_up(part, failure);
        }
        if too_large && part.docs.len() == 1 {
            return self.too_large.push((part.docs.start, failure));
        }
        part.not_before = if failure.is_overload() {
            self.pace.overloaded(failure.retry_after, now)
        } else {
            if !too_large {
                self.pace.stumbled();
            }
            now + match part.tries {
                0 | 1 => 0,
                tries => RETRY_MS << (tries - 2),
            }
        };
        let halves = failure.wants_smaller() && part.docs.len() > 1;
        let middle = part.docs.start + part.docs.len() / 2;
        if halves {
            let mut second = part.clone();
            second.docs.start = middle;
            part.docs.end = middle;
            self.parts.insert(0, second);
        }
        self.parts.insert(0, part);
    }

    /// A document with attachments is then sent as any other, which shows in the
    /// server's own words what is wrong with it, if anything is.
    fn given_up(&mut self, mut part: Part, failure: Failure) {
        if part.form != Form::Multipart {
            self.failure = Some(failure);
            return;
        }
        (part.form, part.tries, part.not_before) = (Form::Inline, 0, 0);
        self.parts.insert(0, part);
        if failure.kind == FailureKind::Absent {
            self.refuses_multipart = true;
            let others = self.parts.iter_mut();
            for part in others.filter(|part| part.form == Form::Multipart) {
                part.form = Form::Inline;
            }
        }
    }

    /// Requests that got no answer in time; each is to be aborted and told as failed.
    pub fn stalled(&self, now: u64) -> Vec<RequestId> {
        let late = self.flights.iter().filter(|flight| flight.deadline <= now);
        late.map(|flight| flight.id).collect()
    }

    /// When to look again, should nothing else happen before.
    pub fn poll_timeout(&self) -> Option<u64> {
        let deadlines = self.flights.iter().map(|flight| flight.deadline);
        let waits = self.parts.iter().map(|part| part.not_before);
        deadlines
            .chain(waits.filter(|&at| at > self.polled_at))
            .chain(self.pace.hold_until(self.polled_at))
            .min()
    }

    /// The outcome, once nothing is in flight any more.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        if !self.flights.is_empty() {
            return None;
        }
        if let Some(failure) = self.failure.take() {
            return Some(Outcome::Failed(failure));
        }
        self.parts
            .is_empty()
            .then(|| Outcome::Done(std::mem::take(&mut self.too_large)))
    }

    fn land(&mut self, id: RequestId) -> Option<Part> {
        let at = self.flights.iter().position(|flight| flight.id == id)?;
        Some(self.flights.remove(at).part)
    }
}

/// How a write is shared out among so many requests, or more.
fn parts(docs: &[Outgoing], shares: usize) -> Vec<Part> {
    let share = docs.len().div_ceil(shares).clamp(LEAST, MOST);
    let (mut parts, mut from, mut sum) = (Vec::new(), 0, 0);
    for (at, doc) in docs.iter().enumerate() {
        if doc.multipart {
            parts.push(Part::new(from..at, Form::Bulk));
            parts.push(Part::new(at..at + 1, Form::Multipart));
            (from, sum) = (at + 1, 0);
            continue;
        }
        if at - from >= share || sum + doc.bytes > AIM_BYTES {
            parts.push(Part::new(from..at, Form::Bulk));
            (from, sum) = (at, 0);
        }
        sum += doc.bytes;
    }
    parts.push(Part::new(from..docs.len(), Form::Bulk));
    parts.retain(|part| !part.docs.is_empty());
    parts
}

#[cfg(test)]
mod tests;
