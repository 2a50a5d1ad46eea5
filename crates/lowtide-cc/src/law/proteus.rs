// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCC Proteus (Meng, Rozen Schiff, Godfrey and Schapira, "PCC Proteus: Scavenger Transport And Beyond", SIGCOMM 2020):
//! tries rates, and moves to higher utility. By default it is Proteus-S, the scavenger, which takes a deviation of the
//! RTT for competing flows; `d=0` is Proteus-P, the primary.
//!
//! ```text
//! u(x) = x^t - b·x·max(0, d(RTT)/dt) - c·x·L - d·x·σ(RTT)        x in Mbit/s, times in seconds
//! ```
//!
//! A rate is tried for a monitor interval, which is about an RTT; an RTT later its losses and RTTs are known. The
//! parts: [`interval`] measures, [`noise`] decides what counts, [`ascent`] decides on the rate (PCC Vivace: Dong et
//! al., NSDI 2018), and this file connects them to the transport. Utility and the three pairs of trials are the
//! paper's. The other numbers, and the rules of noise, steps and intervals, are those of the authors' code
//! (`PCCproject/PCC-Uspace`, `src/pcc`), which may differ from the text in details.
//!
//! Notable differences from the two:
//! * Three pairs of trials and their majority for -S as for -P, as in the paper; the code has two for -S, which must
//!   agree, and lets -P decrease only if all three agree.
//! * `x` is the rate that was tried. The code takes what was sent over the time that it took, which in an interval of
//!   few packets varies by more than the 5 % that are tried. An interval in which the sender could not send at its rate
//!   is no trial: if it was application-limited it is repeated, else the rate falls to what was sent. So a rate that is
//!   not used does not grow.
//! * The error of a slope is the distance of the RTTs from their regression, in parts of the interval. The code takes
//!   it from a line whose slope is per time and whose places are packet numbers.
//! * The code's filter of ACKs compares the ratio of two gaps with an average of ratios; here it is compared with 50
//!   alone. After an RTT of samples that were left out they count again, and no interval is made longer for it.
//! * The usual values of a path are learnt anew, the trend of the delay like its deviation, when nearly all of the
//!   latest intervals were unusual. In the code one quiet moment at the start can make every later trend unusual for
//!   ever.
//! * The code starts over, by doubling, when a decision leaves the least rate, and does not count σ and slopes of less
//!   than a millisecond while it doubles. Here a rate is left by growing steps, and utility is the same in all phases.
//! * Moving ends with the better of the two latest rates; the code takes back the step that it would have made.
//! * The window is three times what the rate needs, and only bounds what is lost in an outage. An idle time ends the
//!   present trials.
//!
//! In a simulator without noise the primary leaves the link to CUBIC nearly as the scavenger does;
//! docs/results/findings.md (26) has the reason.

use crate::{Ack, Congestion, CongestionControl, EcnUse, Flow, Lost, Reaction, Restart, Sent, Time, text::parameters};
use std::time::Duration;

mod ascent;
mod interval;
mod noise;
#[cfg(test)]
mod tests;

use ascent::{Ascent, MOST_PAIRS, MOST_TRIALS, Phase, Trial};
use interval::{Interval, Measured};
use noise::{AckFilter, History};

