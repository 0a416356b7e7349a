//! What happens within a run: the driver's loop, as in `src/wasm/driver.rs`, with
//! what has to be true of requests and batches.

use std::rc::Rc;

use pouchdb_fast_sync::planner::TakenRows;
use pouchdb_fast_sync::request::{Ask, Batch, Event, Request};

use crate::ledger::RowInfo;
use crate::network::Fate;
use crate::replicator::{InHand, Stage};
use crate::world::{InRun, World};

/// Far more than happens at one time: documents one by one, at most.
const MOST_MOVES: u64 = 50_000;

impl World {
    /// Something of this run happens, and then all that follows from it at once.
    pub(crate) fn step(&mut self, what: InRun) {
        match what {
            InRun::Identity => {
                let couch = self.scenario.server.couch;
                self.run.planner.handle_identity(couch);
            }
            InRun::Timer(number) if number == self.run.timers => return self.timeout(),
            InRun::Timer(_) => return,
            InRun::Served(request, fate, way) => return self.serve(request, fate, way),
            InRun::Arrives(id, arrival) => self.arrive(id, arrival),
            InRun::Trickles(id) => self.run.planner.handle_progress(id, self.now),
            InRun::RowsHanded => self.rows_handed(),
            InRun::TargetDiffed => self.target_diffed(),
            InRun::Written => self.written(),
            InRun::Checkpointed => self.checkpointed(),
        }
        self.pump();
    }

    fn timeout(&mut self) {
        let before = self.run.moves;
        let fired = self.run.timer.take();
        self.run.planner.handle_timeout(self.now);
        let number = self.number;
        self.pump();
        let again = self.run.timer.is_some_and(|at| Some(at) <= fired);
        let stands = self.number == number && self.run.moves == before;
        assert!(!(again && stands), "the timer spins");
    }

    /// Lets the planner and the replicator go as far as they can.
    pub(crate) fn pump(&mut self) {
        let number = self.number;
        let moves = self.run.moves;
        loop {
            assert!(self.run.moves < moves + MOST_MOVES, "it never waits");
            while let Some(event) = self.run.planner.poll_event() {
                self.event(event);
            }
            self.run.replicator.asks();
            let moved = self.settle_rows() || self.begin_batch() || self.settle_docs();
            if self.number != number || self.done {
                return;
            }
            if !moved && !self.launch() {
                break;
            }
            self.run.moves += 1;
        }
        // The clock goes on while the driver works.
        self.now += self.rng.below(2);
        let due = self.run.planner.poll_timeout();
        if due == self.run.timer && due.is_some() {
            return;
        }
        self.run.timer = due;
        self.run.timers += 1;
        if let Some(at) = due {
            let number = self.run.timers;
            self.later(at.saturating_sub(self.now), InRun::Timer(number));
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Ready => {}
            Event::Abort(id) => {
                self.run.moves += 1;
                let silent = self.run.silent.contains(&id);
                assert!(silent, "a request that was not silent was given up");
                self.run.ledger.ended(id, false);
            }
            Event::DropRow(row) => self.run.ledger.drop_row(row),
            Event::DropDoc(doc) => drop(self.run.ledger.take_doc(doc)),
        }
    }

    fn launch(&mut self) -> bool {
        let Some(request) = self.run.planner.poll_request(self.now) else {
            return false;
        };
        self.run.ledger.asked(&request);
        self.check_bounds(&request);
        let (way, fate) = self
            .network
            .carry(&request.ask, &self.scenario, &mut self.rng);
        if matches!(fate, Fate::Silence { .. }) {
            self.run.silent.push(request.id);
        }
        self.later(way, InRun::Served(request, fate, way));
        true
    }

    /// Requests in flight, and bytes; beyond the bound only what somebody waits
    /// for, alone.
    fn check_bounds(&self, request: &Request) {
        let Ask::Docs { entries, .. } = &request.ask else {
            return;
        };
        let config = &self.scenario.client.config;
        let run = &self.run;
        let flying = run.ledger.docs_flying();
        assert_eq!(flying, run.planner.docs_in_flight_count());
        assert!(flying <= config.max_concurrency as usize);
        if run.planner.buffered() <= config.max_buffer_bytes {
            return;
        }
        // It waits for rows, and has no documents to take before.
        let known = |(id, rev): (&Rc<str>, &Rc<str>)| run.planner.is_known(id, rev);
        let waits_for_rows = run.replicator.waits && !run.replicator.named().any(known);
        let on_demand = matches!(&run.replicator.stage, Stage::Docs(wanted) if entries.iter()
            .any(|entry| wanted.contains(&(entry.id.clone(), entry.rev.clone()))));
        assert!(
            waits_for_rows && flying == 1 || on_demand,
            "{} bytes, {flying} in flight, and nobody waits",
            run.planner.buffered()
        );
    }

    fn settle_rows(&mut self) -> bool {
        if !self.run.replicator.waits {
            return false;
        }
        let limit = self.scenario.client.config.batch_size as usize;
        let full = self.run.planner.buffered() * 2 >= self.scenario.client.config.max_buffer_bytes;
        match self.run.planner.take_rows(limit) {
            TakenRows::Pending => return false,
            TakenRows::Failed(_) => {
                assert_eq!(self.run.ledger.rows_left(), 0, "rows before the failure");
                self.run.replicator.feed_failed = true;
                self.fail_when_idle();
            }
            TakenRows::Batch(batch) => self.take_batch(batch, full),
        }
        self.run.replicator.waits = false;
        true
    }

    fn take_batch(&mut self, batch: Batch, full: bool) {
        let rows = self
            .run
            .ledger
            .handed(&batch, |seq| self.source.position(seq));
        if batch.end {
            assert!(rows.is_empty());
            assert_eq!(self.run.ledger.rows_left(), 0, "rows before the end");
        } else {
            self.check_size(&rows, full);
        }
        self.run.replicator.handing = Some(InHand {
            rows,
            last_seq: batch.last_seq,
        });
        let ms = self.rng.below(3);
        self.later(ms, InRun::RowsHanded);
    }

    fn check_size(&self, rows: &[RowInfo], full: bool) {
        let config = &self.scenario.client.config;
        assert!(!rows.is_empty());
        let whole = rows.len() == config.batch_size as usize;
        let ledger = &self.run.ledger;
        let failed = ledger.docs_failed || ledger.feed_failed;
        let cut = ledger.last_page_short || failed || full;
        assert!(rows.len() <= config.batch_size as usize);
        assert!(
            whole || cut || !config.batch_fixed,
            "a batch of {}",
            rows.len()
        );
    }
}
