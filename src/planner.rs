//! The planner: what is asked next, and what the replicator may have. It takes
//! pages, diffs, answers and failures, each with the time, and is drained for
//! requests and events. It never waits, fetches or reads a clock, and sees ids,
//! revisions and sizes only.
//!
//! ```text
//! feed page -> diff -> wants -> requests -> answers -> batch -> taken
//! ```

mod batch;
mod diff;
mod feed;
mod handed;
mod params;
mod polls;
mod rows;
mod share;
mod slots;
mod streams;
mod takes;
mod wants;

use std::collections::VecDeque;
use std::rc::Rc;

use self::diff::DiffPolicy;
use self::feed::Feed;
use self::params::Depth;
use self::polls::{Flight, InFlight};
use self::rows::Rows;
use self::streams::{Streams, Verdict};
pub use self::takes::{Taken, TakenRows};
use self::wants::{WantId, Wants};
use crate::config::Config;
use crate::error::{Failure, FailureKind};
use crate::pace::Pace;
use crate::request::{
    Answer, DocHandle, Event, FeedPage, FeedRow, GotDoc, RequestId, RowHandle, Seq,
};
use crate::stats::Stats;

/// Tries of a diff before its rows are left to the replicator's own.
const DIFF_TRIES: u32 = 3;
/// A server without `_bulk_get` is asked again whether it has one (ms): it may be
/// updated, or the answer may have been a proxy's.
const PROBE_AGAIN_MS: u64 = 600_000;

/// Connections that are idle by the time that the first documents are asked for:
/// those of the database's, the server's and the feed's first requests.
const IDLE: u32 = 3;

/// One run: the feed after one sequence, and the documents it names.
#[derive(Debug)]
pub struct Planner {
    config: Config,
    feed: Feed,
    rows: Rows,
    wants: Wants,
    diffs: DiffPolicy,
    diff_retries: Vec<(Vec<u64>, u32)>,
    pace: Pace,
    /// A handful, in the order in which they left.
    flights: Vec<(RequestId, InFlight)>,
    next_request: u32,
    events: VecDeque<Event>,
    /// The server is CouchDB; not known before it said so.
    couch: Option<bool>,
    single_until: Option<u64>,
    streams: Streams,
    /// When it was last asked for requests. What was due then and did not leave
    /// waits for something else than the time.
    polled_at: u64,
    /// Rows are being waited for.
    hungry: bool,
    /// The replicator took documents and has not said that they are written.
    writing: bool,
    stats: Stats,
}

impl Planner {
    /// A run after `since` (JSON text of a sequence).
    pub fn new(config: Config, since: Seq) -> Self {
        Self {
            feed: Feed::new(since, config.filtered, config.batch_size),
            rows: Rows::default(),
            wants: Wants::new(config.seed),
            diffs: DiffPolicy::new(config.target_empty),
            diff_retries: Vec::new(),
            pace: Pace::new(config.max_concurrency, IDLE),
            flights: Vec::new(),
            next_request: 0,
            events: VecDeque::new(),
            couch: config.source_local.then_some(false),
            single_until: (config.single_until > 0).then_some(config.single_until),
            streams: Streams::new(config.piecewise_until),
            polled_at: 0,
            hungry: false,
            writing: false,
            stats: Stats {
                single_until: config.single_until,
                piecewise_until: config.piecewise_until,
                ..Stats::default()
            },
            config,
        }
    }

    /// The server said whether it is CouchDB: parameters that others may not know
    /// can be used from now on, or cannot. Until then, only the feed is asked for.
    pub fn handle_identity(&mut self, couch: bool) {
        self.couch = Some(couch);
        if couch {
            self.feed.allow_intervals();
        } else {
            // Stock never asks a server for attachments with their documents.
            self.streams.until = u64::MAX;
        }
    }

    /// The source told its size: an expectation of bytes per document.
    pub fn handle_expectation(&mut self, bytes_per_doc: f64) {
        self.wants.sizes.expect(bytes_per_doc);
        self.wants.share.expect(bytes_per_doc);
    }

    /// Documents are wanted with their attachments: stubs are asked for again.
    pub fn handle_attachment_streams(&mut self, wanted: bool) {
        self.wants.fetch_attachments = wanted;
    }

    /// Rows of a feed page that is still on its way, the last of them with a sequence.
    pub fn handle_feed_rows(&mut self, id: RequestId, rows: Vec<FeedRow>, now: u64) {
        match self.flight(id) {
            Some(flight) => flight.seen_at = now,
            None => return self.drop_rows(rows.iter().map(|row| row.handle)),
        }
        for (row, seq) in self.feed.rows(rows) {
            self.stats.rows += 1;
            self.rows.push(row, seq);
        }
        self.skip_diffs(now);
    }

    /// A feed page came, or what was left of it.
    pub fn handle_feed_page(&mut self, id: RequestId, page: FeedPage, now: u64) {
        if self.land(id, now).is_none() {
            self.drop_rows(page.rows.iter().map(|row| row.handle));
            return;
        }
        let known_ends = page.pending;
        for (row, seq) in self.feed.page(page) {
            self.stats.rows += 1;
            self.rows.push(row, seq);
        }
        self.rows.page_ends(known_ends);
        if self.feed.failure().is_some() || self.feed.is_short() {
            self.events.push_back(Event::Ready);
        }
        self.skip_diffs(now);
    }

