//! Decides what a driver is told about a multipart answer. It does not know
//! where the bytes live: they are named by their place in the host's own
//! buffer, so that the host can slice that and nothing is copied on the way.

use std::ops::Range;

/// What the parser found, in the order of the stream.
///
/// `(Document (AttachmentStart AttachmentChunk* AttachmentEnd)* DocumentEnd
/// | ErrorPart)* End`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A document begins: its JSON, whole. It may be kept from its
    /// `DocumentEnd` on, not before.
    Document(Piece),
    /// An attachment of that document begins.
    AttachmentStart(AttachmentHeaders),
    /// The attachment's next bytes, never empty; an empty attachment has none.
    AttachmentChunk(Piece),
    /// The attachment is complete.
    AttachmentEnd,
    /// The document is complete, with all attachments that came with it.
    DocumentEnd,
    /// In place of a document: JSON with `error` and `reason`, whole.
    ErrorPart(Piece),
    /// The outer body is closed; whatever may follow it means nothing.
    End,
}

/// Where bytes of the stream are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// In the chunk that was handed in last, and only until the next one is.
    InChunk(Range<usize>),
    /// From earlier chunks, in part or whole. Of an attachment these are only
    /// bytes that were held back because they could have begun a delimiter.
    Carried(Vec<u8>),
}

/// What the stream says of an attachment. Its document's JSON says the same,
/// and is the one to believe about the content type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachmentHeaders {
    /// Just as the server wrote it between the quotes, where it named one.
    pub filename: Option<String>,
    /// The type under which the attachment was stored.
    pub content_type: Option<String>,
    /// `gzip` where the server hands out what it stored compressed.
    pub content_encoding: Option<String>,
    /// The bytes on the wire, so after compression. An attachment that has it
    /// and reaches its `AttachmentEnd` had exactly as many. CouchDB always gives
    /// it; where it is missing, only the document's entry can tell whether the
    /// bytes are all.
    pub content_length: Option<u64>,
}
