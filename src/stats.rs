//! Figures of a run, for `sync.fastSync.stats`. Times are sums over requests,
//! which overlap: they tell where the waiting was, not how long the run took.

use serde::{Serialize, Serializer};

/// Most ids that the statistics name.
const MOST_NAMED: usize = 100;

/// What the planner counted.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Rows of the feed.
    pub rows: u64,
    /// Documents handed to the replicator.
    pub docs: u64,
    /// Requests that failed, of any kind.
    pub failures: u64,
    /// Requests for documents that were repeated.
    pub retries: u64,
    /// ms spent waiting for feed pages.
    pub feed_ms: u64,
    /// ms spent waiting for documents.
    pub docs_ms: u64,
    /// ms spent waiting for diffs.
    pub diff_ms: u64,
    /// Most bytes that were buffered at once, as measured and expected.
    pub peak_buffer_bytes: u64,
    /// Revisions that the source named and no longer had.
    pub gone: u64,
    /// The first of them, as `id@rev`.
    pub gone_revisions: Vec<String>,
    /// Until then (ms, on the planner's clock) the server is taken for one without
    /// `_bulk_get`, whose documents come one by one; 0 where it has it.
    pub single_until: u64,
    /// The same of streams of attachments.
    pub piecewise_until: u64,
}

impl Stats {
    pub(crate) fn passed_over(&mut self, id: &str, rev: &str) {
        self.gone += 1;
        if self.gone_revisions.len() < MOST_NAMED {
            self.gone_revisions.push(String::from_iter([id, "@", rev]));
        }
    }
}

/// As a map of plain numbers: for a struct, serde-wasm-bindgen keeps a table of
/// field names, and for integers it looks at how large they are, which together
/// would be larger than all that is here.
impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = |figure: u64| Figure::Number(figure as f64);
        serializer.collect_map([
            ("rows", number(self.rows)),
            ("docs", number(self.docs)),
            ("failures", number(self.failures)),
            ("retries", number(self.retries)),
            ("feedMs", number(self.feed_ms)),
            ("docsMs", number(self.docs_ms)),
            ("diffMs", number(self.diff_ms)),
            ("peakBufferBytes", number(self.peak_buffer_bytes)),
            ("gone", number(self.gone)),
            ("goneRevisions", Figure::Names(&self.gone_revisions)),
            ("singleUntil", number(self.single_until)),
            ("piecewiseUntil", number(self.piecewise_until)),
        ])
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Figure<'a> {
    Number(f64),
    Names(&'a [String]),
}
