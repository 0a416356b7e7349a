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

mod params;
mod rows;
mod wants;

use std::collections::VecDeque;
use std::rc::Rc;

use self::diff::DiffPolicy;
use self::feed::Feed;
use self::params::{Depth, params};
use self::rows::Rows;
use self::wants::{Limits, Slice, State, WantId, Wants};
use crate::config::Config;
use crate::error::{Failure, FailureKind};
use crate::pace::Pace;
use crate::request::{
    Answer, Ask, Batch, DocHandle, Entry, Event, FeedPage, GotDoc, Request, RequestId, RowHandle,
    Seq,
};
use crate::stats::Stats;

/// Rows of one diff: bounded, so that documents are asked for while the rest of
/// a large page is still being compared.
const DIFF_ROWS: usize = 1_000;
/// Diffs under way at once: a local database answers one after the other anyhow.
const LOCAL_DIFFS: usize = 1;
/// The same over a network, where a round trip can be shared.
const REMOTE_DIFFS: usize = 2;
/// Tries of a diff before its rows are left to the replicator's own.
const DIFF_TRIES: u32 = 3;
/// A server without `_bulk_get` is asked again whether it has one (ms): it may be
/// updated, or the answer may have been a proxy's.
const PROBE_AGAIN_MS: u64 = 600_000;

/// GETs that count as one request where documents come one by one.
const SINGLE_GETS: usize = 6;

/// A request on its way.
#[derive(Debug)]
enum Flight {
    Feed,
    Diff {
        rows: Vec<u64>,
        tries: u32,
    },
    Docs {
        ids: Vec<WantId>,
        depth: Depth,
        bytes: u64,
        /// One GET a document.
        single: bool,
    },
}

#[derive(Debug)]
struct InFlight {
    what: Flight,
    sent_at: u64,
    seen_at: u64,
}

impl InFlight {
    fn is_stream(&self) -> bool {
        matches!(
            self.what,
            Flight::Docs {
                depth: Depth::Attached,
                ..
            }
        )
    }
}

/// What came of a revision that the replicator asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its documents; none where the revision is gone from the source.
    Docs(Vec<GotDoc>),
    /// It is on its way.
    Pending,
    /// It is not known here: see [`Planner::want`].
    Unknown,
    /// It cannot be had.
    Failed(Failure),
}

/// What the replicator gets when it asks for rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenRows {
    /// A batch, or the end of the feed.
    Batch(Batch),
    /// Not yet.
    Pending,
    /// The feed failed, and everything before was handed over.
    Failed(Failure),
}

