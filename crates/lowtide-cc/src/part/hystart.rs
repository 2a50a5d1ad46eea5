// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hybrid Slow Start (Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", PFLDnet 2008), as
//! Linux has it in CUBIC and, slightly different, in CDG.
//!
//! Notable differences from Linux: no allowance for segmentation offload (`hystart_ack_delay`), since ACKs are seen one
//! by one; and the minimum delay also takes samples of the first second after a reduction.

use super::{Rounds, Window};
use crate::{Ack, Time};
use std::time::Duration;

/// Round-trip samples of a round before its minimum is trusted (Linux `HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;

/// What differs between the two versions in Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct HyStartShape {
    /// The window, in segments, below which nothing is looked for (`hystart_low_window`).
    pub low_window: f64,
    /// ACKs that are no further apart than this are a train (`hystart_ack_delta`).
    pub train_gap: Duration,
    /// No threshold is below this.
    pub floor: Duration,
    /// Least and greatest rise of the delay that ends slow start; an eighth of the minimum delay in between
    /// (`HYSTART_DELAY_THRESH`).
    pub rise: (Duration, Duration),
    /// Whether the transport paces. ACKs then come spread over the round trip, and only a train longer than the whole
    /// minimum delay, not half of it, means a full pipe.
    pub paced: bool,
    /// Whether the ACK that ends a round still belongs to it; otherwise it is the first of the next.
    pub late: bool,
    /// Whether slow start ends early only once, until the next timeout.
    pub once: bool,
}

impl HyStartShape {
    /// Linux `tcp_cubic.c`.
    pub const CUBIC: Self = Self {
        low_window: 16.0,
        train_gap: Duration::from_millis(2),
        floor: Duration::ZERO,
        rise: (Duration::from_millis(4), Duration::from_millis(16)),
        paced: false,
        late: false,
        once: true,
    };

    /// Linux `tcp_cdg.c`.
    pub const CDG: Self = Self {
        low_window: 0.0,
        train_gap: Duration::from_micros(2999), // "before 3000", in whole microseconds
        floor: Duration::from_micros(125),
        rise: (Duration::ZERO, Duration::MAX),
        paced: false,
        late: true,
        once: false,
    };
}

/// Ends slow start where the BDP seems to be in flight: where a round's ACKs come as one train that is longer than the
/// one-way delay, or where the round-trip time has risen.
#[derive(Clone, Debug)]
pub struct HyStart {
    by_train: bool,
    by_delay: bool,
    shape: HyStartShape,
    /// The least round-trip time seen.
    delay_min: Option<Duration>,
    found: bool,
    rounds: Rounds,
    /// Start and latest ACK of this round's train.
    train: Option<(Time, Time)>,
    /// The least round-trip time of this round.
    round_min: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Detection by ACK trains and/or by delay.
    pub fn new(by_train: bool, by_delay: bool, shape: HyStartShape) -> Self {
        Self {
            by_train,
            by_delay,
            shape,
            delay_min: None,
            found: false,
            rounds: Rounds::default(),
            train: None,
            round_min: None,
            samples: 0,
        }
    }

