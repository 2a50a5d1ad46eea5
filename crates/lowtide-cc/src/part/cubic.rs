// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC's growth (RFC 9438; Ha, Rhee and Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", 2008).
//!
//! Notable differences from the RFC: the function is evaluated one minimum round-trip time ahead, as in the paper and
//! in Linux, not one smoothed one; while no saturation point is known the window grows by 5 % each round trip, as in
//! Linux; and of the times without data to send only those count that leave nothing in flight.

use super::Window;
use crate::{Ack, Restart, Time};
use std::time::Duration;

/// What differs between versions of CUBIC.
#[derive(Clone, Debug, PartialEq)]
pub struct CubicShape {
    /// C, segments per second cubed.
    pub c: f64,
    /// Whether the saturation point is put lower when it was not reached again (section 4.7).
    pub fast_convergence: bool,
    /// Whether to grow at least as Reno would (section 4.3).
    pub reno_friendly: bool,
    /// Of Reno's growth so much.
    pub reno_slope: f64,
    /// Whether that estimate grows by one segment per round trip once it has reached the window before the reduction.
    pub reno_slope_returns: bool,
    /// Whether K follows from the window at the start of the epoch, cbrt((Wmax - cwnd_epoch)/C), or from Wmax alone,
    /// cbrt(Wmax (1 - beta)/C).
    pub k_from_epoch: bool,
    /// The window may not aim higher than this many times itself, in one round trip.
    pub limit: f64,
    /// Growth per round trip, as a part of the window, while no saturation point is known.
    pub search: f64,
}

impl CubicShape {
    /// RFC 9438, with Linux's search for the saturation point.
    pub const RFC_9438: Self = Self {
        c: 0.4,
        fast_convergence: true,
        reno_friendly: true,
        reno_slope: 1.0,
        reno_slope_returns: true,
        k_from_epoch: true,
        limit: 1.5,
        search: 0.05,
    };

    /// Linux: Reno's estimate keeps its slope when it has reached the window before the reduction.
    pub const LINUX: Self = Self { reno_slope_returns: false, ..Self::RFC_9438 };

    /// The paper of 2008. There each ACK adds one segment at most, which doubles the window in a round trip.
    pub const PAPER_2008: Self = Self {
        c: 0.4,
        fast_convergence: true,
        reno_friendly: true,
        reno_slope: 1.0,
        reno_slope_returns: false,
        k_from_epoch: false,
        limit: 2.0,
        search: 0.0,
    };
}

/// CUBIC's growth: a function of the time since the last reduction, flat around the window at which that came.
#[derive(Clone, Debug)]
pub struct Cubic {
    shape: CubicShape,
    beta: f64,
    /// The minimum round-trip time.
    rtt_min: Duration,
    state: State,
    /// The state before the last reduction.
    before: Option<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The window at which congestion is expected (Wmax); zero: not known.
    w_max: f64,
    /// The window before the latest reduction; zero: there was none, and slow start ended by itself.
    cwnd_prior: f64,
    /// Congestion avoidance since the latest reduction, once it has begun.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time from its start until the plateau, seconds.
    k: f64,
    /// The window at the plateau.
    plateau: f64,
    /// What Reno's window would be.
    w_est: f64,
}

impl Cubic {
    /// Growth for a sender that keeps `beta` of its window on congestion.
    pub const fn new(beta: f64, shape: CubicShape) -> Self {
        let state = State { w_max: 0.0, cwnd_prior: 0.0, epoch: None };
        Self { shape, beta, rtt_min: Duration::MAX, state, before: None }
    }

    /// The sender now keeps this much of its window on congestion.
    pub const fn set_beta(&mut self, beta: f64) {
        self.beta = beta;
    }

    /// It grows like this from now on.
    pub fn set_shape(&mut self, shape: CubicShape) {
        self.shape = shape;
    }

    /// Whether the saturation point is put lower from now on when it was not reached again.
    pub const fn set_fast_convergence(&mut self, on: bool) {
        self.shape.fast_convergence = on;
    }

