// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth with a price weight: from one segment per RTT towards CUBIC's.
//!
//! On long paths Reno's growth limits an ordinary flow, and no weight helps it to meet a deadline there. In an RTT
//!
//! ```text
//! increase = (1 - w)·Reno's + w·CUBIC's
//! ```
//!
//! CUBIC's is what its own window would gain if it had followed CUBIC since the last reduction. The present window
//! would not do: CUBIC closes the gap to its curve within an RTT, and a tenth of that in each of ten rounds is all of
//! CUBIC.
//!
//! What a loss leaves of the window changes from the law's own part to CUBIC's in the same way: with CUBIC's growth and
//! Reno's halving, a flow of weight 1 gets between half and two thirds of a CUBIC flow's share.

use crate::{
    Ack, Restart,
    part::{Cubic, CubicShape, Window},
};

/// What CUBIC keeps of its window (RFC 9438, section 4.6).
const BETA_CUBIC: f64 = 0.7;

#[derive(Clone, Debug)]
pub(super) struct Blend {
    cubic: Cubic,
    /// What a loss leaves at a weight of 0.
    beta: f64,
    /// The weight; `None`: not set, all Reno.
    weight: Option<f64>,
    /// The window that CUBIC would have, once it has begun to grow from the flow's.
    own: Option<Window>,
}

impl Blend {
    /// `beta` is what a loss leaves.
    pub(super) const fn new(beta: f64) -> Self {
        Self { cubic: Cubic::new(beta, CubicShape::RFC_9438), beta, weight: None, own: None }
    }

    pub(super) const fn set_weight(&mut self, weight: f64) {
        self.weight = Some(weight);
        self.cubic.set_beta(self.beta_loss());
    }

    /// What a loss leaves of the window.
    pub(super) const fn beta_loss(&self) -> f64 {
        match self.weight {
            Some(weight) => (1.0 - weight) * self.beta + weight * BETA_CUBIC,
            None => self.beta,
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack, packets: f64, window: &mut Window) {
        let rounds = packets / window.cwnd;
        let Some(weight) = self.weight else {
            window.cwnd += rounds;
            return;
        };
        if packets == 0.0 {
            self.cubic.on_ack(ack, 0.0, window);
            if window.in_slow_start() {
                self.own = None;
            }
            return;
        }
        let own = self.own.get_or_insert_with(|| window.clone());
        let before = own.cwnd;
        self.cubic.on_ack(ack, rounds * before, own);
        // Never faster than slow start, however large CUBIC's own window is.
        let gained = ((1.0 - weight) * rounds + weight * (own.cwnd - before)).min(packets);
        window.cwnd += gained;
    }

    pub(super) fn on_reduction(&mut self, window: &Window) {
        self.cubic.on_reduction(window);
        self.own = None;
    }

    pub(super) fn on_timeout(&mut self, window: &Window) {
        self.cubic.on_timeout(window);
        self.own = None;
    }

    pub(super) fn on_spurious(&mut self) {
        self.cubic.on_spurious();
        self.own = None;
    }

    pub(super) fn on_restart(&mut self, restart: &Restart) {
        self.cubic.on_restart(restart);
        self.own = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, Time, part::Increase};
    use std::time::Duration;

    const RTT: Duration = Duration::from_millis(100);

    /// The windows of so many rounds after a reduction from 200 to 100 segments.
    fn rounds(mut grow: impl FnMut(&Ack, f64, &mut Window), rounds: u32) -> Vec<f64> {
        let mut window = Window::new(&Flow { mss: 1000, initial_window: 100, seed: 0 });
        window.ssthresh = 100.0;
        let round = |round: u32| {
            let ack = Ack { now: Time::ZERO + RTT * round, rtt: Some(RTT), packets: 1, ..Ack::default() };
            for _ in 0..window.cwnd as u32 {
                grow(&ack, 1.0, &mut window);
            }
            window.cwnd
        };
        (0..rounds).map(round).collect()
    }

    fn before() -> Window {
        Window::new(&Flow { mss: 1000, initial_window: 200, seed: 0 })
    }

    fn blended(weight: Option<f64>, n: u32) -> Vec<f64> {
        let mut blend = Blend::new(0.5);
        if let Some(weight) = weight {
            blend.set_weight(weight);
        }
        blend.on_reduction(&before());
        rounds(|ack, packets, window| blend.on_ack(ack, packets, window), n)
    }

    #[test]
    fn the_ends_are_reno_and_cubic() {
        let mut reno = Increase::Reno;
        let reno = rounds(|ack, packets, window| reno.on_ack(ack, packets, window), 60);
        let mut cubic = Cubic::new(0.7, CubicShape::RFC_9438);
        cubic.on_reduction(&before());
        let cubic = rounds(|ack, packets, window| cubic.on_ack(ack, packets, window), 60);
        assert_eq!(blended(None, 60), reno);
        assert_eq!(blended(Some(1.0), 60), cubic);
        for (slow, reno) in blended(Some(1e-9), 60).iter().zip(&reno) {
            assert!((slow - reno).abs() < 1e-6);
        }
    }

    #[test]
    fn a_loss_leaves_as_much_as_growth_is_worth() {
        let mut blend = Blend::new(0.5);
        assert_eq!(blend.beta_loss(), 0.5);
        for (weight, beta) in [(0.0, 0.5), (0.5, 0.6), (1.0, 0.7)] {
            blend.set_weight(weight);
            assert!((blend.beta_loss() - beta).abs() < 1e-12);
        }
    }

    #[test]
    fn a_weight_in_between_gains_as_much_in_between() {
        let gain = |weight: f64| blended(Some(weight), 50)[49] - 100.0;
        let (reno, half, cubic) = (gain(1e-9), gain(0.5), gain(1.0));
        assert!(cubic > reno + 20.0, "{reno} {cubic}");
        // Rounds of different windows are not quite the same rounds.
        assert!((half - (reno + cubic) / 2.0).abs() < 0.02 * cubic, "{reno} {half} {cubic}");
    }
}
