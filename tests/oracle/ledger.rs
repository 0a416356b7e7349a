//! What one run did, held against what it may do: nothing asked twice, rows in
//! the feed's order, seqs that never lead, handles that are given back.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::request::{
    Ask, Batch, DocHandle, Entry, Params, Request, RequestId, RowHandle, Seq,
};

/// A row as the planner got it.
#[derive(Clone, Debug)]
pub(crate) struct RowInfo {
    pub(crate) id: Rc<str>,
    pub(crate) revs: Vec<Rc<str>>,
    /// How far a checkpoint at this row may say that the feed was read.
    pub(crate) position: u64,
    /// `pending` of its page and the rows of the page behind it.
    pub(crate) pending: u64,
}

/// What a document's handle stands for.
#[derive(Clone, Debug)]
pub(crate) struct DocInfo {
    pub(crate) id: Rc<str>,
    pub(crate) history: Vec<Rc<str>>,
}

type Question = (Rc<str>, Rc<str>, bool, bool);

#[derive(Default)]
pub(crate) struct Ledger {
    next_handle: u32,
    /// Handed in by pages, not handed over.
    feed: VecDeque<RowHandle>,
    rows: HashMap<RowHandle, RowInfo>,
    docs: HashMap<DocHandle, DocInfo>,
    pages_asked: HashSet<Seq>,
    diffs_asked: HashSet<RowHandle>,
    docs_asked: HashSet<Question>,
    /// Answered "missing" once, and once with leaves and quorum.
    missing: HashSet<(Rc<str>, Rc<str>)>,
    gone: HashSet<(Rc<str>, Rc<str>)>,
    demanded: HashSet<(Rc<str>, Rc<str>)>,
    flying: HashMap<RequestId, Ask>,
    pub(crate) docs_failed: bool,
    pub(crate) feed_failed: bool,
    /// Rows came of a page that is not complete: what waits behind it is not known.
    page_begun: bool,
    /// Such a page failed.
    page_broke: bool,
    /// Documents that were taken, and revisions that were passed over.
    pub(crate) taken: u64,
    pub(crate) passed: u64,
    pub(crate) last_page_short: bool,
    asked_rows: u64,
}

impl Ledger {
    pub(crate) fn row(&mut self, info: RowInfo) -> RowHandle {
        let handle = RowHandle(self.next_handle);
        self.next_handle += 1;
        self.rows.insert(handle, info);
        handle
    }

    pub(crate) fn feed_row(&mut self, info: RowInfo) -> RowHandle {
        let handle = self.row(info);
        self.feed.push_back(handle);
        handle
    }

    pub(crate) fn is_flying(&self, id: RequestId) -> bool {
        self.flying.contains_key(&id)
    }

    /// So many rows of a page came, and others may follow.
    pub(crate) fn begun(&mut self, rows: usize) {
        self.asked_rows = self.asked_rows.saturating_sub(rows as u64);
        self.page_begun = true;
    }

    pub(crate) fn page_of(&mut self, rows: usize) {
        self.last_page_short = (rows as u64) < self.asked_rows;
        self.page_begun = false;
    }

    pub(crate) fn peek(&self, row: RowHandle) -> &RowInfo {
        self.rows.get(&row).expect("the row is still kept")
    }

    pub(crate) fn doc(&mut self, info: DocInfo) -> DocHandle {
        let handle = DocHandle(self.next_handle);
        self.next_handle += 1;
        self.docs.insert(handle, info);
        handle
    }

    pub(crate) fn take_doc(&mut self, doc: DocHandle) -> DocInfo {
        self.docs.remove(&doc).expect("the document is still kept")
    }

    pub(crate) fn drop_row(&mut self, row: RowHandle) {
        self.rows.remove(&row).expect("a row is dropped once");
    }

    pub(crate) fn asked(&mut self, request: &Request) {
        match &request.ask {
            Ask::Feed { since, limit, .. } => {
                assert!(self.pages_asked.insert(since.clone()), "page {since} twice");
                self.asked_rows = u64::from(*limit);
            }
            Ask::Diff { rows } => {
                let mut ids = HashSet::new();
                for &row in rows {
                    assert!(self.diffs_asked.insert(row), "a diff of a row twice");
                    let id = &self.peek(row).id;
                    assert!(ids.insert(id.clone()), "a diff cannot hold {id} twice");
                }
            }
            Ask::Docs { entries, params } => {
                assert!(!entries.is_empty());
                // Leaves in a stream do not say which entry they answer.
                assert!(entries.len() == 1 || !(params.latest && params.attachments));
                for entry in entries {
                    self.asked_entry(entry, *params);
                }
            }
        }
        self.flying.insert(request.id, request.ask.clone());
    }

