// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Vegas (Brakmo and Peterson, IEEE JSAC 13(8), 1995), by default as in Linux (`net/ipv4/tcp_vegas.c`).
//!
//! Once per RTT the window is compared with the BDP. The difference is the self-induced queue, and it is kept between
//! `alpha` and `beta` segments.
//!
//! Notable differences from Linux:
//! * A window that is not the limit does not grow.
//! * Reordering alone (Linux's state Disorder) does not switch Vegas off.
//!
//! Notable differences of `original` from the paper:
//! * Loss detection and recovery are the transport's, and a loss leaves half of the window, as for Reno.
//! * The actual rate is `cwnd/rtt` of the segment whose ACK ends the round, not a count of bytes.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Random, Reaction, Recovered, Restart, Signal, Weighted,
    part::{Episode, Increase, Rounds, SlowStart, VegasRound, Window},
    text::{parameters, values},
};
use std::time::Duration;

values! {
    /// The published version.
    pub enum Variant {
        /// Linux: `diff = cwnd·(rtt - base)/base` in whole segments, with the minimum RTT of the round; slow start
        /// doubles every round.
        Linux = "linux",
        /// The paper: `diff = cwnd·(1 - base/rtt)`; slow start doubles every other round.
        Original = "original",
    }
}

parameters! {
    /// Parameters of Vegas.
    pub struct Parameters for "vegas" {
        /// The published version.
        variant: Variant = Variant::Linux;
        /// The window grows while fewer segments than these are queued.
        alpha: f64 = 2.0, in 0.0..=1e6;
        /// It shrinks while more segments than these are queued.
        beta: f64 = 4.0, in 0.0..=1e6;
        /// Slow start ends once more segments than these are queued.
        gamma: f64 = 1.0, in 0.0..=1e6;
        /// The factor that a loss leaves of the window.
        backoff: f64 = 0.5, in 0.01..=0.99;
        /// `alpha` and `beta` at a weight of 1 (paper 001, section V).
        alpha_base: f64 = 15.0, in 1.0..=1e6;
        /// The greatest `alpha` with a weight. The paper's is half of the BDP of its path: 100 segments.
        alpha_max: f64 = 100.0, in 1.0..=1e6;
        /// How far `beta` is above an `alpha` that follows from a weight. That is as far as the usual ones are apart:
        /// without a distance the window would never be constant.
        gap: f64 = 2.0, in 0.0..=1e6;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        let vegas = Vegas {
            backoff: self.backoff,
            window: Window::new(flow),
            slow_start: SlowStart::Standard,
            increase: Increase::Reno,
            round: VegasRound::new(self.alpha, self.beta, self.gamma),
            rounds: Rounds::default(),
            episode: Episode::default(),
            enabled: true,
            bounds: (self.alpha_base, self.alpha_max, self.gap),
            excused: 0.0,
            random: Random::new(flow.seed),
        };
        match self.variant {
            Variant::Linux => Box::new(vegas),
            Variant::Original => Box::new(Original { vegas, base: Duration::MAX, diff: 0.0, fixed: true }),
        }
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// Vegas as in Linux.
struct Vegas {
    backoff: f64,
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    round: VegasRound,
    rounds: Rounds,
    episode: Episode,
    /// Off from a loss until its recovery; Reno then.
    enabled: bool,
    /// `alpha_base`, `alpha_max` and `gap`.
    bounds: (f64, f64, f64),
    /// The part of losses and marks that has no effect.
    excused: f64,
    random: Random,
}

impl Vegas {
    fn reno(&mut self, ack: &Ack) {
        if ack.window_limited {
            let left = self.slow_start.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left, &mut self.window);
        }
    }

    /// Slow start alone: what it leaves is not used.
    fn slow_start(&mut self, ack: &Ack) {
        if ack.window_limited && self.window.in_slow_start() {
            self.slow_start.on_ack(ack, &mut self.window);
        }
    }

    /// Measures from here on, beginning with a whole round.
    const fn enable(&mut self, nxt: u64) {
        self.enabled = true;
        self.rounds.start(nxt);
        self.round.restart();
    }

    fn on_round(&mut self, ack: &Ack) {
        if !self.round.is_measured() {
            self.reno(ack);
        } else if self.window.in_slow_start() {
            if !self.round.ends_slow_start(&mut self.window) {
                self.slow_start(ack);
            }
        } else {
            self.round.avoid(ack, &mut self.window);
        }
        self.window.cwnd = self.window.cwnd.max(self.window.minimum);
        self.round.restart();
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if let Some(rtt) = ack.rtt {
            self.round.on_sample(rtt);
        }
        if ack.reducing {
            return Reaction::None;
        }
        if !self.enabled {
            self.reno(ack);
        } else if self.rounds.next(ack.una, ack.nxt) {
            self.on_round(ack);
        } else {
            self.slow_start(ack);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.enabled = false;
        let may_pass = self.excused > 0.0 && matches!(congestion.signal, Signal::Loss | Signal::Ecn);
        if may_pass && self.random.uniform() < self.excused {
            return;
        }
        if !self.episode.begin(congestion) {
            return;
        }
        self.increase.on_reduction(congestion.now, &self.window);
        let ssthresh = self.backoff * self.window.cwnd;
        match congestion.signal {
            Signal::Timeout => self.window.collapse(ssthresh),
            _ => self.window.reduce_to(ssthresh),
        }
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.episode.finish();
        self.enable(recovered.nxt);
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.window.restore();
        }
        self.enabled = true;
        self.round.restart();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.increase.on_restart(restart);
        // Linux forgets the base when it sends after idleness (CA_EVENT_TX_START).
        self.round.forget();
        self.enable(restart.nxt);
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.window.scale(factor);
        true
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("base", 1e3 * self.round.base());
        show("diff", self.round.diff());
        show("alpha", self.round.alpha);
    }
}

impl Weighted for Vegas {
    fn set_weight(&mut self, weight: f64) {
        self.set_weight_and_ratio(weight, 1.0);
    }

    /// `alpha = clamp(µ·alpha_base, 1, alpha_max)` with µ = w·φ (paper 001, section IV-B). If delay costs more than the
    /// losses of others (φ > 1), a flow of weight 1 reacts only to every φ-th loss: it pays the rest in delay.
    fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        let (base, max, gap) = self.bounds;
        let mu = weight.max(0.0) * ratio.max(0.0);
        self.round.alpha = (mu * base).max(1.0).min(max);
        self.round.beta = self.round.alpha + gap;
        self.excused = if weight >= 1.0 && mu > 1.0 { 1.0 - 1.0 / mu } else { 0.0 };
    }
}

