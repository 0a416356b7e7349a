//! Writing a checkpoint behind: the first at once (unless the last is near), then one at a time and not
//! more often than an interval, and the newest wins. It may lag, never lead,
//! since it is told only what the replicator wanted to write itself. Knows
//! nothing of the document's content.

/// A version of the checkpoint that the replicator wanted to write, counted up.
pub type Version = u32;

/// So long (ms) after one write began, the next may. A run that breaks off reads
/// so much of the feed again; one that does not, waits for the last write only,
/// and a write that is just under way would hold that up by a round trip.
const INTERVAL_MS: u64 = 1_000;

/// One `_local` document.
#[derive(Debug, Default)]
pub struct Checkpoint {
    wanted: Version,
    written: Version,
    in_flight: Option<Version>,
    failed: bool,
    begun_at: Option<u64>,
    flushing: bool,
}

impl Checkpoint {
    /// The replicator wants to write a version newer than all before. `near_end`:
    /// nothing is left to be fetched, so that the last one comes soon.
    pub fn handle_put(&mut self, near_end: bool, now: u64) {
        self.wanted += 1;
        if near_end {
            self.begun_at.get_or_insert(now);
        }
        self.failed = false;
        self.flushing = false;
    }

    /// Somebody waits until everything is written.
    pub fn handle_flush(&mut self) {
        self.flushing = true;
    }

    /// The version to write now, if any.
    pub fn poll_write(&mut self, now: u64) -> Option<Version> {
        if self.in_flight.is_some() || self.poll_timeout()? > now {
            return None;
        }
        self.in_flight = Some(self.wanted);
        self.begun_at = Some(now);
        self.in_flight
    }

    /// When the next write is due, should one wait.
    pub fn poll_timeout(&self) -> Option<u64> {
        let waits = !self.failed && self.wanted != self.in_flight.unwrap_or(self.written);
        let after = self.begun_at.filter(|_| !self.flushing);
        waits.then(|| after.map_or(0, |begun| begun + INTERVAL_MS))
    }

    /// The write in flight succeeded.
    pub fn handle_written(&mut self) {
        if let Some(version) = self.in_flight.take() {
            self.written = version;
        }
    }

    /// The write in flight failed; nothing is written until the replicator wants
    /// to again. It learns of the failure from the host.
    pub fn handle_failure(&mut self) {
        self.in_flight = None;
        self.failed = true;
        self.begun_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_written_at_once_and_the_newest_wins() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put(false, 0);
        assert_eq!(checkpoint.poll_write(5), Some(1));
        checkpoint.handle_put(false, 0);
        checkpoint.handle_put(false, 0);
        assert_eq!(checkpoint.poll_write(5_000), None, "one is in flight");
        checkpoint.handle_written();
        assert_eq!(checkpoint.poll_write(5_000), Some(3));
        checkpoint.handle_written();
        assert_eq!(checkpoint.poll_timeout(), None);
    }

    #[test]
    fn writes_keep_their_distance_unless_somebody_waits() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put(false, 0);
        checkpoint.poll_write(100);
        checkpoint.handle_written();
        checkpoint.handle_put(false, 0);
        assert_eq!(checkpoint.poll_write(200), None);
        assert_eq!(checkpoint.poll_timeout(), Some(1_100));
        checkpoint.handle_flush();
        assert_eq!(checkpoint.poll_write(200), Some(2));
    }

    #[test]
    fn near_the_end_the_last_one_is_waited_for() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put(true, 100);
        assert_eq!(checkpoint.poll_write(200), None);
        assert_eq!(checkpoint.poll_timeout(), Some(1_100));
        checkpoint.handle_put(true, 300);
        checkpoint.handle_flush();
        assert_eq!(checkpoint.poll_write(300), Some(2));
    }

    #[test]
    fn a_failed_write_waits_for_the_replicator() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put(false, 0);
        checkpoint.poll_write(0);
        checkpoint.handle_failure();
        assert_eq!(checkpoint.poll_write(9_999), None);
        checkpoint.handle_put(false, 0);
        assert_eq!(checkpoint.poll_write(9_999), Some(2));
    }
}
