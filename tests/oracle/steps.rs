//! The steps of the replicator, one batch after the other: diff, documents, write,
//! checkpoint.

use pouchdb_fast_sync::planner::Taken;
use pouchdb_fast_sync::request::Entry;

use crate::ledger::RowInfo;
use crate::replicator::Stage;
use crate::world::{InRun, World};

impl World {
    pub(crate) fn rows_handed(&mut self) {
        let replicator = &mut self.run.replicator;
        let Some(batch) = replicator.handing.take() else {
            return;
        };
        if !batch.rows.is_empty() {
            return replicator.ahead.push_back(batch);
        }
        replicator.end = Some(batch.last_seq.clone());
        if replicator.is_idle() {
            self.checkpoint(batch.last_seq);
            self.done = true;
        }
    }

    pub(crate) fn begin_batch(&mut self) -> bool {
        let Some(revs) = self.run.replicator.begins() else {
            return false;
        };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (id, revs) in revs {
            match self.run.planner.take_diff(&id, &revs) {
                Some(missing) => known.push((id, missing)),
                None => unknown.push((id, revs)),
            }
        }
        let nothing = unknown.is_empty();
        self.run.replicator.stage = Stage::Diff { known, unknown };
        if nothing {
            self.target_diffed();
        } else {
            let ms = self.rng.below(20);
            self.later(ms, InRun::TargetDiffed);
        }
        true
    }

    /// The target said what it lacks of what the planner did not know.
    pub(crate) fn target_diffed(&mut self) {
        let stage = std::mem::replace(&mut self.run.replicator.stage, Stage::Idle);
        let Stage::Diff { known, unknown } = stage else {
            unreachable!("a diff that nobody asked for");
        };
        let mut wanted = Vec::new();
        for (id, revs) in known {
            wanted.extend(revs.into_iter().map(|rev| (id.clone(), rev)));
        }
        for (id, revs) in unknown {
            for rev in revs {
                if self.target.has(&id, &rev) {
                    self.run.planner.drop_handed(&id, &rev);
                } else {
                    wanted.push((id.clone(), rev));
                }
            }
        }
        for (id, rev) in &wanted {
            if self.run.planner.is_known(id, rev) {
                continue;
            }
            self.run.ledger.wanted(id, rev);
            let row = self.run.ledger.row(RowInfo {
                id: id.clone(),
                revs: vec![rev.clone()],
                position: 0,
                pending: 0,
            });
            self.run.planner.want(Entry {
                row,
                id: id.clone(),
                rev: rev.clone(),
            });
        }
        self.run.replicator.stage = Stage::Docs(wanted);
    }

    pub(crate) fn settle_docs(&mut self) -> bool {
        let Stage::Docs(wanted) = &self.run.replicator.stage else {
            return false;
        };
        let planner = &self.run.planner;
        if wanted.iter().any(|(id, rev)| planner.is_pending(id, rev)) {
            return false;
        }
        let mut docs = Vec::new();
        for (id, rev) in wanted.clone() {
            match self.run.planner.take_docs(&id, &rev) {
                Taken::Docs(found) => {
                    let gone = self.run.ledger.is_gone(&id, &rev);
                    assert!(!found.is_empty() || gone, "{id} at {rev} passed over");
                    self.run.ledger.taken += found.len() as u64;
                    self.run.ledger.passed += u64::from(found.is_empty());
                    let found = found.into_iter();
                    docs.extend(found.map(|doc| self.run.ledger.take_doc(doc.handle)));
                }
                Taken::Failed(_) => {
                    let alone = self.run.replicator.current.as_ref();
                    let alone = alone.is_some_and(|batch| batch.rows.len() == 1);
                    let demanded = self.run.ledger.was_demanded(&id, &rev);
                    assert!(alone || demanded, "what comes before a failure is written");
                    self.failed();
                    return true;
                }
                other => panic!("{id} at {rev}: {other:?}"),
            }
        }
        let nothing = docs.is_empty();
        self.run.replicator.stage = Stage::Write(docs);
        if nothing {
            self.finish_batch();
        } else {
            let ms = self.rng.below(self.scenario.client.write_ms + 1);
            self.later(ms, InRun::Written);
        }
        true
    }

    pub(crate) fn written(&mut self) {
        let stage = std::mem::replace(&mut self.run.replicator.stage, Stage::Idle);
        let Stage::Write(docs) = stage else {
            unreachable!("a write that nobody began");
        };
        for doc in docs {
            self.target.write(&doc.id, doc.history);
        }
        self.run.planner.handle_written();
        self.finish_batch();
    }

    fn finish_batch(&mut self) {
        self.run.replicator.stage = Stage::Checkpoint;
        let ms = self.rng.below(10);
        self.later(ms, InRun::Checkpointed);
    }

    pub(crate) fn checkpointed(&mut self) {
        let replicator = &mut self.run.replicator;
        let batch = replicator.current.take().expect("a batch");
        replicator.stage = Stage::Idle;
        let ended = replicator.is_idle() && replicator.end.is_some();
        self.checkpoint(batch.last_seq);
        self.done = ended;
        self.fail_when_idle();
    }

    /// The feed failed: what came before is finished first.
    pub(crate) fn fail_when_idle(&mut self) {
        if self.run.replicator.feed_failed && self.run.replicator.is_idle() {
            self.failed();
        }
    }
}
