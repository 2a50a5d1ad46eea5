// SPDX-License-Identifier: MIT OR Apache-2.0
//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): LEDBAT on RTTs, with a gentler gain, a multiplicative decrease, and
//! slowdowns in which the queue drains and the base delay can be measured.
//!
//! Notable differences from the draft:
//! * A slowdown begins only in congestion avoidance: after a timeout not before slow start has reached its threshold.
//!   It begins and ends outside reduction episodes.
//! * A loss while the window is held at its minimum halves the threshold for the time after.
//! * Idle time does not count for slowdowns: they are postponed by it.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal, Time,
    part::{BaseDelay, CurrentDelay, Episode, Window},
    text::parameters,
    time::nanos,
};
use std::{ops::RangeInclusive, time::Duration};

/// What `TARGET` can be.
const TARGET: RangeInclusive<Duration> = Duration::from_micros(100)..=Duration::from_secs(10);

parameters! {
    /// Parameters of LEDBAT++, with the defaults of the draft.
    pub struct Parameters for "ledbatpp" {
        /// `TARGET`: the queueing delay to keep.
        target: Duration = Duration::from_millis(60), in TARGET;
        /// The largest divisor of `GAIN`, which is `1/min(max_divisor, ceil(2·TARGET/base))`; 1 makes `GAIN` 1.
        max_divisor: u32 = 16, in 1..=1000;
        /// `Constant`: weight of the multiplicative decrease.
        constant: f64 = 1.0, in 0.0..=100.0;
        /// The initial slow start ends above this part of `TARGET`.
        slow_start_exit: f64 = 0.75, in 0.01..=10.0;
        /// Whether there are slowdowns.
        slowdown: bool = true;
        /// RTTs from the end of the initial slow start to the initial slowdown.
        slowdown_delay: f64 = 2.0, in 0.0..=1000.0;
        /// RTTs for which a slowdown holds the window at its minimum.
        slowdown_hold: f64 = 2.0, in 0.0..=1000.0;
        /// Time from the end of a slowdown to the next, as a multiple of its duration.
        slowdown_interval: f64 = 9.0, in 1.0..=1000.0;
        /// The least window, segments; a timeout leaves one.
        min_cwnd: f64 = 2.0, in 1.0..=1000.0;
        /// The first window, segments.
        init_cwnd: f64 = 2.0, in 1.0..=1000.0;
        /// Minutes of the base delay's memory.
        base_history: u32 = 10, in 1..=1440;
        /// Samples of the current delay's minimum.
        current_filter: u32 = 4, in 1..=1024;
        /// The factor that a loss leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
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
        Box::new(LedbatPlusPlus {
            window,
            base: BaseDelay::new(self.base_history),
            current: CurrentDelay::new(self.current_filter),
            episode: Episode::default(),
            phase: Phase::Initial,
            now: Time::ZERO,
            srtt: Duration::ZERO,
            gain: 1.0 / f64::from(self.max_divisor),
            queuing: 0.0,
            parameters: self.clone(),
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }

    /// `GAIN` on a path with this base delay in nanoseconds.
    fn gain(&self, base: i64) -> f64 {
        let base = u128::try_from(base).unwrap_or(0).max(1);
        let divisor = (2 * self.target.as_nanos()).div_ceil(base).clamp(1, u128::from(self.max_divisor));
        1.0 / divisor as f64
    }
}

/// Where the flow is between slowdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// In the initial slow start.
    Initial,
    /// Between slowdowns.
    Steady { next: Time },
    /// In a slowdown, at the minimum window.
    Held { since: Time, until: Time },
    /// In a slowdown, growing back.
    Ramp { since: Time },
}

struct LedbatPlusPlus {
    parameters: Parameters,
    window: Window,
    base: BaseDelay,
    current: CurrentDelay,
    episode: Episode,
    phase: Phase,
    /// The latest ACK, or the end of an idle time.
    now: Time,
    srtt: Duration,
    /// Segments of growth per RTT.
    gain: f64,
    /// The queueing delay as a part of `TARGET`.
    queuing: f64,
}

impl LedbatPlusPlus {
    /// Measures the queueing delay. Returns whether there is one.
    fn measure(&mut self, ack: &Ack) -> bool {
        self.now = ack.now;
        self.srtt = ack.srtt;
        if let Some(rtt) = ack.rtt.map(nanos) {
            self.base.on_sample(ack.now, rtt);
            self.current.on_sample(ack.now, rtt);
        }
        let (Some(base), Some(current)) = (self.base.get(), self.current.get(ack.now, Duration::MAX)) else {
            return false;
        };
        self.gain = self.parameters.gain(base);
        self.queuing = current.saturating_sub(base).max(0) as f64 / nanos(self.parameters.target) as f64;
        true
    }

    /// Changes the window by the delay.
    fn control(&mut self, ack: &Ack) {
        let acked = f64::from(ack.packets);
        let starts = self.starts();
        let window = &mut self.window;
        if starts {
            if ack.window_limited {
                window.cwnd = (window.cwnd + self.gain * acked).min(window.ssthresh);
            }
        } else {
            let mut per_round = self.gain;
            if self.queuing > 1.0 {
                per_round -= self.parameters.constant * window.cwnd * (self.queuing - 1.0);
            }
            if per_round < 0.0 || ack.window_limited {
                window.cwnd += per_round.max(-window.cwnd / 2.0) * acked / window.cwnd;
                window.cwnd = window.cwnd.max(window.minimum);
                // else slow start would restore the window at once
                window.ssthresh = window.ssthresh.min(window.cwnd);
            }
        }
    }

    /// Whether the window is below its threshold by more than what rounded thirds of segments lose.
    fn starts(&self) -> bool {
        self.window.cwnd < self.window.ssthresh - 1e-4
    }

    /// Begins and ends slowdowns.
    fn slow_down(&mut self) {
        let now = self.now;
        match self.phase {
            Phase::Initial if self.queuing > self.parameters.slow_start_exit => {
                self.window.ssthresh = self.window.cwnd;
                self.leave_initial();
            }
            Phase::Steady { next } if self.parameters.slowdown && now >= next && !self.starts() => {
                self.window.ssthresh = self.window.cwnd;
                self.hold();
                self.phase = Phase::Held { since: now, until: now + self.round_trips(self.parameters.slowdown_hold) };
            }
            Phase::Held { since, until } if now >= until => self.phase = Phase::Ramp { since },
            Phase::Ramp { since } if !self.starts() => {
                let pause = nanos(now - since) as f64 * self.parameters.slowdown_interval;
                self.phase = Phase::Steady { next: now + Duration::from_nanos(pause as u64) };
            }
            _ => {}
        }
    }

    /// The initial slow start is over.
    fn leave_initial(&mut self) {
        self.phase = Phase::Steady { next: self.now + self.round_trips(self.parameters.slowdown_delay) };
    }

    /// The window of a slowdown.
    const fn hold(&mut self) {
        self.window.cwnd = self.window.cwnd.min(self.window.minimum);
    }

    const fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held { .. })
    }

    fn round_trips(&self, count: f64) -> Duration {
        Duration::from_nanos((nanos(self.srtt) as f64 * count) as u64)
    }
}

