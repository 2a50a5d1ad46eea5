// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Nice (Venkataramani, Kokku and Dahlin, OSDI 2002): Vegas that halves its window when more than a fraction of a
//! round's packets found a queue, down to a small part of one segment.
//!
//! Notable differences from the paper:
//! * The fraction is of the round's samples, not of the window's segments: ACKs may be delayed.
//! * A halving begins a reduction episode. The RTT in which the old window's packets are still acknowledged is not
//!   judged, so a queue reduces the window once, not twice.
//! * Below one segment the window doubles in a round without congestion. From there it grows as in Vegas. (The paper
//!   gives no rule; one segment per round would undo several halvings at once.)
//! * Vegas is Linux's form, see [`vegas`](super::vegas).

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal,
    part::{Episode, Increase, Rounds, SlowStart, VegasRound, Window},
    text::parameters,
};
use std::time::Duration;

parameters! {
    /// Parameters of Nice.
    pub struct Parameters for "nice" {
        /// `t`: an RTT above `minRTT + t·(maxRTT - minRTT)` is delayed.
        threshold: f64 = 0.1, in 0.0..=1.0;
        /// `f`: the window halves when more than this part of a round's samples is delayed.
        fraction: f64 = 0.5, in 0.0..=1.0;
        /// The least window, segments.
        min_cwnd: f64 = 1.0 / 48.0, in 0.001..=2.0;
        /// Vegas' `α`: the window grows while fewer segments than these are queued.
        alpha: f64 = 1.0, in 0.0..=1e6;
        /// Vegas' `β`: it shrinks while more segments than these are queued.
        beta: f64 = 3.0, in 0.0..=1e6;
        /// Vegas' `γ`: slow start ends once more segments than these are queued.
        gamma: f64 = 1.0, in 0.0..=1e6;
        /// The factor that delay or a loss leaves of the window.
        backoff: f64 = 0.5, in 0.01..=0.99;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        let mut window = Window::new(flow);
        window.minimum = self.min_cwnd;
        Box::new(Nice {
            window,
            slow_start: SlowStart::Standard,
            increase: Increase::Reno,
            episode: Episode::default(),
            vegas: VegasRound::new(self.alpha, self.beta, self.gamma),
            rounds: Rounds::default(),
            least: Duration::MAX,
            largest: Duration::ZERO,
            samples: 0,
            delayed: 0,
            parameters: self.clone(),
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

struct Nice {
    parameters: Parameters,
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    episode: Episode,
    vegas: VegasRound,
    rounds: Rounds,
    /// `minRTT` and `maxRTT` of the connection.
    least: Duration,
    largest: Duration,
    /// Samples of this round, and those that were delayed (`numCong`).
    samples: u32,
    delayed: u32,
}

impl Nice {
    /// The least RTT that shows a queue, seconds.
    fn threshold(&self) -> f64 {
        let (least, largest) = (self.least.as_secs_f64(), self.largest.as_secs_f64());
        least + self.parameters.threshold * (largest - least)
    }

    fn on_sample(&mut self, rtt: Duration) {
        self.vegas.on_sample(rtt);
        self.least = self.least.min(rtt);
        self.largest = self.largest.max(rtt);
        self.samples = self.samples.saturating_add(1);
        if rtt.as_secs_f64() > self.threshold() {
            self.delayed = self.delayed.saturating_add(1);
        }
    }

    fn restart_round(&mut self, nxt: u64) {
        self.rounds.start(nxt);
        self.vegas.restart();
        (self.samples, self.delayed) = (0, 0);
    }

    fn slow_start(&mut self, ack: &Ack) {
        if ack.window_limited && self.window.in_slow_start() {
            self.slow_start.on_ack(ack, &mut self.window);
        }
    }

    /// A round without congestion.
    fn avoid(&mut self, ack: &Ack) {
        if self.window.cwnd < 1.0 {
            if ack.window_limited {
                self.window.cwnd = (2.0 * self.window.cwnd).min(1.0);
            }
        } else if !self.vegas.is_measured() {
            if ack.window_limited {
                let left = self.slow_start.on_ack(ack, &mut self.window);
                self.increase.on_ack(ack, left, &mut self.window);
            }
        } else if self.window.in_slow_start() {
            if !self.vegas.ends_slow_start(&mut self.window) {
                self.slow_start(ack);
            }
        } else {
            self.vegas.avoid(ack, &mut self.window);
        }
    }
}

impl CongestionControl for Nice {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if let Some(rtt) = ack.rtt {
            self.on_sample(rtt);
        }
        if ack.reducing {
            return Reaction::None;
        }
        if !self.rounds.ended(ack.una) {
            self.slow_start(ack);
            return Reaction::None;
        }
        let congested = f64::from(self.delayed) > self.parameters.fraction * f64::from(self.samples);
        if congested {
            self.episode.stands();
            self.window.reduce_to(self.parameters.backoff * self.window.cwnd);
        } else {
            self.avoid(ack);
        }
        self.restart_round(ack.nxt);
        if congested { Reaction::Reduced } else { Reaction::None }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        self.increase.on_reduction(congestion.now, &self.window);
        let cwnd = self.window.cwnd;
        match congestion.signal {
            Signal::Timeout => {
                self.window.collapse(self.parameters.backoff * cwnd);
                // A timeout does not raise a window below one segment.
                self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
            }
            _ => self.window.reduce_to(self.parameters.backoff * cwnd),
        }
        self.restart_round(congestion.nxt);
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.episode.finish();
        self.restart_round(recovered.nxt);
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.increase.on_restart(restart);
        self.restart_round(restart.nxt);
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
        if self.least <= self.largest {
            show("min_rtt", 1e3 * self.least.as_secs_f64());
            show("max_rtt", 1e3 * self.largest.as_secs_f64());
            show("threshold", 1e3 * self.threshold());
        }
        if self.samples > 0 {
            show("delayed", f64::from(self.delayed) / f64::from(self.samples));
        }
        show("diff", self.vegas.diff());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::queue_path::Path;

    const FLOW: Flow = Flow { mss: 1000, initial_window: 8, seed: 1 };

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// A law that has seen 100 and 200 ms, so that more than 110 ms is delayed, in congestion avoidance.
    fn avoiding(una: &mut u64) -> Box<dyn CongestionControl> {
        let mut law = Parameters::default().build(&Flow { initial_window: 16, ..FLOW });
        for rtt in [100, 200] {
            let _ = law.on_ack(&Ack { rtt: Some(ms(rtt)), ..Ack::default() });
        }
        law.on_congestion(&Congestion {
            now: crate::Time::ZERO,
            signal: Signal::Loss,
            una: *una,
            nxt: *una,
            in_flight: 0,
        });
        law.on_recovered(&Recovered { now: crate::Time::ZERO, una: *una, nxt: *una });
        assert_eq!(law.window(), 8000);
        law
    }

    /// One round of these samples.
    fn round(law: &mut dyn CongestionControl, una: &mut u64, rtts: &[u64]) -> Reaction {
        let mut reaction = Reaction::None;
        for (n, rtt) in rtts.iter().enumerate() {
            *una += if n + 1 == rtts.len() { 1_000_000 } else { 0 };
            reaction = law.on_ack(&Ack {
                rtt: Some(ms(*rtt)),
                packets: 1,
                una: *una,
                nxt: *una,
                window_limited: true,
                ..Ack::default()
            });
        }
        reaction
    }

    #[test]
    fn more_than_half_of_delayed_samples_halve_the_window() {
        let una = &mut 0;
        let mut law = avoiding(una);
        assert_eq!(round(&mut *law, una, &[111, 111, 109, 109]), Reaction::None);
        assert_eq!(law.window(), 9000, "half is not more than half: Vegas, floor(8·0.09) = 0 < alpha");
        assert_eq!(round(&mut *law, una, &[111, 111, 109]), Reaction::Reduced);
        assert_eq!(law.window(), 4500);
        let _ = law.on_ack(&Ack { rtt: Some(ms(200)), una: *una + 5000, reducing: true, ..Ack::default() });
        assert_eq!(law.window(), 4500, "not inside an episode");
    }

    #[test]
    fn the_window_goes_down_to_a_48th_and_doubles_from_there() {
        let una = &mut 0;
        let mut law = avoiding(una);
        for _ in 0..20 {
            let _ = round(&mut *law, una, &[200]);
        }
        assert_eq!(law.window(), 1000 / 48);
        for after in [41, 83, 166, 333, 666, 1000, 2000] {
            let _ = round(&mut *law, una, &[100]);
            assert_eq!(law.window(), after);
        }
        for _ in 0..20 {
            let _ = round(&mut *law, una, &[200]);
        }
        law.on_congestion(&Congestion {
            now: crate::Time::ZERO,
            signal: Signal::Timeout,
            una: *una,
            nxt: *una,
            in_flight: 0,
        });
        assert_eq!(law.window(), 1000 / 48, "a timeout raises no window");
    }

    #[test]
    fn others_push_it_below_one_segment_and_let_it_return() {
        let mut path = Path::new("nice", ms(40), 1000);
        path.buffer = ms(60);
        // The maximum RTT is known from a full queue.
        path.others = ms(50);
        path.run(ms(50), |_| {});
        path.others = Duration::ZERO;
        path.run(ms(20_000), |_| {});
        let alone = path.delivered;
        assert!(alone > 14_000, "it uses an idle link: {alone}");
        assert!(path.cwnd() > 8.0);
        path.others = ms(30);
        path.run(ms(5000), |_| {});
        assert!(path.cwnd() < 0.05, "{}", path.cwnd());
        let meanwhile = path.delivered - alone;
        path.run(ms(20_000), |_| {});
        assert!(path.delivered - alone - meanwhile < 20, "one segment every 48 round trips");
        path.others = Duration::ZERO;
        path.run(ms(20_000), |_| {});
        assert!(path.cwnd() > 8.0, "{}", path.cwnd());
    }
}
