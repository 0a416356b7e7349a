//! The rows of the feed between their page and the replicator: which are
//! complete, where a batch is cut, and what was handed over. Knows nothing of
//! requests.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::rc::Rc;

use fnv::{FnvBuildHasher, FnvHashSet};

use super::handed::{Handed, Known};
use super::wants::{State, WantId, Wants};
use crate::request::{Batch, Entry, FeedRow, RowHandle, Seq};

/// Rows that are worth a batch of their own when the replicator is idle and the
/// caller left the batches to us: it writes while the rest arrives.
const EAGER_ROWS: usize = 200;

#[derive(Debug)]
struct Row {
    row: FeedRow,
    seq: Seq,
    diff: Diff,
    wants: Vec<WantId>,
    open: usize,
    /// Last of its page, with the page's `pending`.
    page_end: Option<Option<u64>>,
}

#[derive(Debug, PartialEq)]
enum Diff {
    Not,
    Asked,
    Done,
    /// Left to the replicator's own diff: it failed, or an earlier row of this run
    /// has the same id.
    Left,
}

/// What the replicator wants, and what is known of the feed and the buffer.
#[derive(Debug)]
pub(super) struct Demand {
    pub(super) limit: usize,
    /// It is idle, and batches may be smaller than it asked.
    pub(super) eager: bool,
    /// Nothing more can come before something is taken.
    pub(super) full: bool,
    pub(super) most_bytes: u64,
    /// The feed has no more rows at once.
    pub(super) short: bool,
}

/// The queue of rows, and the table of what was handed over.
#[derive(Debug, Default)]
pub(super) struct Rows {
    queue: VecDeque<Row>,
    /// Index, over the whole run, of the first row in the queue.
    first: u64,
    undiffed: u64,
    handed: Handed,
    /// Wants that nobody is going to take: another row's took their place.
    pub(super) replaced: Vec<WantId>,
    /// Hashes of the ids of the run. A collision costs a diff and a request, nothing
    /// else.
    seen: FnvHashSet<u64>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Every row in the queue has its documents.
    pub(super) fn is_complete(&self) -> bool {
        self.queue.iter().all(Row::is_complete)
    }

    pub(super) fn push(&mut self, row: FeedRow, seq: Seq) {
        let repeated = !self
            .seen
            .insert(FnvBuildHasher::default().hash_one(&*row.id));
        // What an earlier row brings is not written yet: only the replicator can
        // tell, when its turn comes, what is still missing then. Of a row without
        // revisions the host can tell, and does not ask.
        let diff = match (repeated, row.revs.is_empty()) {
            (true, _) => Diff::Left,
            (false, true) => Diff::Done,
            (false, false) => Diff::Not,
        };
        self.queue.push_back(Row {
            row,
            seq,
            diff,
            wants: Vec::new(),
            open: 0,
            page_end: None,
        });
    }

    pub(super) fn page_ends(&mut self, pending: Option<u64>) {
        if let Some(row) = self.queue.back_mut() {
            row.page_end = Some(pending);
        }
    }

    fn at(&mut self, index: u64) -> Option<&mut Row> {
        self.queue.get_mut(index.checked_sub(self.first)? as usize)
    }

    fn peek(&self, index: u64) -> &Row {
        &self.queue[(index - self.first) as usize]
    }

    pub(super) fn revs(&self, index: u64) -> &[Rc<str>] {
        &self.peek(index).row.revs
    }

    pub(super) fn handle(&self, index: u64) -> RowHandle {
        self.peek(index).row.handle
    }

    /// The next rows that are to be compared with the target, marked as asked.
    pub(super) fn next_undiffed(&mut self, most: usize) -> Vec<u64> {
        let end = self.first + self.queue.len() as u64;
        let mut rows = Vec::new();
        self.undiffed = self.undiffed.max(self.first);
        while self.undiffed < end && rows.len() < most {
            let index = self.undiffed;
            self.undiffed += 1;
            if let Some(row) = self.at(index).filter(|row| row.diff == Diff::Not) {
                row.diff = Diff::Asked;
                rows.push(index);
            }
        }
        rows
    }

    /// The target lacks these revisions of the row: they are wanted.
    pub(super) fn diffed(&mut self, index: u64, missing: Vec<Rc<str>>, wants: &mut Wants) {
        let Some(row) = self.at(index) else { return };
        row.diff = Diff::Done;
        row.open = missing.len();
        for rev in missing {
            let entry = Entry {
                row: row.row.handle,
                id: row.row.id.clone(),
                rev,
            };
            row.wants.push(wants.add(entry, Some(index)));
        }
    }

    pub(super) fn undiffable(&mut self, index: u64) {
        if let Some(row) = self.at(index) {
            row.diff = Diff::Left;
        }
    }

    pub(super) fn settled(&mut self, index: u64) {
        if let Some(row) = self.at(index) {
            row.open -= 1;
        }
    }

