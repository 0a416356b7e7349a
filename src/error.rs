//! Failures in the planner's own words: what went wrong with a request, and
//! whether asking again can help. URLs and bodies stay with the host.

/// Why a request brought nothing usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it was.
    pub kind: FailureKind,
    /// HTTP status, 0 where there was no answer.
    pub status: u16,
    /// `Retry-After`, in ms, where the server sent one.
    pub retry_after: Option<u64>,
    /// The server's or the platform's words.
    pub reason: String,
}

/// The kinds of failure that are treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No answer: refused, reset, aborted by the network.
    Network,
    /// No byte for [`Config::stall_ms`](crate::config::Config::stall_ms).
    Stalled,
    /// An HTTP status that is not a success.
    Status,
    /// A success whose body was no JSON, or was cut short.
    BadJson,
    /// JSON of another shape than asked for.
    BadShape,
    /// The endpoint does not exist on this server, though the database does.
    Absent,
    /// One document's row carried an error other than "missing".
    Row,
    /// A part of an attachment stream was wrong or did not match its digest.
    Attachment,
}

impl Failure {
    /// A failure without status or advice.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            status: 0,
            retry_after: None,
            reason: reason.into(),
        }
    }

    /// The stable code under which the host reports it: `fast_sync_` and the kind.
    pub fn code(&self) -> &'static str {
        match self.kind {
            FailureKind::Network => "fast_sync_network",
            FailureKind::Stalled => "fast_sync_stalled",
            FailureKind::Status => "fast_sync_status",
            FailureKind::BadJson => "fast_sync_bad_json",
            FailureKind::BadShape => "fast_sync_bad_shape",
            FailureKind::Absent => "fast_sync_absent",
            FailureKind::Row => "fast_sync_row",
            FailureKind::Attachment => "fast_sync_attachment",
        }
    }

    /// The server asks for fewer requests.
    pub fn is_overload(&self) -> bool {
        self.kind == FailureKind::Status && matches!(self.status, 429 | 503)
            || self.retry_after.is_some()
    }

    /// The request was too much at once: a smaller one may pass.
    pub fn wants_smaller(&self) -> bool {
        self.kind == FailureKind::Stalled || matches!(self.status, 413 | 504)
    }

    /// Asking again cannot help: the server said no, and meant it.
    pub fn is_final(&self) -> bool {
        match self.kind {
            FailureKind::Absent => true,
            FailureKind::Status => {
                (400..500).contains(&self.status) && !matches!(self.status, 408 | 413 | 425 | 429)
            }
            _ => false,
        }
    }
}
