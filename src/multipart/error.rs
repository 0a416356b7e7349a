//! Decides what can go wrong with a multipart answer, and the code that names
//! it in both languages. It does not know what the driver does about it
//! (usually: drop what came after the last `DocumentEnd` and ask again).

use std::fmt;

/// Why a multipart answer, or one of its documents, cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MultipartError {
    /// The response is no multipart, or a boundary is missing or impossible.
    ContentType,
    /// The stream ended before the closing delimiter of the outer body.
    Truncated,
    /// The headers of one part are larger than [`Limits::header_bytes`](super::Limits).
    HeaderTooLarge,
    /// The JSON of one part is larger than [`Limits::json_bytes`](super::Limits).
    JsonTooLarge,
    /// A header line that cannot be read, or one that came twice.
    BadHeader,
    /// A delimiter that is followed neither by a line break nor by `--`.
    BadDelimiter,
    /// No delimiter at the place that the part's `Content-Length` names.
    LengthMismatch,
    /// A part of a kind that has no meaning in its place.
    UnexpectedPart,
    /// A multipart inside the multipart of a document.
    TooDeep,
    /// Text between a document's own multipart and the delimiters around it.
    StrayBytes,
    /// A chunk came before the events of the one before it were drained.
    Undrained,
    /// The document names more or fewer attachments than came with it.
    AttachmentCount,
    /// Neither names nor order tell which attachment is which.
    AttachmentOrder,
}

impl MultipartError {
    /// The stable code, the same in Rust and in JS.
    pub fn code(self) -> &'static str {
        match self {
            Self::ContentType => "multipart_content_type",
            Self::Truncated => "multipart_truncated",
            Self::HeaderTooLarge => "multipart_header_too_large",
            Self::JsonTooLarge => "multipart_json_too_large",
            Self::BadHeader => "multipart_bad_header",
            Self::BadDelimiter => "multipart_bad_delimiter",
            Self::LengthMismatch => "multipart_length_mismatch",
            Self::UnexpectedPart => "multipart_unexpected_part",
            Self::TooDeep => "multipart_too_deep",
            Self::StrayBytes => "multipart_stray_bytes",
            Self::Undrained => "multipart_undrained",
            Self::AttachmentCount => "multipart_attachment_count",
            Self::AttachmentOrder => "multipart_attachment_order",
        }
    }
}

impl fmt::Display for MultipartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContentType => "there is no multipart content type with a usable boundary",
            Self::Truncated => "the multipart stream ended early",
            Self::HeaderTooLarge => "the headers of a part are too large",
            Self::JsonTooLarge => "the JSON of a part is too large",
            Self::BadHeader => "a part has a header that cannot be read",
            Self::BadDelimiter => "a delimiter does not end its line",
            Self::LengthMismatch => "a part is not as long as its Content-Length",
            Self::UnexpectedPart => "a part is of a kind that has no meaning there",
            Self::TooDeep => "a multipart is nested too deeply",
            Self::StrayBytes => "there is text around the multipart of a document",
            Self::Undrained => "a chunk came before the last one's events were drained",
            Self::AttachmentCount => "the number of attachments is not the one announced",
            Self::AttachmentOrder => "the attachments cannot be told from one another",
        })
    }
}

impl std::error::Error for MultipartError {}

#[cfg(test)]
mod tests {
    use super::MultipartError::*;

    #[test]
    fn messages_say_more_than_codes() {
        assert_eq!(Truncated.code(), "multipart_truncated");
        assert_eq!(Truncated.to_string(), "the multipart stream ended early");
    }
}
