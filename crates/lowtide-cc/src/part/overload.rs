// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overload mode: a large reduction at once when the queue grows unusually (J. Misund, "Delay based additive increase
//! for scalable congestion controls", sections 1 and 6.2).
//!
//! The paper fixes the idea only: on an unusually large queueing delay, reduce by the proportion of marks or by what
//! drains the queue, whichever is larger; by delay at most every other round trip. The definition here:
//!
//! - `q` is a round's least round-trip time above the path's (`base`), `F` its fraction of marked segments, unsmoothed.
//!   `q_max` is the average of the greatest `q` of each cycle between reactions.
//! - A round with a mark and `q > q_max + Q` is overload. The window loses `r = max(F/2, r_q)` of itself, where `r_q =
//!   q/(base + q)` drains the queue exactly. With `q_aqm`, the delay that the queue discipline keeps anyway stays: `r_q
//!   = (q - q_aqm)/(base + q)`.
//! - `q_max` moves towards `q` then, so that acceleration's own overshoot does not make overload again and again.
//!
//! One congestion, one reduction:
//!
//! - What the law took off the window for marks in the same round counts: overload takes the rest.
//! - All that is acknowledged in the round after an overload was sent before the reduction. It says nothing of its
//!   effect, so the law ignores marks in it ([`Overload::is_answered`]), and with [`Judged::Fresh`] it is not judged.
//!   `Judged::Every` is the paper's "ECN is reacted to every round-trip time" by its letter: it is judged, by `F/2`
//!   alone.
//!
//! The reduction may come in the middle of a transport's episode, when a mark of the same round began it. The transport
//! may then keep the episode's end or move it: the law itself ignores what is answered.
//!
//! The cycle that ends slow start does not count, and `q_max` starts with the cycle after it.

use super::Overshoot;
use crate::{Ack, Time, text::values};
use std::{ops::RangeInclusive, time::Duration};

values! {
    /// Which rounds overload mode judges.
    pub enum Judged {
        /// Those whose segments were sent after the last overload's reduction.
        Fresh = "fresh",
        /// Every round; by marks alone in the round after an overload.
        Every = "every",
    }
}

/// What overload mode can be set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverloadSettings {
    /// Acceptable overshoot above the usual queueing delay (`Q`).
    pub q: Overshoot,
    /// Gain of the average `q_max`.
    pub gain: f64,
    /// The queueing delay that the queue discipline keeps anyway (`q_aqm`); zero to drain the queue.
    pub q_aqm: Duration,
    /// How long the least round-trip time holds; zero: for the connection's life.
    pub base_window: Duration,
    /// Which rounds are judged.
    pub judged: Judged,
}

impl OverloadSettings {
    /// The range of `q_aqm`.
    pub const Q_AQM: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(1);
    /// The range of `base_window`.
    pub const BASE_WINDOW: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);
}

/// The state of overload mode. Times are seconds.
#[derive(Clone, Debug)]
pub struct Overload {
    settings: OverloadSettings,
    base: BaseRtt,
    round_min: Option<f64>,
    /// The latest round's queueing delay.
    q: f64,
    /// The greatest `q` since the last reaction.
    peak: f64,
    q_max: Option<f64>,
    /// Whether this round began with an overload's reduction.
    answered: bool,
    /// Whether the delay may be reacted to (not two rounds in a row).
    delay_ok: bool,
    /// What the law's reductions in this round have left of the window.
    left: f64,
    /// The latest overload's reduction.
    r: f64,
    count: u64,
}

impl Overload {
    /// Overload mode, with nothing learned.
    pub const fn new(settings: OverloadSettings) -> Self {
        Self {
            settings,
            base: BaseRtt::NONE,
            round_min: None,
            q: 0.0,
            peak: 0.0,
            q_max: None,
            answered: false,
            delay_ok: true,
            left: 1.0,
            r: 0.0,
            count: 0,
        }
    }