    /// The wants of the first row that is not complete.
    pub(super) fn awaited(&self) -> &[WantId] {
        let first = self.queue.iter().find(|row| !row.is_complete());
        first.map_or(&[], |row| &row.wants)
    }

    pub(super) fn anything_handed(&self) -> bool {
        self.handed.has_wants()
    }

    /// Cuts a batch, where one is due.
    pub(super) fn take(&mut self, demand: &Demand, wants: &Wants) -> Option<Batch> {
        let (mut count, mut bytes, mut cut) = (0, 0, false);
        for row in self.queue.iter().take(demand.limit) {
            if !row.is_complete() {
                break;
            }
            // A row that failed is a batch of its own: what came before it is
            // written first.
            let failed = row.wants.iter().any(|&want| {
                wants
                    .get(want)
                    .is_some_and(|want| matches!(want.state, State::Failed(_)))
            });
            if failed {
                count = count.max(1);
                cut = true;
                break;
            }
            let own: u64 = row
                .wants
                .iter()
                .filter_map(|&want| wants.get(want))
                .map(|want| want.bytes)
                .sum();
            if count > 0 && bytes + own > demand.most_bytes {
                cut = true;
                break;
            }
            bytes += own;
            count += 1;
        }
        let due = cut
            || count == demand.limit
            || demand.full
            || demand.short && count == self.queue.len()
            || demand.eager && count >= EAGER_ROWS;
        (due && count > 0).then(|| self.cut(count, wants))
    }

    fn cut(&mut self, count: usize, wants: &Wants) -> Batch {
        let pending = self.pending_behind(count);
        self.first += count as u64;
        let mut taken: Vec<_> = (0..count).filter_map(|_| self.queue.pop_front()).collect();
        self.replaced.extend(superseded(&mut taken, wants));
        let last_seq = taken[count - 1].seq.clone();
        let mut rows = Vec::with_capacity(count);
        for row in taken {
            rows.push((row.row.handle, row.seq.clone()));
            self.hand_row(row, wants);
        }
        Batch {
            rows,
            last_seq,
            pending,
            end: false,
        }
    }

    /// The server counts what lies behind a page; rows of the page that are not
    /// in the batch lie behind it too.
    fn pending_behind(&self, count: usize) -> Option<u64> {
        let mut rest = self.queue.iter().skip(count - 1).enumerate();
        let (behind, pending) =
            rest.find_map(|(behind, row)| row.page_end.map(|pending| (behind as u64, pending)))?;
        pending.map(|pending| pending + behind)
    }

    fn hand_row(&mut self, row: Row, wants: &Wants) {
        let id = row.row.id;
        let mut missing = Vec::with_capacity(row.wants.len());
        for want in row.wants {
            let Some(rev) = wants.get(want).map(|want| want.entry.rev.clone()) else {
                continue;
            };
            missing.push(rev.clone());
            // A row that names a revision twice: one answer serves both.
            self.replaced.extend(self.handed.add(id.clone(), rev, want));
        }
        let missing = (row.diff == Diff::Done).then_some(missing);
        let revs = row.row.revs;
        self.handed.add_row(id, Known { revs, missing });
    }

    /// See [`Planner::take_diff`](super::Planner::take_diff).
    pub(super) fn take_diff(&mut self, id: &str, revs: &[Rc<str>]) -> Option<Vec<Rc<str>>> {
        let known = self.handed.take_row(id)?;
        let mut missing = known.missing?;
        if revs.iter().any(|rev| !known.revs.contains(rev)) {
            return None;
        }
        missing.retain(|rev| revs.contains(rev));
        Some(missing)
    }

    pub(super) fn hand(&mut self, id: Rc<str>, rev: Rc<str>, want: WantId) {
        self.handed.add(id, rev, want);
    }

    pub(super) fn handed(&self, id: &str, rev: &str) -> Option<WantId> {
        self.handed.get(id, rev)
    }

    pub(super) fn forget(&mut self, id: &str, rev: &str) {
        self.handed.remove(id, rev);
    }
}

/// Of several rows with one id in a batch, the replicator asks for the last one's
/// revisions only. Takes the others' wants out of the rows.
fn superseded(batch: &mut [Row], wants: &Wants) -> Vec<WantId> {
    let mut superseded = Vec::new();
    for at in 1..batch.len() {
        let (before, from) = batch.split_at_mut(at);
        let last = &from[0];
        if last.diff != Diff::Left {
            continue;
        }
        for row in before.iter_mut().filter(|row| row.row.id == last.row.id) {
            row.wants.retain(|&want| {
                let rev = wants.get(want).map(|want| &want.entry.rev);
                let asked = rev.is_none_or(|rev| last.row.revs.contains(rev));
                if !asked {
                    superseded.push(want);
                }
                asked
            });
        }
    }
    superseded
}

impl Row {
    fn is_complete(&self) -> bool {
        matches!(self.diff, Diff::Done | Diff::Left) && self.open == 0
    }
}
