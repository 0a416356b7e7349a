//! Writing a checkpoint behind: the first at once, then at most one in flight,
//! and the newest wins. It may lag, never lead, since it is told only what the
//! replicator wanted to write itself. Knows nothing of the document's content.

/// A version of the checkpoint that the replicator wanted to write, counted up.
pub type Version = u32;

/// One `_local` document.
#[derive(Debug, Default)]
pub struct Checkpoint {
    wanted: Version,
    written: Version,
    in_flight: Option<Version>,
    failed: bool,
}

impl Checkpoint {
    /// The replicator wants to write a version newer than all before.
    pub fn handle_put(&mut self) -> Version {
        self.wanted += 1;
        self.failed = false;
        self.wanted
    }

    /// The version to write now, if any.
    pub fn poll_write(&mut self) -> Option<Version> {
        if self.in_flight.is_some() || self.failed || self.wanted == self.written {
            return None;
        }
        self.in_flight = Some(self.wanted);
        self.in_flight
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
    }

    /// Nothing waits and nothing is in flight.
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && (self.failed || self.wanted == self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_wins_and_one_is_in_flight() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put();
        assert_eq!(checkpoint.poll_write(), Some(1));
        checkpoint.handle_put();
        checkpoint.handle_put();
        assert_eq!(checkpoint.poll_write(), None);
        checkpoint.handle_written();
        assert_eq!(checkpoint.poll_write(), Some(3));
        assert!(!checkpoint.is_settled());
        checkpoint.handle_written();
        assert!(checkpoint.is_settled());
        assert_eq!(checkpoint.poll_write(), None);
    }

    #[test]
    fn a_failed_write_waits_for_the_replicator() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.handle_put();
        checkpoint.poll_write();
        checkpoint.handle_failure();
        assert_eq!(checkpoint.poll_write(), None);
        assert!(checkpoint.is_settled());
        checkpoint.handle_put();
        assert_eq!(checkpoint.poll_write(), Some(2));
    }
}
