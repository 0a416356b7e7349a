//! Whether documents are asked for with their attachments at once, instead of
//! after a first answer that names them. Knows how many had some, not which.

use std::ops::RangeInclusive;

/// A database whose documents are as large as that on average (bytes) is taken for
/// one with attachments until its first answer. Beyond, a few large ones may be all
/// that there is, and would hold up the others of their stream.
const TELLING: RangeInclusive<f64> = 4_000.0..=100_000.0;
/// The share from which on it is worth while.
const LIKELY: f64 = 0.5;
/// Weight of the newest answer in the averages.
const WEIGHT: f64 = 0.3;

/// The moving share of documents that have attachments, and their size with them.
#[derive(Debug, Default)]
pub(super) struct Share {
    share: f64,
    bytes: f64,
    seen: bool,
}

impl Share {
    /// The database's own statement, used until an answer came.
    pub(super) fn expect(&mut self, bytes_per_doc: f64) {
        if !self.seen && TELLING.contains(&bytes_per_doc) {
            (self.share, self.bytes) = (1.0, bytes_per_doc);
        }
    }

    /// An answer had so many documents, some of them `with` attachments, and they
    /// have so many bytes together with those.
    pub(super) fn seen(&mut self, docs: usize, with: usize, bytes: u64) {
        if docs == 0 {
            return;
        }
        let (share, bytes) = (with as f64 / docs as f64, bytes as f64 / docs as f64);
        let weight = if self.seen { WEIGHT } else { 1.0 };
        self.share += weight * (share - self.share);
        self.bytes += weight * (bytes - self.bytes);
        self.seen = true;
    }

    /// Most of them have attachments.
    pub(super) fn is_likely(&self) -> bool {
        self.share > LIKELY
    }

    /// Expected bytes of one with its attachments.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_documents_have_none_and_very_large_ones_tell_nothing() {
        for (bytes, likely) in [(900.0, false), (12_000.0, true), (500_000.0, false)] {
            let mut share = Share::default();
            share.expect(bytes);
            assert_eq!(share.is_likely(), likely, "{bytes}");
        }
    }

    #[test]
    fn the_first_answer_counts_more_than_what_was_told() {
        let mut share = Share::default();
        share.expect(12_000.0);
        share.seen(100, 0, 1_200_000);
        assert!(!share.is_likely());
        share.expect(12_000.0);
        assert!(!share.is_likely());
    }

    #[test]
    fn it_follows_what_comes() {
        let mut share = Share::default();
        share.seen(100, 0, 100_000);
        (0..3).for_each(|_| share.seen(10, 10, 50_000));
        assert!(share.is_likely());
        assert!((3_000..5_000).contains(&share.bytes()));
    }
}
