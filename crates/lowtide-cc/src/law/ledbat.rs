// SPDX-License-Identifier: MIT OR Apache-2.0
//! LEDBAT (RFC 6817): a linear controller that keeps the queueing delay at `TARGET`.
//!
//! Notable differences from the RFC:
//! * The window follows the delay outside reduction episodes only; inside, the transport walks to it by PRR.
//! * The congestion timeout (CTO) is the transport's retransmission timeout.
//! * Without one-way delays the RTT takes their place.
//! * Slow start, which the RFC leaves open, ends when the queueing delay reaches `TARGET`; it is off by default.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal,
    part::{BaseDelay, CurrentDelay, DelaySignal, Episode, SlowStart, Window},
    text::parameters,
    time::nanos,
};
use std::{ops::RangeInclusive, time::Duration};

/// What `TARGET` can be.
const TARGET: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_secs(10);

parameters! {
    /// Parameters of LEDBAT, with the names and the defaults of RFC 6817, section 2.5.
    pub struct Parameters for "ledbat" {
        /// `TARGET`: the queueing delay to keep. The RFC allows at most 100 ms.
        target: Duration = Duration::from_millis(100), in TARGET;
        /// `GAIN`: growth in segments per RTT without a queue. The RFC allows at most 1.
        gain: f64 = 1.0, in 0.001..=100.0;
        /// `ALLOWED_INCREASE`: how many segments the window may exceed what is in flight.
        allowed_increase: f64 = 1.0, in 1.0..=1000.0;
        /// `MIN_CWND`: the least window, segments; a timeout leaves one.
        min_cwnd: f64 = 2.0, in 1.0..=1000.0;
        /// `INIT_CWND`: the first window, segments.
        init_cwnd: f64 = 2.0, in 1.0..=1000.0;
        /// `BASE_HISTORY`: minutes of the base delay's memory.
        base_history: u32 = 10, in 1..=1440;
        /// `CURRENT_FILTER`: samples of the current delay's minimum; those older than an RTT do not count.
        current_filter: u32 = 4, in 1..=1024;
        /// The factor that a loss leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Whether to begin with slow start, until the queueing delay reaches `TARGET`.
        slow_start: bool = false;
        /// Whether to use classic ECN. A mark counts as a loss.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        let mut window = Window::new(flow);
        window.cwnd = self.init_cwnd.max(self.min_cwnd);
        window.minimum = self.min_cwnd;
        Box::new(Ledbat {
            target: nanos(self.target) as f64,
            window,
            slow_start: SlowStart::Standard,
            episode: Episode::default(),
            signal: DelaySignal::default(),
            base: BaseDelay::new(self.base_history),
            current: CurrentDelay::new(self.current_filter),
            off_target: 0.0,
            queuing: 0.0,
            parameters: self.clone(),
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

struct Ledbat {
    parameters: Parameters,
    /// `TARGET` in nanoseconds.
    target: f64,
    window: Window,
    slow_start: SlowStart,
    episode: Episode,
    signal: DelaySignal,
    base: BaseDelay,
    current: CurrentDelay,
    /// The queueing delay below `TARGET`, as a part of it.
    off_target: f64,
    /// The queueing delay in nanoseconds.
    queuing: f64,
}

impl Ledbat {
    /// Measures the queueing delay. Returns whether there is one.
    fn measure(&mut self, ack: &Ack) -> bool {
        if let Some(delay) = self.signal.sample(ack) {
            self.base.on_sample(ack.now, delay);
            self.current.on_sample(ack.now, delay);
        }
        let (Some(base), Some(current)) = (self.base.get(), self.current.get(ack.now, ack.srtt)) else { return false };
        self.queuing = current.saturating_sub(base).max(0) as f64;
        self.off_target = (self.target - self.queuing) / self.target;
        true
    }

    /// A window within 1e-4 segments of its threshold is at it, so that integers decide as real numbers do.
    fn in_slow_start(&self) -> bool {
        self.parameters.slow_start && self.window.cwnd < self.window.ssthresh - 1e-4
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if !self.measure(ack) || ack.reducing {
            return Reaction::None;
        }
        if self.in_slow_start() && self.off_target <= 0.0 {
            self.window.ssthresh = self.window.cwnd;
        }
        if self.in_slow_start() {
            if ack.window_limited {
                self.slow_start.on_ack(ack, &mut self.window);
            }
        } else {
            // RFC 6817, section 2.4.2. What is in flight bounds the window, so that it does not grow unused.
            let allowed = self.window.segments(ack.in_flight) + self.parameters.allowed_increase;
            let acked = self.window.segments(ack.bytes);
            self.window.cwnd += self.parameters.gain * self.off_target * acked / self.window.cwnd;
            self.window.cwnd = self.window.cwnd.min(allowed).max(self.window.minimum);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        let cwnd = self.window.cwnd;
        match congestion.signal {
            Signal::Timeout => self.window.collapse(self.parameters.beta * cwnd),
            // The one segment after a timeout is below the minimum.
            _ => self.window.lower_to(self.parameters.beta * cwnd),
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.episode.finish();
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
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
        self.window.ssthresh_bytes().filter(|_| self.parameters.slow_start)
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(base) = self.base.get() {
            show("base", base as f64 / 1e6);
        }
        show("queuing", self.queuing / 1e6);
        show("off_target", self.off_target);
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

    fn ack(now: u64, delay: i64, packets: u32) -> Ack {
        Ack {
            now: Time::from_nanos(now * 1_000_000),
            packets,
            bytes: u64::from(packets) * 1000,
            srtt: ms(1),
            one_way_delay: Some(delay * 1_000_000),
            in_flight: 1_000_000,
            ..Ack::default()
        }
    }

    #[test]
    fn the_window_moves_by_gain_and_off_target() {
        let mut law = Parameters::default().build(&FLOW);
        assert_eq!(law.window(), 2000, "INIT_CWND");
        assert_eq!(law.ssthresh(), None);
        let _ = law.on_ack(&ack(0, -70, 1));
        assert_eq!(law.window(), 2500, "+1·1·1/2");
        let _ = law.on_ack(&ack(10, -20, 2));
        assert_eq!(law.window(), 2900, "+1·0.5·2/2.5");
        let _ = law.on_ack(&ack(20, 30, 1));
        assert_eq!(law.window(), 2900, "at TARGET");
        let _ = law.on_ack(&ack(30, 59, 1));
        assert_eq!(law.window(), 2800, "-1·0.29·1/2.9");
        let _ = law.on_ack(&ack(40, 900, 2));
        assert_eq!(law.window(), 2000, "MIN_CWND");
    }

    #[test]
    fn what_is_in_flight_limits_the_window() {
        let mut law = "ledbat:init_cwnd=20".parse::<crate::Law>().unwrap().build(&FLOW);
        let _ = law.on_ack(&Ack { in_flight: 15_000, ..ack(0, 0, 1) });
        assert_eq!(law.window(), 16_000, "ALLOWED_INCREASE");
        let _ = law.on_ack(&Ack { in_flight: 1000, reducing: true, ..ack(0, 0, 1) });
        assert_eq!(law.window(), 16_000, "not inside an episode");
    }

    #[test]
    fn a_loss_halves_and_a_timeout_leaves_one() {
        let congestion = |signal| Congestion { now: Time::ZERO, signal, una: 0, nxt: 0, in_flight: 0 };
        let mut law = "ledbat:init_cwnd=10".parse::<crate::Law>().unwrap().build(&FLOW);
        for after in [5000, 2500, 2000, 2000] {
            law.on_congestion(&congestion(Signal::Loss));
            assert_eq!(law.window(), after);
        }
        law.on_congestion(&congestion(Signal::Timeout));
        assert_eq!(law.window(), 1000);
        law.on_congestion(&congestion(Signal::Loss));
        assert_eq!(law.window(), 1000, "a loss raises no window");
        let _ = law.on_ack(&ack(0, 0, 1));
        assert_eq!(law.window(), 2000);
    }

    #[test]
    fn it_settles_at_target() {
        for (text, offset) in [("ledbat", Some(-5_000_000_000)), ("ledbat", None), ("ledbat:target=25ms", Some(7))] {
            // 1 segment per ms, 40 ms of path.
            let mut path = Path::new(text, ms(40), 1000);
            path.offset = offset;
            path.run(ms(120_000), |_| {});
            let target = if text == "ledbat" { 0.100 } else { 0.025 };
            path.run(ms(10_000), |path| {
                let queue = path.queue().as_secs_f64();
                assert!((queue - target).abs() < 0.005, "{text}: {queue} s");
            });
            assert_eq!(path.losses, 0);
        }
    }

    #[test]
    fn the_base_delay_climbs_a_stair_every_ten_minutes() {
        // S4, figure 7: TARGET above what it takes for the base delay, which is its self-induced queue after ten
        // minutes.
        let mut path = Path::new("ledbat", ms(20), 200);
        for (until, expected) in [(500, 0.1), (1100, 0.2), (1700, 0.3)] {
            path.run(ms(1000 * until) - (path.now - Time::ZERO), |_| {});
            let queue = path.queue().as_secs_f64();
            assert!((queue - expected).abs() < 0.01, "{queue} s of queue at {until} s");
        }
    }

    #[test]
    fn slow_start_ends_at_target() {
        let mut path = Path::new("ledbat:slow_start=on", ms(40), 1000);
        path.run(ms(500), |_| {});
        let mut plain = Path::new("ledbat", ms(40), 1000);
        plain.run(ms(500), |_| {});
        assert!(path.delivered > 4 * plain.delivered, "{} and {}", path.delivered, plain.delivered);
        assert!(path.law.ssthresh().is_some());
        path.run(ms(120_000), |_| {});
        assert!((path.queue().as_secs_f64() - 0.1).abs() < 0.005);
    }
}
