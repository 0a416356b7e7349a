//! Documents that came, and requests for documents that failed: what is measured,
//! settled, repeated, or asked for another way.

use super::Planner;
use super::params::Depth;
use super::polls::Flight;
use super::streams::{PROBE_AGAIN_MS, Verdict};
use super::wants::{Settled, WantId};
use crate::error::{Failure, FailureKind};
use crate::request::{Answer, Event, RequestId};

impl Planner {
    /// Documents came, an answer for each entry in the order asked, and how many
    /// bytes they were together.
    pub fn handle_docs(&mut self, id: RequestId, answers: Vec<Answer>, bytes: u64, now: u64) {
        let sent_at = self.flight(id).map_or(now, |flight| flight.sent_at);
        let Some(Flight::Docs {
            ids,
            depth,
            single,
            piecewise,
            ..
        }) = self.land(id, now)
        else {
            return self.drop_answers(&answers);
        };
        let is_stream = depth == Depth::Attached && !piecewise;
        if ids.len() != answers.len() {
            self.drop_answers(&answers);
            let failure = Failure::new(FailureKind::BadShape, "other results than asked for");
            return match is_stream {
                true => self.stream_failed(ids, false, &failure, now),
                false => self.docs_failed(ids, single, &failure, now),
            };
        }
        self.pace.succeeded();
        if depth != Depth::Latest {
            let (with, left_out) = attached(&answers);
            let share = &mut self.wants.share;
            share.seen(found(&answers), with, bytes + left_out);
        }
        if is_stream && found(&answers) > 0 {
            self.streams.worked();
        }
        // A stream's documents were sized before it was asked for.
        if depth != Depth::Attached {
            let took = now.saturating_sub(sent_at);
            self.wants.sizes.measured(found(&answers), bytes, took);
        }
        self.answered(ids, answers, bytes, now);
    }

    /// A stream broke off, after answers for its first entries, of so many bytes.
    pub fn handle_broken_stream(
        &mut self,
        id: RequestId,
        answers: Vec<Answer>,
        bytes: u64,
        failure: Failure,
        now: u64,
    ) {
        let Some(Flight::Docs { mut ids, .. }) = self.land(id, now) else {
            return self.drop_answers(&answers);
        };
        self.stats.failures += 1;
        let rest = ids.split_off(answers.len().min(ids.len()));
        let brought = found(&answers) > 0;
        self.answered(ids, answers, bytes, now);
        self.stream_failed(rest, brought, &failure, now);
    }

    /// Answers of a request's entries, of so many bytes together.
    fn answered(&mut self, ids: Vec<WantId>, answers: Vec<Answer>, bytes: u64, now: u64) {
        let each = bytes / found(&answers).max(1) as u64;
        for (want, answer) in ids.into_iter().zip(answers) {
            let settled = self.wants.answer(want, answer, each, now);
            self.settled(settled);
        }
        self.stats.peak_buffer_bytes = self.stats.peak_buffer_bytes.max(self.buffered());
        self.events.push_back(Event::Ready);
    }

    /// `ids` are those that it did not bring; `brought`: there were others.
    pub(super) fn stream_failed(
        &mut self,
        mut ids: Vec<WantId>,
        brought: bool,
        failure: &Failure,
        now: u64,
    ) {
        if brought {
            self.streams.worked();
        }
        match self.streams.failed(failure, now) {
            Verdict::NoStreams => self.stats.piecewise_until = self.streams.until,
            Verdict::NotThese => ids.iter().for_each(|&id| self.wants.without_stream(id)),
            Verdict::NotTheFirst => ids
                .iter()
                .take(1)
                .for_each(|&id| self.wants.without_stream(id)),
            Verdict::Again => {
                // Those behind the one at which it broke off have not been tried.
                let behind = if brought {
                    ids.split_off(1.min(ids.len()))
                } else {
                    Vec::new()
                };
                self.docs_failed(ids, false, failure, now);
                return self.wants.requeue(behind);
            }
        }
        self.stats.retries += 1;
        self.wants.requeue(ids);
    }

    pub(super) fn docs_failed(
        &mut self,
        ids: Vec<WantId>,
        single: bool,
        failure: &Failure,
        now: u64,
    ) {
        if failure.is_final() && !single {
            // Stock, too, goes on with single GETs: some servers have no
            // _bulk_get, some refuse it to readers.
            self.single_until = Some(now + PROBE_AGAIN_MS);
            self.stats.single_until = now + PROBE_AGAIN_MS;
            return self.wants.requeue(ids);
        }
        let hold = if failure.is_overload() {
            Some(self.pace.overloaded(failure.retry_after, now))
        } else {
            self.pace.stumbled();
            None
        };
        self.stats.retries += 1;
        for settled in self.wants.failed(ids, failure, hold, now) {
            self.settled(settled);
        }
        self.events.push_back(Event::Ready);
    }

    fn settled(&mut self, settled: Settled) {
        self.drop_docs(settled.drop.into_iter());
        if let Some(row) = settled.row {
            self.rows.settled(row);
        }
    }

    fn drop_answers(&mut self, answers: &[Answer]) {
        for answer in answers {
            if let Answer::Docs(docs) = answer {
                self.drop_docs(docs.iter().map(|doc| doc.handle));
            }
        }
    }
}

fn found(answers: &[Answer]) -> usize {
    let docs = |answer: &&Answer| matches!(answer, Answer::Docs(_));
    answers.iter().filter(docs).count()
}

/// How many of the documents have attachments, and the bytes that these answers did
/// not carry.
fn attached(answers: &[Answer]) -> (usize, u64) {
    let mut sum = (0, 0);
    for answer in answers {
        if let Answer::Docs(docs) = answer {
            for left_out in docs.iter().filter_map(|doc| doc.stubs) {
                sum = (sum.0 + 1, sum.1 + left_out);
            }
        }
    }
    sum
}