    fn asked_entry(&mut self, entry: &Entry, params: Params) {
        let row = self.peek(entry.row);
        assert_eq!(row.id, entry.id, "the driver takes the id from the row");
        let question = question(entry, params);
        assert!(
            self.docs_asked.insert(question),
            "{entry:?} twice with {params:?}"
        );
        if params.latest {
            let named = (entry.id.clone(), entry.rev.clone());
            assert!(self.missing.contains(&named), "latest comes second");
            assert!(!params.one_replica, "the second ask is with quorum");
        }
    }

    /// The request came to an end; `ok`: it may not be repeated.
    pub(crate) fn ended(&mut self, id: RequestId, ok: bool) -> bool {
        let Some(ask) = self.flying.remove(&id) else {
            return false;
        };
        if ok {
            return true;
        }
        match ask {
            Ask::Feed { since, .. } => {
                self.feed_failed = true;
                self.page_broke |= self.page_begun;
                self.pages_asked.remove(&since);
            }
            Ask::Diff { rows } => self.diffs_asked.retain(|row| !rows.contains(row)),
            Ask::Docs { entries, params } => {
                self.docs_failed = true;
                for entry in &entries {
                    self.docs_asked.remove(&question(entry, params));
                }
            }
        }
        true
    }

    pub(crate) fn entry_failed(&mut self, entry: &Entry, params: Params) {
        self.docs_failed = true;
        self.docs_asked.remove(&question(entry, params));
    }

    pub(crate) fn entry_missing(&mut self, entry: &Entry, params: Params) {
        let named = (entry.id.clone(), entry.rev.clone());
        if params.attachments {
            // It was there a moment ago: what is there now is asked for anew.
            self.docs_asked
                .retain(|(id, rev, ..)| !(*id == named.0 && *rev == named.1));
            self.missing.insert(named);
        } else if params.latest {
            self.gone.insert(named);
        } else {
            self.missing.insert(named);
        }
    }

    /// Asked by the replicator, after the target said that it lacks it. What was
    /// gone when an earlier row named it may be asked again.
    pub(crate) fn wanted(&mut self, id: &Rc<str>, rev: &Rc<str>) {
        self.demanded.insert((id.clone(), rev.clone()));
        if self.gone.remove(&(id.clone(), rev.clone())) {
            self.docs_asked
                .retain(|(its, of, ..)| !(its == id && of == rev));
        }
    }

    /// No row brought it.
    pub(crate) fn was_demanded(&self, id: &Rc<str>, rev: &Rc<str>) -> bool {
        self.demanded.contains(&(id.clone(), rev.clone()))
    }

    /// It was missing, and its leaves too.
    pub(crate) fn is_gone(&self, id: &Rc<str>, rev: &Rc<str>) -> bool {
        self.gone.contains(&(id.clone(), rev.clone()))
    }

    pub(crate) fn docs_flying(&self) -> usize {
        let docs = |ask: &&Ask| matches!(ask, Ask::Docs { .. });
        self.flying.values().filter(docs).count()
    }

    /// Rows that pages brought and that were not handed over.
    pub(crate) fn rows_left(&self) -> usize {
        self.feed.len()
    }

    /// A batch is the next rows of the feed, with seqs that do not lead.
    pub(crate) fn handed(&mut self, batch: &Batch, position: impl Fn(&str) -> u64) -> Vec<RowInfo> {
        let mut rows = Vec::new();
        for (row, seq) in &batch.rows {
            assert_eq!(self.feed.pop_front(), Some(*row), "the feed's order");
            let info = self.rows.remove(row).expect("a row is handed over once");
            assert!(position(seq) <= info.position, "{seq} leads {info:?}");
            rows.push(info);
        }
        if let (Some((_, seq)), Some(last)) = (batch.rows.last(), rows.last()) {
            assert_eq!(*seq, batch.last_seq);
            // A page that broke off is counted by the next one, which may be another day's.
            match batch.pending {
                None => assert!(self.page_begun),
                Some(pending) => assert!(self.page_broke || pending == last.pending),
            }
        }
        rows
    }

    /// Every handle was taken or dropped, and nothing is under way for nobody.
    pub(crate) fn close(&self, config: &Config) {
        assert!(self.rows.is_empty(), "rows left: {:?}", self.rows);
        assert!(self.docs.is_empty(), "documents left: {:?}", self.docs);
        assert_eq!(self.docs_flying(), 0, "with {config:?}");
    }
}

fn question(entry: &Entry, params: Params) -> Question {
    (
        entry.id.clone(),
        entry.rev.clone(),
        params.latest,
        params.attachments,
    )
}