/// Vegas as in the paper; window, loss and rounds are as in Linux.
struct Original {
    vegas: Vegas,
    /// The minimum RTT of the connection.
    base: Duration,
    diff: f64,
    /// Whether the window stays the same in this round of slow start, so that the rates can be compared.
    fixed: bool,
}

impl Original {
    /// Compares the rates by the RTT of the first segment of the round.
    fn on_round(&mut self, ack: &Ack, rtt: Duration) {
        let Self { vegas: Vegas { window, round, .. }, .. } = self;
        if !rtt.is_zero() {
            self.diff = window.cwnd * (1.0 - self.base.as_secs_f64() / rtt.as_secs_f64());
        }
        if window.in_slow_start() {
            if self.fixed && self.diff > round.gamma {
                window.ssthresh = window.cwnd;
            }
            self.fixed = !self.fixed;
        } else if self.diff > round.beta {
            window.cwnd = (window.cwnd - 1.0).max(window.minimum);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.diff < round.alpha && ack.window_limited {
            window.cwnd += 1.0;
        }
    }
}

impl CongestionControl for Original {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.base = self.base.min(ack.rtt.unwrap_or(Duration::MAX));
        if ack.reducing {
            return Reaction::None;
        }
        if !self.vegas.enabled {
            self.vegas.reno(ack);
            return Reaction::None;
        }
        if self.vegas.rounds.next(ack.una, ack.nxt)
            && let Some(rtt) = ack.rtt
        {
            self.on_round(ack, rtt);
        }
        if !self.fixed {
            self.vegas.slow_start(ack);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.vegas.on_congestion(congestion);
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.vegas.on_recovered(recovered);
    }

    fn on_spurious(&mut self) {
        self.vegas.on_spurious();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.vegas.on_restart(restart);
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.vegas.scale_window(factor)
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        self.vegas.weighted()
    }

    fn window(&self) -> u64 {
        self.vegas.window()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.vegas.ssthresh()
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if self.base != Duration::MAX {
            show("base", 1e3 * self.base.as_secs_f64());
        }
        show("diff", self.diff);
        show("alpha", self.vegas.round.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Time, testing::queue_path::Path};

    const FLOW: Flow = Flow { mss: 1000, initial_window: 10, seed: 1 };

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// One round of `rtts`, all acknowledging the window, whose last ACK ends the round.
    fn round(law: &mut dyn CongestionControl, una: &mut u64, rtts: &[u64]) -> u64 {
        for (n, rtt) in rtts.iter().enumerate() {
            *una += if n + 1 == rtts.len() { 1_000_000 } else { 0 };
            let _ = law.on_ack(&Ack {
                rtt: Some(ms(*rtt)),
                packets: 1,
                bytes: 1000,
                una: *una,
                nxt: *una,
                window_limited: true,
                ..Ack::default()
            });
        }
        law.window()
    }

    /// A law in congestion avoidance with a window of ten segments.
    fn avoiding(text: &str) -> Box<dyn CongestionControl> {
        let mut law = text.parse::<crate::Law>().unwrap().build(&Flow { initial_window: 20, ..FLOW });
        law.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, una: 0, nxt: 0, in_flight: 0 });
        law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
        assert_eq!((law.window(), law.ssthresh()), (10_000, Some(10_000)));
        law
    }

