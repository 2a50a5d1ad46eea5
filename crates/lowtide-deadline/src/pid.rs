// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID control of the weight.

use crate::{Bounds, NOMINAL_INTERVAL, Step, WeightControl};
use std::time::Duration;

/// The gains of the PID, for time in seconds and an update interval of 10 s (the framework, section III-C).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains {
    /// Proportional, dimensionless; 0.5.
    pub proportional: f64,
    /// Integral, per second; 0.03.
    pub integral: f64,
    /// Derivative, in seconds; 0.1.
    pub derivative: f64,
}

impl Default for Gains {
    fn default() -> Gains {
        Gains { proportional: 0.5, integral: 0.03, derivative: 0.1 }
    }
}

/// Bytes per T_w that an interval is taken to have carried when it carried fewer: about one packet. Guards the
/// division by the achieved rate.
const FLOOR_BYTES: f64 = 1500.0;

/// How far Ki*I may lie above the weight in force after the limit on increases has bitten; see
/// [`Pid::applied`].
const WINDUP_HEADROOM: f64 = 4.0;

/// PID control of the weight: the framework, eqs. 7 to 10, with the integral bounded.
///
/// ```text
/// e_n = (ζ - x̄)/x̄ * w_{n-1}
/// I_n = clamp(I_{n-1} + dt*e_n,  w_min/Ki, w_max/Ki)      I_0 = w_min/Ki
/// w_n = clamp(Kp*e_n + Ki*I_n + Kd*(e_n - e_{n-1})/dt,  w_min, w_max)
/// ```
///
/// **Time is counted in update intervals** of 10 s each: `dt = 10 s * elapsed / T_w`. With T_w = 10 s that is
/// the paper's law to the letter. For short deadlines T_w is shorter, and the dynamics per update stay what
/// they were: what must scale with the time left is the response of the controller, while the
/// plant, a congestion-controlled flow, reacts in round trips, far below T_w at either scale. Our choice;
/// the paper has only one T_w.
#[derive(Debug, Clone, PartialEq)]
pub struct Pid {
    gains: Gains,
    bounds: Bounds,
    integral: f64,
    previous_error: f64,
}

impl Pid {
    /// A controller at rest at `w_min`, with the paper's gains.
    #[must_use]
    pub fn new(bounds: Bounds) -> Pid {
        Pid::with_gains(bounds, Gains::default())
    }

    /// A controller at rest at `w_min`. Gains must be finite; `integral` greater than 0, or the controller
    /// has nothing that holds the weight at rest.
    #[must_use]
    pub fn with_gains(bounds: Bounds, gains: Gains) -> Pid {
        let mut pid = Pid { gains, bounds, integral: 0.0, previous_error: 0.0 };
        pid.reset(bounds.min().get());
        pid
    }

    /// I_n, in seconds: the integral of the weighted relative error.
    #[must_use]
    pub fn integral(&self) -> f64 {
        self.integral
    }
}

impl WeightControl for Pid {
    fn update(&mut self, step: &Step) -> f64 {
        let Gains { proportional, integral, derivative } = self.gains;
        let nominal = NOMINAL_INTERVAL.as_secs_f64();
        let interval = step.interval.max(Duration::from_nanos(1)).as_secs_f64();
        let elapsed = step.elapsed.max(Duration::from_nanos(1)).as_secs_f64();
        let dt = nominal * elapsed / interval;
        let achieved = step.achieved_rate.max(FLOOR_BYTES / interval);

        let error = (step.target_rate - achieved) / achieved * step.weight;
        self.integral =
            (self.integral + dt * error).clamp(self.bounds.min().get() / integral, self.bounds.max().get() / integral);
        let wanted = proportional * error + integral * self.integral + derivative * (error - self.previous_error) / dt;
        self.previous_error = error;
        self.bounds.clamp(wanted).get()
    }

    /// While increases are limited the integral must not run away from the weight: it would go on pushing
    /// long after the target is reached. So Ki*I is held to a few times the weight in force. (The paper has
    /// no limit on increases with its PID, so it is silent here.)
    fn applied(&mut self, weight: f64, held_back: bool) {
        if held_back {
            let most = (WINDUP_HEADROOM * weight).clamp(self.bounds.min().get(), self.bounds.max().get());
            self.integral = self.integral.min(most / self.gains.integral);
        }
    }

    fn reset(&mut self, weight: f64) {
        self.raised(weight);
        self.previous_error = 0.0;
    }

