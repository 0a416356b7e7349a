//! Answers to requests, as the source or the target gives them.

use std::collections::HashMap;

use pouchdb_fast_sync::error::Failure;
use pouchdb_fast_sync::request::{Ask, Entry, Params, Request, RowHandle, Seq};

use crate::ledger::{DocInfo, RowInfo};
use crate::network::Fate;
use crate::world::{InRun, World};

/// What arrives.
pub(crate) enum Arrival {
    Page {
        rows: Vec<(RowInfo, Option<Seq>)>,
        last_seq: Seq,
        pending: u64,
    },
    /// A flag for each revision of the rows asked about.
    Diff(Vec<bool>),
    Docs {
        found: Vec<Found>,
        entries: Vec<Entry>,
        params: Params,
        /// All results but the last.
        short: bool,
        /// The stream ended before the last of them.
        broken: Option<Failure>,
    },
    Failure(Failure),
}

/// What one entry answered.
pub(crate) enum Found {
    Docs {
        docs: Vec<DocInfo>,
        bytes: u64,
        /// Bytes of attachments that did not come with it.
        stubs: Option<u64>,
    },
    Missing,
    Error,
    BadAttachment,
}

impl World {
    /// The request reaches its database; the answer needs as long as it did.
    pub(crate) fn serve(&mut self, request: Request, fate: Fate, way: u64) {
        let id = request.id;
        let late = self.scenario.client.config.stall_ms * 2;
        let (wait, arrival) = match fate {
            Fate::Fail(failure) => (way, Arrival::Failure(failure)),
            Fate::Silence {
                answers_late: false,
            } => return,
            Fate::Silence { answers_late: true } => (late, self.answer(request.ask, &fate)),
            Fate::Slow => {
                let step = self.scenario.client.config.stall_ms / 2;
                for at in 1..4 {
                    self.later(at * step, InRun::Trickles(id));
                }
                (4 * step, self.answer(request.ask, &fate))
            }
            _ => (way, self.answer(request.ask, &fate)),
        };
        self.later(wait, InRun::Arrives(id, arrival));
    }

    fn answer(&mut self, ask: Ask, fate: &Fate) -> Arrival {
        match ask {
            Ask::Feed {
                since,
                limit,
                seq_interval,
            } => self.page(&since, limit, seq_interval),
            Ask::Diff { rows } => Arrival::Diff(self.diff(&rows)),
            Ask::Docs { entries, params } => {
                let (broken, came) = match fate {
                    Fate::Broken(failure) => {
                        let came = self.rng.below(entries.len() as u64) as usize;
                        (Some(failure.clone()), came)
                    }
                    _ => (None, entries.len()),
                };
                let found = entries
                    .iter()
                    .take(came)
                    .map(|entry| self.found(entry, params, fate));
                Arrival::Docs {
                    found: found.collect(),
                    entries,
                    params,
                    short: matches!(fate, Fate::Short),
                    broken,
                }
            }
        }
    }

    fn page(&mut self, since: &str, limit: u32, interval: Option<u32>) -> Arrival {
        let filtered = self.scenario.client.config.filtered;
        assert!(
            !(filtered && interval.is_some()),
            "an interval with a filter"
        );
        let since = self.source.position(since);
        let mut from = since;
        if self.rewinds > 0 && !self.scenario.server.numeric && self.rng.percent(30) {
            self.rewinds -= 1;
            from -= self.rng.below(since.min(10) + 1);
        }
        let cap = self.scenario.server.page_cap;
        let (source, rng) = (&self.source, &mut self.rng);
        let page = source.page(from, u64::from(limit), cap, interval, filtered, rng);
        let count = page.rows.len();
        let rows = page.rows.into_iter().enumerate().map(|(at, row)| {
            let last = at + 1 == count && !filtered;
            let end = if last { page.last_position } else { 0 };
            let info = RowInfo {
                id: self.source.docs[row.doc].id.clone(),
                revs: row.revs,
                position: row.position.max(since).max(end),
                pending: page.pending + (count - 1 - at) as u64,
            };
            (info, row.seq)
        });
        Arrival::Page {
            rows: rows.collect(),
            last_seq: page.last_seq,
            pending: page.pending,
        }
    }

    /// As the driver asks: an object with ids as keys.
    fn diff(&self, rows: &[RowHandle]) -> Vec<bool> {
        let mut asked = HashMap::new();
        for &row in rows {
            let row = self.run.ledger.peek(row);
            asked.insert(row.id.clone(), row.revs.clone());
        }
        let flags = rows.iter().flat_map(|&row| {
            let row = self.run.ledger.peek(row);
            let missing = self.target.missing(&row.id, &asked[&row.id]);
            row.revs.iter().map(move |rev| missing.contains(rev))
        });
        flags.collect()
    }

    fn found(&mut self, entry: &Entry, params: Params, fate: &Fate) -> Found {
        if matches!(fate, Fate::RowErrors) && self.rng.percent(40) {
            return Found::Error;
        }
        if matches!(fate, Fate::BadAttachments) && self.rng.percent(40) {
            return Found::BadAttachment;
        }
        // The host's GET of one document always takes a leaf below.
        let latest = params.latest || params.single;
        let quorum = !params.one_replica;
        let source = &self.source;
        let (doc, nodes) = source.get(&entry.id, &entry.rev, latest, quorum, self.now);
        let Some(nodes) = nodes else {
            return Found::Missing;
        };
        let mut bytes = 0;
        let docs = nodes.into_iter().map(|node| {
            bytes += source.docs[doc].nodes[node].size;
            let history = source.history(doc, node);
            let has_history = params.revs || params.single || history.len() == 1;
            assert!(has_history, "{entry:?} would make a false conflict");
            DocInfo {
                id: entry.id.clone(),
                history,
            }
        });
        Found::Docs {
            docs: docs.collect(),
            bytes,
            // Some servers do not send what was asked for.
            stubs: (source.docs[doc].attachments && (!params.attachments || self.rng.percent(10)))
                .then(|| self.rng.below(3_000_000)),
        }
    }
}
