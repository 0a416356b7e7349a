//! The target: which revisions of which documents it knows.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::rng::Rng;
use crate::source::Source;

#[derive(Default)]
pub(crate) struct Target {
    known: HashMap<Rc<str>, HashSet<Rc<str>>>,
}

impl Target {
    /// Holds some of the source's documents, in some version.
    pub(crate) fn new(source: &Source, held: u64, rng: &mut Rng) -> Self {
        let mut target = Self::default();
        for (doc, of) in source.docs.iter().enumerate() {
            if rng.percent(held) {
                let node = rng.below(of.nodes.len() as u64) as usize;
                target.write(&of.id, source.history(doc, node));
            }
        }
        target
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn has(&self, id: &str, rev: &str) -> bool {
        self.known.get(id).is_some_and(|revs| revs.contains(rev))
    }

    pub(crate) fn missing(&self, id: &str, revs: &[Rc<str>]) -> Vec<Rc<str>> {
        let lacking = revs.iter().filter(|rev| !self.has(id, rev));
        lacking.cloned().collect()
    }

    pub(crate) fn write(&mut self, id: &Rc<str>, history: Vec<Rc<str>>) {
        self.known.entry(id.clone()).or_default().extend(history);
    }
}
