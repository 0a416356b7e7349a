//! Reading the feed ahead: when the next page is asked for, how large it is, and
//! which sequence each row is handed over with. Knows nothing of documents.

use std::rc::Rc;

use crate::error::{Failure, FailureKind};
use crate::pace::LONGEST_WAIT_MS;
use crate::request::{Ask, FeedPage, FeedRow, Seq};

/// Rows of the pages after the first. Each costs a round trip (in a browser two,
/// its URL being new to the preflight cache), and none of them carries data.
const PAGE_ROWS: u32 = 4_000;
/// Most rows of the first page, which everything waits for.
const FIRST_PAGE_ROWS: u32 = 1_000;
/// How often a page is asked for again, until the replication's own retries rule.
const MOST_TRIES: u32 = 3;

#[derive(Debug, PartialEq)]
enum State {
    /// The next page may be asked for (again, not before this time).
    Due(u64),
    /// A page is on its way.
    Asked,
    /// An empty page came.
    Ended,
    /// It did not work.
    Failed(Failure),
}

/// The feed's cursor.
#[derive(Debug)]
pub(super) struct Feed {
    state: State,
    since: Seq,
    filtered: bool,
    batch: u32,
    /// The server is CouchDB and understands `seq_interval`.
    intervals: bool,
    /// Rows of all pages so far: batches are cut at multiples of `batch` of it.
    total: u64,
    asked_rows: u32,
    /// Rows of the page that is on its way came already.
    begun: bool,
    short: bool,
    pages: u32,
    tries: u32,
    pub(super) pending: Option<u64>,
}

impl Feed {
    pub(super) fn new(since: Seq, filtered: bool, batch: u32) -> Self {
        Self {
            state: State::Due(0),
            since,
            filtered,
            batch: batch.max(1),
            intervals: false,
            total: 0,
            asked_rows: 0,
            begun: false,
            short: false,
            pages: 0,
            tries: 0,
            pending: None,
        }
    }

    pub(super) fn allow_intervals(&mut self) {
        self.intervals = !self.filtered;
    }

    /// The next page, where it is due and so many more rows are welcome.
    pub(super) fn ask(&mut self, welcome: usize, now: u64) -> Option<Ask> {
        if self.state != State::Due(0) && !matches!(self.state, State::Due(at) if at <= now) {
            return None;
        }
        if welcome == 0 {
            return None;
        }
        let wanted = if self.pages == 0 {
            FIRST_PAGE_ROWS
        } else {
            PAGE_ROWS
        };
        let (limit, seq_interval) = self.page_size(wanted.max(self.batch));
        self.asked_rows = limit;
        self.state = State::Asked;
        Some(Ask::Feed {
            since: self.since.clone(),
            limit,
            seq_interval,
        })
    }

    /// CouchDB computes a sequence where the rows left of `limit` are a multiple
    /// of `seq_interval` (fabric_view_changes). The limit is chosen so that the
    /// last row of every batch gets one.
    fn page_size(&self, wanted: u32) -> (u32, Option<u32>) {
        if !self.intervals || self.batch < 2 || wanted < self.batch {
            return (wanted, None);
        }
        let batch = u64::from(self.batch);
        let to_batch_end = (batch - 1 + batch - self.total % batch) % batch;
        (
            wanted - wanted % self.batch + to_batch_end as u32,
            Some(self.batch),
        )
    }

    /// Takes rows of a page that is still on its way, the last of them with a
    /// sequence. A repeat goes on after it.
    pub(super) fn rows(&mut self, rows: Vec<FeedRow>) -> Vec<(FeedRow, Seq)> {
        self.begun = true;
        self.tries = 0;
        self.asked_rows = self.asked_rows.saturating_sub(rows.len() as u32);
        self.numbered(rows, None)
    }

    /// Takes a page, or what is left of it; answers its rows, each with the
    /// sequence it is handed over with. What is wrong with it shows in
    /// [`failure`](Self::failure).
    pub(super) fn page(&mut self, page: FeedPage) -> Vec<(FeedRow, Seq)> {
        self.pages += 1;
        self.tries = 0;
        self.pending = page.pending;
        let begun = std::mem::take(&mut self.begun);
        let count = page.rows.len();
        if count == 0 && !begun {
            self.since = page.last_seq;
            self.state = State::Ended;
            return Vec::new();
        }
        self.short = (count as u64) < u64::from(self.asked_rows);
        let before = self.since.clone();
        let exact = !self.filtered && &*page.last_seq != "null";
        let rows = self.numbered(page.rows, exact.then_some(&page.last_seq));
        // A page whose every sequence is missing would be read again for ever.
        self.state = if count > 0 && self.since == before {
            State::Failed(Failure::new(
                FailureKind::BadShape,
                "a feed page without sequences",
            ))
        } else {
            State::Due(0)
        };
        rows
    }

    /// A row whose sequence was left out gets the last one before it: the
    /// checkpoint then never leads. The page's own `last_seq` is exact for the
    /// last row of an unfiltered page only.
    fn numbered(&mut self, rows: Vec<FeedRow>, exact: Option<&Seq>) -> Vec<(FeedRow, Seq)> {
        let count = rows.len();
        self.total += count as u64;
        let mut numbered = Vec::with_capacity(count);
        for (index, row) in rows.into_iter().enumerate() {
            let last = exact.filter(|_| index + 1 == count);
            if let Some(own) = row.seq.as_ref().or(last) {
                self.since = Rc::clone(own);
            }
            numbered.push((row, Rc::clone(&self.since)));
        }
        numbered
    }

    /// More rows are on their way.
    pub(super) fn is_coming(&self) -> bool {
        self.begun
    }

    pub(super) fn failed(&mut self, failure: Failure, now: u64) {
        self.begun = false;
        self.tries += 1;
        let broke_off = matches!(failure.kind, FailureKind::Network | FailureKind::Stalled);
        let soon = failure.retry_after.unwrap_or(0) <= LONGEST_WAIT_MS;
        let again = !failure.is_final()
            && (broke_off || failure.is_overload() && soon)
            && self.tries < MOST_TRIES;
        self.state = if again {
            // The first repeat is at once: an idle connection that the server
            // closed shows as a failed request.
            let wait = failure
                .retry_after
                .unwrap_or(u64::from(self.tries - 1) * 300);
            State::Due(now + wait)
        } else {
            State::Failed(failure)
        };
    }

    /// When a repeat is due that was not due yet at `time`.
    pub(super) fn due_after(&self, time: u64) -> Option<u64> {
        match self.state {
            State::Due(at) if at > time => Some(at),
            _ => None,
        }
    }

    /// An empty page came: where the feed ends.
    pub(super) fn end(&self) -> Option<&Seq> {
        (self.state == State::Ended).then_some(&self.since)
    }

    /// As far as is known, nothing follows.
    pub(super) fn is_nearly_over(&self) -> bool {
        self.pages > 0 && (self.pending == Some(0) || self.is_short())
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The last page was shorter than asked: stock, too, would get no more rows
    /// at once.
    pub(super) fn is_short(&self) -> bool {
        self.short || self.end().is_some() || self.failure().is_some()
    }
}
