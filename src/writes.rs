//! One `_bulk_docs` of the replicator as several requests: how it is divided,
//! what is repeated, and when it has failed. Knows sizes, not documents. Since
//! `new_edits` is false, a repeated write writes nothing twice.

use std::collections::VecDeque;
use std::ops::Range;

use crate::error::Failure;
use crate::pace::Pace;
use crate::request::RequestId;

/// A request aims at so many bytes: proxies take 1 MB where they are not told more.
const AIM_BYTES: u64 = 1_000_000;
/// Most documents of a request.
const MOST: usize = 500;
/// Fewer are not worth a request of their own.
const LEAST: usize = 50;
/// Requests that a write is shared out among.
const SHARES: usize = 4;
/// Tries of a request before the write fails.
const MOST_TRIES: u32 = 6;
/// Wait (ms) before the second repeat; doubles. The first repeat is at once.
const RETRY_MS: u64 = 200;

/// What remains to be written of one part.
#[derive(Debug)]
struct Part {
    docs: Range<usize>,
    tries: u32,
    not_before: u64,
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
    parts: VecDeque<Part>,
    flights: Vec<(RequestId, Part, u64)>,
    next: u32,
    pace: Pace,
    stall_ms: u64,
    too_large: Vec<(usize, Failure)>,
    failure: Option<Failure>,
}

impl Writes {
    /// A write of documents of so many bytes each.
    pub fn new(bytes: &[u64], max_concurrency: u32, stall_ms: u64) -> Self {
        let share = bytes.len().div_ceil(SHARES).clamp(LEAST, MOST);
        let (mut parts, mut from, mut sum) = (VecDeque::new(), 0, 0);
        for (at, own) in bytes.iter().enumerate() {
            if at > from && (at - from >= share || sum + own > AIM_BYTES) {
                parts.push_back(Part {
                    docs: from..at,
                    tries: 0,
                    not_before: 0,
                });
                (from, sum) = (at, 0);
            }
            sum += own;
        }
        if from < bytes.len() {
            parts.push_back(Part {
                docs: from..bytes.len(),
                tries: 0,
                not_before: 0,
            });
        }
        Self {
            parts,
            flights: Vec::new(),
            next: 0,
            pace: Pace::new(max_concurrency),
            stall_ms,
            too_large: Vec::new(),
            failure: None,
        }
    }

    /// The documents of the next request, if one may leave now.
    pub fn poll_request(&mut self, now: u64) -> Option<(RequestId, Range<usize>)> {
        if self.failure.is_some() || self.pace.room(self.flights.len(), now) == 0 {
            return None;
        }
        let at = self.parts.iter().position(|part| part.not_before <= now)?;
        let part = self.parts.remove(at)?;
        let (id, docs) = (RequestId(self.next), part.docs.clone());
        self.next += 1;
        self.flights.push((id, part, now));
        Some((id, docs))
    }

    /// The server took them; what it says of single documents is the host's.
    pub fn handle_written(&mut self, id: RequestId) {
        if self.land(id).is_some() {
            self.pace.succeeded();
        }
    }

    /// The request failed: it may have been written all the same.
    pub fn handle_failure(&mut self, id: RequestId, failure: Failure, now: u64) {
        let Some(mut part) = self.land(id) else {
            return;
        };
        if failure.wants_smaller() && part.docs.len() > 1 {
            let middle = part.docs.start + part.docs.len() / 2;
            for docs in [part.docs.start..middle, middle..part.docs.end] {
                self.parts.push_back(Part {
                    docs,
                    tries: part.tries,
                    not_before: now,
                });
            }
            return;
        }
        if failure.status == 413 {
            return self.too_large.push((part.docs.start, failure));
        }
        part.tries += 1;
        if failure.is_final() || part.tries >= MOST_TRIES {
            self.failure = Some(failure);
            return;
        }
        part.not_before = if failure.is_overload() {
            self.pace.overloaded(failure.retry_after, now)
        } else {
            self.pace.stumbled();
            now + if part.tries > 1 {
                RETRY_MS << (part.tries - 2)
            } else {
                0
            }
        };
        self.parts.push_back(part);
    }

    /// Requests that got no answer in time; each is to be aborted and told as failed.
    pub fn stalled(&self, now: u64) -> Vec<RequestId> {
        let late = self
            .flights
            .iter()
            .filter(|(_, _, sent)| sent + self.stall_ms <= now);
        late.map(|(id, ..)| *id).collect()
    }

    /// When to look again, should nothing else happen before.
    pub fn poll_timeout(&self, now: u64) -> Option<u64> {
        let deadlines = self.flights.iter().map(|(_, _, sent)| sent + self.stall_ms);
        let waits = self
            .parts
            .iter()
            .map(|part| part.not_before)
            .filter(|&at| at > now);
        deadlines
            .chain(waits)
            .chain(self.pace.hold_until(now))
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
        let at = self.flights.iter().position(|(name, ..)| *name == id)?;
        Some(self.flights.remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    fn failed(status: u16) -> Failure {
        Failure {
            status,
            ..Failure::new(FailureKind::Status, "no")
        }
    }

    /// Answers every request by `answer`, and counts how often each document went.
    fn run(
        bytes: &[u64],
        mut answer: impl FnMut(&Range<usize>) -> Option<Failure>,
    ) -> (Outcome, Vec<u32>) {
        let mut writes = Writes::new(bytes, 4, 60_000);
        let (mut now, mut sent) = (0, vec![0; bytes.len()]);
        loop {
            if let Some((id, docs)) = writes.poll_request(now) {
                docs.clone().for_each(|doc| sent[doc] += 1);
                match answer(&docs) {
                    None => writes.handle_written(id),
                    Some(failure) => writes.handle_failure(id, failure, now),
                }
            } else if let Some(outcome) = writes.poll_outcome() {
                return (outcome, sent);
            } else {
                now = writes.poll_timeout(now).expect("something to wait for");
            }
        }
    }

    #[test]
    fn a_write_is_shared_out_and_every_document_goes_once() {
        let mut parts = Vec::new();
        let (outcome, sent) = run(&[100; 1000], |docs| {
            parts.push(docs.len());
            None
        });
        assert_eq!(outcome, Outcome::Done(Vec::new()));
        assert_eq!(parts, [250; 4]);
        assert!(sent.iter().all(|&times| times == 1));
    }

    #[test]
    fn a_document_that_is_too_large_fails_alone() {
        let (outcome, _) = run(&[100; 300], |docs| docs.contains(&77).then(|| failed(413)));
        assert_eq!(outcome, Outcome::Done(vec![(77, failed(413))]));
    }

    #[test]
    fn an_overloaded_server_is_waited_for() {
        let mut times = 0;
        let (outcome, sent) = run(&[100; 60], |_| {
            times += 1;
            (times < 4).then(|| failed(503))
        });
        assert_eq!(outcome, Outcome::Done(Vec::new()));
        assert!(sent.iter().all(|&times| times >= 1));
    }

    #[test]
    fn a_refusal_ends_the_write() {
        let (outcome, _) = run(&[100; 60], |_| Some(failed(401)));
        assert_eq!(outcome, Outcome::Failed(failed(401)));
    }

    #[test]
    fn a_request_is_not_repeated_for_ever() {
        let (outcome, sent) = run(&[100], |_| {
            Some(Failure::new(FailureKind::Network, "reset"))
        });
        assert!(matches!(outcome, Outcome::Failed(_)));
        assert_eq!(sent, [MOST_TRIES]);
    }
}
