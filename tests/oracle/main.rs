//! The planner against a plain oracle: a simulated CouchDB and target, a network
//! that fails, a replicator that behaves as stock's, and a virtual clock. Every
//! case ends with a completed replication, whatever happened on the way, and
//! holds the run against what has to be true at every moment.
//!
//! `PROPTEST_CASES=20000 cargo test --release --test oracle` is a long soak.

mod arrival;
mod driver;
mod ledger;
mod network;
mod replicator;
mod rng;
mod scenario;
mod server;
mod source;
mod steps;
mod target;
mod world;

use proptest::prelude::*;

use scenario::scenarios;
use world::World;

/// Cases, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 250;

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    match std::env::var("PROPTEST_CASES") {
        Ok(_) => default,
        Err(_) => ProptestConfig {
            cases: CASES,
            ..default
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_run_that_ends_leaves_the_sources_revisions(scenario in scenarios()) {
        World::new(scenario).complete();
    }
}
