// SPDX-License-Identifier: MIT OR Apache-2.0
//! Smoothed gradients of the extremes, the one that decides, and the state of the queue that they show.

use super::{Parameters, Variant, delay::Extremes};

/// The queue at the bottleneck, as both gradients show it (Hayes and Armitage, 2011; thesis, figure 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Not known.
    Unknown,
    /// The minimum delay rises, the maximum no longer does.
    Full,
    /// The maximum delay falls, the minimum no longer does.
    Empty,
    /// Both rise.
    Rising,
    /// Both fall.
    Falling,
}

impl Queue {
    /// The state that a pair of gradients shows, if it shows one.
    fn shown_by(min: f64, max: f64) -> Option<Self> {
        match (min, max) {
            _ if min > 0.0 && max <= 0.0 => Some(Self::Full),
            _ if min >= 0.0 && max < 0.0 => Some(Self::Empty),
            _ if min > 0.0 && max > 0.0 => Some(Self::Rising),
            _ if min < 0.0 && max < 0.0 => Some(Self::Falling),
            _ => None,
        }
    }

    /// Whether the queue is hardly full, so that a loss is not for congestion. Linux calls these states together
    /// `NONFULL`.
    pub(super) const fn excuses_loss(self) -> bool {
        matches!(self, Self::Empty | Self::Rising | Self::Falling)
    }
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// The gradient that decides, milliseconds per round. It has an effect only if it is positive.
    pub(super) gradient: f64,
    /// The smoothed gradients of the minimum and the maximum delay, milliseconds per round.
    pub(super) smoothed: (f64, f64),
    /// The state of the queue, if there is a new one.
    pub(super) queue: Option<Queue>,
    /// The queue falls: earlier back-offs had an effect.
    pub(super) falling: bool,
    /// The queue is empty, so that no loss-based flow competes.
    pub(super) uncontested: bool,
}

/// A window sum (µs) at or below which Linux calls a gradient falling.
const RESET_US: i64 = -32;

/// Linux divides window sums by this before it takes their signs, so that noise does not count.
const TOLERANCE_DIVISOR: i64 = 64;

/// The averages over the last gradients. They are sums over a ring, not differences of two delays, because there are
/// rounds without a gradient: those in and after a reduction.
#[derive(Clone, Debug)]
pub(super) struct Gradients {
    variant: Variant,
    extrapolate: bool,
    unsmoothed: bool,
    ring: Box<[Extremes]>,
    sum: Extremes,
    tail: usize,
    filled: bool,
}

const ZERO: Extremes = Extremes { min: 0, max: 0 };

impl Gradients {
    pub(super) fn new(parameters: &Parameters) -> Self {
        Self {
            variant: parameters.variant,
            extrapolate: parameters.extrapolate,
            unsmoothed: parameters.unsmoothed,
            ring: vec![ZERO; parameters.window as usize].into(),
            sum: ZERO,
            tail: 0,
            filled: false,
        }
    }

    /// The path may have changed.
    pub(super) fn clear(&mut self) {
        self.ring.fill(ZERO);
        (self.sum, self.tail, self.filled) = (ZERO, 0, false);
    }

    /// A round with this gradient (µs) has ended.
    pub(super) fn on_round(&mut self, raw: Extremes, slow_start: bool) -> Measured {
        let entries = self.push(raw);
        let min = self.smoothed(self.sum.min, entries);
        let max = self.smoothed(self.sum.max, entries);
        let (raw_min, raw_max) = (raw.min as f64, raw.max as f64);
        let prefer_raw = slow_start && self.unsmoothed;
        let gradient = match () {
            () if prefer_raw && raw_min > 0.0 => raw_min,
            () if min > 0.0 => min,
            () if prefer_raw && raw_max > 0.0 => raw_max,
            () => max,
        };
        let shown = match self.variant {
            Variant::Mainline => {
                let rounded = |sum| divide_rounding(sum, TOLERANCE_DIVISOR) as f64;
                Queue::shown_by(rounded(self.sum.min), rounded(self.sum.max))
            }
            Variant::Thesis | Variant::FreeBsd => Queue::shown_by(min, max),
        };
        Measured {
            gradient: gradient / 1000.0,
            smoothed: (min / 1000.0, max / 1000.0),
            queue: shown,
            falling: match self.variant {
                Variant::Mainline => self.sum.min <= RESET_US || self.sum.max <= RESET_US,
                Variant::Thesis | Variant::FreeBsd => min < 0.0 || max < 0.0,
            },
            uncontested: match self.variant {
                Variant::Mainline => false,
                Variant::Thesis => min >= 0.0 && max < 0.0, // also where that reads as full
                Variant::FreeBsd => shown == Some(Queue::Empty),
            },
        }
    }

    /// Replaces the oldest gradient. Returns how many there are now.
    fn push(&mut self, raw: Extremes) -> usize {
        let old = std::mem::replace(&mut self.ring[self.tail], raw);
        self.sum.min += raw.min - old.min;
        self.sum.max += raw.max - old.max;
        self.tail = (self.tail + 1) % self.ring.len();
        self.filled |= self.tail == 0;
        if self.filled { self.ring.len() } else { self.tail }
    }

    /// The average of gradients with this sum, µs.
    fn smoothed(&self, sum: i64, entries: usize) -> f64 {
        let divisor = if self.extrapolate { entries } else { self.ring.len() };
        match self.variant {
            Variant::Thesis => divide_rounding(sum, divisor as i64) as f64,
            Variant::Mainline | Variant::FreeBsd => sum as f64 / divisor as f64,
        }
    }
}

