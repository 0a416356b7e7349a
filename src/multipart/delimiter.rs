//! Decides where a part ends when nothing but the delimiter tells. It does not
//! know what the bytes before it are.
//!
//! The delimiter is `CR LF "--" boundary`, and a boundary holds no CR. So CR
//! begins it and appears nowhere else in it, and after a mismatch no later part
//! of what had matched can begin another match. Bytes held back between two
//! chunks are therefore always the delimiter's own first bytes: a counter
//! remembers them, not a buffer, and every byte is looked at once.

use std::ops::Range;

use super::MultipartError;

/// RFC 2046, 5.1.1, in bytes. CouchDB's have 34.
const MAX_BOUNDARY: usize = 70;

/// A delimiter and how much of it the stream's last bytes have matched.
#[derive(Debug)]
pub(super) struct Delimiter {
    pattern: Vec<u8>,
    matched: usize,
}

/// What one look at a chunk found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// So many first bytes of the delimiter, seen in earlier chunks, were data.
    pub(super) released: usize,
    /// The data in this chunk, to be read after those.
    pub(super) data: Range<usize>,
    /// Where the chunk goes on after the delimiter, when that is complete.
    pub(super) found: Option<usize>,
}

impl Delimiter {
    pub(super) fn new(boundary: &str) -> Result<Self, MultipartError> {
        let plain = boundary.bytes().all(|b| matches!(b, b' '..=b'~'));
        if !plain || boundary.is_empty() || boundary.len() > MAX_BOUNDARY {
            return Err(MultipartError::ContentType);
        }
        let mut pattern = b"\r\n--".to_vec();
        pattern.extend_from_slice(boundary.as_bytes());
        Ok(Self {
            pattern,
            matched: 0,
        })
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }

    /// The delimiter's first bytes, as [`Scan::released`] counts them.
    pub(super) fn prefix(&self, len: usize) -> &[u8] {
        &self.pattern[..len]
    }

    /// The search begins; the delimiter's line break belongs to it.
    pub(super) fn begin(&mut self) {
        self.matched = 0;
    }

    /// The search begins at the start of a line: the first delimiter of a
    /// multipart needs no line break of its own.
    pub(super) fn begin_at_line(&mut self) {
        self.matched = 2;
    }

    /// Looks for the delimiter in `chunk[from..]`.
    pub(super) fn scan(&mut self, chunk: &[u8], from: usize) -> Scan {
        let carried = self.matched;
        let mut failed = false;
        let mut begun = from;
        let mut at = self.advance(chunk, from);
        while self.matched < self.pattern.len() && at < chunk.len() {
            failed = true;
            self.matched = 0;
            begun = chunk[at..]
                .iter()
                .position(|&b| b == b'\r')
                .map_or(chunk.len(), |skipped| at + skipped);
            at = self.advance(chunk, begun);
        }
        Scan {
            released: if failed { carried } else { 0 },
            data: from..begun,
            found: (self.matched == self.pattern.len()).then_some(at),
        }
    }

    /// Takes the delimiter at `chunk[from..]` and nothing else: `Some` once it
    /// is complete, `None` when the chunk ends first.
    pub(super) fn expect(
        &mut self,
        chunk: &[u8],
        from: usize,
    ) -> Result<Option<usize>, MultipartError> {
        let at = self.advance(chunk, from);
        if self.matched == self.pattern.len() {
            Ok(Some(at))
        } else if at == chunk.len() {
            Ok(None)
        } else {
            Err(MultipartError::LengthMismatch)
        }
    }

    fn advance(&mut self, chunk: &[u8], from: usize) -> usize {
        let same = chunk[from..]
            .iter()
            .zip(&self.pattern[self.matched..])
            .take_while(|(a, b)| a == b)
            .count();
        self.matched += same;
        from + same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_all(chunks: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut delimiter = Delimiter::new("-b").unwrap();
        let mut data = Vec::new();
        for chunk in chunks {
            let scan = delimiter.scan(chunk, 0);
            data.extend_from_slice(delimiter.prefix(scan.released));
            data.extend_from_slice(&chunk[scan.data]);
            if scan.found.is_some() {
                return (data, true);
            }
        }
        (data, false)
    }

    #[test]
    fn near_misses_are_data_however_they_are_cut() {
        let stream = b"\r\r\n\r\n-\r\n--\r\n---x\r\r\n---b";
        let data = &stream[..stream.len() - 6];
        for cut in 0..=stream.len() {
            let (a, b) = stream.split_at(cut);
            assert_eq!(scan_all(&[a, b]), (data.to_vec(), true), "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(scan_all(&bytes), (data.to_vec(), true));
    }

    #[test]
    fn what_may_still_become_a_delimiter_is_held_back() {
        assert_eq!(scan_all(&[b"ab\r\n-"]), (b"ab".to_vec(), false));
        assert_eq!(scan_all(&[b"ab\r\n-", b"x"]), (b"ab\r\n-x".to_vec(), false));
    }

    #[test]
    fn a_line_break_is_not_needed_at_the_start_of_a_line() {
        let mut delimiter = Delimiter::new("-b").unwrap();
        delimiter.begin_at_line();
        assert_eq!(delimiter.scan(b"---b\r\n", 0).found, Some(4));
        delimiter.begin();
        assert_eq!(delimiter.scan(b"---b\r\n", 0).found, None);
    }

    #[test]
    fn expecting_refuses_anything_else() {
        let mut delimiter = Delimiter::new("-b").unwrap();
        assert_eq!(delimiter.expect(b"x\r\n-", 1), Ok(None));
        assert_eq!(
            delimiter.expect(b"--x", 0),
            Err(MultipartError::LengthMismatch)
        );
        delimiter.begin();
        assert_eq!(delimiter.expect(b"\r\n---b", 0), Ok(Some(6)));
    }

    #[test]
    fn impossible_boundaries_are_refused() {
        for bad in ["", "a\r\nb", "é", &"x".repeat(71)] {
            assert_eq!(
                Delimiter::new(bad).err(),
                Some(MultipartError::ContentType),
                "{bad:?}"
            );
        }
        assert!(Delimiter::new(&"x".repeat(70)).is_ok());
    }
}