    /// Takes an ACK's round-trip sample.
    pub fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs_f64();
            self.base.add(ack.now, rtt, self.settings.base_window);
            self.round_min = Some(self.round_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// A round ended, with this fraction of its segments marked. Returns the factor to multiply the window by if the
    /// round was overload.
    pub fn on_round(&mut self, fraction: f64) -> Option<f64> {
        let already = std::mem::replace(&mut self.left, 1.0);
        let answered = std::mem::replace(&mut self.answered, false);
        let (base, rtt) = (self.base.least()?, self.round_min.take()?);
        self.q = (rtt - base).max(0.0);
        self.peak = self.peak.max(self.q);
        if answered && self.settings.judged == Judged::Fresh {
            self.delay_ok = true;
            return None;
        }
        let threshold = self.q_max? + self.settings.q.seconds(base);
        if fraction == 0.0 || self.q <= threshold {
            self.delay_ok = true;
            return None;
        }
        self.r = self.reduction(fraction, base);
        self.delay_ok = !self.delay_ok;
        self.answered = true;
        self.count += 1;
        self.learn(self.q);
        Some(((1.0 - self.r) / already).min(1.0))
    }

    /// `r = max(F/2, r_q)`.
    fn reduction(&self, fraction: f64, base: f64) -> f64 {
        let by_marks = fraction / 2.0;
        let drained = (self.q - self.settings.q_aqm.as_secs_f64()).max(0.0);
        let by_delay = if self.delay_ok { drained / (base + self.q) } else { 0.0 };
        by_marks.max(by_delay)
    }

    /// The law reduced its window to `left` of it, for another reason than overload; `cycle` says whether that ends a
    /// cycle of congestion avoidance.
    pub fn on_reaction(&mut self, left: f64, cycle: bool) {
        self.left *= left;
        if cycle {
            self.learn(self.peak);
        }
        self.peak = 0.0;
    }

    /// A cycle is broken off, by a timeout or by idleness.
    pub const fn reset(&mut self) {
        self.peak = 0.0;
        self.left = 1.0;
        self.round_min = None;
        self.answered = false;
    }

    /// Whether what is acknowledged now was sent before the reduction for an overload, so that its marks are answered.
    pub const fn is_answered(&self) -> bool {
        self.answered
    }

    fn learn(&mut self, q: f64) {
        self.q_max = Some(self.q_max.map_or(q, |q_max| q_max + self.settings.gain * (q - q_max)));
    }

    /// Shows the state to a probe, times in milliseconds.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("overload_base", self.base.least().unwrap_or(0.0) * 1e3);
        show("overload_q", self.q * 1e3);
        show("overload_q_max", self.q_max.unwrap_or(0.0) * 1e3);
        show("overload_r", self.r);
        show("overload_count", self.count as f64);
    }
}

/// The least round-trip time of the last one to two window halves.
#[derive(Clone, Debug)]
struct BaseRtt {
    since: Time,
    current: Option<f64>,
    previous: Option<f64>,
}

impl BaseRtt {
    const NONE: Self = Self { since: Time::ZERO, current: None, previous: None };

