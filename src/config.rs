//! What the caller and the host decide before a run begins. The planner reads
//! it and never changes it.

/// Settings of one run of the planner. The host fills them in from the plugin's
/// options, from what it knows of the platform and from the two databases.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rows that the replicator takes at once (its `batch_size`).
    pub batch_size: u32,
    /// The caller named the `batch_size`: a batch is then never smaller than
    /// that while the feed has more rows, as with stock.
    pub batch_fixed: bool,
    /// The target held nothing when the run began: every revision is missing,
    /// so it is not asked which are.
    pub target_empty: bool,
    /// The target is reached over the network.
    pub target_remote: bool,
    /// The source is a database of this process: its requests cost no round trip.
    pub source_local: bool,
    /// The feed goes through a filter, a selector, a view or a list of ids:
    /// its `last_seq` may lie beyond rows that were not sent, and is not used.
    pub filtered: bool,
    /// The feed is read; without it, only documents asked for on demand.
    pub read_ahead: bool,
    /// Most document requests in flight.
    pub max_concurrency: u32,
    /// Most bytes of documents read ahead and not yet taken, in flight included.
    pub max_buffer_bytes: u64,
    /// Most rows of the feed that wait to be taken.
    pub max_rows_ahead: u32,
    /// A request that brought nothing for so long (ms) is given up and repeated.
    pub stall_ms: u64,
    /// Until then (ms, on the clock of `now`) the server is known to have no
    /// `_bulk_get`; 0 where nothing is known.
    pub single_until: u64,
    /// Until then it is known not to stream attachments.
    pub piecewise_until: u64,
    /// Seed of the jitter between retries.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            batch_size: 1000,
            batch_fixed: false,
            target_empty: false,
            target_remote: false,
            source_local: false,
            filtered: false,
            read_ahead: true,
            max_concurrency: 6,
            max_buffer_bytes: 32 << 20,
            max_rows_ahead: 10_000,
            stall_ms: 60_000,
            single_until: 0,
            piecewise_until: 0,
            seed: 1,
        }
    }
}
