//! Decides which multipart is open, and so which delimiter ends a part and what
//! a part may be. It does not know the bytes.
//!
//! There are two levels: the outer body, and the multipart of one document.
//! There is no third: a part after a document's JSON is an attachment, under
//! whatever content type it was stored, be it `multipart/mixed`.

use super::MultipartError;
use super::body::Role;
use super::delimiter::Delimiter;
use super::header::Kind;

#[derive(Debug)]
pub(super) struct Nesting {
    outer: Delimiter,
    related: Option<Related>,
}

#[derive(Debug)]
struct Related {
    delimiter: Delimiter,
    has_json: bool,
}

impl Nesting {
    pub(super) fn new(boundary: &str) -> Result<Self, MultipartError> {
        let mut outer = Delimiter::new(boundary)?;
        outer.begin_at_line();
        Ok(Self {
            outer,
            related: None,
        })
    }

    /// The delimiter of the innermost multipart that is open.
    pub(super) fn delimiter(&mut self) -> &mut Delimiter {
        match &mut self.related {
            Some(related) => &mut related.delimiter,
            None => &mut self.outer,
        }
    }

    /// Whether a part that begins here is an attachment, unseen.
    pub(super) fn in_attachments(&self) -> bool {
        self.related
            .as_ref()
            .is_some_and(|related| related.has_json)
    }

    /// What the part that begins is, unless it opened a multipart.
    pub(super) fn part(&mut self, kind: Kind) -> Result<Option<Role>, MultipartError> {
        match (&mut self.related, kind) {
            (None, Kind::Json { error: false }) => Ok(Some(Role::Document)),
            (None, Kind::Json { error: true }) => Ok(Some(Role::Error)),
            (None, Kind::Multipart { boundary }) => self.open(&boundary).map(|()| None),
            (Some(related), Kind::Json { error: false }) => {
                related.has_json = true;
                Ok(Some(Role::DocumentWithAttachments))
            }
            (Some(_), Kind::Multipart { .. }) => Err(MultipartError::TooDeep),
            _ => Err(MultipartError::UnexpectedPart),
        }
    }

    /// Were the two delimiters the same, the next document could not be told
    /// from the next attachment.
    fn open(&mut self, boundary: &str) -> Result<(), MultipartError> {
        let mut delimiter = Delimiter::new(boundary)?;
        if delimiter.is_same(&self.outer) {
            return Err(MultipartError::BadHeader);
        }
        delimiter.begin_at_line();
        self.related = Some(Related {
            delimiter,
            has_json: false,
        });
        Ok(())
    }

    /// Leaves the innermost multipart; whether that was a document's.
    pub(super) fn close(&mut self) -> Result<bool, MultipartError> {
        match self.related.take() {
            None => Ok(false),
            Some(related) if !related.has_json => Err(MultipartError::UnexpectedPart),
            Some(_) => {
                self.outer.begin();
                Ok(true)
            }
        }
    }
}