impl CongestionControl for LedbatPlusPlus {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if self.measure(ack) && !ack.reducing {
            if self.is_held() {
                self.hold(); // also after a reduction was undone
            } else {
                self.control(ack);
            }
            self.slow_down();
        }
        // The law announces no episode for a slowdown: it is no congestion, and the queue should drain at once.
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        let window = &mut self.window;
        let cwnd = window.cwnd;
        let used = if matches!(self.phase, Phase::Held { .. }) { window.ssthresh } else { cwnd };
        if congestion.signal == Signal::Timeout {
            window.collapse(self.parameters.beta * used);
        } else {
            window.lower_to(self.parameters.beta * used);
        }
        match self.phase {
            Phase::Initial => self.leave_initial(),
            Phase::Held { since, .. } if congestion.signal == Signal::Timeout => self.phase = Phase::Ramp { since },
            _ => {}
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
        self.now = self.now + restart.idle;
        match &mut self.phase {
            Phase::Initial => {}
            Phase::Steady { next } => *next = *next + restart.idle,
            Phase::Held { since, until } => {
                *since = *since + restart.idle;
                *until = *until + restart.idle;
            }
            Phase::Ramp { since } => *since = *since + restart.idle,
        }
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
        if let Some(base) = self.base.get() {
            show("base", base as f64 / 1e6);
        }
        show("queuing", self.queuing * nanos(self.parameters.target) as f64 / 1e6);
        show("gain", self.gain);
        show("slowdown", f64::from(matches!(self.phase, Phase::Held { .. } | Phase::Ramp { .. })));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::queue_path::Path;

    const FLOW: Flow = Flow { mss: 1000, initial_window: 10, seed: 1 };

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn ack(now: u64, rtt: u64, packets: u32) -> Ack {
        Ack {
            now: Time::from_nanos(now * 1_000_000),
            packets,
            rtt: Some(ms(rtt)),
            srtt: ms(rtt),
            window_limited: true,
            ..Ack::default()
        }
    }

    #[test]
    fn gain_is_one_over_min_16_ceil_2_target_over_base() {
        let gain = |base: u64| 1.0 / Parameters::default().gain(nanos(ms(base)));
        for (base, divisor) in
            [(1, 16.0), (7, 16.0), (8, 15.0), (20, 6.0), (50, 3.0), (60, 2.0), (120, 1.0), (500, 1.0)]
        {
            assert!((gain(base) - divisor).abs() < 1e-12, "{base} ms: {}", gain(base));
        }
    }

    #[test]
    fn growth_and_decrease_are_those_of_the_draft() {
        // Base 120 ms: GAIN 1. A filter of one sample shows each one.
        let text = "ledbatpp:current_filter=1,init_cwnd=20,slowdown=off";
        let build = || {
            let mut law = text.parse::<crate::Law>().unwrap().build(&FLOW);
            let _ = law.on_ack(&ack(0, 120, 0));
            let _ = law.on_ack(&ack(0, 120 + 46, 0)); // ends the initial slow start at 20 segments
            assert_eq!(law.ssthresh(), Some(20_000));
            law
        };
        for (queuing, after) in [
            (0, 21_000),   // +GAIN
            (60, 21_000),  // at TARGET still
            (66, 19_000),  // 1 - 20·0.1
            (75, 16_000),  // 1 - 20·0.25
            (300, 10_000), // -W/2
        ] {
            let mut law = build();
            let _ = law.on_ack(&ack(0, 120 + queuing, 20));
            assert!(law.window().abs_diff(after) <= 1, "{queuing} ms: {}", law.window());
        }
    }

    #[test]
    fn the_initial_slow_start_ends_above_three_quarters_of_target() {
        let mut law = "ledbatpp:current_filter=1".parse::<crate::Law>().unwrap().build(&FLOW);
        assert_eq!(law.window(), 2000);
        let _ = law.on_ack(&ack(0, 20, 6));
        assert_eq!(law.window(), 3000, "one sixth of a segment for each");
        let _ = law.on_ack(&ack(0, 20 + 45, 6));
        assert_eq!((law.window(), law.ssthresh()), (4000, None));
        let _ = law.on_ack(&ack(0, 20 + 46, 6));
        assert_eq!((law.window(), law.ssthresh()), (5000, Some(5000)));
    }

    #[test]
    fn a_slowdown_holds_two_segments_for_two_round_trips_and_returns() {
        let mut path = Path::new("ledbatpp", ms(40), 1000);
        let (mut began, mut held, mut back) = (None, None, None);
        let mut before = 0.0;
        path.run(ms(60_000), |path| {
            let slow = path.value("slowdown") > 0.0;
            match (began, held, back) {
                (None, ..) if slow => began = Some((path.now, path.srtt)),
                (Some(_), None, _) if path.cwnd() > 2.0 => held = Some(path.now),
                (Some(_), Some(_), None) if !slow => back = Some((path.now, path.cwnd())),
                (None, ..) => before = path.cwnd(),
                _ => assert!(held.is_some() || path.cwnd() <= 2.0),
            }
        });
        let ((began, srtt), held, (_, after)) = (began.unwrap(), held.unwrap(), back.unwrap());
        let rounds = (held - began).as_secs_f64() / srtt.as_secs_f64();
        assert!((2.0..3.0).contains(&rounds), "held for {rounds} round trips");
        assert!((after - before).abs() < 1.0, "{before} segments before, {after} after");
    }

    #[test]
    fn a_tenth_of_the_time_is_slowdown() {
        let mut path = Path::new("ledbatpp", ms(40), 1000);
        let (mut slow, mut count, mut last, mut was) = (Duration::ZERO, 0, path.now, false);
        path.run(ms(200_000), |path| {
            let is = path.value("slowdown") > 0.0;
            slow += if was { path.now - last } else { Duration::ZERO };
            count += u32::from(is && !was);
            (last, was) = (path.now, is);
        });
        let share = slow.as_secs_f64() / 200.0;
        assert!((0.08..0.12).contains(&share), "{share}");
        assert!(count >= 10, "{count} slowdowns");
        assert_eq!(path.losses, 0);
        // The slowdowns let the base delay be measured, and cost little of the link.
        assert!((path.value("base") - 41.0).abs() < 1.0, "{}", path.value("base"));
        assert!(path.delivered > 170_000, "{}", path.delivered);
    }

    #[test]
    fn it_settles_at_target_between_slowdowns() {
        // Below 0.57·TARGET of base delay; above, the decrease overshoots: its loop gain is RTT/TARGET per RTT.
        let mut path = Path::new("ledbatpp:slowdown=off", ms(10), 1000);
        path.run(ms(60_000), |_| {});
        path.run(ms(5000), |path| {
            let queue = path.queue().as_secs_f64();
            assert!((queue - 0.06).abs() < 0.004, "{queue} s");
        });
    }

    #[test]
    fn a_loss_while_held_halves_the_way_back() {
        let mut path = Path::new("ledbatpp", ms(40), 1000);
        while path.value("slowdown").is_nan() || path.value("slowdown") < 1.0 {
            path.run(ms(1), |_| {});
        }
        let threshold = path.law.ssthresh().unwrap();
        path.law.on_congestion(&Congestion { signal: Signal::Loss, ..path.congestion() });
        assert_eq!((path.law.window(), path.law.ssthresh()), (2000, Some(threshold / 2)));
        path.law.on_spurious();
        assert_eq!((path.law.window(), path.law.ssthresh()), (2000, Some(threshold)));
        path.law.on_congestion(&path.congestion());
        assert_eq!(path.law.window(), 1000);
        path.run(ms(500), |_| {});
        assert!(path.cwnd() * 1000.0 >= threshold as f64 / 2.0, "recovers: {}", path.cwnd());
    }
}
