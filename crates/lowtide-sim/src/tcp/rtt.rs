// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round-trip time and retransmission timeout (RFC 6298).

use std::time::Duration;

/// The timeout before the first sample (section 2.1).
const INITIAL_RTO: u64 = 1_000_000_000;
/// The longest timeout (section 2.5 allows any from 60 s on; Linux: 120 s).
const RTO_MAX: u64 = 120_000_000_000;

/// The estimator. All times are nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// Eight times SRTT; 0 before the first sample.
    srtt_8: u64,
    /// Four times RTTVAR.
    rttvar_4: u64,
    min: Option<u64>,
    rto_min: u64,
    backoff: u32,
}

impl Rtt {
    pub(super) fn new(rto_min: Duration) -> Self {
        Self { srtt_8: 0, rttvar_4: 0, min: None, rto_min: nanos(rto_min), backoff: 0 }
    }

    /// A sample for the timeout (sections 2.2 and 2.3).
    pub(super) fn on_sample(&mut self, rtt: u64) {
        let rtt = rtt.max(1);
        if self.srtt_8 == 0 {
            self.srtt_8 = rtt * 8;
            self.rttvar_4 = rtt * 2;
        } else {
            let deviation = self.srtt().abs_diff(rtt);
            self.rttvar_4 = self.rttvar_4 - self.rttvar_4 / 4 + deviation;
            self.srtt_8 = self.srtt_8 - self.srtt_8 / 8 + rtt;
        }
    }

    /// A sample without the receiver's delay, for the minimum.
    pub(super) fn on_min_sample(&mut self, rtt: u64) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// SRTT; 0 before the first sample.
    pub(super) const fn srtt(&self) -> u64 {
        self.srtt_8 / 8
    }

    /// The smallest sample.
    pub(super) const fn min(&self) -> Option<u64> {
        self.min
    }

    /// RTO with its backoff. As in Linux it is never less than SRTT and the minimum together, which is more than
    /// section 2.4 asks for, so that the receiver's delayed ACKs fit in.
    pub(super) fn rto(&self) -> Duration {
        let rto = if self.srtt_8 == 0 { INITIAL_RTO } else { self.srtt() + self.rttvar_4.max(self.rto_min) };
        Duration::from_nanos(rto.saturating_mul(1 << self.backoff).min(RTO_MAX))
    }

    /// The timer fired (section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// New data was acknowledged (section 5.7).
    pub(super) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }
}

/// Nanoseconds of a duration; 584 years at most.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn srtt_and_rttvar_follow_the_equations() {
        let mut rtt = Rtt::new(Duration::from_millis(1));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(100 * MS);
        assert_eq!(rtt.srtt(), 100 * MS);
        assert_eq!(rtt.rto(), Duration::from_millis(300), "R + 4 · R/2");
        rtt.on_sample(200 * MS);
        assert_eq!(rtt.srtt(), 112_500_000, "7/8 · 100 + 1/8 · 200");
        assert_eq!(rtt.rto(), Duration::from_micros(362_500), "RTTVAR is 3/4 · 50 + 1/4 · 100 = 62.5");
        for _ in 0..200 {
            rtt.on_sample(40 * MS);
        }
        assert!(rtt.srtt().abs_diff(40 * MS) < 100, "{}", rtt.srtt());
        assert!(rtt.rto() < Duration::from_millis(42), "{:?}", rtt.rto());
    }

    #[test]
    fn the_timeout_keeps_its_minimum_doubles_and_has_a_limit() {
        let mut rtt = Rtt::new(Duration::from_millis(200));
        for _ in 0..100 {
            rtt.on_sample(40 * MS);
        }
        assert_eq!(rtt.rto().as_millis(), 240);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto().as_millis(), 960);
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Duration::from_secs(120));
        rtt.reset_backoff();
        assert_eq!(rtt.rto().as_millis(), 240);
    }
}