parameters! {
    /// Parameters of Proteus.
    pub struct Parameters for "proteus" {
        /// `t`: utility grows with the rate to this power.
        t: f64 = 0.9, in 0.01..=1.0;
        /// `b`: the price of an RTT that grows by a second per second.
        b: f64 = 900.0, in 0.0..=1e6;
        /// `c`: the price of losing all; 11.35 tolerates a loss of 5 %.
        c: f64 = 11.35, in 0.0..=1e6;
        /// `d`: the price of a deviation of the RTT by a second; 0 makes the scavenger a primary flow.
        d: f64 = 1500.0, in 0.0..=1e6;
        /// `ε`: the two rates of a pair are this part above and below the rate.
        epsilon: f64 = 0.05, in 0.001..=0.5;
        /// Pairs that are tried before the rate moves; the majority decides.
        pairs: u32 = 3, in 1..=MOST_PAIRS as u32;
        /// `θ`: Mbit/s of a step for a utility that rises by one per Mbit/s.
        theta: f64 = 1.0, in 0.0..=1e6;
        /// A step is longer by the factor of half of the steps made in its direction, to this power (the confidence
        /// amplifier).
        amplifier: f64 = 1.2, in 0.0..=10.0;
        /// `ω`: a step is at most this part of the rate.
        omega: f64 = 0.05, in 0.0..=1.0;
        /// `δ`: that bound is wider by this after each step that it cut short.
        delta: f64 = 0.05, in 0.0..=1.0;
        /// The least step, Mbit/s.
        min_step: f64 = 0.5, in 0.0..=1e6;
        /// The least rate, Mbit/s.
        min_rate: f64 = 0.5, in 0.001..=1000.0;
        /// `G1`: a trend is unusual if it is more than so many mean deviations from the usual one.
        g1: f64 = 2.0, in 0.0..=1e6;
        /// `G2`: a deviation of the RTT is unusual if it is so many mean deviations above the usual one.
        g2: f64 = 4.0, in 0.0..=1e6;
        /// RTTs are left out after two gaps between ACKs of which one is more than so many times the other.
        ack_ratio: f64 = 50.0, in 1.0..=1e9;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(Proteus::new(self, flow))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::Off
    }

    /// The utility of sending at `rate` Mbit/s.
    fn utility(&self, rate: f64, seen: &Measured) -> f64 {
        let price = self.b * seen.gradient.max(0.0) + self.c * seen.loss + self.d * seen.deviation;
        libm::pow(rate, self.t) - rate * price
    }
}

/// The RTT that is assumed until one is known: the initial window leaves in so much time.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// The window as a multiple of what the rate has in flight.
const IN_FLIGHT: f64 = 3.0;
/// RACK waits for this part of the minimum RTT before a hole is a loss (RFC 8985, section 6.2).
const REORDERING: u32 = 4;

struct Proteus {
    parameters: Parameters,
    flow: Flow,
    /// From the first RTT sample on.
    ascent: Option<Ascent>,
    /// The trials of the next decision, and how many have begun.
    intervals: [Interval; MOST_TRIALS],
    begun: usize,
    filter: AckFilter,
    history: History,
    min_rtt: Duration,
    last_sent: Time,
    /// Bytes.
    window: u64,
    /// The latest interval, for probes.
    latest: (Trial, Measured),
}

impl Proteus {
    fn new(parameters: &Parameters, flow: &Flow) -> Self {
        Self {
            parameters: parameters.clone(),
            flow: *flow,
            ascent: None,
            intervals: [Interval::default(); MOST_TRIALS],
            begun: 0,
            filter: AckFilter::default(),
            history: History::default(),
            min_rtt: Duration::MAX,
            last_sent: Time::ZERO,
            window: initial_window(flow),
            latest: Default::default(),
        }
    }

    /// The trial that is being sent.
    fn current(&mut self) -> Option<&mut Interval> {
        self.intervals[..self.begun].last_mut().filter(|interval| interval.is_open())
    }

    /// The rate at which to send now, Mbit/s.
    fn rate(&self) -> f64 {
        let open = self.intervals[..self.begun].last().filter(|interval| interval.is_open());
        match (&self.ascent, open) {
            (_, Some(interval)) => interval.rate,
            (Some(ascent), None) => ascent.rate(),
            (None, None) => megabits(initial_window(&self.flow), INITIAL_RTT),
        }
    }

    /// An RTT sample of a segment that was sent then.
    fn on_sample(&mut self, ack: &Ack, rtt: Duration) {
        let trusted = self.filter.trusts(ack.now, rtt, ack.srtt, self.parameters.ack_ratio);
        self.min_rtt = self.min_rtt.min(rtt);
        let (flow, least) = (&self.flow, self.parameters.min_rate);
        let ascent = self.ascent.get_or_insert_with(|| {
            let rate = megabits(initial_window(flow), rtt.clamp(Duration::from_micros(1), INITIAL_RTT));
            Ascent::new(rate.max(least), flow.seed)
        });
        let sent = Time::from_nanos(ack.now.as_nanos().saturating_sub(rtt.as_nanos() as u64));
        if trusted {
            for interval in &mut self.intervals[..self.begun] {
                interval.on_sample(sent, rtt);
            }
        }
        let little = if ack.sacked { self.min_rtt / REORDERING } else { Duration::ZERO };
        let all = self.begun == ascent.trials(&self.parameters);
        if all && self.intervals[..self.begun].iter().all(|interval| interval.is_over(sent, little)) {
            self.decide();
        }
    }

