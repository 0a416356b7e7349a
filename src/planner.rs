//! The planner: what is asked next, and what the replicator may have. It takes
//! pages, diffs, answers and failures, each with the time, and is drained for
//! requests and events. It never waits, fetches or reads a clock, and sees ids,
//! revisions and sizes only.
//!
//! ```text
//! feed page -> diff -> wants -> requests -> answers -> batch -> taken
//! ```

mod answers;
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
use self::streams::Streams;
pub use self::takes::{Taken, TakenRows};
use self::wants::{WantId, Wants};
use crate::config::Config;
use crate::error::{Failure, FailureKind};
use crate::pace::{LONGEST_WAIT_MS, OVERLOAD_WAIT_MS, Pace};
use crate::request::{DocHandle, Event, FeedPage, FeedRow, GotDoc, RequestId, RowHandle, Seq};
use crate::stats::Stats;

/// Tries of a diff before its rows are left to the replicator's own.
const DIFF_TRIES: u32 = 3;
/// Connections that are idle by the time that the first documents are asked for: the
/// host opened four, for the database, the server's name, the feed and documents, and
/// the checkpoint is asked for on one.
const IDLE: u32 = 3;

/// Rows whose diff failed and is repeated.
#[derive(Debug)]
struct DiffRetry {
    rows: Vec<u64>,
    tries: u32,
    not_before: u64,
}

/// One run: the feed after one sequence, and the documents it names.
#[derive(Debug)]
pub struct Planner {
    config: Config,
    feed: Feed,
    rows: Rows,
    wants: Wants,
    diffs: DiffPolicy,
    diff_retries: Vec<DiffRetry>,
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
            return self.diff_failed(rows, tries, &failure, now);
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
            Flight::Diff { rows, tries } => self.diff_failed(rows, tries, &failure, now),
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
    fn diff_failed(&mut self, rows: Vec<u64>, tries: u32, failure: &Failure, now: u64) {
        if self.config.target_remote && !failure.is_final() && tries + 1 < DIFF_TRIES {
            let wait = failure
                .retry_after
                .unwrap_or(u64::from(failure.is_overload()) * OVERLOAD_WAIT_MS);
            if wait <= LONGEST_WAIT_MS {
                let not_before = now + wait;
                let tries = tries + 1;
                return self.diff_retries.push(DiffRetry {
                    rows,
                    tries,
                    not_before,
                });
            }
        }
        for row in rows {
            self.rows.undiffable(row);
        }
        self.events.push_back(Event::Ready);
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
