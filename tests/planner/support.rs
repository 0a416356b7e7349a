//! A planner, and a hand that feeds it: what the driver does, step by step.

use std::cell::Cell;

use pouchdb_fast_sync::config::Config;
use pouchdb_fast_sync::error::Failure;
use pouchdb_fast_sync::planner::{Planner, Taken, TakenRows};
use pouchdb_fast_sync::request::{
    Answer, Ask, Batch, DocHandle, Entry, Event, FeedPage, FeedRow, GotDoc, Request, RequestId,
    RowHandle,
};

use crate::words::{Asked, ONE, Row};

pub(crate) struct Desk {
    pub(crate) planner: Planner,
    pub(crate) now: u64,
    /// What the planner said was not needed.
    pub(crate) dropped_docs: Vec<u32>,
    pub(crate) dropped_rows: Vec<u32>,
    pub(crate) aborted: Vec<RequestId>,
    under_way: Vec<Request>,
    handles: Cell<u32>,
}

impl Desk {
    /// A run from the start against a CouchDB.
    pub(crate) fn new(config: Config) -> Self {
        let mut planner = Planner::new(config, "0".into());
        planner.handle_identity(true);
        Self::of(planner)
    }

    pub(crate) fn of(planner: Planner) -> Self {
        Self {
            planner,
            now: 0,
            dropped_docs: Vec::new(),
            dropped_rows: Vec::new(),
            aborted: Vec::new(),
            under_way: Vec::new(),
            handles: Cell::new(0),
        }
    }

    /// Lets every request leave that may; those of the kind asked for are answered
    /// by the test, the others stay under way.
    fn pick<T>(&mut self, mut of: impl FnMut(&Request) -> Option<T>) -> Vec<T> {
        self.drain();
        while let Some(request) = self.planner.poll_request(self.now) {
            self.under_way.push(request);
        }
        let mut picked = Vec::new();
        self.under_way.retain(|request| {
            let of = of(request);
            let keep = of.is_none();
            picked.extend(of);
            keep
        });
        picked
    }

    /// The requests for documents that left.
    pub(crate) fn ask_docs(&mut self) -> Vec<Asked> {
        self.pick(|request| match &request.ask {
            Ask::Docs { entries, params } => Some(Asked {
                id: request.id,
                entries: entries.clone(),
                params: *params,
            }),
            _ => None,
        })
    }

    /// The one request for documents that left.
    pub(crate) fn ask_one(&mut self) -> Asked {
        let mut asked = self.ask_docs();
        assert_eq!(asked.len(), 1, "one request: {asked:?}");
        asked.remove(0)
    }

    /// The request for a feed page: its id, since, limit and interval.
    pub(crate) fn ask_feed(&mut self) -> Option<(RequestId, String, u32, Option<u32>)> {
        let pages = self.pick(|request| match &request.ask {
            Ask::Feed {
                since,
                limit,
                seq_interval,
            } => Some((request.id, since.to_string(), *limit, *seq_interval)),
            _ => None,
        });
        assert!(pages.len() < 2, "one page at a time");
        pages.into_iter().next()
    }

    pub(crate) fn ask_diff(&mut self) -> Option<(RequestId, Vec<RowHandle>)> {
        let diffs = self.pick(|request| match &request.ask {
            Ask::Diff { rows } => Some((request.id, rows.clone())),
            _ => None,
        });
        diffs.into_iter().next()
    }

    /// Answers requests for documents until none is left.
    pub(crate) fn answer_all(&mut self, each: u64) {
        loop {
            let asked = self.ask_docs();
            if asked.is_empty() {
                return;
            }
            asked.iter().for_each(|asked| self.answer(asked, each));
        }
    }

    /// The feed page that is under way comes, empty.
    pub(crate) fn end_feed(&mut self, last_seq: u64) {
        let (id, ..) = self.ask_feed().expect("a feed page is asked for");
        self.page(id, &[], last_seq, 0);
    }

