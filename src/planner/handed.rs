//! What was handed over to the replicator: of each document what its row named,
//! and the wants that are going to be asked for. Knows nothing of what becomes of
//! them. One table by id, because each kind of table adds to the engine's size.

use std::rc::Rc;

use fnv::FnvHashMap;

use super::wants::WantId;

/// A row that was handed over: its revisions, and those that the target lacks.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) revs: Vec<Rc<str>>,
    pub(super) missing: Option<Vec<Rc<str>>>,
}

/// What is known of a document; a handful of revisions.
#[derive(Debug, Default)]
struct Document {
    row: Option<Known>,
    wants: Vec<(Rc<str>, WantId)>,
}

impl Document {
    fn place(&self, rev: &str) -> Option<usize> {
        self.wants.iter().position(|(named, _)| **named == *rev)
    }
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Handed {
    documents: FnvHashMap<Rc<str>, Document>,
    wants: usize,
}

impl Handed {
    /// Something is going to be asked for.
    pub(super) fn has_wants(&self) -> bool {
        self.wants > 0
    }

    /// A row is handed over, the newest of its document.
    pub(super) fn add_row(&mut self, id: Rc<str>, row: Known) {
        self.documents.entry(id).or_default().row = Some(row);
    }

    /// The newest row of a document, once.
    pub(super) fn take_row(&mut self, id: &str) -> Option<Known> {
        let document = self.documents.get_mut(id)?;
        let row = document.row.take();
        self.tidy(id);
        row
    }

    /// A revision is going to be asked for. Answers the want whose place it takes.
    pub(super) fn add(&mut self, id: Rc<str>, rev: Rc<str>, want: WantId) -> Option<WantId> {
        let document = self.documents.entry(id).or_default();
        if let Some(at) = document.place(&rev) {
            return Some(std::mem::replace(&mut document.wants[at].1, want));
        }
        document.wants.push((rev, want));
        self.wants += 1;
        None
    }

    pub(super) fn get(&self, id: &str, rev: &str) -> Option<WantId> {
        let document = self.documents.get(id)?;
        Some(document.wants[document.place(rev)?].1)
    }

    /// It is not going to be asked for any more.
    pub(super) fn remove(&mut self, id: &str, rev: &str) {
        let Some(document) = self.documents.get_mut(id) else {
            return;
        };
        if let Some(at) = document.place(rev) {
            document.wants.remove(at);
            self.wants -= 1;
        }
        self.tidy(id);
    }

    fn tidy(&mut self, id: &str) {
        let spent = |document: &Document| document.row.is_none() && document.wants.is_empty();
        if self.documents.get(id).is_some_and(spent) {
            self.documents.remove(id);
        }
    }
}