    fn raised(&mut self, weight: f64) {
        self.integral = self.bounds.clamp(weight).get() / self.gains.integral;
    }

    fn set_bounds(&mut self, bounds: Bounds) {
        let least = bounds.min().get() / self.gains.integral;
        self.bounds = bounds;
        self.integral = self.integral.clamp(least, bounds.max().get() / self.gains.integral);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(target: f64, achieved: f64, weight: f64, seconds: f64, interval: f64) -> Step {
        Step {
            target_rate: target,
            achieved_rate: achieved,
            weight,
            elapsed: Duration::from_secs_f64(seconds),
            interval: Duration::from_secs_f64(interval),
            path: crate::PathState::default(),
            signals: crate::Signals::default(),
            price_ratio: 1.0,
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    /// By hand from the framework's eqs. 7 to 10, T_w = 10 s.
    #[test]
    fn the_papers_law_to_the_letter() {
        let mut pid = Pid::new(Bounds::new(0.001, 1.0).unwrap());
        close(pid.integral(), 0.001 / 0.03);
        // e = (2-1)/1 * 0.1 = 0.1; I = 0.0333.. + 1; u = 0.05 + 0.001 + 0.03 + 0.001
        close(pid.update(&step(2e6, 1e6, 0.1, 10.0, 10.0)), 0.082);
        // e = -0.5 * 0.08 = -0.04; I = 1.0333.. - 0.4; u = -0.02 + 0.019 - 0.0014 < w_min
        close(pid.update(&step(1e6, 2e6, 0.08, 10.0, 10.0)), 0.001);
        close(pid.integral(), 0.001 / 0.03 + 0.6);
        // e = 0: u = Ki*I + Kd*0.04/10
        close(pid.update(&step(1e6, 1e6, 0.2, 10.0, 10.0)), 0.019 + 0.0004);
    }

    #[test]
    fn at_rest_the_integral_alone_holds_the_weight() {
        let mut pid = Pid::new(Bounds::default());
        pid.reset(0.3);
        for _ in 0..100 {
            close(pid.update(&step(1e6, 1e6, 0.3, 10.0, 10.0)), 0.3);
        }
    }

    #[test]
    fn the_integral_is_clamped_at_both_ends() {
        let mut pid = Pid::new(Bounds::default());
        for _ in 0..50 {
            pid.update(&step(1e9, 1.0, 1.0, 10.0, 10.0));
        }
        close(pid.integral(), 1.0 / 0.03);
        for _ in 0..500 {
            pid.update(&step(0.0, 1e9, 1.0, 10.0, 10.0));
        }
        close(pid.integral(), 0.004 / 0.03);
    }

    #[test]
    fn nothing_achieved_is_no_division_by_zero() {
        let mut pid = Pid::new(Bounds::default());
        let w = pid.update(&step(1e6, 0.0, 0.004, 10.0, 10.0));
        // As if one packet had gone: e = (1e6 - 150)/150 * 0.004
        assert_eq!(w, 1.0);
        let mut other = Pid::new(Bounds::default());
        assert_eq!(w, other.update(&step(1e6, 150.0, 0.004, 10.0, 10.0)));
        assert_eq!(pid, other);
    }

    #[test]
    fn time_is_counted_in_intervals() {
        let run = |interval: f64| {
            let mut pid = Pid::new(Bounds::default());
            [(3.0, 0.02), (2.0, 0.03), (0.5, 0.1)]
                .map(|(ratio, w)| pid.update(&step(ratio * 1e6, 1e6, w, interval, interval)))
        };
        assert_eq!(run(10.0), run(0.5));
        // A late update integrates over the time it really took.
        let (mut on_time, mut late) = (Pid::new(Bounds::default()), Pid::new(Bounds::default()));
        on_time.update(&step(2e6, 1e6, 0.1, 0.5, 0.5));
        late.update(&step(2e6, 1e6, 0.1, 0.75, 0.5));
        close(late.integral() - on_time.integral(), 0.1 * 5.0);
    }

    #[test]
    fn a_limited_increase_holds_the_integral_back() {
        let mut pid = Pid::new(Bounds::default());
        pid.update(&step(1e8, 1e6, 0.01, 10.0, 10.0));
        assert!(pid.integral() > 5.0);
        pid.applied(0.012, true);
        close(pid.integral(), 4.0 * 0.012 / 0.03);
        pid.applied(0.004, false); // a free step leaves it alone
        close(pid.integral(), 4.0 * 0.012 / 0.03);
    }
}