    /// All trials are over.
    fn decide(&mut self) {
        let Some(ascent) = &mut self.ascent else { return };
        let intervals = &self.intervals[..std::mem::take(&mut self.begun)];
        if intervals.iter().any(|interval| interval.app_limited) {
            return;
        }
        let short = |interval: &&Interval| interval.real_rate() < (1.0 - self.parameters.epsilon) * interval.rate;
        if let Some(interval) = intervals.iter().find(short) {
            return ascent.falls_short(interval.real_rate(), &self.parameters);
        }
        let mut trials = [Trial::default(); MOST_TRIALS];
        for (trial, interval) in trials.iter_mut().zip(intervals) {
            let mut measured = interval.measure();
            let counts = self.history.judge(&measured, self.parameters.g1, self.parameters.g2);
            if !counts.gradient {
                measured.gradient = 0.0;
            }
            if !counts.deviation {
                measured.deviation = 0.0;
            }
            *trial = Trial { rate: interval.rate, utility: self.parameters.utility(interval.rate, &measured) };
            self.latest = (*trial, measured);
        }
        ascent.decide(&trials[..intervals.len()], &self.parameters);
    }

    fn set_window(&mut self, ack: &Ack) {
        let needed = (IN_FLIGHT * self.rate() * 125e3 * ack.srtt.as_secs_f64()) as u64;
        let needed = needed.max(initial_window(&self.flow));
        // It grows by what has arrived, if the window is the limit. So after an outage it is as large as what was in
        // flight.
        if needed < self.window {
            self.window = needed;
        } else if ack.in_flight > self.window / 2 {
            self.window = needed.min(self.window + ack.bytes);
        }
    }
}

/// Bytes.
fn initial_window(flow: &Flow) -> u64 {
    u64::from(flow.initial_window.max(1)) * u64::from(flow.mss)
}

/// Mbit/s.
fn megabits(bytes: u64, time: Duration) -> f64 {
    8e-6 * bytes as f64 / time.as_secs_f64()
}

impl CongestionControl for Proteus {
    fn on_sent(&mut self, sent: &Sent) {
        // An interval begins with a burst: the rest of one would count for the time of the whole.
        let burst_begins = sent.now > self.last_sent;
        self.last_sent = sent.now;
        let Some(ascent) = &self.ascent else { return };
        let trials = ascent.trials(&self.parameters);
        if burst_begins {
            let least = self.min_rtt;
            let free = self.current().is_none_or(|interval| interval.ends(sent.now, least));
            if free && self.begun < trials {
                let rate = self.ascent.as_ref().map_or(0.0, |ascent| ascent.trial(self.begun));
                self.intervals[self.begun] = Interval::new(rate, sent.now);
                self.begun += 1;
            }
        }
        if let Some(interval) = self.current() {
            interval.on_sent(sent.bytes, sent.app_limited);
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        for interval in &mut self.intervals[..self.begun] {
            interval.on_lost(lost.sent, lost.bytes);
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if let Some(rtt) = ack.rtt {
            self.on_sample(ack, rtt);
        }
        self.set_window(ack);
        Reaction::None
    }

    /// Single signals do not count: losses have a price in the interval in which they were sent.
    fn on_congestion(&mut self, _: &Congestion) {}

    fn on_restart(&mut self, _: &Restart) {
        self.begun = 0;
        self.filter.restart();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(((self.rate() * 125e3).round() as u64).max(1))
    }

    fn least_burst(&self) -> u64 {
        1
    }

    /// Packets leave one by one, as in the authors' code: the self-induced queue of a burst would be a deviation that
    /// grows with the rate.
    fn longest_burst(&self) -> Duration {
        Duration::ZERO
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let phase = self.ascent.as_ref().map_or(0.0, |ascent| match ascent.phase() {
            Phase::Starting => 0.0,
            Phase::Probing => 1.0,
            Phase::Moving => 2.0,
        });
        let (trial, measured) = &self.latest;
        show("phase", phase);
        show("rate", self.rate());
        show("utility", trial.utility);
        show("gradient", measured.gradient);
        show("deviation", 1e3 * measured.deviation);
        show("loss", measured.loss);
    }
}