    /// Every window is this many times what it was.
    pub fn scale(&mut self, factor: f64) {
        self.state.w_max *= factor;
        self.state.cwnd_prior *= factor;
        if let Some(epoch) = &mut self.state.epoch {
            epoch.plateau *= factor;
            epoch.w_est *= factor;
        }
    }

    /// Grows the window by this many acknowledged segments.
    pub fn on_ack(&mut self, ack: &Ack, packets: f64, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = self.rtt_min.min(rtt);
        }
        if packets == 0.0 {
            return;
        }
        let cwnd = window.cwnd;
        let mut epoch = self.state.epoch.unwrap_or_else(|| self.begin(ack.now, cwnd));
        let ahead = if self.rtt_min == Duration::MAX { Duration::ZERO } else { self.rtt_min };
        let mut target = epoch.w_cubic(self.shape.c, (ack.now - epoch.start + ahead).as_secs_f64());
        if self.state.w_max == 0.0 {
            target = target.max(cwnd * (1.0 + self.shape.search));
        }
        let most = self.shape.limit * cwnd;
        let mut grown = cwnd + packets * (target.clamp(cwnd, most) - cwnd) / cwnd;
        if self.shape.reno_friendly {
            epoch.w_est += self.slope(&epoch) * packets / cwnd;
            grown = grown.max(epoch.w_est.min(cwnd + packets * (self.shape.limit - 1.0)));
        }
        window.cwnd = grown;
        self.state.epoch = Some(epoch);
    }

    /// The window is about to be reduced (sections 4.6 and 4.7).
    pub fn on_reduction(&mut self, window: &Window) {
        self.before = Some(self.state);
        let not_reached = self.shape.fast_convergence && window.cwnd < self.state.w_max;
        let w_max = if not_reached { window.cwnd * (1.0 + self.beta) / 2.0 } else { window.cwnd };
        self.state = State { w_max, cwnd_prior: window.cwnd, epoch: None };
    }

    /// The window is about to collapse after a timeout: the next plateau is where slow start ends (section 4.8).
    pub fn on_timeout(&mut self, window: &Window) {
        self.on_reduction(window);
        self.state.w_max = 0.0;
    }

    /// The last reduction was a mistake (section 4.9).
    pub fn on_spurious(&mut self) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
    }

    /// The time without anything to send does not count (section 5.8).
    pub fn on_restart(&mut self, restart: &Restart) {
        if let Some(epoch) = &mut self.state.epoch {
            epoch.start = (epoch.start + restart.idle).min(restart.now);
        }
    }

    /// Wmax and Reno's window in segments, K in milliseconds.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("w_max", self.state.w_max);
        if let Some(epoch) = &self.state.epoch {
            show("k", 1000.0 * epoch.k);
            show("w_est", epoch.w_est);
        }
    }

    fn begin(&self, now: Time, cwnd: f64) -> Epoch {
        let w_max = self.state.w_max;
        let (plateau, below) = match self.shape.k_from_epoch {
            _ if w_max <= cwnd => (cwnd, 0.0),
            true => (w_max, w_max - cwnd),
            false => (w_max, w_max * (1.0 - self.beta)),
        };
        Epoch { start: now, k: libm::cbrt(below / self.shape.c), plateau, w_est: cwnd }
    }

    /// Reno's growth per round trip that gives the same average window with `beta` (section 4.3, figure 4).
    fn slope(&self, epoch: &Epoch) -> f64 {
        let slope = if self.shape.reno_slope_returns && epoch.w_est >= self.state.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        };
        self.shape.reno_slope * slope
    }
}

