// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prague's parameters.

use super::{Prague, RttMode};
use crate::{
    CongestionControl, EcnUse, Flow,
    law::reno,
    part::{Acceleration, Judged, Overload, OverloadSettings, Overshoot},
    text::{parameters, values},
};
use std::{ops::RangeInclusive, time::Duration};

values! {
    /// The version of `tcp_prague.c`. It decides the other defaults, how small windows are, and (v0.7) that the
    /// additive increase counts in segments of 1500 bytes.
    pub enum Variant {
        /// v0.6, of the time of Misund's paper: `alpha_mode=one,transition=500,cwnd_mode=window,min_rate=0`.
        V06 = "v0.6",
        /// v0.7, as submitted to Linux.
        V07 = "v0.7",
    }
}

values! {
    /// Where `alpha` starts; it changes from the first mark on.
    pub enum AlphaMode {
        /// At 0; the first mark halves the window.
        Halve = "halve",
        /// At 1.
        One = "one",
    }
}

values! {
    /// What steers the flow, once it is independent of its RTT.
    pub enum CwndMode {
        /// The window.
        Window = "window",
        /// The rate.
        Rate = "rate",
        /// The rate below a window of `cwnd_transit`.
        Switch = "switch",
    }
}

const TARGET: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(1);
const MAX_RTT: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(10);

parameters! {
    /// Parameters of Prague.
    pub struct Parameters for "prague" defaults by of_variant {
        /// The version.
        variant: Variant = Variant::V07;
        /// Gain of the average of marks (`PRAGUE_SHIFT_G`).
        gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// Where `alpha` starts (`prague_alpha_mode`).
        alpha_mode: AlphaMode = AlphaMode::Halve;
        /// The factor that a loss leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Independence of the RTT (`prague_rtt_scaling`).
        mode: RttMode = RttMode::Rate;
        /// The RTT that shorter ones are scaled to (`prague_rtt_target`).
        target: Duration = Duration::from_millis(25), in TARGET;
        /// RTTs after slow start until then (`prague_rtt_transition`).
        transition: u32 = 4, in 0..=1_000_000;
        /// Above this RTT the increase is not scaled (`MAX_SCALED_RTT`).
        max_rtt: Duration = Duration::from_millis(100), in MAX_RTT;
        /// What steers (`prague_cwnd_mode`).
        cwnd_mode: CwndMode = CwndMode::Switch;
        /// The window up to which the rate steers, in units of 1500 bytes (`prague_cwnd_transit`).
        cwnd_transit: f64 = 4.0, in 0.0..=1000.0;
        /// How much faster than its rate the flow sends in the first half of a virtual RTT, and slower in the second,
        /// when the rate steers (`RATE_OFFSET`).
        rate_offset: f64 = 4.0 / 128.0, in 0.0..=0.5;
        /// The least rate, kbit/s (`MINIMUM_RATE`).
        min_rate: f64 = 100.0, in 0.0..=1e6;
        /// Whether to detect classic ECN queues, and to yield to flows there as these do (`prague_ecn_fallback` of
        /// v0.6).
        fallback: bool = false;
        /// Paced sending.
        pacing: bool = true;
        /// Whether ECN with exact feedback can be used. If not, this is Reno.
        ecn: bool = true;
        /// Acceleration mode (Misund, section 3).
        accel: bool = false;
        /// Acceleration's acceptable queue overshoot `Q`.
        accel_q: Overshoot = Overshoot::MILLISECOND;
        /// Gain of acceleration's averages (Misund, section 3.3).
        accel_gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// Cycles that must have been seen before acceleration.
        accel_cycles: u32 = 4, in 0..=1000;
        /// Whether to use the formulas exactly as the paper prints them.
        accel_literal: bool = false;
        /// Overload mode (Misund, sections 1 and 6.2).
        overload: bool = false;
        /// How far above its usual delay a queue is overload.
        overload_q: Overshoot = Overshoot::MILLISECOND;
        /// Gain of the average of the queue's usual delay.
        overload_gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// Standing queue of an AQM, which is left after a reduction for overload.
        overload_aqm: Duration = Duration::ZERO, in OverloadSettings::Q_AQM;
        /// How long a minimum RTT counts as that of the path; 0s: for the connection's life.
        overload_base: Duration = Duration::ZERO, in OverloadSettings::BASE_WINDOW;
        /// Which rounds overload judges.
        overload_rounds: Judged = Judged::Fresh;
    }
}

fn of_variant(variant: Variant) -> Parameters {
    let v07 = Parameters::default();
    match variant {
        Variant::V07 => v07,
        Variant::V06 => Parameters {
            variant,
            alpha_mode: AlphaMode::One,
            transition: 500,
            cwnd_mode: CwndMode::Window,
            min_rate: 0.0,
            ..v07
        },
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        if !self.ecn {
            return reno::Parameters { beta: self.beta, ..reno::Parameters::default() }.build(flow);
        }
        Box::new(Prague::new(self.clone(), flow))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        if self.ecn { EcnUse::L4s } else { EcnUse::Off }
    }

    pub(super) fn acceleration_mode(&self) -> Option<Acceleration> {
        let Self { accel_q, accel_gain, accel_cycles, accel_literal, .. } = *self;
        self.accel.then(|| Acceleration::new(accel_q, accel_gain, accel_cycles, accel_literal))
    }

    pub(super) fn overload_mode(&self) -> Option<Overload> {
        self.overload.then(|| {
            Overload::new(OverloadSettings {
                q: self.overload_q,
                gain: self.overload_gain,
                q_aqm: self.overload_aqm,
                base_window: self.overload_base,
                judged: self.overload_rounds,
            })
        })
    }
}
