//! How many documents go into one request: by count, by bytes and by time, from
//! moving averages of what came so far. Knows sizes, not documents.

/// A request aims at so many bytes: large enough to hide a round trip, small
/// enough to lose little when it fails.
const AIM_BYTES: f64 = 1_000_000.0;
/// The same while only the server's own figure is known, which counts attachments
/// that are no part of such an answer.
const TOLD_BYTES: f64 = 4_000_000.0;
/// A request aims at so many ms of the server's and the link's time.
const AIM_MS: f64 = 1_000.0;
/// Most documents in one request; CouchDB builds a whole answer before it sends it.
const MOST: usize = 500;
/// Most in the very first request: what it brings is written while the others are answered.
const FIRST: usize = 200;
/// Most while nothing is known of their size, as stock: they may be large.
const UNSIZED: usize = 100;
/// Fewer are not worth a request of their own while others wait for room.
const LEAST: usize = 100;
/// A document's bytes until one has been seen and when the server tells nothing.
const UNKNOWN_BYTES: f64 = 2_000.0;
/// Weight of the newest answer in the averages.
const WEIGHT: f64 = 0.3;

/// The moving averages.
#[derive(Debug)]
pub(super) struct Sizes {
    bytes: f64,
    ms: f64,
    measured: bool,
    /// The server told how large they are.
    told: bool,
}

impl Sizes {
    pub(super) fn new() -> Self {
        Self {
            bytes: UNKNOWN_BYTES,
            ms: 0.0,
            measured: false,
            told: false,
        }
    }

    /// The database's own statement (`sizes.external` over its documents), used
    /// until an answer has been measured.
    pub(super) fn expect(&mut self, bytes_per_doc: f64) {
        if !self.measured && bytes_per_doc.is_finite() && bytes_per_doc > 0.0 {
            self.bytes = bytes_per_doc.max(100.0);
            self.told = true;
        }
    }

    pub(super) fn measured(&mut self, docs: usize, bytes: u64, ms: u64) {
        if docs == 0 {
            return;
        }
        let (bytes, ms) = (bytes as f64 / docs as f64, ms as f64 / docs as f64);
        if self.measured {
            self.bytes += WEIGHT * (bytes - self.bytes);
            self.ms += WEIGHT * (ms - self.ms);
        } else {
            (self.bytes, self.ms, self.measured) = (bytes, ms, true);
        }
    }

    /// Expected bytes of so many documents.
    pub(super) fn estimate(&self, docs: usize) -> u64 {
        (self.bytes * docs as f64) as u64
    }

    /// Most documents of a request, with so many in flight.
    pub(super) fn most(&self, in_flight: usize) -> usize {
        match (self.measured, self.told) {
            (true, _) => MOST,
            (false, false) => UNSIZED,
            (false, true) if in_flight == 0 => FIRST,
            (false, true) => MOST,
        }
    }

    /// Documents for the next request, with so many queued and room for so many
    /// requests: the queue is shared out among them, so that none idles.
    pub(super) fn slice(&self, queued: usize, room: usize) -> usize {
        let aim = if self.measured { AIM_BYTES } else { TOLD_BYTES };
        let by_bytes = (aim / self.bytes.max(1.0)) as usize;
        let by_time = if self.ms > 0.0 {
            (AIM_MS / self.ms) as usize
        } else {
            MOST
        };
        let share = queued.div_ceil(room.max(1)).max(LEAST);
        share.min(by_bytes).min(by_time).clamp(1, MOST).min(queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_shared_out() {
        let mut sizes = Sizes::new();
        sizes.measured(10, 10_000, 10);
        assert_eq!(sizes.slice(1000, 4), 250);
        assert_eq!(sizes.slice(300, 4), 100);
        assert_eq!(sizes.slice(10, 4), 10);
    }

    #[test]
    fn requests_are_small_until_something_is_known() {
        let mut sizes = Sizes::new();
        assert_eq!((sizes.most(0), sizes.most(1)), (UNSIZED, UNSIZED));
        sizes.expect(1_000.0);
        assert_eq!((sizes.most(0), sizes.most(1)), (FIRST, MOST));
        sizes.measured(10, 10_000, 10);
        assert_eq!(sizes.most(0), MOST);
    }

    #[test]
    fn large_documents_travel_in_small_requests() {
        let mut sizes = Sizes::new();
        sizes.expect(400_000.0);
        assert_eq!(sizes.slice(1000, 1), 10);
        sizes.measured(1, 40_000_000, 100);
        assert_eq!(sizes.slice(1000, 1), 1);
    }

    #[test]
    fn slow_servers_get_small_requests() {
        let mut sizes = Sizes::new();
        sizes.measured(100, 10_000, 2_000);
        assert_eq!(sizes.slice(1000, 1), 50);
    }
}
