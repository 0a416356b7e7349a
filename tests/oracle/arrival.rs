//! An answer's way back into the planner: the driver keeps rows and bodies, and
//! hands in their numbers.

use pouchdb_fast_sync::error::{Failure, FailureKind};
use pouchdb_fast_sync::request::{
    Answer, Entry, FeedPage, FeedRow, GotDoc, Params, RequestId, Seq,
};

use crate::ledger::RowInfo;
use crate::server::{Arrival, Found};
use crate::world::{InRun, World};

impl World {
    /// The answer reaches the driver; of a page, perhaps only the first rows.
    pub(crate) fn arrive(&mut self, id: RequestId, arrival: Arrival) {
        let arrival = match self.begin_page(id, arrival) {
            Ok(rest) => {
                let wait = self.rng.below(50);
                return self.later(wait, InRun::Arrives(id, rest));
            }
            Err(whole) => whole,
        };
        let ok = !matches!(
            arrival,
            Arrival::Failure(_) | Arrival::Docs { short: true, .. }
        );
        let wanted = self.run.ledger.ended(id, ok);
        let now = self.now;
        match arrival {
            Arrival::Failure(failure) => self.run.planner.handle_failure(id, failure, now),
            Arrival::Diff(flags) => self.run.planner.handle_diff_flags(id, &flags, now),
            Arrival::Page {
                rows,
                last_seq,
                pending,
            } => {
                if wanted {
                    self.run.ledger.page_of(rows.len());
                }
                let page = self.keep_page(rows, last_seq, pending, wanted);
                self.run.planner.handle_feed_page(id, page, now);
            }
            Arrival::Docs {
                found,
                entries,
                params,
                short,
                broken,
            } => {
                let (mut answers, bytes) = self.keep_docs(found, &entries, params, wanted && ok);
                if short && let Some(Answer::Docs(docs)) = answers.pop() {
                    docs.iter()
                        .for_each(|doc| drop(self.run.ledger.take_doc(doc.handle)));
                }
                let planner = &mut self.run.planner;
                let Some(failure) = broken else {
                    return planner.handle_docs(id, answers, bytes, now);
                };
                if wanted {
                    let rest = entries.iter().skip(answers.len());
                    rest.for_each(|entry| self.run.ledger.entry_failed(entry, params));
                }
                planner.handle_broken_stream(id, answers, bytes, failure, now);
            }
        }
    }

    /// Hands in the first rows of a page, and answers what comes after them: the
    /// rest, or a failure. Otherwise the whole.
    fn begin_page(&mut self, id: RequestId, arrival: Arrival) -> Result<Arrival, Arrival> {
        let Arrival::Page {
            mut rows,
            last_seq,
            pending,
        } = arrival
        else {
            return Err(arrival);
        };
        let some = self.rng.below(rows.len() as u64 + 1) as usize;
        let begun = rows[..some].iter().rposition(|(_, seq)| seq.is_some());
        let local = self.scenario.client.config.source_local;
        let wanted = self.run.ledger.is_flying(id) && !local && self.rng.percent(30);
        let (Some(last), true) = (begun, wanted) else {
            return Err(Arrival::Page {
                rows,
                last_seq,
                pending,
            });
        };
        let rest = rows.split_off(last + 1);
        self.run.ledger.begun(rows.len());
        let page = self.keep_page(rows, last_seq.clone(), pending, true);
        let now = self.now;
        self.run.planner.handle_feed_rows(id, page.rows, now);
        Ok(match self.rng.percent(20) {
            true => Arrival::Failure(Failure::new(FailureKind::Network, "broke off")),
            false => Arrival::Page {
                rows: rest,
                last_seq,
                pending,
            },
        })
    }

    fn keep_page(
        &mut self,
        rows: Vec<(RowInfo, Option<Seq>)>,
        last_seq: Seq,
        pending: u64,
        wanted: bool,
    ) -> FeedPage {
        let withheld = self.scenario.data.withheld;
        let ledger = &mut self.run.ledger;
        let rows = rows.into_iter().map(|(info, seq)| {
            let known = self.target.missing(&info.id, &info.revs).is_empty();
            let withheld = known && self.rng.percent(withheld);
            FeedRow {
                id: info.id.clone(),
                revs: if withheld {
                    Vec::new()
                } else {
                    info.revs.clone()
                },
                seq,
                handle: if wanted {
                    ledger.feed_row(info)
                } else {
                    ledger.row(info)
                },
            }
        });
        FeedPage {
            rows: rows.collect(),
            last_seq,
            pending: Some(pending),
        }
    }

    fn keep_docs(
        &mut self,
        found: Vec<Found>,
        entries: &[Entry],
        params: Params,
        counts: bool,
    ) -> (Vec<Answer>, u64) {
        let ledger = &mut self.run.ledger;
        let mut total = 0;
        let answers = found
            .into_iter()
            .zip(entries)
            .map(|(found, entry)| match found {
                Found::Docs { docs, bytes, stubs } => {
                    total += bytes;
                    let docs = docs.into_iter().map(|info| GotDoc {
                        handle: ledger.doc(info),
                        stubs,
                    });
                    Answer::Docs(docs.collect())
                }
                Found::Missing => {
                    if counts {
                        ledger.entry_missing(entry, params);
                    }
                    Answer::Missing
                }
                Found::Error => {
                    if counts {
                        ledger.entry_failed(entry, params);
                    }
                    Answer::Error("timeout".into())
                }
                Found::BadAttachment => {
                    if counts {
                        ledger.entry_failed(entry, params);
                    }
                    Answer::Attachment("too short".into())
                }
            });
        (answers.collect(), total)
    }
}