    /// A diff came: of each row asked about, the revisions that the target lacks.
    pub fn handle_diff(&mut self, id: RequestId, missing: Vec<Vec<Rc<str>>>, now: u64) {
        let Some(Flight::Diff { rows, tries }) = self.land(id, now) else {
            return;
        };
        if rows.len() != missing.len() {
            let failure = Failure::new(FailureKind::BadShape, "a diff of other rows than asked");
            return self.diff_failed(rows, tries, &failure);
        }
        let asked: usize = rows.iter().map(|&row| self.rows.revs(row).len()).sum();
        let lacking = missing.iter().map(Vec::len).sum();
        self.diffs.answered(asked, lacking, now);
        for (row, revs) in rows.into_iter().zip(missing) {
            self.rows.diffed(row, revs, &mut self.wants);
        }
        self.events.push_back(Event::Ready);
        self.skip_diffs(now);
    }

    /// The same, as one flag for each revision of the rows, in the order asked.
    pub fn handle_diff_flags(&mut self, id: RequestId, missing: &[bool], now: u64) {
        let rows = match self.flight(id).map(|flight| &flight.what) {
            Some(Flight::Diff { rows, .. }) => rows.clone(),
            _ => return,
        };
        let asked = rows.iter().map(|&row| self.rows.revs(row).len());
        if asked.sum::<usize>() != missing.len() {
            let failure = Failure::new(FailureKind::BadShape, "a diff of other rows than asked");
            return self.handle_failure(id, failure, now);
        }
        let mut flags = missing.iter();
        let lacking = rows.iter().map(|&row| {
            let revs = self.rows.revs(row).iter().zip(flags.by_ref());
            revs.filter(|(_, missing)| **missing)
                .map(|(rev, _)| rev.clone())
                .collect()
        });
        let lacking = lacking.collect();
        self.handle_diff(id, lacking, now);
    }

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

    /// A request failed.
    pub fn handle_failure(&mut self, id: RequestId, failure: Failure, now: u64) {
        let Some(flight) = self.land(id, now) else {
            return;
        };
        self.stats.failures += 1;
        match flight {
            Flight::Feed => {
                self.feed.failed(failure, now);
                self.events.push_back(Event::Ready);
            }
            Flight::Diff { rows, tries } => self.diff_failed(rows, tries, &failure),
            Flight::Docs {
                ids,
                depth: Depth::Attached,
                piecewise: false,
                ..
            } => self.stream_failed(ids, false, &failure, now),
            Flight::Docs { ids, single, .. } => self.docs_failed(ids, single, &failure, now),
        }
    }

    /// Bytes of an answer arrived: it has not stalled.
    pub fn handle_progress(&mut self, id: RequestId, now: u64) {
        if let Some(flight) = self.flight(id) {
            flight.seen_at = now;
        }
    }

    /// The replicator wrote what it took.
    pub fn handle_written(&mut self) {
        self.writing = false;
        self.events.push_back(Event::Ready);
    }

    /// Figures of the run so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    fn skip_diffs(&mut self, now: u64) {
        if self.diffs.skip(now) {
            for row in self.rows.next_undiffed(usize::MAX) {
                let revs = self.rows.revs(row).to_vec();
                self.rows.diffed(row, revs, &mut self.wants);
            }
        }
    }

    /// The replicator's own diff then asks the target, and shows its error.
    fn diff_failed(&mut self, rows: Vec<u64>, tries: u32, failure: &Failure) {
        if self.config.target_remote && !failure.is_final() && tries + 1 < DIFF_TRIES {
            self.diff_retries.push((rows, tries + 1));
            return;
        }
        for row in rows {
            self.rows.undiffable(row);
        }
        self.events.push_back(Event::Ready);
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
    fn stream_failed(&mut self, mut ids: Vec<WantId>, brought: bool, failure: &Failure, now: u64) {
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

    fn docs_failed(&mut self, ids: Vec<WantId>, single: bool, failure: &Failure, now: u64) {
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

    fn settled(&mut self, settled: wants::Settled) {
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

    fn drop_want(&mut self, want: WantId) {
        let docs = self.remove_want(want).into_iter();
        self.drop_docs(docs.map(|doc| doc.handle));
    }

    /// Answers its documents. The row of one that was asked for on demand stood for
    /// nothing else.
    fn remove_want(&mut self, want: WantId) -> Vec<GotDoc> {
        let Some(want) = self.wants.remove(want) else {
            return Vec::new();
        };
        if want.row.is_none() {
            self.events.push_back(Event::DropRow(want.entry.row));
        }
        want.docs
    }

    fn drop_docs(&mut self, docs: impl Iterator<Item = DocHandle>) {
        // A loop, because a queue is extended by much code.
        for doc in docs {
            self.events.push_back(Event::DropDoc(doc));
        }
    }

    fn drop_rows(&mut self, rows: impl Iterator<Item = RowHandle>) {
        for row in rows {
            self.events.push_back(Event::DropRow(row));
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
