// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all loss-based laws have in common: slow start × increase × a constant factor of decrease.

use crate::{
    Ack, Congestion, CongestionControl, Flow, Reaction, Recovered, Restart, Signal,
    part::{Episode, Increase, SlowStart, Window},
};

/// A law that grows until congestion, and then keeps a constant part of its window.
pub(super) struct LossBased {
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    episode: Episode,
    beta: f64,
    /// Whether a reduction starts from and leaves whole segments.
    whole: bool,
}

impl LossBased {
    /// A flow's state. `beta` is the factor that congestion leaves.
    pub(super) fn new(flow: &Flow, slow_start: SlowStart, increase: Increase, beta: f64) -> Self {
        Self { window: Window::new(flow), slow_start, increase, episode: Episode::default(), beta, whole: false }
    }

    /// Rounds at reductions as Linux, which counts whole segments.
    pub(super) fn rounding(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    fn reduced(&self) -> f64 {
        if self.whole { (self.beta * self.window.cwnd.floor()).floor() } else { self.beta * self.window.cwnd }
    }
}

impl CongestionControl for LossBased {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if !ack.reducing {
            let left = self.slow_start.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left, &mut self.window);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        let ssthresh = self.reduced();
        if congestion.signal == Signal::Timeout {
            self.slow_start.reset();
            self.increase.on_timeout(congestion.now, &self.window);
            self.window.collapse(ssthresh);
        } else {
            self.increase.on_reduction(congestion.now, &self.window);
            self.window.reduce_to(ssthresh);
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.episode.finish();
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.increase.on_spurious();
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.increase.on_restart(restart);
        self.window.restart(restart);
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
        self.increase.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Law, Time};
    use std::time::Duration;

    const MSS: u32 = 1000;

    /// A path of a fixed RTT, with rounds of whole windows.
    struct Path {
        control: Box<dyn CongestionControl>,
        rtt: Duration,
        now: Time,
        una: u64,
    }

    impl Path {
        fn new(law: &str, rtt: f64) -> Self {
            let law: Law = law.parse().unwrap();
            let control = law.build(&Flow { mss: MSS, initial_window: 10, seed: 1 });
            Self { control, rtt: Duration::from_secs_f64(rtt), now: Time::ZERO, una: 0 }
        }

        fn cwnd(&self) -> f64 {
            self.control.window() as f64 / f64::from(MSS)
        }

        /// One RTT: sends the window, then receives an ACK for each segment, evenly spaced.
        fn round(&mut self) -> u64 {
            let segments = (self.control.window() / u64::from(MSS)).max(1);
            let nxt = self.una + segments * u64::from(MSS);
            for n in 1..=segments {
                self.una += u64::from(MSS);
                let ack = Ack {
                    now: self.now + self.rtt * n as u32 / segments as u32,
                    packets: 1,
                    bytes: u64::from(MSS),
                    rtt: Some(self.rtt),
                    srtt: self.rtt,
                    una: self.una,
                    nxt: nxt + n * u64::from(MSS),
                    in_flight: segments * u64::from(MSS),
                    window_limited: true,
                    ..Ack::default()
                };
                assert_eq!(self.control.on_ack(&ack), Reaction::None);
            }
            self.now = self.now + self.rtt;
            segments
        }

        fn congestion(&mut self, signal: Signal) {
            let (now, una, nxt) = (self.now, self.una, self.una);
            self.control.on_congestion(&Congestion { now, signal, una, nxt, in_flight: 0 });
            self.control.on_recovered(&Recovered { now, una, nxt });
        }

