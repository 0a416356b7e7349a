//! A CouchDB, as far as a replication can tell: revision trees, a feed in which
//! every document has one row (that of its last change), seqs that mean
//! something to the server only, compaction, bodies that are gone, and a replica
//! that lags.

use std::collections::BTreeMap;
use std::rc::Rc;

use pouchdb_fast_sync::request::Seq;

use crate::rng::Rng;
use crate::scenario::{Scenario, Sizes};

pub(crate) struct Node {
    pub(crate) rev: Rc<str>,
    parent: Option<usize>,
    pub(crate) size: u64,
    /// Its body is dropped: only its leaves can be had.
    compacted: bool,
    /// Its body is gone for good.
    pub(crate) lost: bool,
    /// One replica does not see it before.
    seen_from: u64,
}

pub(crate) struct Doc {
    pub(crate) id: Rc<str>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) seq: u64,
    pub(crate) attachments: bool,
}

/// A row as the feed has it.
pub(crate) struct SourceRow {
    pub(crate) doc: usize,
    pub(crate) revs: Vec<Rc<str>>,
    pub(crate) position: u64,
    pub(crate) seq: Option<Seq>,
}

pub(crate) struct SourcePage {
    pub(crate) rows: Vec<SourceRow>,
    pub(crate) last_seq: Seq,
    pub(crate) last_position: u64,
    pub(crate) pending: u64,
}

/// What a filtered feed lets through.
pub(crate) fn passes_filter(doc: usize) -> bool {
    doc % 3 != 0
}

/// What a revision answered: a document's nodes, or nothing.
pub(crate) type Found = Option<Vec<usize>>;

pub(crate) struct Source {
    pub(crate) docs: Vec<Doc>,
    by_seq: BTreeMap<u64, usize>,
    pub(crate) seq: u64,
    made: u64,
    numeric: bool,
    lag: u64,
    attachments: u64,
    sizes: Sizes,
}

impl Source {
    pub(crate) fn new(scenario: &Scenario, rng: &mut Rng) -> Self {
        let data = &scenario.data;
        let mut source = Self {
            docs: Vec::new(),
            by_seq: BTreeMap::new(),
            seq: 0,
            made: 0,
            numeric: scenario.server.numeric,
            lag: 0,
            attachments: data.attachments,
            sizes: data.sizes,
        };
        for _ in 0..data.docs {
            let doc = source.create(rng, 0);
            for _ in 0..rng.below(3) {
                source.edit(doc, rng, 0);
            }
            if rng.percent(data.conflicts) {
                source.conflict(doc, rng, 0);
            }
            if rng.percent(data.lost) {
                source.lose(doc, rng);
            }
        }
        source.lag = scenario.server.lag;
        source
    }

    fn create(&mut self, rng: &mut Rng, now: u64) -> usize {
        let doc = self.docs.len();
        self.docs.push(Doc {
            id: format!("doc-{doc:04}").into(),
            nodes: Vec::new(),
            seq: 0,
            attachments: rng.percent(self.attachments),
        });
        self.grow(doc, None, rng, now);
        doc
    }

    fn grow(&mut self, doc: usize, parent: Option<usize>, rng: &mut Rng, now: u64) {
        self.made += 1;
        let generation = parent.map_or(1, |parent| self.generation(doc, parent) + 1);
        let seen_from = if rng.percent(self.lag) {
            now + rng.between(1, 2_000)
        } else {
            0
        };
        let (low, high) = match self.sizes {
            Sizes::Tiny => (10, 200),
            Sizes::Notes => (300, 5_000),
            Sizes::Large => (20_000, 600_000),
            Sizes::Huge => (500_000, 5_000_000),
            Sizes::Mixed => *rng.pick(&[(10, 200), (300, 5_000), (20_000, 5_000_000)]),
        };
        let size = rng.between(low, high);
        let rev = format!("{generation}-{:x}", self.made).into();
        self.docs[doc].nodes.push(Node {
            rev,
            parent,
            size,
            compacted: false,
            lost: false,
            seen_from,
        });
        self.by_seq.remove(&self.docs[doc].seq);
        self.seq += 1;
        self.docs[doc].seq = self.seq;
        self.by_seq.insert(self.seq, doc);
    }

    fn generation(&self, doc: usize, node: usize) -> u64 {
        self.history(doc, node).len() as u64
    }

    /// Its revisions, newest first.
    pub(crate) fn history(&self, doc: usize, node: usize) -> Vec<Rc<str>> {
        let nodes = &self.docs[doc].nodes;
        std::iter::successors(Some(node), |&at| nodes[at].parent)
            .map(|at| nodes[at].rev.clone())
            .collect()
    }

    pub(crate) fn leaves(&self, doc: usize) -> Vec<usize> {
        let nodes = &self.docs[doc].nodes;
        (0..nodes.len())
            .filter(|&at| nodes.iter().all(|node| node.parent != Some(at)))
            .collect()
    }