    /// Lowers the threshold to the window if this ACK shows that the BDP is in flight.
    pub fn on_ack(&mut self, ack: &Ack, window: &mut Window) {
        let Some(rtt) = ack.rtt else { return };
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        if !window.in_slow_start() || self.found && self.shape.once {
            return;
        }
        let ended = self.rounds.next(ack.una, ack.nxt);
        if ended && !self.shape.late {
            self.begin_round(Some((ack.now, ack.now)));
        }
        let full = window.cwnd >= self.shape.low_window && self.pipe_is_full(ack, rtt, delay_min);
        if full {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
        if ended && self.shape.late {
            self.begin_round(None);
        }
    }

    /// Forgets what was measured.
    pub fn reset(&mut self) {
        *self = Self::new(self.by_train, self.by_delay, self.shape.clone());
    }

    fn begin_round(&mut self, train: Option<(Time, Time)>) {
        self.train = train;
        self.round_min = None;
        self.samples = 0;
    }

    fn pipe_is_full(&mut self, ack: &Ack, rtt: Duration, delay_min: Duration) -> bool {
        let by_train = self.by_train && self.train_is_long(ack, delay_min);
        let by_delay = self.by_delay && self.delay_has_risen(rtt, delay_min);
        by_train || by_delay
    }

    fn train_is_long(&mut self, ack: &Ack, delay_min: Duration) -> bool {
        let (start, last) = match self.train {
            // CDG's train needs a used window, CUBIC's does not.
            Some(train) if ack.window_limited || !self.shape.late => train,
            _ => (ack.now, ack.now),
        };
        if ack.now - last > self.shape.train_gap {
            return false;
        }
        self.train = Some((start, ack.now));
        let delay = if self.shape.paced { delay_min } else { delay_min / 2 };
        ack.now - start > delay.max(self.shape.floor)
    }

    fn delay_has_risen(&mut self, rtt: Duration, delay_min: Duration) -> bool {
        let round_min = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(round_min);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let (least, greatest) = self.shape.rise;
        round_min > (delay_min + (delay_min / 8).clamp(least, greatest)).max(self.shape.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Flow,
        part::{HyStartKind, SlowStart},
    };

    const MSS: u64 = 1000;

    fn window(cwnd: u32) -> Window {
        Window::new(&Flow { mss: MSS as u32, initial_window: cwnd, seed: 0 })
    }

    /// Gives one round of `count` ACKs, `gap` microseconds apart from `start` on, with round-trip time `rtt`. Returns
    /// the ACK (from 1) at which slow start ended.
    fn round(
        slow_start: &mut SlowStart,
        window: &mut Window,
        una: &mut u64,
        start: u64,
        gap: u64,
        rtt: u64,
        count: u64,
    ) -> Option<u64> {
        let nxt = *una + (count + 1) * MSS;
        for n in 0..count {
            *una += MSS;
            let ack = Ack {
                now: Time::from_nanos((start + n * gap) * 1000),
                packets: 1,
                rtt: Some(Duration::from_micros(rtt)),
                una: *una,
                nxt,
                window_limited: true,
                ..Ack::default()
            };
            slow_start.on_ack(&ack, window);
            if !window.in_slow_start() {
                return Some(n + 1);
            }
        }
        None
    }

    #[test]
    fn a_train_longer_than_half_the_minimum_delay() {
        // 20 ms, ACKs 1 ms apart: the twelfth comes 11 ms after the first, the eleventh exactly at the threshold.
        for (paced, end) in [(false, 12), (true, 22)] {
            let mut slow_start = SlowStart::shaped(HyStartKind::Train, HyStartShape { paced, ..HyStartShape::CUBIC });
            let mut window = window(16);
            assert_eq!(round(&mut slow_start, &mut window, &mut 0, 0, 1000, 20_000, 40), Some(end));
            assert_eq!(window.cwnd, 16.0 + (end - 1) as f64);
        }
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_breaks_cubics_train() {
        for (gap, end) in [(2000, Some(7)), (2001, None)] {
            let mut slow_start = SlowStart::new(HyStartKind::Train, 16.0);
            assert_eq!(round(&mut slow_start, &mut window(16), &mut 0, 0, gap, 20_000, 40), end);
        }
        let mut slow_start = SlowStart::cdg(HyStartKind::Train);
        assert!(round(&mut slow_start, &mut window(16), &mut 0, 0, 2999, 20_000, 40).is_some());
        let mut slow_start = SlowStart::cdg(HyStartKind::Train);
        assert!(round(&mut slow_start, &mut window(16), &mut 0, 0, 3000, 20_000, 40).is_none());
    }

    #[test]
    fn below_the_low_window_nothing_is_looked_for() {
        for (low_window, ends) in [(16.0, false), (0.0, true)] {
            let mut slow_start = SlowStart::new(HyStartKind::On, low_window);
            let end = round(&mut slow_start, &mut window(2), &mut 0, 0, 900, 10_000, 10);
            assert_eq!(end.is_some(), ends);
        }
        assert!(round(&mut SlowStart::cdg(HyStartKind::On), &mut window(2), &mut 0, 0, 900, 10_000, 10).is_some());
    }

    #[test]
    fn delay_needs_eight_samples_and_a_rise_of_an_eighth_within_bounds() {
        // (minimum delay, the least delay of the next round that ends slow start), microseconds: 4 ms, 1/8, 16 ms.
        for (min, bound) in [(10_000, 14_000), (80_000, 90_000), (400_000, 416_000)] {
            for (rtt, end) in [(bound, None), (bound + 1, Some(9))] {
                let mut slow_start = SlowStart::new(HyStartKind::Delay, 16.0);
                let (mut window, mut una) = (window(16), 0);
                assert_eq!(round(&mut slow_start, &mut window, &mut una, 0, 5000, min, 12), None);
                // The next ACK must lie beyond this round's end.
                una += MSS;
                assert_eq!(round(&mut slow_start, &mut window, &mut una, 1_000_000, 5000, rtt, 12), end);
            }
        }
    }

    #[test]
    fn cdgs_delay_threshold_is_an_eighth_and_at_least_125_us() {
        for (min, bound) in [(10_000, 11_250), (100, 125)] {
            for (rtt, end) in [(bound, false), (bound + 1, true)] {
                let mut slow_start = SlowStart::cdg(HyStartKind::Delay);
                let (mut window, mut una) = (window(4), 0);
                assert_eq!(round(&mut slow_start, &mut window, &mut una, 0, 5000, min, 12), None);
                una += MSS;
                let found = round(&mut slow_start, &mut window, &mut una, 1_000_000, 5000, rtt, 12).is_some();
                assert_eq!(found, end, "{min} {rtt}");
            }
        }
    }

    #[test]
    fn after_a_timeout_it_may_end_slow_start_again() {
        let mut slow_start = SlowStart::new(HyStartKind::Train, 16.0);
        let (mut window, mut una) = (window(16), 0);
        assert!(round(&mut slow_start, &mut window, &mut una, 0, 1000, 20_000, 40).is_some());
        una += 100 * MSS;
        window.ssthresh = f64::INFINITY;
        assert_eq!(round(&mut slow_start, &mut window, &mut una, 1_000_000, 1000, 20_000, 40), None);
        slow_start.reset();
        una += 100 * MSS;
        assert!(round(&mut slow_start, &mut window, &mut una, 2_000_000, 1000, 20_000, 40).is_some());
    }
}
