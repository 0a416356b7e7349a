//! Decides what CouchDB's answer to `_bulk_get` in `multipart/mixed` holds:
//! bytes in, documents and attachments out, wherever the chunks are cut.
//!
//! Each part of the outer body is a document (`application/json`), an error in
//! place of one (`application/json; error="true"`), or a document with its
//! attachments (`multipart/related`, JSON first). Parts come in the order of
//! the request, but nothing in them says how many there should be: that, and
//! whether ids and digests are the right ones, is the caller's to check. It
//! does not know JSON, gzip or the network.
//!
//! Hand in a chunk, then drain the events; say when the stream has ended.
//!
//! ```
//! use pouchdb_fast_sync::multipart::{Event, Parser, Piece};
//!
//! let mut parser = Parser::new("multipart/mixed; boundary=\"-b\"")?;
//! let chunk = b"\r\n---b\r\nContent-Type: application/json\r\n\r\n{}\r\n---b--\r\n";
//! parser.handle_chunk(chunk)?;
//! assert_eq!(parser.poll_event(), Some(Event::Document(Piece::InChunk(42..44))));
//! assert_eq!(parser.poll_event(), Some(Event::DocumentEnd));
//! assert_eq!(parser.poll_event(), Some(Event::End));
//! parser.handle_end()?;
//! # Ok::<(), pouchdb_fast_sync::multipart::MultipartError>(())
//! ```
//!
//! A `Content-Length` is believed only together with the delimiter that has to
//! stand right after so many bytes. With one, those bytes are not looked at, so
//! they may hold the delimiter; without one, the first delimiter ends the part.
//! Anything doubtful is an error: the documents before it are good, the caller
//! asks for the others in another way.

mod body;
mod delimiter;
mod error;
mod event;
mod header;
mod nesting;
mod pair;

use std::collections::VecDeque;

use body::{Body, Role};
use header::Kind;
use nesting::Nesting;

pub use error::MultipartError;
pub use event::{AttachmentHeaders, Event, Piece};
pub use pair::pair_attachments;

/// What one part may make the parser keep. Attachments are not kept at all, and
/// how many parts there are does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The headers of one part. They hold one attachment name or one document
    /// id, which CouchDB does not bound; the default is 64 KiB.
    pub header_bytes: usize,
    /// The JSON of one part. The default is 512 MiB: no engine's `JSON.parse`
    /// takes more, since V8's strings end there.
    pub json_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 64 << 10,
            json_bytes: 512 << 20,
        }
    }
}

/// Reads one response.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    nesting: Nesting,
    state: State,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum State {
    /// Before the first delimiter of a multipart, or after a document's last.
    /// The outer body may begin with a text, which is passed over; elsewhere
    /// one would be a sign that the server and this parser disagree.
    Between {
        blank: bool,
    },
    /// After a delimiter, where its line ends or the multipart does.
    Suffix(Suffix),
    /// Headers so far, from the line break before the first.
    Headers(Vec<u8>),
    Body(Body),
    Done,
    Failed(MultipartError),
}

#[derive(Debug)]
enum Suffix {
    Start,
    Padding,
    LineFeed,
    Dash,
}

type Step = Result<(State, usize), MultipartError>;

impl Parser {
    /// A parser for a response with this `Content-Type`.
    pub fn new(content_type: &str) -> Result<Self, MultipartError> {
        Self::with_limits(content_type, Limits::default())
    }

    /// The same, with other limits.
    pub fn with_limits(content_type: &str, limits: Limits) -> Result<Self, MultipartError> {
        let Kind::Multipart { boundary } = header::kind(content_type)? else {
            return Err(MultipartError::ContentType);
        };
        Ok(Self {
            limits,
            nesting: Nesting::new(&boundary)?,
            state: State::Between { blank: false },
            events: VecDeque::new(),
        })
    }

    /// Takes the next bytes of the response. Drain the events before the next
    /// chunk, and after an error too: they are what came before it. An error is
    /// final, every later call answers it again.
    // Not a part of its caller: that one waits, and its code is never optimised by a
    // browser while it runs.
    #[inline(never)]
    pub fn handle_chunk(&mut self, chunk: &[u8]) -> Result<(), MultipartError> {
        if let State::Failed(error) = self.state {
            return Err(error);
        }
        if !self.events.is_empty() {
            return self.fail(MultipartError::Undrained);
        }
        let mut at = 0;
        while at < chunk.len() {
            let state = std::mem::replace(&mut self.state, State::Done);
            match self.step(state, chunk, at) {
                Ok((state, next)) => (self.state, at) = (state, next),
                Err(error) => return self.fail(error),
            }
        }
        Ok(())
    }

    /// The response has ended. An empty one is an error too: it is what
    /// CouchDB answers to an empty request, but also what a cut one leaves.
    pub fn handle_end(&mut self) -> Result<(), MultipartError> {
        match self.state {
            State::Done => Ok(()),
            State::Failed(error) => Err(error),
            _ => self.fail(MultipartError::Truncated),
        }
    }

