// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth that gets faster the longer it goes on: `alpha_inc` of CDG in FreeBSD (`sys/netinet/cc/cc_cdg.c`).
//!
//! Notable differences from FreeBSD: the increment is spread over the ACKs of a round instead of added at once, and by
//! default means what the comment there says, not what the code does.

use super::{Rounds, Window};
use crate::Ack;

/// One segment per round trip for `alpha_inc` rounds, then two for as many, and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct AlphaInc {
    alpha_inc: u32,
    as_coded: bool,
    /// The present round, if any since the last reduction.
    round: Option<Rounds>,
    /// Rounds completed since the last reduction.
    completed: u32,
}

impl AlphaInc {
    /// Eight rounds for each increment: as many as CDG smooths its gradient over.
    pub const DEFAULT: Self = Self::new(8, false);

    /// `alpha_inc` is the number of rounds for each increment; 0: always one segment per round trip.
    ///
    /// `as_coded` is what FreeBSD does: the increment starts at zero, so that the first `alpha_inc - 1` rounds add
    /// nothing.
    pub const fn new(alpha_inc: u32, as_coded: bool) -> Self {
        Self { alpha_inc, as_coded, round: None, completed: 0 }
    }

    /// Segments per round trip.
    pub fn increment(&self) -> f64 {
        let completed = f64::from(self.completed);
        match (self.alpha_inc, self.as_coded) {
            (0, _) => 1.0,
            (every, false) => 1.0 + (completed / f64::from(every)).floor(),
            (every, true) => ((completed + 1.0) / f64::from(every)).floor(),
        }
    }

    /// A round is over, counted by a law that adds its segments at once: how many these are.
    pub fn on_round(&mut self) -> f64 {
        let increment = self.increment();
        self.completed = self.completed.saturating_add(1);
        increment
    }

    /// Grows the window by this many acknowledged segments. Slow start begins the count of rounds anew.
    pub fn on_ack(&mut self, ack: &Ack, packets: f64, window: &mut Window) {
        if window.in_slow_start() {
            self.reset();
        }
        if packets == 0.0 {
            return;
        }
        let round = self.round.get_or_insert_with(|| {
            let mut round = Rounds::default();
            round.start(ack.nxt);
            round
        });
        if round.next(ack.una, ack.nxt) {
            self.completed = self.completed.saturating_add(1);
        }
        window.cwnd += packets * self.increment() / window.cwnd;
    }

    /// The window is reduced.
    pub fn reset(&mut self) {
        self.round = None;
        self.completed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flow;

    /// The growth of each of the first rounds, rounded to segments.
    fn growth(mut increase: AlphaInc, rounds: u64) -> Vec<i64> {
        let mut window = Window::new(&Flow { mss: 1, initial_window: 1000, seed: 0 });
        window.ssthresh = 1000.0;
        let one = |round: u64| {
            let before = window.cwnd;
            // The first of two ACKs lies in the round that the last of the round before began.
            for una in [2000 * round + 1, 2000 * round + 2] {
                let ack = Ack { una, nxt: 2000 * (round + 1), ..Ack::default() };
                increase.on_ack(&ack, window.cwnd / 2.0, &mut window);
            }
            (window.cwnd - before).round() as i64
        };
        (0..rounds).map(one).collect()
    }

    #[test]
    fn the_documented_meaning() {
        assert_eq!(growth(AlphaInc::new(0, false), 4), [1, 1, 1, 1]);
        assert_eq!(growth(AlphaInc::new(1, false), 4), [1, 2, 3, 4]);
        assert_eq!(growth(AlphaInc::new(3, false), 8), [1, 1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn as_coded() {
        assert_eq!(growth(AlphaInc::new(0, true), 4), [1, 1, 1, 1]);
        assert_eq!(growth(AlphaInc::new(1, true), 4), [1, 2, 3, 4]);
        assert_eq!(growth(AlphaInc::new(3, true), 8), [0, 0, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn a_reduction_and_slow_start_begin_anew() {
        let mut increase = AlphaInc { completed: 40, ..AlphaInc::new(8, false) };
        assert_eq!(increase.increment(), 6.0);
        let mut window = Window::new(&Flow { mss: 1, initial_window: 10, seed: 0 });
        increase.on_ack(&Ack::default(), 0.0, &mut window);
        assert_eq!(increase.increment(), 1.0);
        increase.completed = 40;
        increase.reset();
        assert_eq!(increase.increment(), 1.0);
    }
}