    fn add(&mut self, now: Time, rtt: f64, window: Duration) {
        if !window.is_zero() && self.current.is_some() && now - self.since > window / 2 {
            self.previous = self.current.take();
        }
        if self.current.is_none() {
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    fn least(&self) -> Option<f64> {
        let current = self.current?;
        Some(self.previous.map_or(current, |previous| previous.min(current)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: OverloadSettings = OverloadSettings {
        q: Overshoot::MILLISECOND,
        gain: 1.0 / 16.0,
        q_aqm: Duration::ZERO,
        base_window: Duration::ZERO,
        judged: Judged::Fresh,
    };

    /// A round with this queueing delay above 15 ms.
    fn round(overload: &mut Overload, q_ms: f64, fraction: f64) -> Option<f64> {
        let rtt = Some(Duration::from_secs_f64(0.015 + q_ms / 1e3));
        overload.on_ack(&Ack { rtt, ..Ack::default() });
        overload.on_round(fraction)
    }

    /// Has seen the path empty, and cycles with a peak of 3 ms.
    fn settled(settings: OverloadSettings) -> Overload {
        let mut overload = Overload::new(settings);
        round(&mut overload, 0.0, 0.0);
        for _ in 0..5 {
            round(&mut overload, 3.0, 0.0);
            overload.on_reaction(0.95, true);
            round(&mut overload, 1.0, 0.0);
        }
        overload
    }

    fn near(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-6)
    }

    #[test]
    fn drains_the_queue_exactly() {
        let mut overload = settled(SETTINGS);
        // 150 segments on a path of 62.5 and 15 ms: a queue of 21 ms. What is left is the path's own.
        let left = round(&mut overload, 21.0, 1.0).unwrap();
        assert!((overload.r - 21.0 / 36.0).abs() < 1e-6);
        assert!((150.0 * left - 62.5).abs() < 1e-3);
        assert!((overload.q_max.unwrap() - (0.003 + (0.021 - 0.003) / 16.0)).abs() < 1e-6);
    }

    #[test]
    fn the_larger_of_marks_and_delay() {
        assert!(near(round(&mut settled(SETTINGS), 5.0, 1.0), 0.5)); // F/2 = 0.5 above 5/20
        assert!(near(round(&mut settled(SETTINGS), 5.0, 0.1), 0.75));
        let kept = OverloadSettings { q_aqm: Duration::from_millis(3), ..SETTINGS };
        assert!(near(round(&mut settled(kept), 21.0, 0.1), 0.5)); // (21 - 3)/36
    }

    #[test]
    fn only_above_the_usual_delay_and_only_with_marks() {
        assert_eq!(round(&mut settled(SETTINGS), 3.9, 1.0), None);
        assert_eq!(round(&mut settled(SETTINGS), 21.0, 0.0), None);
        assert!(round(&mut settled(SETTINGS), 4.1, 0.01).is_some());
        let part = OverloadSettings { q: Overshoot::percent(50.0).unwrap(), ..SETTINGS };
        assert_eq!(round(&mut settled(part), 10.4, 1.0), None); // 3 ms + half of 15 ms
        assert!(round(&mut settled(part), 10.6, 1.0).is_some());
        assert_eq!(round(&mut Overload::new(SETTINGS), 21.0, 1.0), None); // nothing learned yet
    }

    #[test]
    fn q_max_follows_the_cycles_peaks() {
        let mut overload = Overload::new(SETTINGS);
        round(&mut overload, 0.0, 0.0);
        round(&mut overload, 40.0, 1.0);
        overload.on_reaction(0.5, false); // ends slow start
        assert_eq!(overload.q_max, None);
        round(&mut overload, 2.0, 1.0);
        round(&mut overload, 1.0, 1.0);
        overload.on_reaction(0.9, true);
        assert!(near(overload.q_max, 0.002));
        round(&mut overload, 2.5, 1.0);
        overload.on_reaction(0.9, true);
        assert!(near(overload.q_max, 0.002 + 0.0005 / 16.0));
    }

    #[test]
    fn the_same_round_s_other_reduction_counts() {
        let mut overload = settled(SETTINGS);
        overload.on_reaction(0.9, true);
        let left = round(&mut overload, 21.0, 1.0).unwrap();
        assert!((0.9 * left - 15.0 / 36.0).abs() < 1e-6);
        // Where the other one was larger, nothing is left to do; and a round later it does not count any more.
        let mut overload = settled(SETTINGS);
        overload.on_reaction(0.5, true);
        assert_eq!(round(&mut overload, 5.0, 0.1), Some(1.0));
        round(&mut overload, 1.0, 0.0);
        assert!(near(round(&mut overload, 5.0, 0.1), 0.75));
    }

    #[test]
    fn the_round_after_an_overload_is_answered() {
        let mut overload = settled(SETTINGS);
        assert!(round(&mut overload, 21.0, 1.0).is_some());
        assert!(overload.is_answered());
        assert_eq!(round(&mut overload, 21.0, 1.0), None);
        assert!(!overload.is_answered());
        assert!(round(&mut overload, 21.0, 1.0).is_some());
    }

    #[test]
    fn by_delay_at_most_every_other_round() {
        let mut overload = settled(OverloadSettings { judged: Judged::Every, ..SETTINGS });
        assert!(near(round(&mut overload, 21.0, 0.2), 15.0 / 36.0));
        assert!(near(round(&mut overload, 21.0, 0.2), 0.9));
        assert!(near(round(&mut overload, 21.0, 0.2), 15.0 / 36.0));
        round(&mut overload, 1.0, 0.2); // none: the next one may be by delay again
        assert!(near(round(&mut overload, 21.0, 0.2), 15.0 / 36.0));
    }

    #[test]
    fn the_base_is_the_connection_s_or_a_window_s() {
        let sample = |base: &mut BaseRtt, s: u64, rtt, window| {
            base.add(Time::ZERO + Duration::from_secs(s), rtt, Duration::from_secs(window));
        };
        for (window, expected) in [(0, 0.010), (10, 0.020)] {
            let mut base = BaseRtt::NONE;
            assert_eq!(base.least(), None);
            sample(&mut base, 0, 0.010, window);
            sample(&mut base, 4, 0.020, window);
            sample(&mut base, 6, 0.030, window);
            assert_eq!(base.least(), Some(0.010));
            sample(&mut base, 12, 0.020, window);
            sample(&mut base, 30, 0.040, window);
            assert_eq!(base.least(), Some(expected), "{window}");
        }
    }

    proptest! {
        #[test]
        fn what_is_left_is_a_fraction(
            events in prop::collection::vec((0u32..6, 0.0f64..1.0, 0u64..100_000_000), 0..300), every: bool,
        ) {
            let judged = if every { Judged::Every } else { Judged::Fresh };
            let mut overload = Overload::new(OverloadSettings { judged, ..SETTINGS });
            for (event, fraction, rtt) in events {
                match event {
                    0 => overload.on_reaction(1.0 - fraction / 2.0, true),
                    1 => overload.reset(),
                    _ => {
                        overload.on_ack(&Ack { rtt: Some(Duration::from_nanos(rtt)), ..Ack::default() });
                        let answered = overload.is_answered();
                        let left = overload.on_round(fraction);
                        prop_assert!(left.is_none_or(|left| (0.0..=1.0).contains(&left)));
                        prop_assert!(every || !answered || left.is_none());
                    }
                }
                prop_assert!(overload.q_max.is_none_or(|q| (0.0..=0.1).contains(&q)));
            }
        }
    }
}
