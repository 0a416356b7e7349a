//! How many document requests may be in flight, and when the next one may leave:
//! additive increase, multiplicative decrease. Knows nothing of what is asked.

/// First wait (ms) after an overloaded answer that names none; doubles each time.
pub(crate) const OVERLOAD_WAIT_MS: u64 = 500;
/// Longest wait (ms) that a `Retry-After` is followed; beyond it the replication's
/// own back-off is the better place to wait.
pub(crate) const LONGEST_WAIT_MS: u64 = 60_000;

/// The window of requests in flight.
#[derive(Clone, Debug)]
pub struct Pace {
    window: f64,
    most: f64,
    hold_until: Option<u64>,
    overloads: u32,
    troubled: bool,
}

impl Pace {
    /// A window of so many requests at most. It begins with as many as there are
    /// idle connections: a new one costs a round trip.
    pub fn new(most: u32, idle: u32) -> Self {
        let most = f64::from(most.max(1));
        Self {
            window: f64::from(idle).min(most),
            most,
            hold_until: None,
            overloads: 0,
            troubled: false,
        }
    }

    /// Requests that may leave now, with so many in flight.
    pub fn room(&self, in_flight: usize, now: u64) -> usize {
        if self.hold_until.is_some_and(|until| now < until) {
            return 0;
        }
        (self.window as usize).saturating_sub(in_flight)
    }

    /// When a hold ends, if there is one.
    pub fn hold_until(&self, now: u64) -> Option<u64> {
        self.hold_until.filter(|&until| now < until)
    }

    /// A request was answered.
    pub fn succeeded(&mut self) {
        self.overloads = 0;
        // Until there was trouble, each success is worth a request more.
        let step = if self.troubled {
            1.0 / self.window
        } else {
            1.0
        };
        self.window = (self.window + step).min(self.most);
    }

    /// The server asked for less. Answers when the request may be repeated.
    pub fn overloaded(&mut self, retry_after: Option<u64>, now: u64) -> u64 {
        // Answers to requests that left together are one sign, not several.
        if self.hold_until.is_none_or(|until| now >= until) {
            self.stumbled();
            self.overloads += 1;
        }
        let own = OVERLOAD_WAIT_MS << self.overloads.saturating_sub(1).min(6);
        // A server that says "at once" again and again does not mean it.
        let least = if self.overloads > 1 { own / 4 } else { 0 };
        let wait = retry_after.map_or(own, |named| named.max(least));
        let wait = wait.min(LONGEST_WAIT_MS);
        let until = now + wait;
        self.hold_until = Some(self.hold_until.map_or(until, |held| held.max(until)));
        until
    }

    /// A request stalled or failed: go on more carefully, without a pause.
    pub fn stumbled(&mut self) {
        self.troubled = true;
        self.window = (self.window / 2.0).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overloaded_server_gets_half_the_requests_after_the_time_it_named() {
        let mut pace = Pace::new(6, 3);
        pace.succeeded();
        assert_eq!(pace.room(0, 0), 4);
        assert_eq!(pace.overloaded(Some(2_000), 100), 2_100);
        assert_eq!(pace.room(0, 2_099), 0);
        assert_eq!(pace.room(0, 2_100), 2);
    }

    #[test]
    fn answers_of_one_burst_halve_once() {
        let mut pace = Pace::new(6, 3);
        for _ in 0..4 {
            pace.overloaded(None, 0);
        }
        assert_eq!(pace.room(0, 500), 1);
    }

    #[test]
    fn success_never_grows_beyond_the_bound() {
        let mut pace = Pace::new(3, 3);
        for _ in 0..100 {
            pace.succeeded();
        }
        assert_eq!(pace.room(0, 0), 3);
    }

    #[test]
    fn a_hold_is_never_longer_than_a_minute() {
        assert_eq!(Pace::new(1, 3).overloaded(Some(3_600_000), 0), 60_000);
    }
}
