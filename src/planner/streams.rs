//! What a failed stream of attachments means: for the database, for a document,
//! or for nothing but this try. Knows failures, not documents.

use crate::error::{Failure, FailureKind};

/// A server without `_bulk_get`, or one that does not stream attachments, is asked
/// again whether it does (ms): it may be updated, or the answer may have been a
/// proxy's.
pub(super) const PROBE_AGAIN_MS: u64 = 600_000;
/// So many streams in a row that cannot be read, and bring no document, are no
/// accident of one of them.
const MOST_UNREADABLE: u8 = 3;

/// What becomes of the documents that a failed stream did not bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server does not stream: all documents' attachments come one by one.
    NoStreams,
    /// It refuses this stream: its documents' attachments come one by one.
    NotThese,
    /// The first of them cannot be read in a stream.
    NotTheFirst,
    /// It may work the next time.
    Again,
}

/// What is known of one database.
#[derive(Debug)]
pub(super) struct Streams {
    /// None before.
    pub(super) until: u64,
    unreadable: u8,
}

impl Streams {
    pub(super) fn new(until: u64) -> Self {
        Self {
            until,
            unreadable: 0,
        }
    }

    pub(super) fn are_refused(&self, now: u64) -> bool {
        now < self.until
    }

    /// A stream brought a document.
    pub(super) fn worked(&mut self) {
        self.unreadable = 0;
    }

    pub(super) fn failed(&mut self, failure: &Failure, now: u64) -> Verdict {
        use FailureKind::{Absent, Attachment, BadJson, BadShape};
        // A proxy's 406 carries no JSON; it means the same.
        let refused = failure.kind == Absent || matches!(failure.status, 405 | 406 | 415 | 501);
        self.unreadable += u8::from(matches!(failure.kind, Attachment | BadJson | BadShape));
        if refused || self.unreadable >= MOST_UNREADABLE {
            self.unreadable = 0;
            self.until = now + PROBE_AGAIN_MS;
            Verdict::NoStreams
        } else if failure.kind == Attachment {
            Verdict::NotTheFirst
        } else if failure.is_final() {
            Verdict::NotThese
        } else {
            Verdict::Again
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(streams: &mut Streams, kind: FailureKind, status: u16) -> Verdict {
        let failure = Failure {
            status,
            ..Failure::new(kind, "")
        };
        streams.failed(&failure, 1_000)
    }

    #[test]
    fn a_server_that_refuses_streams_is_probed_again_later() {
        let mut streams = Streams::new(0);
        streams.worked();
        let verdict = failed(&mut streams, FailureKind::BadJson, 406);
        assert_eq!(verdict, Verdict::NoStreams);
        assert!(streams.are_refused(1_000 + PROBE_AGAIN_MS - 1));
        assert!(!streams.are_refused(1_000 + PROBE_AGAIN_MS));
    }

    #[test]
    fn streams_that_cannot_be_read_are_the_servers_fault_when_none_can() {
        let mut streams = Streams::new(0);
        let page = failed(&mut streams, FailureKind::BadJson, 200);
        assert_eq!(page, Verdict::Again);
        let broken = failed(&mut streams, FailureKind::Attachment, 200);
        assert_eq!(broken, Verdict::NotTheFirst);
        streams.worked();
        for verdict in [
            Verdict::NotTheFirst,
            Verdict::NotTheFirst,
            Verdict::NoStreams,
        ] {
            assert!(!streams.are_refused(1_000));
            assert_eq!(failed(&mut streams, FailureKind::Attachment, 200), verdict);
        }
        assert!(streams.are_refused(1_000));
    }

    #[test]
    fn what_may_pass_and_what_a_login_says_is_no_word_about_streams() {
        let mut streams = Streams::new(0);
        let network = failed(&mut streams, FailureKind::Network, 0);
        assert_eq!(network, Verdict::Again);
        let overload = failed(&mut streams, FailureKind::Status, 503);
        assert_eq!(overload, Verdict::Again);
        let login = failed(&mut streams, FailureKind::Status, 401);
        assert_eq!(login, Verdict::NotThese);
    }
}
