//! Decides how the body of one part is handed out: attachments as they come,
//! JSON whole. It does not know where the body ends.

use std::collections::VecDeque;
use std::ops::Range;

use super::{Event, MultipartError, Piece};

/// What the part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Document,
    DocumentWithAttachments,
    Error,
    Attachment,
}

/// The part that is being read.
#[derive(Debug)]
pub(super) struct Body {
    role: Role,
    json: Vec<u8>,
    json_limit: usize,
    /// What the `Content-Length` leaves, where there is one.
    pub(super) left: Option<u64>,
}

impl Body {
    pub(super) fn new(role: Role, length: Option<u64>, json_limit: usize) -> Self {
        Self {
            role,
            json: Vec::new(),
            json_limit,
            left: length,
        }
    }

    /// Bytes that had been held back, and were data.
    pub(super) fn carried(
        &mut self,
        bytes: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), MultipartError> {
        if self.role != Role::Attachment {
            return self.gather(bytes);
        }
        if !bytes.is_empty() {
            events.push_back(Event::AttachmentChunk(Piece::Carried(bytes.to_vec())));
        }
        Ok(())
    }

    /// The next bytes, and more will come.
    pub(super) fn data(
        &mut self,
        chunk: &[u8],
        range: Range<usize>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), MultipartError> {
        if self.role != Role::Attachment {
            return self.gather(&chunk[range]);
        }
        if !range.is_empty() {
            events.push_back(Event::AttachmentChunk(Piece::InChunk(range)));
        }
        Ok(())
    }

    /// The last bytes.
    pub(super) fn end(
        mut self,
        chunk: &[u8],
        range: Range<usize>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), MultipartError> {
        if self.role == Role::Attachment {
            self.data(chunk, range, events)?;
            events.push_back(Event::AttachmentEnd);
            return Ok(());
        }
        let json = if self.json.is_empty() {
            self.admit(range.len())?;
            Piece::InChunk(range)
        } else {
            self.gather(&chunk[range])?;
            Piece::Carried(self.json)
        };
        match self.role {
            Role::Error => events.push_back(Event::ErrorPart(json)),
            role => {
                events.push_back(Event::Document(json));
                if role == Role::Document {
                    events.push_back(Event::DocumentEnd);
                }
            }
        }
        Ok(())
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<(), MultipartError> {
        self.admit(bytes.len())?;
        self.json.extend_from_slice(bytes);
        Ok(())
    }

    fn admit(&self, more: usize) -> Result<(), MultipartError> {
        if more > self.json_limit - self.json.len() {
            return Err(MultipartError::JsonTooLarge);
        }
        Ok(())
    }
}