/// One run: the feed after one sequence, and the documents it names.
#[derive(Debug)]
pub struct Planner {
    config: Config,
    feed: Feed,
    rows: Rows,
    wants: Wants,
    diffs: DiffPolicy,
    diff_retries: VecDeque<(Vec<u64>, u32)>,
    pace: Pace,
    /// A handful, in the order in which they left.
    flights: Vec<(RequestId, InFlight)>,
    next_request: u32,
    events: VecDeque<Event>,
    /// The server is CouchDB; not known before it said so.
    couch: Option<bool>,
    single_until: Option<u64>,
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
            diff_retries: VecDeque::new(),
            pace: Pace::new(config.max_concurrency),
            flights: Vec::new(),
            next_request: 0,
            events: VecDeque::new(),
            couch: config.source_local.then_some(false),
            single_until: None,
            polled_at: 0,
            hungry: false,
            writing: false,
            stats: Stats::default(),
            config,
        }
    }

    /// The server said whether it is CouchDB: parameters that others may not know
    /// can be used from now on, or cannot. Until then, only the feed is asked for.
    pub fn handle_identity(&mut self, couch: bool) {
        self.couch = Some(couch);
        if couch {
            self.feed.allow_intervals();
        }
    }

    /// The source told its size: an expectation of bytes per document.
    pub fn handle_expectation(&mut self, bytes_per_doc: f64) {
        self.wants.sizes.expect(bytes_per_doc);
    }

    /// The driver reads attachments in streams: stubs are asked for again.
    pub fn handle_attachment_streams(&mut self, can: bool) {
        self.wants.fetch_attachments = can;
    }

    /// A feed page came.
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
            ids, depth, single, ..
        }) = self.land(id, now)
        else {
            return self.drop_answers(&answers);
        };
        if ids.len() != answers.len() {
            self.drop_answers(&answers);
            let failure = Failure::new(FailureKind::BadShape, "other results than asked for");
            return self.docs_failed(ids, single, &failure, now);
        }
        self.pace.succeeded();
        let found = answers
            .iter()
            .filter(|answer| matches!(answer, Answer::Docs(_)))
            .count();
        // A stream's documents were sized before it was asked for.
        if depth != Depth::Attached {
            let took = now.saturating_sub(sent_at);
            self.wants.sizes.measured(found, bytes, took);
        }
        let each = bytes / found.max(1) as u64;
        for (want, answer) in ids.into_iter().zip(answers) {
            let settled = self.wants.answer(want, answer, each, now);
            self.settled(settled);
        }
        self.stats.peak_buffer_bytes = self.stats.peak_buffer_bytes.max(self.buffered());
        self.events.push_back(Event::Ready);
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
                ..
            } if failure.kind == FailureKind::Absent => self.wants.without_streams(ids),
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

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come.
    pub fn handle_timeout(&mut self, now: u64) {
        let stalled: Vec<_> = self
            .flights
            .iter()
            .filter(|(_, flight)| self.deadline(flight).is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        for id in stalled {
            self.events.push_back(Event::Abort(id));
            self.handle_failure(
                id,
                Failure::new(FailureKind::Stalled, "no answer in time"),
                now,
            );
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, should
    /// nothing else happen before.
    pub fn poll_timeout(&self) -> Option<u64> {
        let repeats = self.wants.due_after(self.polled_at).into_iter();
        repeats
            .chain(self.feed.due_after(self.polled_at))
            .chain(self.pace.hold_until(self.polled_at))
            .chain(self.flights().filter_map(|flight| self.deadline(flight)))
            .min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next request, if one may leave now.
    pub fn poll_request(&mut self, now: u64) -> Option<Request> {
        self.polled_at = now;
        self.poll_docs(now)
            .or_else(|| self.poll_diff(now))
            .or_else(|| self.poll_feed(now))
    }

    /// Rows for the replicator, `limit` at most.
    pub fn take_rows(&mut self, limit: usize) -> TakenRows {
        self.hungry = true;
        let eager = !self.config.batch_fixed && !self.writing && !self.rows.anything_handed();
        let full = self.buffered() >= self.config.max_buffer_bytes / 2 && !self.docs_in_flight();
        let demand = rows::Demand {
            limit,
            eager,
            full,
            most_bytes: self.config.max_buffer_bytes / 2,
            short: self.feed.is_short(),
        };
        if let Some(batch) = self.rows.take(&demand, &self.wants) {
            self.hungry = false;
            for want in std::mem::take(&mut self.rows.replaced) {
                self.drop_want(want);
            }
            return TakenRows::Batch(batch);
        }
        if !self.rows.is_empty() {
            return TakenRows::Pending;
        }
        if let Some(failure) = self.feed.failure() {
            return TakenRows::Failed(failure.clone());
        }
        let Some(last_seq) = self.feed.end().cloned() else {
            return TakenRows::Pending;
        };
        self.hungry = false;
        TakenRows::Batch(Batch {
            rows: Vec::new(),
            last_seq,
            pending: self.feed.pending,
            end: true,
        })
    }

    /// Of a row that was handed over: the revisions that the target lacks, or
    /// `None` where the target itself has to be asked (the row is not known, it
    /// named other revisions, or its document came before in this run).
    pub fn take_diff(&mut self, id: &str, revs: &[Rc<str>]) -> Option<Vec<Rc<str>>> {
        self.rows.take_diff(id, revs)
    }

    /// The documents of one revision, for good.
    pub fn take_docs(&mut self, id: &str, rev: &str) -> Taken {
        let Some(want) = self.rows.handed(id, rev) else {
            return Taken::Unknown;
        };
        match self.wants.get(want).map(|want| &want.state) {
            None => Taken::Unknown,
            Some(State::Open) => Taken::Pending,
            Some(State::Failed(failure)) => {
                let failure = failure.clone();
                self.rows.forget(id, rev);
                self.drop_want(want);
                Taken::Failed(failure)
            }
            Some(State::Ready | State::Gone) => {
                self.rows.forget(id, rev);
                let docs = self.remove_want(want);
                self.stats.docs += docs.len() as u64;
                if docs.is_empty() {
                    self.stats.passed_over(id, rev);
                }
                // Nothing is written where there is nothing to write.
                self.writing |= !docs.is_empty();
                Taken::Docs(docs)
            }
        }
    }

    /// It was named, and is on its way.
    pub fn is_pending(&self, id: &str, rev: &str) -> bool {
        let want = self
            .rows
            .handed(id, rev)
            .and_then(|want| self.wants.get(want));
        want.is_some_and(|want| want.state == State::Open)
    }

    /// It was named, by a row or by [`want`](Self::want), and not taken.
    pub fn is_known(&self, id: &str, rev: &str) -> bool {
        self.rows.handed(id, rev).is_some()
    }

    /// Asks for a revision that no row of this run named.
    pub fn want(&mut self, entry: Entry) {
        let (id, rev) = (entry.id.clone(), entry.rev.clone());
        let want = self.wants.add(entry, None);
        self.rows.hand(id, rev, want);
    }

    /// A revision that was handed over is not going to be asked for: the target
    /// turned out to have it.
    pub fn drop_handed(&mut self, id: &str, rev: &str) {
        let Some(want) = self.rows.handed(id, rev) else {
            return;
        };
        self.rows.forget(id, rev);
        self.drop_want(want);
    }

    /// As far as is known, nothing is left to be fetched.
    pub fn has_everything(&self) -> bool {
        self.feed.is_nearly_over() && self.rows.is_complete() && !self.docs_in_flight()
    }

    /// Figures of the run so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Bytes of documents read ahead, in flight included (those as expected).
    pub fn buffered(&self) -> u64 {
        let coming = self.flights().map(|flight| match flight.what {
            Flight::Docs { bytes, .. } => bytes,
            _ => 0,
        });
        self.wants.ready_bytes + coming.sum::<u64>()
    }

    /// Requests for documents in flight.
    pub fn docs_in_flight_count(&self) -> usize {
        self.flights()
            .filter(|f| matches!(f.what, Flight::Docs { .. }))
            .count()
    }

    fn docs_in_flight(&self) -> bool {
        self.docs_in_flight_count() > 0
    }

    fn poll_feed(&mut self, now: u64) -> Option<Request> {
        if !self.config.read_ahead {
            return None;
        }
        // A batch has to fit in.
        let most = self.config.max_rows_ahead.max(self.config.batch_size) as usize;
        let welcome = most.saturating_sub(self.rows.len());
        let ask = self.feed.ask(welcome, now)?;
        Some(self.launch(Flight::Feed, ask, now))
    }

    fn poll_diff(&mut self, now: u64) -> Option<Request> {
        let most = if self.config.target_remote {
            REMOTE_DIFFS
        } else {
            LOCAL_DIFFS
        };
        let under_way = self
            .flights()
            .filter(|f| matches!(f.what, Flight::Diff { .. }))
            .count();
        if under_way >= most {
            return None;
        }
        let (rows, tries) = match self.diff_retries.pop_front() {
            Some(again) => again,
            None => (self.rows.next_undiffed(DIFF_ROWS), 0),
        };
        if rows.is_empty() {
            return None;
        }
        let handles = rows.iter().map(|&row| self.rows.handle(row)).collect();
        Some(self.launch(
            Flight::Diff { rows, tries },
            Ask::Diff { rows: handles },
            now,
        ))
    }

    fn poll_docs(&mut self, now: u64) -> Option<Request> {
        let couch = self.couch?;
        let in_flight = self.docs_in_flight_count();
        let room = self.pace.room(in_flight, now);
        if room == 0 {
            return None;
        }
        let single = self.single_until.is_some_and(|until| now < until);
        let most = if single { SINGLE_GETS } else { batch::MOST };
        let streams = self.flights().filter(|f| f.is_stream()).count();
        let limits = Limits {
            room,
            most,
            streams,
            spare: self.config.max_buffer_bytes.saturating_sub(self.buffered()),
        };
        let slice = self.wants.next_slice(&limits, now);
        let slice = slice.or_else(|| self.awaited(in_flight, most, now))?;
        self.wants.sent(&slice);
        let params = params(
            slice.depth,
            slice.by_leaves,
            slice.first_generation,
            couch,
            single,
        );
        let flight = Flight::Docs {
            ids: slice.ids,
            depth: slice.depth,
            bytes: slice.bytes,
            single,
        };
        Some(self.launch(
            flight,
            Ask::Docs {
                entries: slice.entries,
                params,
            },
            now,
        ))
    }

    /// Beyond the memory's bound only what somebody waits for: what the replicator
    /// asked for itself; or, while it has no documents to take first, the first row
    /// that is not complete, one request at a time.
    fn awaited(&self, in_flight: usize, most: usize, now: u64) -> Option<Slice> {
        let demanded = self.wants.demanded();
        self.wants.slice_of(&demanded, most, now).or_else(|| {
            let starved = self.hungry && in_flight == 0 && !self.rows.anything_handed();
            let first = starved.then(|| self.rows.awaited())?;
            self.wants.slice_of(first, most, now)
        })
    }

    fn launch(&mut self, what: Flight, ask: Ask, now: u64) -> Request {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let flight = InFlight {
            what,
            sent_at: now,
            seen_at: now,
        };
        self.flights.push((id, flight));
        Request { id, ask }
    }

    fn flights(&self) -> impl Iterator<Item = &InFlight> {
        self.flights.iter().map(|(_, flight)| flight)
    }

    fn flight(&mut self, id: RequestId) -> Option<&mut InFlight> {
        self.flights
            .iter_mut()
            .find(|(name, _)| *name == id)
            .map(|(_, flight)| flight)
    }

    fn land(&mut self, id: RequestId, now: u64) -> Option<Flight> {
        let at = self.flights.iter().position(|(name, _)| *name == id)?;
        let (_, flight) = self.flights.remove(at);
        let took = now.saturating_sub(flight.sent_at);
        match flight.what {
            Flight::Feed => self.stats.feed_ms += took,
            Flight::Diff { .. } => self.stats.diff_ms += took,
            Flight::Docs { .. } => self.stats.docs_ms += took,
        }
        Some(flight.what)
    }

    /// A filtered feed may rightly be silent for minutes; a local database is
    /// not a network.
    fn deadline(&self, flight: &InFlight) -> Option<u64> {
        let waits = match flight.what {
            Flight::Feed => !self.config.filtered && !self.config.source_local,
            Flight::Diff { .. } => self.config.target_remote,
            Flight::Docs { .. } => !self.config.source_local,
        };
        waits.then_some(flight.seen_at + self.config.stall_ms)
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
            self.diff_retries.push_back((rows, tries + 1));
            return;
        }
        for row in rows {
            self.rows.undiffable(row);
        }
        self.events.push_back(Event::Ready);
    }

    fn docs_failed(&mut self, ids: Vec<WantId>, single: bool, failure: &Failure, now: u64) {
        if failure.is_final() && !single {
            // Stock, too, goes on with single GETs: some servers have no
            // _bulk_get, some refuse it to readers.
            self.single_until = Some(now + PROBE_AGAIN_MS);
            self.stats.single_gets = true;
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
        self.events
            .extend(settled.drop.into_iter().map(Event::DropDoc));
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
        self.events.extend(docs.map(Event::DropDoc));
    }

    fn drop_rows(&mut self, rows: impl Iterator<Item = RowHandle>) {
        self.events.extend(rows.map(Event::DropRow));
    }
}
