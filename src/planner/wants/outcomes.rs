//! What becomes of an answer, and of a request that failed: documents that are
//! ready, another ask, a repeat, or the entry's own failure.

use super::super::params::Depth;
use super::{ATTACHED, LATEST, Retry, State, WantId, Wants};
use crate::error::{Failure, FailureKind};
use crate::request::{Answer, DocHandle};

/// Requests for one entry that may fail before the entry fails.
const MOST_TRIES: u8 = 6;
/// Tries of an entry whose own row was wrong: the server answered, and said no.
const MOST_ROW_TRIES: u8 = 3;
/// Streams that may break off at a document before its attachments are asked for
/// one by one.
const STREAM_TRIES: u8 = 3;
/// Wait (ms) before the second repeat; doubles. The first repeat is at once.
const RETRY_MS: u64 = 200;

/// What an answer settled.
#[derive(Debug, Default)]
pub(in crate::planner) struct Settled {
    /// Bodies that are not needed.
    pub(in crate::planner) drop: Vec<DocHandle>,
    /// The feed row that has one open want less.
    pub(in crate::planner) row: Option<u64>,
}

impl Wants {
    /// One entry's answer. Answers the bodies that turned out not to be needed,
    /// and whether the want is settled now.
    pub(in crate::planner) fn answer(
        &mut self,
        id: WantId,
        answer: Answer,
        bytes: u64,
        now: u64,
    ) -> Settled {
        let Some(want) = self.all.get_mut(&id) else {
            let Answer::Docs(docs) = answer else {
                return Settled::default();
            };
            return Settled {
                drop: docs.iter().map(|doc| doc.handle).collect(),
                row: None,
            };
        };
        let kind = match answer {
            Answer::Attachment(_) => FailureKind::Attachment,
            _ => FailureKind::Row,
        };
        match answer {
            Answer::Docs(docs) => {
                let stubs: u64 = docs.iter().filter_map(|doc| doc.stubs).sum();
                let stubbed = docs.iter().any(|doc| doc.stubs.is_some());
                if stubbed && self.fetch_attachments && want.depth != Depth::Attached {
                    want.by_leaves = want.depth == Depth::Latest;
                    want.depth = Depth::Attached;
                    want.expected = bytes + stubs;
                    self.queues[ATTACHED].insert(id);
                    return Settled {
                        drop: docs.iter().map(|doc| doc.handle).collect(),
                        row: None,
                    };
                }
                let bytes = bytes.max(want.expected);
                want.docs = docs;
                want.bytes = bytes;
                self.ready_bytes += bytes;
                self.settle(id, State::Ready)
            }
            Answer::Missing if want.depth == Depth::Latest => self.settle(id, State::Gone),
            Answer::Missing => {
                // The document came, its stream does not: not in turns for ever.
                if want.depth == Depth::Attached {
                    want.tries += 1;
                    want.piecewise |= want.tries >= STREAM_TRIES;
                    if want.tries >= MOST_TRIES {
                        let reason = want.named("missing with attachments");
                        return self.settle(
                            id,
                            State::Failed(Failure::new(FailureKind::Attachment, reason)),
                        );
                    }
                }
                want.depth = Depth::Latest;
                self.queues[LATEST].insert(id);
                Settled::default()
            }
            Answer::Attachment(_) if !want.piecewise => {
                want.tries += 1;
                want.piecewise = true;
                self.queues[ATTACHED].insert(id);
                Settled::default()
            }
            Answer::Error(reason) | Answer::Attachment(reason) => {
                want.tries += 1;
                if want.tries >= MOST_ROW_TRIES {
                    let reason = want.named(&reason);
                    return self.settle(id, State::Failed(Failure::new(kind, reason)));
                }
                let tries = want.tries;
                let not_before = now + self.wait(tries);
                self.retries.push(Retry {
                    ids: vec![id],
                    not_before,
                    most: 1,
                });
                Settled::default()
            }
        }
    }

    /// The whole request failed: it is repeated alone, after `hold` or its own
    /// wait, and smaller where that may help. Answers the entries that are out
    /// of tries.
    pub(in crate::planner) fn failed(
        &mut self,
        ids: Vec<WantId>,
        failure: &Failure,
        hold: Option<u64>,
        now: u64,
    ) -> Vec<Settled> {
        let several = ids.len() > 1;
        // A refusal is of one document: the others do not share its lot.
        let refused = failure.is_final();
        let shrinks = several && (failure.wants_smaller() || refused);
        // Alone, a document that is too much does not get smaller.
        let hopeless = !several && (refused || failure.status == 413);
        // One document may spoil an answer for all. A server whose every answer is
        // spoilt must not be asked for each: here, halves count as tries.
        let spoilt = matches!(failure.kind, FailureKind::BadJson | FailureKind::BadShape);
        let most = match several {
            true if refused => 1,
            true if shrinks || spoilt => ids.len().div_ceil(2),
            _ => ids.len(),
        };
        let (mut again, mut settled, mut tries) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            let Some(want) = self.all.get_mut(&id) else {
                continue;
            };
            // Halving ends by itself, and each half is another request. But of one
            // that hangs, each half may take its whole time to fail.
            want.tries += u8::from(!shrinks || failure.kind == FailureKind::Stalled);
            want.piecewise |= want.depth == Depth::Attached && want.tries >= STREAM_TRIES;
            tries = tries.max(want.tries);
            if want.tries >= MOST_TRIES || hopeless {
                let mut own = failure.clone();
                // Of an answer for several it is not known whose fault it is.
                if !(several && spoilt) {
                    own.reason = want.named(&own.reason);
                }
                settled.push(self.settle(id, State::Failed(own)));
            } else {
                again.push(id);
            }
        }
        if !again.is_empty() {
            let not_before = hold.unwrap_or_else(|| now + self.wait(tries));
            self.retries.push(Retry {
                ids: again,
                not_before,
                most,
            });
        }
        settled
    }

    fn settle(&mut self, id: WantId, state: State) -> Settled {
        let Some(want) = self.all.get_mut(&id) else {
            return Settled::default();
        };
        want.state = state;
        Settled {
            drop: Vec::new(),
            row: want.row,
        }
    }

    /// 0, then 200 ms doubling, each with up to half of itself as jitter, so that
    /// many clients of one server do not come back together.
    fn wait(&mut self, tries: u8) -> u64 {
        if tries <= 1 {
            return 0;
        }
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let base = RETRY_MS << (tries - 2).min(6);
        base + self.seed % (base / 2)
    }
}