/// The quotient, rounded to nearest and away from zero (`DIV_ROUND_CLOSEST`).
const fn divide_rounding(dividend: i64, divisor: i64) -> i64 {
    let half = if dividend < 0 { -(divisor / 2) } else { divisor / 2 };
    (dividend + half) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradients(text: &str) -> Gradients {
        Gradients::new(&crate::text::read::<Parameters>(text).unwrap())
    }

    fn both(gradient: i64) -> Extremes {
        Extremes { min: gradient, max: gradient }
    }

    /// The gradient after these, in slow start or not.
    fn after(text: &str, history: &[(i64, i64)], slow_start: bool) -> Measured {
        let mut gradients = gradients(text);
        let raw = history.iter().map(|(min, max)| Extremes { min: *min, max: *max });
        raw.map(|raw| gradients.on_round(raw, slow_start)).last().unwrap()
    }

    #[test]
    fn averages_over_the_window() {
        for text in ["", "variant=thesis", "variant=freebsd", "window=3", "window=256"] {
            let mut gradients = gradients(text);
            let window = gradients.ring.len();
            for n in 0..2 * window as i64 {
                gradients.on_round(both(1000 * n), false);
            }
            let last = gradients.on_round(both(2000 * window as i64), false);
            let mean = (1..=2 * window).rev().take(window).sum::<usize>() as f64 / window as f64;
            assert_eq!(last.gradient, mean, "{text}");
        }
    }

    #[test]
    fn mainline_extrapolates_the_others_pad_with_zeros() {
        assert_eq!(after("", &[(800, 800)], false).gradient, 0.8);
        assert_eq!(after("", &[(800, 800), (400, 0)], false).gradient, 0.6);
        for text in ["variant=thesis", "variant=freebsd", "extrapolate=off"] {
            assert_eq!(after(text, &[(800, 800)], false).gradient, 0.1);
            assert_eq!(after(text, &[(800, 800), (400, 0)], false).gradient, 0.15);
        }
    }

    #[test]
    fn which_gradient_decides() {
        // Mainline: smoothed always, of the minima if that rises, else of the maxima.
        let history = [(-8000, 8000), (1600, -1600)];
        assert_eq!(after("", &history, true).gradient, 3.2);
        assert_eq!(after("", &[(0, 500)], true).gradient, 0.5);
        // The others in slow start: gmin, its average, gmax, its average.
        for text in ["variant=thesis", "variant=freebsd"] {
            assert_eq!(after(text, &history, true).gradient, 1.6);
            assert_eq!(after(text, &history, false).gradient, 0.8);
            assert_eq!(after(text, &[(8000, 0), (-1600, 1600)], true).gradient, 0.8);
            assert_eq!(after(text, &[(-8000, 0), (0, 1600)], true).gradient, 1.6);
            assert_eq!(after(text, &[(-8000, 8000), (-1600, -1600)], true).gradient, 0.8);
        }
    }

    #[test]
    fn the_thesis_rounds_to_microseconds() {
        assert_eq!(after("variant=thesis", &[(3, 3)], false).gradient, 0.0);
        assert_eq!(after("variant=thesis", &[(4, 4)], false).gradient, 0.001);
        assert!(after("variant=freebsd", &[(3, 3)], false).gradient > 0.0);
        assert_eq!([-5, -4, -3, 3, 4].map(|sum| divide_rounding(sum, 8)), [-1, -1, 0, 0, 1]);
    }

    #[test]
    fn falling_is_32_us_in_mainline_and_anything_in_the_others() {
        let falling = |text, min, max| after(text, &[(min, max)], false).falling;
        assert!(!falling("", -31, -31) && falling("", -32, 0) && falling("", 0, -32));
        assert!(!falling("variant=thesis", -3, -3) && falling("variant=thesis", -4, 0));
        assert!(falling("variant=freebsd", 0, -1) && !falling("variant=freebsd", 0, 0));
    }

    #[test]
    fn states_of_the_queue() {
        let shown = |min, max| Queue::shown_by(min, max);
        assert_eq!(shown(1.0, 0.0), Some(Queue::Full));
        assert_eq!(shown(1.0, -1.0), Some(Queue::Full)); // tested before empty
        assert_eq!(shown(0.0, -1.0), Some(Queue::Empty));
        assert_eq!(shown(1.0, 1.0), Some(Queue::Rising));
        assert_eq!(shown(-1.0, -1.0), Some(Queue::Falling));
        for unchanged in [(0.0, 0.0), (-1.0, 0.0), (-1.0, 1.0), (0.0, 1.0)] {
            assert_eq!(shown(unchanged.0, unchanged.1), None);
        }
        use Queue::{Empty, Falling, Full, Rising, Unknown};
        assert_eq!([Unknown, Full, Empty, Rising, Falling].map(Queue::excuses_loss), [false, false, true, true, true]);
    }

    #[test]
    fn mainline_rounds_the_sums_before_it_reads_the_queue() {
        assert_eq!(after("", &[(31, 31)], false).queue, None);
        assert_eq!(after("", &[(32, 31)], false).queue, Some(Queue::Full));
        assert_eq!(after("variant=thesis", &[(31, 31)], false).queue, Some(Queue::Rising));
        assert_eq!(after("variant=freebsd", &[(31, 31)], false).queue, Some(Queue::Rising));
    }

    #[test]
    fn who_calls_the_queue_empty() {
        let uncontested = |text, min, max| after(text, &[(min, max)], false).uncontested;
        assert!(!uncontested("", 0, -8000));
        assert!(uncontested("variant=thesis", 0, -8000) && uncontested("variant=thesis", 8000, -8000));
        assert!(uncontested("variant=freebsd", 0, -8000) && !uncontested("variant=freebsd", 8000, -8000));
        assert!(!uncontested("variant=freebsd", -8000, -8000));
    }
}
