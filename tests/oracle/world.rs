//! A case from its beginning to its end: a virtual clock, what happens when, and
//! runs of the planner until one completes a replication.

use std::collections::BTreeMap;
use std::rc::Rc;

use pouchdb_fast_sync::planner::Planner;
use pouchdb_fast_sync::request::{Request, RequestId, Seq};

use crate::ledger::Ledger;
use crate::network::{Fate, Network};
use crate::replicator::Replicator;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::server::Arrival;
use crate::source::{Source, passes_filter};
use crate::target::Target;

/// Far more than any case needs: beyond it, something goes round in circles.
const MOST_STEPS: u64 = 400_000;

/// What happens at a time of the clock.
pub(crate) enum Happening {
    Mutation,
    Crash,
    /// Of one run, by its number: an earlier one's is over.
    Of(u64, InRun),
}

pub(crate) enum InRun {
    Identity,
    /// The timer with this number; a newer one replaces it.
    Timer(u64),
    Served(Request, Fate, u64),
    Arrives(RequestId, Arrival),
    Trickles(RequestId),
    RowsHanded,
    TargetDiffed,
    Written,
    Checkpointed,
}

/// One run of the planner, and all that ends with it.
pub(crate) struct Run {
    pub(crate) planner: Planner,
    pub(crate) ledger: Ledger,
    pub(crate) replicator: Replicator,
    pub(crate) timer: Option<u64>,
    pub(crate) timers: u64,
    /// Requests that are never answered.
    pub(crate) silent: Vec<RequestId>,
    /// Counts whatever moves the run forward.
    pub(crate) moves: u64,
}

pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) rng: Rng,
    pub(crate) now: u64,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) network: Network,
    pub(crate) run: Run,
    pub(crate) number: u64,
    pub(crate) rewinds: u64,
    agenda: BTreeMap<(u64, u64), Happening>,
    booked: u64,
    /// The last checkpoint that was written.
    checkpoint: Seq,
    pub(crate) done: bool,
    /// Runs that ended with a failure, and what may cause that.
    failed: u64,
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let source = Source::new(&scenario, &mut rng);
        let target = Target::new(&source, scenario.data.held, &mut rng);
        let checkpoint: Seq = "0".into();
        let empty = scenario.client.target_empty && target.is_empty();
        let run = Run::new(&scenario, checkpoint.clone(), empty);
        let mut world = Self {
            network: Network::new(&scenario),
            rewinds: scenario.server.rewinds,
            rng,
            now: 0,
            source,
            target,
            run,
            number: 0,
            agenda: BTreeMap::new(),
            booked: 0,
            checkpoint,
            done: false,
            failed: 0,
            scenario,
        };
        for _ in 0..world.scenario.data.mutations {
            let at = world.rng.below(4_000);
            world.book(at, Happening::Mutation);
        }
        for at in world.scenario.trouble.crashes.clone() {
            world.book(at, Happening::Crash);
        }
        world
    }

    fn book(&mut self, at: u64, what: Happening) {
        self.booked += 1;
        self.agenda.insert((at, self.booked), what);
    }

    /// Books something of this run, in so many ms.
    pub(crate) fn later(&mut self, ms: u64, what: InRun) {
        self.book(self.now + ms, Happening::Of(self.number, what));
    }

    /// Runs until a replication has completed.
    pub(crate) fn complete(&mut self) {
        self.begin();
        for _ in 0..MOST_STEPS {
            let Some(((at, _), what)) = self.agenda.pop_first() else {
                panic!("deadlock: nobody is going to do anything");
            };
            self.now = self.now.max(at);
            match what {
                Happening::Mutation => self.source.mutate(&mut self.rng, self.now),
                Happening::Crash => self.restart(),
                Happening::Of(number, what) if number == self.number => self.step(what),
                Happening::Of(..) => {}
            }
            if self.done {
                self.check_end();
                return;
            }
        }
        panic!("it goes round in circles");
    }

    fn begin(&mut self) {
        if !self.scenario.client.config.source_local {
            self.later(self.scenario.server.identity_after, InRun::Identity);
        }
        if self.rng.percent(50) {
            let bytes = *self.rng.pick(&[50.0, 1_500.0, 300_000.0]);
            self.run.planner.handle_expectation(bytes);
        }
        self.pump();
    }

    /// The client begins again after what it wrote last.
    pub(crate) fn restart(&mut self) {
        self.number += 1;
        self.run = Run::new(&self.scenario, self.checkpoint.clone(), false);
        self.begin();
    }

    /// The run ended with a failure, which must have had a cause; PouchDB begins
    /// again.
    pub(crate) fn failed(&mut self) {
        self.failed += 1;
        assert!(
            self.failed <= self.scenario.trouble.budget,
            "failed without a failure"
        );
        self.restart();
    }

    /// The replicator wrote its checkpoint: it may not be ahead of what the
    /// target holds. What the feed still brings after it may be missing.
    pub(crate) fn checkpoint(&mut self, seq: Seq) {
        let often = self.source.docs.len() < 300 || self.rng.percent(3);
        if often {
            self.check_upto(self.source.position(&seq));
        }
        self.checkpoint = seq;
    }

    fn check_upto(&self, position: u64) {
        for (at, doc) in self.source.docs.iter().enumerate() {
            if doc.seq > position || self.scenario.client.config.filtered && !passes_filter(at) {
                continue;
            }
            for leaf in self.source.leaves(at) {
                let rev = &doc.nodes[leaf].rev;
                assert!(
                    self.target.has(&doc.id, rev) || self.source.is_gone(&doc.id, rev),
                    "{} at {rev} (seq {}) is not at the target, the checkpoint is {position}",
                    doc.id,
                    doc.seq
                );
            }
        }
    }

    fn check_end(&mut self) {
        let end = self.run.replicator.end.clone().expect("the feed's end");
        self.check_upto(self.source.position(&end));
        self.run.ledger.close(&self.scenario.client.config);
        let (planner, ledger) = (&self.run.planner, &self.run.ledger);
        assert_eq!(planner.stats().docs, ledger.taken);
        assert_eq!(planner.stats().gone, ledger.passed);
        assert_eq!(planner.buffered(), 0);
        assert_eq!(self.run.planner.poll_request(self.now), None);
    }
}

impl Run {
    fn new(scenario: &Scenario, since: Seq, target_empty: bool) -> Self {
        let mut config = scenario.client.config.clone();
        config.target_empty = target_empty;
        let mut planner = Planner::new(config, Rc::clone(&since));
        planner.handle_attachment_streams(scenario.client.streams);
        Self {
            planner,
            ledger: Ledger::default(),
            replicator: Replicator::new(scenario.client.batches_ahead),
            timer: None,
            timers: 0,
            silent: Vec::new(),
            moves: 0,
        }
    }
}