    #[test]
    fn the_window_follows_diff_once_a_round() {
        // Base 100 ms, ten segments: diff = floor(10·(rtt - 100)/100).
        for (rtt, after) in [(100, 11_000), (119, 11_000), (121, 10_000), (149, 10_000), (151, 9_000), (300, 9_000)] {
            let mut law = avoiding("vegas");
            let mut una = 0;
            for _ in 0..2 {
                let _ = law.on_ack(&Ack { rtt: Some(ms(100)), ..Ack::default() });
            }
            law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
            assert_eq!(round(&mut *law, &mut una, &[500, rtt, 500]), after, "{rtt} ms");
        }
    }

    #[test]
    fn two_samples_are_too_few() {
        let mut law = avoiding("vegas");
        let mut una = 0;
        assert_eq!(round(&mut *law, &mut una, &[100, 900]), 10_100, "Reno, by the one segment acknowledged");
        assert_eq!(round(&mut *law, &mut una, &[900, 900, 900]), 9_100, "Vegas");
    }

    #[test]
    fn slow_start_ends_at_the_actual_rate() {
        let mut law = Parameters::default().build(&FLOW);
        let mut una = 0;
        assert_eq!(round(&mut *law, &mut una, &[100; 5]), 15_000, "below gamma it doubles");
        // diff = floor(19·(125 - 100)/100) = 4 > 1: cwnd = floor(19·100/125) + 1.
        assert_eq!(round(&mut *law, &mut una, &[125; 5]), 16_000);
        assert_eq!(law.ssthresh(), Some(16_000));
    }

    #[test]
    fn the_paper_counts_packets_and_doubles_every_other_round() {
        // diff = 10·(1 - 100/rtt): 4.06 at 168.5 ms, where Linux sees 6.
        for (rtt, after) in [(100, 11_000), (124, 11_000), (126, 10_000), (166, 10_000), (169, 9_000)] {
            let mut law = avoiding("vegas:variant=original");
            let _ = law.on_ack(&Ack { rtt: Some(ms(100)), ..Ack::default() });
            assert_eq!(round(&mut *law, &mut 0, &[rtt]), after, "{rtt} ms");
        }
        let mut law = "vegas:variant=original".parse::<crate::Law>().unwrap().build(&FLOW);
        let mut una = 0;
        let windows: Vec<u64> = (0..4).map(|_| round(&mut *law, &mut una, &[100; 4])).collect();
        assert_eq!(windows, [11_000, 14_000, 15_000, 18_000], "three and one of four ACKs");
        // This round's window is fixed, and there is a queue.
        assert_eq!(round(&mut *law, &mut una, &[200]), 18_000);
        assert_eq!(law.ssthresh(), Some(18_000));
    }

    #[test]
    fn both_forms_keep_alpha_to_beta_segments_queued() {
        // Linux counts cwnd·(rtt - base)/base, so that alpha 10 is 8 segments here.
        for (text, range) in
            [("vegas", 2.0..=4.0), ("vegas:variant=original", 2.0..=4.0), ("vegas:alpha=10,beta=12", 8.0..=9.0)]
        {
            // The BDP is 21 segments, including the one in service.
            let mut path = Path::new(text, ms(20), 1000);
            path.run(ms(20_000), |_| {});
            path.run(ms(5000), |path| {
                let queued = path.cwnd() - 21.0;
                assert!(range.contains(&queued), "{text}: {queued}");
            });
            assert_eq!(path.losses, 0);
        }
    }

    #[test]
    fn after_a_loss_it_is_reno_until_recovery() {
        let mut law = avoiding("vegas");
        let _ = law.on_ack(&Ack { rtt: Some(ms(100)), ..Ack::default() });
        law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
        law.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Timeout, una: 0, nxt: 0, in_flight: 0 });
        assert_eq!((law.window(), law.ssthresh()), (1000, Some(5000)));
        let mut una = 0;
        assert_eq!(round(&mut *law, &mut una, &[900; 4]), 5000, "slow start in spite of the delay");
        law.on_spurious();
        assert_eq!(law.window(), 10_000);
    }

    #[test]
    fn idleness_forgets_the_base() {
        let mut law = avoiding("vegas");
        let mut una = 0;
        let _ = round(&mut *law, &mut una, &[100; 3]);
        law.on_restart(&Restart { now: Time::ZERO, idle: ms(1000), nxt: una, window: None });
        assert_eq!(round(&mut *law, &mut una, &[200; 3]), 12_000, "200 ms are the new base");
    }
}