impl Epoch {
    /// The window `t` seconds after the epoch's start (section 4.2, figure 1).
    fn w_cubic(&self, c: f64, t: f64) -> f64 {
        let t = t - self.k;
        c * t * t * t + self.plateau
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flow;

    const RTT: f64 = 0.1;

    fn seconds(seconds: f64) -> Time {
        Time::ZERO + Duration::from_secs_f64(seconds)
    }

    fn window(cwnd: u32) -> Window {
        Window::new(&Flow { mss: 1000, initial_window: cwnd, seed: 0 })
    }

    /// Reduces the window as a loss does.
    fn lose(cubic: &mut Cubic, window: &mut Window) {
        cubic.on_reduction(window);
        window.reduce_to(cubic.beta * window.cwnd);
    }

    /// Acknowledges at this time as many segments, one by one.
    fn acknowledge(cubic: &mut Cubic, window: &mut Window, now: f64, segments: u32) {
        let ack = Ack { now: seconds(now), rtt: Some(Duration::from_secs_f64(RTT)), packets: 1, ..Ack::default() };
        for _ in 0..segments {
            cubic.on_ack(&ack, 1.0, window);
        }
    }

    fn shown(cubic: &Cubic, key: &str) -> f64 {
        let mut value = f64::NAN;
        cubic.inspect(&mut |name, number| {
            if name == key {
                value = number;
            }
        });
        value
    }

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value / expected - 1.0).abs() < relative, "{value}, not {expected}");
    }

    #[test]
    fn k_and_the_curve_of_rfc_9438() {
        let mut cubic = Cubic::new(0.7, CubicShape { reno_friendly: false, ..CubicShape::RFC_9438 });
        let mut window = window(1000);
        lose(&mut cubic, &mut window);
        assert_eq!(window.cwnd, 700.0);
        acknowledge(&mut cubic, &mut window, 0.0, 1);
        // cbrt((1000 - 700)/0.4) seconds
        near(shown(&cubic, "k"), 9085.602964, 1e-9);
        // Concave up to Wmax at K, convex beyond. The window of each round is the curve at its end.
        let mut last = (window.cwnd, f64::INFINITY);
        for round in 1..180 {
            let now = RTT * f64::from(round);
            let segments = window.cwnd as u32;
            acknowledge(&mut cubic, &mut window, now, segments);
            let at = now + RTT - 9.085602964;
            near(window.cwnd, 1000.0 + 0.4 * at * at * at, 0.01);
            let growth = window.cwnd - last.0;
            assert!(growth > 0.0);
            match round {
                5..=80 => assert!(growth < last.1, "concave in round {round}"),
                101.. => assert!(growth > last.1, "convex in round {round}"),
                _ => {}
            }
            last = (window.cwnd, growth);
        }
    }

    #[test]
    fn k_of_2008_follows_from_wmax_alone() {
        let mut cubic = Cubic::new(0.8, CubicShape::PAPER_2008);
        let mut window = window(1000);
        lose(&mut cubic, &mut window);
        assert_eq!(window.cwnd, 800.0);
        acknowledge(&mut cubic, &mut window, 0.0, 1);
        near(shown(&cubic, "k"), 1000.0 * libm::cbrt(1000.0 * 0.2 / 0.4), 1e-12);
        // Fast convergence: Wmax 900, cwnd 800. K is that of 900, though 100 segments are all that is missing.
        window.cwnd = 1000.0;
        cubic.state.w_max = 1001.0;
        lose(&mut cubic, &mut window);
        acknowledge(&mut cubic, &mut window, 0.0, 1);
        near(shown(&cubic, "w_max"), 900.0, 1e-12);
        near(shown(&cubic, "k"), 1000.0 * libm::cbrt(900.0 * 0.2 / 0.4), 1e-12);
    }

    #[test]
    fn fast_convergence_lowers_wmax_only_if_it_was_not_reached() {
        for (fast_convergence, second) in [(true, 500.0 * 1.7 / 2.0), (false, 500.0)] {
            let mut cubic = Cubic::new(0.7, CubicShape { fast_convergence, ..CubicShape::RFC_9438 });
            let mut window = window(1000);
            lose(&mut cubic, &mut window);
            assert_eq!(shown(&cubic, "w_max"), 1000.0);
            window.cwnd = 500.0;
            lose(&mut cubic, &mut window);
            assert_eq!(shown(&cubic, "w_max"), second);
            window.cwnd = 600.0;
            lose(&mut cubic, &mut window);
            assert_eq!(shown(&cubic, "w_max"), 600.0);
        }
    }

    /// Growth over a round trip at the start of an epoch with a short round trip, where Reno is faster.
    fn friendly_growth(beta: f64, shape: CubicShape, cwnd_prior: Option<f64>) -> f64 {
        let mut cubic = Cubic::new(beta, shape);
        let mut window = window(100);
        lose(&mut cubic, &mut window);
        cubic.state.cwnd_prior = cwnd_prior.unwrap_or(cubic.state.cwnd_prior);
        let before = window.cwnd;
        let ack = Ack { rtt: Some(Duration::from_millis(1)), ..Ack::default() };
        for _ in 0..10 {
            for _ in 0..window.cwnd as u32 {
                cubic.on_ack(&ack, 1.0, &mut window);
            }
        }
        (window.cwnd - before) / 10.0
    }

    #[test]
    fn the_reno_friendly_slope() {
        near(friendly_growth(0.7, CubicShape::RFC_9438, None), 9.0 / 17.0, 0.02);
        near(friendly_growth(0.8, CubicShape::PAPER_2008, None), 1.0 / 3.0, 0.02);
        // As fast as Reno once the old window is reached; not so in 2008.
        near(friendly_growth(0.7, CubicShape::RFC_9438, Some(50.0)), 1.0, 0.02);
        near(friendly_growth(0.8, CubicShape::PAPER_2008, Some(50.0)), 1.0 / 3.0, 0.02);
        let off = CubicShape { reno_friendly: false, k_from_epoch: true, ..CubicShape::PAPER_2008 };
        assert!(friendly_growth(0.8, off, None) < 0.1);
    }

    #[test]
    fn one_round_trip_grows_by_the_limit_at_most() {
        for (shape, limit) in [(CubicShape::RFC_9438, 1.5), (CubicShape::PAPER_2008, 2.0)] {
            let mut cubic = Cubic::new(0.7, shape);
            let mut window = window(1000);
            lose(&mut cubic, &mut window);
            acknowledge(&mut cubic, &mut window, 0.0, 1);
            let before = window.cwnd;
            let ack = Ack { now: seconds(1e6), ..Ack::default() };
            cubic.on_ack(&ack, before, &mut window);
            near(window.cwnd, limit * before, 1e-12);
        }
    }

    #[test]
    fn without_a_saturation_point_five_percent_per_round_trip() {
        let mut cubic = Cubic::new(0.7, CubicShape::RFC_9438);
        let mut window = window(1000);
        let ack = Ack::default();
        cubic.on_ack(&ack, 1000.0, &mut window);
        near(window.cwnd, 1050.0, 1e-12);
        // After a timeout it is not known either.
        cubic.on_timeout(&window);
        window.collapse(700.0);
        window.cwnd = 700.0;
        cubic.on_ack(&ack, 700.0, &mut window);
        near(window.cwnd, 735.0, 1e-12);
    }

    #[test]
    fn idle_time_does_not_count() {
        let run = |idle: f64| {
            let mut cubic = Cubic::new(0.7, CubicShape::RFC_9438);
            let mut window = window(1000);
            lose(&mut cubic, &mut window);
            acknowledge(&mut cubic, &mut window, 0.0, 700);
            let (now, idle) = (seconds(1.0 + idle), Duration::from_secs_f64(idle));
            cubic.on_restart(&Restart { now, idle, nxt: 0, window: None });
            acknowledge(&mut cubic, &mut window, 2.0 + idle.as_secs_f64(), 100);
            window.cwnd
        };
        near(run(60.0), run(0.0), 1e-9);
    }

    #[test]
    fn a_spurious_reduction_is_undone() {
        let mut cubic = Cubic::new(0.7, CubicShape::RFC_9438);
        let mut window = window(1000);
        lose(&mut cubic, &mut window);
        acknowledge(&mut cubic, &mut window, 1.0, 10);
        let (w_max, k) = (shown(&cubic, "w_max"), shown(&cubic, "k"));
        lose(&mut cubic, &mut window);
        assert!(shown(&cubic, "w_max") < w_max);
        cubic.on_spurious();
        window.restore();
        assert_eq!((shown(&cubic, "w_max"), shown(&cubic, "k")), (w_max, k));
    }
}