    fn edit(&mut self, doc: usize, rng: &mut Rng, now: u64) {
        let leaf = *rng.pick(&self.leaves(doc));
        if rng.percent(60) {
            self.docs[doc].nodes[leaf].compacted = true;
        }
        self.grow(doc, Some(leaf), rng, now);
    }

    fn conflict(&mut self, doc: usize, rng: &mut Rng, now: u64) {
        let leaf = *rng.pick(&self.leaves(doc));
        let parent = self.docs[doc].nodes[leaf].parent;
        self.grow(doc, parent, rng, now);
    }

    fn lose(&mut self, doc: usize, rng: &mut Rng) {
        let leaf = *rng.pick(&self.leaves(doc));
        self.docs[doc].nodes[leaf].lost = true;
    }

    /// Somebody else works on it.
    pub(crate) fn mutate(&mut self, rng: &mut Rng, now: u64) {
        if self.docs.is_empty() || rng.percent(10) {
            self.create(rng, now);
            return;
        }
        let doc = rng.below(self.docs.len() as u64) as usize;
        match rng.below(10) {
            0 => self.lose(doc, rng),
            1..4 => self.conflict(doc, rng, now),
            _ => self.edit(doc, rng, now),
        }
    }

    /// JSON text of a seq. A cluster writes the same place in many ways.
    fn name(&self, position: u64, rng: &mut Rng) -> Seq {
        if self.numeric {
            return position.to_string().into();
        }
        format!("\"{position}-g1AAAA{:x}\"", rng.below(1 << 32)).into()
    }

    pub(crate) fn position(&self, seq: &str) -> u64 {
        let digits = seq.trim_matches('"').split('-').next();
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a seq")
    }

    /// Rows behind `since`. CouchDB computes a seq where the rows left of
    /// `limit` are a multiple of the interval. A filtered feed says a `last_seq`
    /// beyond rows that were not sent.
    pub(crate) fn page(
        &self,
        since: u64,
        limit: u64,
        cap: u64,
        interval: Option<u32>,
        filtered: bool,
        rng: &mut Rng,
    ) -> SourcePage {
        let mut rows = Vec::new();
        let behind = |since: u64| {
            let all = self.by_seq.range(since + 1..);
            all.filter(move |(_, doc)| !filtered || passes_filter(**doc))
        };
        for (&position, &doc) in behind(since).take(limit.min(cap) as usize) {
            let left = limit - rows.len() as u64;
            let named = interval.is_none_or(|interval| left % u64::from(interval) == 0);
            let leaves = self.leaves(doc).into_iter();
            rows.push(SourceRow {
                doc,
                revs: leaves
                    .map(|at| self.docs[doc].nodes[at].rev.clone())
                    .collect(),
                position,
                seq: named.then(|| self.name(position, rng)),
            });
        }
        let last = rows.last().map(|row| row.position);
        let pending = behind(last.unwrap_or(since)).count() as u64;
        let last_position = match last {
            Some(_) if filtered => self.seq,
            Some(last) if pending > 0 => last,
            _ => self.seq.max(since),
        };
        SourcePage {
            rows,
            last_seq: self.name(last_position, rng),
            last_position,
            pending,
        }
    }

    /// One revision, or with `latest` the leaves below it.
    pub(crate) fn get(
        &self,
        id: &str,
        rev: &str,
        latest: bool,
        quorum: bool,
        now: u64,
    ) -> (usize, Found) {
        let doc: usize = id.trim_start_matches("doc-").parse().expect("its own id");
        let nodes = &self.docs[doc].nodes;
        let Some(node) = nodes.iter().position(|node| &*node.rev == rev) else {
            panic!("{id} at {rev} was never named");
        };
        if !quorum && nodes[node].seen_from > now {
            return (doc, None);
        }
        let found: Vec<_> = if latest {
            self.leaves_below(doc, node)
        } else {
            vec![node]
        };
        let has_body = |&at: &usize| !nodes[at].lost && !nodes[at].compacted;
        let found: Vec<_> = found.into_iter().filter(has_body).collect();
        (doc, (!found.is_empty()).then_some(found))
    }

    fn leaves_below(&self, doc: usize, node: usize) -> Vec<usize> {
        let nodes = &self.docs[doc].nodes;
        let below = |leaf: &usize| {
            std::iter::successors(Some(*leaf), |&at| nodes[at].parent).any(|at| at == node)
        };
        self.leaves(doc).into_iter().filter(below).collect()
    }

    /// Neither the revision nor a leaf below it can be had any more.
    pub(crate) fn is_gone(&self, id: &str, rev: &str) -> bool {
        self.get(id, rev, false, true, u64::MAX).1.is_none()
            && self.get(id, rev, true, true, u64::MAX).1.is_none()
    }
}
