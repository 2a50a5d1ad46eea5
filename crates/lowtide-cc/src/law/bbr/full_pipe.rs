// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether full bandwidth is reached: the delivery rate no longer grows (draft-ietf-ccwg-bbr, section 5.3.1.2).

/// Full bandwidth is reached when the rate has grown by less than `thresh` in each of `rounds` rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullPipe {
    thresh: f64,
    rounds: u32,
    /// The rate to compare with (`full_bw`), segments per second.
    baseline: f64,
    count: u32,
    /// Whether it was reached since the last [`FullPipe::look_again`] (`full_bw_now`).
    pub(crate) now: bool,
    /// Whether it was ever reached (`full_bw_reached`).
    pub(crate) reached: bool,
}

impl FullPipe {
    pub(crate) const fn new(thresh: f64, rounds: u32) -> Self {
        Self { thresh, rounds, baseline: 0.0, count: 0, now: false, reached: false }
    }

    /// Takes a rate that is not application-limited. Rounds are counted where one starts.
    pub(crate) fn check(&mut self, bw: f64, round_start: bool) {
        if self.now {
            return;
        }
        if bw >= self.thresh * self.baseline {
            self.look_again(bw);
        } else if round_start {
            self.count += 1;
            self.now = self.count >= self.rounds;
            self.reached |= self.now;
        }
    }

    /// Tests from now on for growth beyond this rate.
    pub(crate) const fn look_again(&mut self, baseline: f64) {
        self.baseline = baseline;
        self.count = 0;
        self.now = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut full = FullPipe::new(1.25, 3);
        for (bw, count) in [(100.0, 0), (125.0, 0), (156.0, 1), (157.0, 0), (157.0, 1), (196.0, 2)] {
            full.check(bw, true);
            assert_eq!((full.count, full.reached), (count, false), "{bw}");
        }
        full.check(196.0, false);
        assert!(!full.now);
        full.check(196.0, true);
        assert!(full.now && full.reached);
        full.look_again(196.0);
        assert!(!full.now && full.reached);
    }
}
