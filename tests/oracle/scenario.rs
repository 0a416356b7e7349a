//! What a case is made of. Everything else follows from the seed.

use pouchdb_fast_sync::config::Config;
use proptest::prelude::*;

/// How large the documents are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizes {
    Tiny,
    Notes,
    Large,
    Huge,
    Mixed,
}

/// The source and the target before the run, and what happens meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) docs: usize,
    pub(crate) sizes: Sizes,
    /// Percent of documents with a conflict, and of bodies that are gone.
    pub(crate) conflicts: u64,
    pub(crate) lost: u64,
    /// Percent of documents that the target holds, in some version.
    pub(crate) held: u64,
    /// Changes on the source while the run goes on.
    pub(crate) mutations: u64,
    /// Percent of documents with attachments.
    pub(crate) attachments: u64,
    /// Percent of rows whose revisions the host knows to be at the target, and
    /// keeps to itself.
    pub(crate) withheld: u64,
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// ms, one way.
    pub(crate) latency: u64,
    /// Rows that it sends at once, whatever was asked.
    pub(crate) page_cap: u64,
    /// Seqs are numbers, as CouchDB 1's were.
    pub(crate) numeric: bool,
    /// It is CouchDB, and says so, after so many ms.
    pub(crate) couch: bool,
    pub(crate) identity_after: u64,
    pub(crate) bulk_get: bool,
    /// It streams attachments.
    pub(crate) multipart: bool,
    /// Entries beyond which it answers 413.
    pub(crate) most_entries: usize,
    /// Percent of new revisions that one replica does not see for a while.
    pub(crate) lag: u64,
    /// Pages that begin before where they were asked to.
    pub(crate) rewinds: u64,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// Failures in all; then the network is as good as it gets.
    pub(crate) budget: u64,
    /// Percent of requests that fail.
    pub(crate) rate: u64,
    /// Times (ms) at which the client dies and begins again.
    pub(crate) crashes: Vec<u64>,
}

/// The client's side.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) batches_ahead: usize,
    pub(crate) write_ms: u64,
    pub(crate) streams: bool,
    pub(crate) target_empty: bool,
    pub(crate) config: Config,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) data: Data,
    pub(crate) server: Server,
    pub(crate) trouble: Trouble,
    pub(crate) client: Client,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        Just(Sizes::Tiny),
        Just(Sizes::Notes),
        Just(Sizes::Large),
        Just(Sizes::Huge),
        Just(Sizes::Mixed),
    ]
}

fn data() -> impl Strategy<Value = Data> {
    (
        prop_oneof![24 => 0..40usize, 12 => 40..250usize, 1 => 900..3_000usize],
        sizes(),
        prop_oneof![Just(0), Just(10), Just(60)],
        prop_oneof![3 => Just(0), 1 => Just(5)],
        prop_oneof![2 => Just(0), 1 => Just(30), 1 => Just(95)],
        prop_oneof![1 => Just(0), 2 => 1..40u64],
        prop_oneof![2 => Just(0), 1 => Just(20)],
        prop_oneof![2 => Just(0), 1 => Just(50)],
    )
        .prop_map(
            |(docs, sizes, conflicts, lost, held, mutations, attachments, withheld)| Data {
                docs,
                sizes,
                conflicts,
                lost,
                held,
                mutations,
                attachments,
                withheld,
            },
        )
}

fn server() -> impl Strategy<Value = Server> {
    (
        prop_oneof![Just(0), Just(20), Just(150)],
        prop_oneof![3 => Just(u64::MAX), 3 => 1..60u64],
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.8),
        prop_oneof![Just(0), 0..600u64],
        prop::bool::weighted(0.85),
        prop::bool::weighted(0.7),
        prop_oneof![3 => Just(usize::MAX), 1 => 1..20usize],
        prop_oneof![2 => Just(0), 1 => Just(50)],
        prop_oneof![4 => Just(0), 1 => 1..4u64],
    )
        .prop_map(
            |(
                latency,
                page_cap,
                numeric,
                couch,
                identity_after,
                bulk_get,
                multipart,
                most_entries,
                lag,
                rewinds,
            )| {
                Server {
                    latency,
                    page_cap,
                    numeric,
                    couch,
                    identity_after,
                    bulk_get,
                    multipart,
                    most_entries,
                    lag,
                    rewinds,
                }
            },
        )
}

fn trouble() -> impl Strategy<Value = Trouble> {
    (
        prop_oneof![2 => Just(0), 3 => 1..50u64],
        1..70u64,
        prop::collection::vec(0..3_000u64, 0..3),
    )
        .prop_map(|(budget, rate, crashes)| Trouble {
            budget,
            rate,
            crashes,
        })
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![8 => 1..51u32, 1 => 51..600u32, 1 => 600..2_500u32],
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.25),
        1..7u32,
        prop_oneof![
            1 => Just(1_000),
            2 => Just(30_000),
            2 => Just(400_000),
            3 => Just(9_000_000),
            3 => Just(32 << 20),
        ],
        prop_oneof![Just(1), Just(20), Just(300), Just(10_000)],
        prop_oneof![Just(900u64), Just(10_000), Just(60_000)],
        any::<u64>(),
    )
        .prop_map(
            |(
                batch_size,
                batch_fixed,
                target_remote,
                source_local,
                filtered,
                max_concurrency,
                max_buffer_bytes,
                max_rows_ahead,
                stall_ms,
                seed,
            )| Config {
                batch_size,
                batch_fixed,
                target_empty: false,
                target_remote,
                source_local,
                filtered,
                read_ahead: true,
                max_concurrency,
                max_buffer_bytes,
                max_rows_ahead,
                stall_ms,
                seed,
                // A third of the runs knows of the last one what the server lacks.
                single_until: if seed % 3 == 0 { 700 } else { 0 },
                piecewise_until: if seed % 3 == 0 { 1_500 } else { 0 },
            },
        )
}

fn client() -> impl Strategy<Value = Client> {
    (
        1..11usize,
        prop_oneof![Just(0), Just(10), Just(400)],
        any::<bool>(),
        any::<bool>(),
        config(),
    )
        .prop_map(
            |(batches_ahead, write_ms, streams, target_empty, config)| Client {
                batches_ahead,
                write_ms,
                streams,
                target_empty,
                config,
            },
        )
}

/// Any of them.
pub(crate) fn scenarios() -> impl Strategy<Value = Scenario> {
    (any::<u64>(), data(), server(), trouble(), client()).prop_map(
        |(seed, data, server, trouble, client)| Scenario {
            seed,
            data,
            server,
            trouble,
            client,
        },
    )
}