        /// Loses a segment whenever the window has reached this many segments. Returns the mean window, per RTT, and
        /// the part of segments lost.
        fn sawtooth(mut self, w_max: f64) -> (f64, f64) {
            // Slow start overshoots; some losses later the window is below.
            while self.cwnd() < w_max {
                self.round();
            }
            for _ in 0..10 {
                self.congestion(Signal::Loss);
            }
            let (mut segments, mut rounds) = (0, 0);
            for cycle in 0..8 {
                while self.cwnd() < w_max {
                    let sent = self.round();
                    // In the first cycles the growth still has the old plateau.
                    if cycle >= 3 {
                        segments += sent;
                        rounds += 1;
                    }
                }
                self.congestion(Signal::Loss);
            }
            (segments as f64 / f64::from(rounds), 5.0 / segments as f64)
        }
    }

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value / expected - 1.0).abs() < relative, "{value}, not {expected}");
    }

    #[test]
    fn response_functions() {
        let check = |law: &str, rtt: f64, w_max: f64, constant: f64, exponent: f64| {
            let (mean, p) = Path::new(law, rtt).sawtooth(w_max);
            near(mean, constant * libm::pow(if exponent == 0.5 { 1.0 / p } else { rtt / p }, exponent), 0.02);
        };
        let reno = f64::sqrt(1.5);
        check("reno", 0.1, 200.0, reno, 0.5);
        // A short RTT: the Reno-friendly region.
        check("cubic:hystart=off", 0.001, 200.0, reno, 0.5);
        check("cubic:variant=2008,hystart=off", 0.001, 200.0, reno, 0.5);
        // E[W] = (C (3 + beta)/(4 (1 - beta)))^(1/4) (RTT/p)^(3/4) (RFC 9438, figure 7). Fast convergence would take
        // the fractions of a segment by which one maximum is below the last for a loss of bandwidth.
        for (rtt, w_max) in [(0.1, 1000.0), (0.05, 4000.0)] {
            check("cubic:reno_friendly=off,fast_convergence=off,hystart=off", rtt, w_max, 1.054, 0.75);
            check("cubic:variant=2008,reno_friendly=off,fast_convergence=off,hystart=off", rtt, w_max, 1.174, 0.75);
        }
    }

    #[test]
    fn congestion_leaves_beta_and_a_timeout_one_segment() {
        for (law, beta) in [("reno", 0.5), ("cubic", 0.7), ("cubic:variant=2008", 0.8), ("reno:beta=0.9", 0.9)] {
            for signal in [Signal::Loss, Signal::Ecn, Signal::Phantom, Signal::Timeout] {
                let mut path = Path::new(law, 0.1);
                path.round();
                assert_eq!(path.cwnd(), 20.0);
                path.congestion(signal);
                assert_eq!(path.control.ssthresh(), Some((20_000.0 * beta) as u64));
                let expected = if signal == Signal::Timeout { 1.0 } else { 20.0 * beta };
                near(path.cwnd(), expected, 1e-9);
            }
            // Two segments are the minimum after a reduction.
            let mut path = Path::new(law, 0.1);
            for _ in 0..40 {
                path.congestion(Signal::Loss);
            }
            assert_eq!(path.cwnd(), 2.0);
        }
    }

    #[test]
    fn whole_segments_are_rounded_down_twice() {
        for (law, left) in [("reno:whole_segments=on", 10), ("cubic:variant=linux", 14)] {
            let mut path = Path::new(law, 0.1);
            path.round();
            path.congestion(Signal::Loss);
            while path.cwnd() < 20.9 {
                path.round();
            }
            assert!(path.cwnd() < 22.0, "{law}: {}", path.cwnd());
            let whole = path.cwnd().floor();
            path.congestion(Signal::Loss);
            near(path.cwnd(), (whole * f64::from(left) / 20.0).floor(), 1e-9);
        }
    }

    #[test]
    fn a_mark_and_a_loss_of_one_window_reduce_it_once() {
        for law in ["reno:ecn=on", "cubic:ecn=on", "cdg:ecn=on", "vegas:ecn=on", "lp:ecn=on", "nice:ecn=on"]
            .into_iter()
            .chain(["ledbat:ecn=on,init_cwnd=20", "ledbatpp:ecn=on,init_cwnd=20", "eclipse:ecn=on"])
        {
            for signal in [Signal::Ecn, Signal::Phantom] {
                let law: Law = law.parse().unwrap();
                let mut control = law.build(&Flow { mss: MSS, initial_window: 20, seed: 1 });
                let mut tell = |signal, una: u64| {
                    let nxt = 20_000.max(una);
                    control.on_congestion(&Congestion { now: Time::ZERO, signal, una, nxt, in_flight: nxt - una });
                    control.window()
                };
                let reduced = tell(signal, 0);
                assert!(reduced < 20_000, "{law}");
                assert_eq!(tell(Signal::Loss, 5000), reduced, "{law}");
                control.on_spurious();
                assert_eq!(control.window(), reduced, "{law}: the mark was there");
                control.on_recovered(&Recovered { now: Time::ZERO, una: 20_001, nxt: 30_000 });
                let loss = Congestion { now: Time::ZERO, signal: Signal::Loss, una: 20_001, nxt: 30_000, in_flight: 0 };
                control.on_congestion(&loss);
                assert!(control.window() < reduced, "{law}");
                control.on_spurious();
                assert_eq!(control.window(), reduced, "{law}");
            }
        }
    }

    #[test]
    fn a_spurious_timeout_is_undone() {
        for law in ["reno", "cubic"] {
            let mut path = Path::new(law, 0.1);
            path.round();
            path.congestion(Signal::Timeout);
            path.control.on_spurious();
            assert_eq!((path.cwnd(), path.control.ssthresh()), (20.0, None));
        }
        // And so is what CUBIC remembers.
        let mut path = Path::new("cubic", 0.1);
        path.congestion(Signal::Loss);
        let w_max = |path: &Path| {
            let mut shown = f64::NAN;
            path.control.inspect(&mut |name, value| shown = if name == "w_max" { value } else { shown });
            shown
        };
        assert_eq!(w_max(&path), 10.0);
        for signal in [Signal::Loss, Signal::Timeout] {
            path.congestion(signal);
            assert!(w_max(&path) < 10.0);
            path.control.on_spurious();
            assert_eq!(w_max(&path), 10.0);
        }
    }

    #[test]
    fn hystart_is_a_configuration() {
        // ACKs evenly over 20 ms are one long train once they are less than 2 ms apart.
        for (law, ends) in [("cubic", true), ("cubic:hystart=off", false), ("cubic:hystart=delay", false)] {
            let mut path = Path::new(law, 0.02);
            for _ in 0..4 {
                path.round();
            }
            assert_eq!(path.control.ssthresh().is_some(), ends, "{law}");
        }
    }

    #[test]
    fn no_growth_inside_an_episode_or_without_use() {
        for law in ["reno", "cubic"] {
            for (reducing, window_limited) in [(true, true), (false, false)] {
                let mut path = Path::new(law, 0.1);
                let ack = Ack { packets: 5, reducing, window_limited, ..Ack::default() };
                assert_eq!(path.control.on_ack(&ack), Reaction::None);
                assert_eq!(path.cwnd(), 10.0);
            }
        }
    }
}