    /// The clock goes on until a request for documents leaves, where one will: the
    /// request, and how long it took.
    pub(crate) fn next_docs(&mut self) -> Option<(Asked, u64)> {
        let from = self.now;
        loop {
            if let Some(asked) = self.ask_docs().pop() {
                return Some((asked, self.now - from));
            }
            self.planner.poll_timeout()?;
            self.wait();
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.planner.poll_event() {
            match event {
                Event::Ready => {}
                Event::Abort(id) => self.aborted.push(id),
                Event::DropRow(row) => self.dropped_rows.push(row.0),
                Event::DropDoc(doc) => self.dropped_docs.push(doc.0),
            }
        }
    }

    pub(crate) fn dropped(&mut self) -> usize {
        self.drain();
        self.dropped_docs.len()
    }

    fn handle(&self) -> u32 {
        self.handles.set(self.handles.get() + 1);
        self.handles.get()
    }

    /// A feed page comes, with what lies behind it.
    pub(crate) fn page(&mut self, id: RequestId, rows: &[Row<'_>], last_seq: u64, pending: u64) {
        let page = FeedPage {
            rows: self.keep(rows),
            last_seq: last_seq.to_string().into(),
            pending: Some(pending),
        };
        self.planner.handle_feed_page(id, page, self.now);
    }

    /// The first rows of a feed page come.
    pub(crate) fn rows(&mut self, id: RequestId, rows: &[Row<'_>]) {
        let rows = self.keep(rows);
        self.planner.handle_feed_rows(id, rows, self.now);
    }

    fn keep(&self, rows: &[Row<'_>]) -> Vec<FeedRow> {
        let rows = rows.iter().map(|(id, revs, seq)| FeedRow {
            handle: RowHandle(self.handle()),
            id: (*id).into(),
            revs: revs.iter().map(|rev| (*rev).into()).collect(),
            seq: seq.map(|seq| seq.to_string().into()),
        });
        rows.collect()
    }

    /// The first page comes with these rows, and the feed is known to end there.
    pub(crate) fn feed(&mut self, rows: &[Row<'_>]) {
        let (id, ..) = self.ask_feed().expect("a feed page is asked for");
        let last = rows.iter().filter_map(|row| row.2).max().unwrap_or(0);
        self.page(id, rows, last, 0);
    }

    /// The same with so many rows `d0`, `d1`, … of generation 1.
    pub(crate) fn feed_rows(&mut self, count: usize) {
        let names: Vec<_> = (0..count).map(|at| format!("d{at}")).collect();
        let rows = names
            .iter()
            .zip(1..)
            .map(|(id, seq)| (id.as_str(), ONE, Some(seq)));
        self.feed(&rows.collect::<Vec<_>>());
    }

    /// A document for every entry, `each` bytes long.
    pub(crate) fn answer(&mut self, asked: &Asked, each: u64) {
        self.answer_with(asked, each, |desk, _| desk.doc());
    }

    /// Answers by entry; the bytes are those of the documents among them.
    pub(crate) fn answer_with(
        &mut self,
        asked: &Asked,
        each: u64,
        answer: impl Fn(&Self, &Entry) -> Answer,
    ) {
        let answers: Vec<_> = asked
            .entries
            .iter()
            .map(|entry| answer(self, entry))
            .collect();
        let docs = answers
            .iter()
            .filter(|answer| matches!(answer, Answer::Docs(_)));
        let bytes = docs.count() as u64 * each;
        self.planner.handle_docs(asked.id, answers, bytes, self.now);
    }

    /// One document.
    pub(crate) fn doc(&self) -> Answer {
        self.docs(1, None)
    }

    /// Several leaves, or one document; with stubs of so many bytes.
    pub(crate) fn docs(&self, count: usize, stubs: Option<u64>) -> Answer {
        let doc = |_| GotDoc {
            handle: DocHandle(self.handle()),
            stubs,
        };
        Answer::Docs((0..count).map(doc).collect())
    }

    /// A stream breaks off after so many documents.
    pub(crate) fn break_after(&mut self, asked: &Asked, docs: usize, failure: Failure) {
        let answers = (0..docs).map(|_| self.doc()).collect();
        let (id, bytes) = (asked.id, docs as u64 * 100);
        self.planner
            .handle_broken_stream(id, answers, bytes, failure, self.now);
    }

    pub(crate) fn fail(&mut self, asked: &Asked, failure: Failure) {
        self.planner.handle_failure(asked.id, failure, self.now);
    }

    /// The clock goes to what the planner waits for.
    pub(crate) fn wait(&mut self) {
        self.drain();
        self.now = self.planner.poll_timeout().expect("a time to wait for");
        self.planner.handle_timeout(self.now);
    }

    /// Rows that are ready.
    pub(crate) fn take(&mut self, limit: usize) -> Option<Batch> {
        match self.planner.take_rows(limit) {
            TakenRows::Batch(batch) => Some(batch),
            TakenRows::Pending => None,
            TakenRows::Failed(failure) => panic!("{failure:?}"),
        }
    }

    /// How many rows are ready.
    pub(crate) fn take_count(&mut self, limit: usize) -> Option<usize> {
        self.take(limit).map(|batch| batch.rows.len())
    }

    /// How many documents a revision brought.
    pub(crate) fn take_docs(&mut self, id: &str, rev: &str) -> usize {
        match self.planner.take_docs(id, rev) {
            Taken::Docs(docs) => docs.len(),
            other => panic!("{id} at {rev}: {other:?}"),
        }
    }

    /// The replicator's own diff found that the target lacks this.
    pub(crate) fn want(&mut self, id: &str, rev: &str) -> u32 {
        let row = self.handle();
        self.planner.want(Entry {
            row: RowHandle(row),
            id: id.into(),
            rev: rev.into(),
        });
        row
    }
}
