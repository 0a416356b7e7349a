//! The vocabulary between planner and driver: what is asked, and what came back.
//! Bodies are not part of it; a [`DocHandle`] or [`RowHandle`] names one that
//! the driver keeps.

use std::rc::Rc;

/// Names a request from its making to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Names a document body that the driver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DocHandle(pub u32);

/// Names a row of the feed that the driver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowHandle(pub u32);

/// A sequence as the server wrote it, as JSON text: opaque, compared only for
/// being the same.
pub type Seq = Rc<str>;

/// One revision of one document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The row it belongs to; the driver takes the document's id from there.
    pub row: RowHandle,
    /// The document's id, as a key (see the driver for ids that are no Unicode).
    pub id: Rc<str>,
    /// The revision, `N-hash`.
    pub rev: Rc<str>,
}

/// What the driver is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A page of the source's feed.
    Feed {
        /// After which sequence.
        since: Seq,
        /// Rows at most.
        limit: u32,
        /// Let the server leave out sequences but every so many rows.
        seq_interval: Option<u32>,
    },
    /// Which of these revisions does the target lack?
    Diff {
        /// Rows, each with all its revisions.
        rows: Vec<RowHandle>,
    },
    /// Documents from the source.
    Docs {
        /// In the order in which the results are expected.
        entries: Vec<Entry>,
        /// How.
        params: Params,
    },
}

/// The parameters of one request for documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// With revision histories.
    pub revs: bool,
    /// Leaves below the revision may answer for it.
    pub latest: bool,
    /// One replica's answer is enough (`r=1`).
    pub one_replica: bool,
    /// With the attachments' bytes: in one stream with the documents.
    pub attachments: bool,
    /// With the attachments' bytes, but those one by one: the server does not
    /// stream them, or not this document's.
    pub piecewise: bool,
    /// One GET a document: the server has no `_bulk_get`.
    pub single: bool,
}

/// A request with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name, to be handed back with the answer.
    pub id: RequestId,
    /// What is asked.
    pub ask: Ask,
}

/// A row of a feed page, as handed in.
#[derive(Clone, Debug)]
pub struct FeedRow {
    /// Where the driver keeps it.
    pub handle: RowHandle,
    /// The document's id.
    pub id: Rc<str>,
    /// Its leaves, as far as the feed's style names them.
    pub revs: Vec<Rc<str>>,
    /// Its sequence; `None` where the server left it out.
    pub seq: Option<Seq>,
}

/// A page of the feed, as handed in.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// In the feed's order.
    pub rows: Vec<FeedRow>,
    /// The sequence up to which the server looked.
    pub last_seq: Seq,
    /// Rows that wait behind this page, where the server tells.
    pub pending: Option<u64>,
}

/// What one entry of a request for documents answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Documents: one, or with `latest` several.
    Docs(Vec<GotDoc>),
    /// The source does not have the revision (any more, or on that replica).
    Missing,
    /// Another error, in the server's words.
    Error(String),
    /// The document came, and an attachment of it did not, or was not what the
    /// document says of it.
    Attachment(String),
}

/// A document that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GotDoc {
    /// Where the driver keeps it.
    pub handle: DocHandle,
    /// It has attachments whose bytes this answer did not carry: how many bytes. Of a
    /// stream's documents: it has attachments.
    pub stubs: Option<u64>,
}

/// Rows for the replicator: one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The rows, each with the sequence it is handed over with.
    pub rows: Vec<(RowHandle, Seq)>,
    /// The sequence of the last row, or of the end of the feed.
    pub last_seq: Seq,
    /// Rows of the feed behind this batch, where the server tells.
    pub pending: Option<u64>,
    /// Nothing comes behind: the feed was empty here.
    pub end: bool,
}

/// What the driver is told besides requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Look again at what waits: rows or documents became ready.
    Ready,
    /// Abort this request: its answer is not wanted any more.
    Abort(RequestId),
    /// This row is not needed any more.
    DropRow(RowHandle),
    /// This document is not needed any more.
    DropDoc(DocHandle),
}
