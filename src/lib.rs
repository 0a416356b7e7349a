//! The engine of `pouchdb-fast-sync`: plans the replication between a CouchDB
//! and a PouchDB, and (on wasm only) drives it.
//!
//! One rule holds the crate together: *hand in, then drain*. The [`planner`]
//! takes what came from the network and from the databases, each with the time,
//! and is drained for requests and events. It never waits, fetches or reads a
//! clock, and it never sees a document's body. The driver in `wasm` is the loop
//! around it; everything that knows the browser lives there.

pub mod checkpoint;
pub mod config;
pub mod error;
pub mod multipart;
pub mod pace;
pub mod planner;
pub mod request;
pub mod stats;
pub mod writes;

#[cfg(target_arch = "wasm32")]
mod wasm;
