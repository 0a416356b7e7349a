//! What happens within a run: the driver's loop (as in `src/wasm/driver.rs`) and
//! the replicator's steps.

use std::rc::Rc;

use pouchdb_fast_sync::planner::{Taken, TakenRows};
use pouchdb_fast_sync::request::{Ask, Batch, Entry, Event, Request};

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
        let cut = ledger.last_page_short || ledger.docs_failed || full;
        assert!(rows.len() <= config.batch_size as usize);
        assert!(
            whole || cut || !config.batch_fixed,
            "a batch of {}",
            rows.len()
        );
    }

    fn rows_handed(&mut self) {
        let replicator = &mut self.run.replicator;
        let Some(batch) = replicator.handing.take() else {
            return;
        };
        if !batch.rows.is_empty() {
            return replicator.ahead.push_back(batch);
        }
        replicator.end = Some(batch.last_seq.clone());
        if replicator.is_idle() {
            self.checkpoint(batch.last_seq);
            self.done = true;
        }
    }

    fn begin_batch(&mut self) -> bool {
        let Some(revs) = self.run.replicator.begins() else {
            return false;
        };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (id, revs) in revs {
            match self.run.planner.take_diff(&id, &revs) {
                Some(missing) => known.push((id, missing)),
                None => unknown.push((id, revs)),
            }
        }
        let nothing = unknown.is_empty();
        self.run.replicator.stage = Stage::Diff { known, unknown };
        if nothing {
            self.target_diffed();
        } else {
            let ms = self.rng.below(20);
            self.later(ms, InRun::TargetDiffed);
        }
        true
    }

    /// The target said what it lacks of what the planner did not know.
    fn target_diffed(&mut self) {
        let stage = std::mem::replace(&mut self.run.replicator.stage, Stage::Idle);
        let Stage::Diff { known, unknown } = stage else {
            unreachable!("a diff that nobody asked for");
        };
        let mut wanted = Vec::new();
        for (id, revs) in known {
            wanted.extend(revs.into_iter().map(|rev| (id.clone(), rev)));
        }
        for (id, revs) in unknown {
            for rev in revs {
                if self.target.has(&id, &rev) {
                    self.run.planner.drop_handed(&id, &rev);
                } else {
                    wanted.push((id.clone(), rev));
                }
            }
        }
        for (id, rev) in &wanted {
            if self.run.planner.is_known(id, rev) {
                continue;
            }
            self.run.ledger.wanted(id, rev);
            let row = self.run.ledger.row(RowInfo {
                id: id.clone(),
                revs: vec![rev.clone()],
                position: 0,
                pending: 0,
            });
            self.run.planner.want(Entry {
                row,
                id: id.clone(),
                rev: rev.clone(),
            });
        }
        self.run.replicator.stage = Stage::Docs(wanted);
    }

    fn settle_docs(&mut self) -> bool {
        let Stage::Docs(wanted) = &self.run.replicator.stage else {
            return false;
        };
        let planner = &self.run.planner;
        if wanted.iter().any(|(id, rev)| planner.is_pending(id, rev)) {
            return false;
        }
        let mut docs = Vec::new();
        for (id, rev) in wanted.clone() {
            match self.run.planner.take_docs(&id, &rev) {
                Taken::Docs(found) => {
                    let gone = self.run.ledger.is_gone(&id, &rev);
                    assert!(!found.is_empty() || gone, "{id} at {rev} passed over");
                    let found = found.into_iter();
                    docs.extend(found.map(|doc| self.run.ledger.take_doc(doc.handle)));
                }
                Taken::Failed(_) => {
                    let alone = self.run.replicator.current.as_ref();
                    let alone = alone.is_some_and(|batch| batch.rows.len() == 1);
                    let demanded = self.run.ledger.was_demanded(&id, &rev);
                    assert!(alone || demanded, "what comes before a failure is written");
                    self.failed();
                    return true;
                }
                other => panic!("{id} at {rev}: {other:?}"),
            }
        }
        let nothing = docs.is_empty();
        self.run.replicator.stage = Stage::Write(docs);
        if nothing {
            self.finish_batch();
        } else {
            let ms = self.rng.below(self.scenario.client.write_ms + 1);
            self.later(ms, InRun::Written);
        }
        true
    }

    fn written(&mut self) {
        let stage = std::mem::replace(&mut self.run.replicator.stage, Stage::Idle);
        let Stage::Write(docs) = stage else {
            unreachable!("a write that nobody began");
        };
        for doc in docs {
            self.target.write(&doc.id, doc.history);
        }
        self.run.planner.handle_written();
        self.finish_batch();
    }

    fn finish_batch(&mut self) {
        self.run.replicator.stage = Stage::Checkpoint;
        let ms = self.rng.below(10);
        self.later(ms, InRun::Checkpointed);
    }

    fn checkpointed(&mut self) {
        let replicator = &mut self.run.replicator;
        let batch = replicator.current.take().expect("a batch");
        replicator.stage = Stage::Idle;
        let ended = replicator.is_idle() && replicator.end.is_some();
        self.checkpoint(batch.last_seq);
        self.done = ended;
        self.fail_when_idle();
    }

    /// The feed failed: what came before is finished first.
    fn fail_when_idle(&mut self) {
        if self.run.replicator.feed_failed && self.run.replicator.is_idle() {
            self.failed();
        }
    }
}