    /// The next event of the chunk that was handed in last.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn fail(&mut self, error: MultipartError) -> Result<(), MultipartError> {
        self.state = State::Failed(error);
        Err(error)
    }

    /// Reads on at `chunk[at]`, and by one byte at least.
    fn step(&mut self, state: State, chunk: &[u8], at: usize) -> Step {
        match state {
            State::Between { blank } => self.between(blank, chunk, at),
            State::Suffix(suffix) => Ok((self.suffix(suffix, chunk[at])?, at + 1)),
            State::Headers(head) => self.headers(head, chunk, at),
            State::Body(body) => self.body(body, chunk, at),
            State::Done => Ok((State::Done, chunk.len())),
            State::Failed(error) => Err(error),
        }
    }

    fn between(&mut self, blank: bool, chunk: &[u8], at: usize) -> Step {
        let delimiter = self.nesting.delimiter();
        let scan = delimiter.scan(chunk, at);
        let held = delimiter.prefix(scan.released);
        if blank && !(held.trim_ascii().is_empty() && chunk[scan.data].trim_ascii().is_empty()) {
            return Err(MultipartError::StrayBytes);
        }
        Ok(match scan.found {
            Some(next) => (State::Suffix(Suffix::Start), next),
            None => (State::Between { blank }, chunk.len()),
        })
    }

    /// Spaces before the line's end are what RFC 2046 lets a transport add.
    fn suffix(&mut self, suffix: Suffix, byte: u8) -> Result<State, MultipartError> {
        match (suffix, byte) {
            (Suffix::Start, b'-') => Ok(State::Suffix(Suffix::Dash)),
            (Suffix::Dash, b'-') => self.close(),
            (Suffix::Start | Suffix::Padding, b' ' | b'\t') => Ok(State::Suffix(Suffix::Padding)),
            (Suffix::Start | Suffix::Padding, b'\r') => Ok(State::Suffix(Suffix::LineFeed)),
            (Suffix::LineFeed, b'\n') => Ok(State::Headers(b"\r\n".to_vec())),
            _ => Err(MultipartError::BadDelimiter),
        }
    }

    fn close(&mut self) -> Result<State, MultipartError> {
        if self.nesting.close()? {
            self.events.push_back(Event::DocumentEnd);
            return Ok(State::Between { blank: true });
        }
        self.events.push_back(Event::End);
        Ok(State::Done)
    }

    fn headers(&mut self, mut head: Vec<u8>, chunk: &[u8], mut at: usize) -> Step {
        loop {
            let rest = &chunk[at..];
            let line = rest.iter().position(|&b| b == b'\n').map(|end| end + 1);
            let taken = line.unwrap_or(rest.len());
            if head.len() + taken > self.limits.header_bytes {
                return Err(MultipartError::HeaderTooLarge);
            }
            head.extend_from_slice(&rest[..taken]);
            at += taken;
            if head.ends_with(header::END_OF_HEADERS) {
                return Ok((self.begin_part(&head)?, at));
            }
            if line.is_none() {
                return Ok((State::Headers(head), at));
            }
        }
    }

    fn begin_part(&mut self, head: &[u8]) -> Result<State, MultipartError> {
        let headers = header::parse(head)?;
        let length = headers.content_length;
        let role = if self.nesting.in_attachments() {
            self.events.push_back(Event::AttachmentStart(headers));
            Role::Attachment
        } else {
            let content_type = headers.content_type.unwrap_or_default();
            match self.nesting.part(header::kind(&content_type)?)? {
                Some(role) => role,
                None => return Ok(State::Between { blank: true }),
            }
        };
        self.nesting.delimiter().begin();
        let body = Body::new(role, length, self.limits.json_bytes);
        Ok(State::Body(body))
    }

    fn body(&mut self, mut body: Body, chunk: &[u8], at: usize) -> Step {
        let delimiter = self.nesting.delimiter();
        let (data, next, ended) = match body.left {
            Some(0) => {
                let found = delimiter.expect(chunk, at)?;
                (at..at, found.unwrap_or(chunk.len()), found.is_some())
            }
            Some(left) => {
                let here = chunk.len() - at;
                let taken = usize::try_from(left).map_or(here, |left| left.min(here));
                body.left = Some(left - taken as u64);
                (at..at + taken, at + taken, false)
            }
            None => {
                let scan = delimiter.scan(chunk, at);
                body.carried(delimiter.prefix(scan.released), &mut self.events)?;
                let next = scan.found.unwrap_or(chunk.len());
                (scan.data, next, scan.found.is_some())
            }
        };
        if ended {
            body.end(chunk, data, &mut self.events)?;
            return Ok((State::Suffix(Suffix::Start), next));
        }
        body.data(chunk, data, &mut self.events)?;
        Ok((State::Body(body), next))
    }
}
