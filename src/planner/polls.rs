//! What leaves, and when: requests under way, those that may leave now, and the
//! time at which to look again. Knows nothing of what is made of the answers.

use super::Planner;
use super::params::{Depth, params};
use super::wants::{Limits, Slice, WantId};
use crate::error::{Failure, FailureKind};
use crate::request::{Ask, Event, Request, RequestId};

/// Rows of one diff: bounded, so that documents are asked for while the rest of
/// a large page is still being compared.
const DIFF_ROWS: usize = 1_000;
/// Diffs under way at once: a local database answers one after the other anyhow.
const LOCAL_DIFFS: usize = 1;
/// The same over a network, where a round trip can be shared.
const REMOTE_DIFFS: usize = 2;
/// GETs that count as one request where documents come one by one.
const SINGLE_GETS: usize = 6;

/// A request on its way.
#[derive(Debug)]
pub(super) enum Flight {
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
        /// One GET an attachment.
        piecewise: bool,
    },
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) what: Flight,
    pub(super) sent_at: u64,
    pub(super) seen_at: u64,
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

impl Planner {
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
            .chain(
                self.diff_retries
                    .iter()
                    .map(|retry| retry.not_before)
                    .filter(|&at| at > self.polled_at),
            )
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

    pub(super) fn docs_in_flight(&self) -> bool {
        self.docs_in_flight_count() > 0
    }

    pub(super) fn poll_feed(&mut self, now: u64) -> Option<Request> {
        if !self.config.read_ahead {
            return None;
        }
        // A batch has to fit in.
        let most = self.config.max_rows_ahead.max(self.config.batch_size) as usize;
        let welcome = most.saturating_sub(self.rows.len());
        let ask = self.feed.ask(welcome, now)?;
        Some(self.launch(Flight::Feed, ask, now))
    }

    pub(super) fn poll_diff(&mut self, now: u64) -> Option<Request> {
        let most = if self.config.target_remote {
            REMOTE_DIFFS
        } else {
            LOCAL_DIFFS
        };
        let under_way = self
            .flights()
            .filter(|f| matches!(f.what, Flight::Diff { .. }))
            .count();
        let more_to_come = self.feed.is_coming() && self.rows.len() < DIFF_ROWS;
        if under_way >= most || more_to_come && self.config.target_remote {
            return None;
        }
        let mut retries = self.diff_retries.iter();
        let (rows, tries) = match retries.position(|retry| retry.not_before <= now) {
            None => (self.rows.next_undiffed(DIFF_ROWS), 0),
            Some(at) => {
                let retry = self.diff_retries.remove(at);
                (retry.rows, retry.tries)
            }
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

    pub(super) fn poll_docs(&mut self, now: u64) -> Option<Request> {
        let couch = self.couch?;
        let in_flight = self.docs_in_flight_count();
        let room = self.pace.room(in_flight, now);
        if room == 0 {
            return None;
        }
        let single = self.single_until.is_some_and(|until| now < until);
        let most = match single {
            true => SINGLE_GETS,
            false => self.wants.sizes.most(in_flight),
        };
        let streams = self.flights().filter(|f| f.is_stream()).count();
        let limits = Limits {
            room,
            most,
            streams,
            streaming: !single && !self.streams.are_refused(now),
            more_to_come: self.feed.is_coming() && in_flight > 0,
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
            slice.piecewise || self.streams.are_refused(now),
        );
        let flight = Flight::Docs {
            ids: slice.ids,
            depth: slice.depth,
            bytes: slice.bytes,
            single,
            piecewise: params.piecewise,
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
    pub(super) fn awaited(&self, in_flight: usize, most: usize, now: u64) -> Option<Slice> {
        let demanded = self.wants.demanded();
        self.wants.slice_of(&demanded, most, now).or_else(|| {
            let starved = self.hungry && in_flight == 0 && !self.rows.anything_handed();
            let first = starved.then(|| self.rows.awaited())?;
            self.wants.slice_of(first, most, now)
        })
    }

    pub(super) fn launch(&mut self, what: Flight, ask: Ask, now: u64) -> Request {
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

    pub(super) fn flights(&self) -> impl Iterator<Item = &InFlight> {
        self.flights.iter().map(|(_, flight)| flight)
    }

    pub(super) fn flight(&mut self, id: RequestId) -> Option<&mut InFlight> {
        self.flights
            .iter_mut()
            .find(|(name, _)| *name == id)
            .map(|(_, flight)| flight)
    }

    pub(super) fn land(&mut self, id: RequestId, now: u64) -> Option<Flight> {
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
    pub(super) fn deadline(&self, flight: &InFlight) -> Option<u64> {
        let waits = match flight.what {
            Flight::Feed => !self.config.filtered && !self.config.source_local,
            Flight::Diff { .. } => self.config.target_remote,
            Flight::Docs { .. } => !self.config.source_local,
        };
        waits.then_some(flight.seen_at + self.config.stall_ms)
    }
}
