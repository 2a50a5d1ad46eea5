// SPDX-License-Identifier: MIT OR Apache-2.0
//! DualPI2, the dual-queue coupled AQM of L4S: RFC 9332, appendix A, and Linux's `sch_dualpi2` by its
//! parameters.
//!
//! Where this differs from the RFC's pseudocode:
//!
//! - The scheduler that the RFC leaves open (section 2.5.1, appendix A.1: "weighted round robin or
//!   time-shifted FIFO") is a weighted round robin in bytes, with Linux's credit counter.
//! - The native L4S marking looks at the waiting time of the packet that leaves; the RFC writes
//!   `lq.time()` for it.
//! - p' is kept between 0 and 1.
//!
//! Linux's variant differs from the RFC's in its numbers ([`DualPi2::linux`]), and in that:
//!
//! - the controller looks at the longer of the two queues' delays, not at the Classic queue's;
//! - chance is random (twice for the Classic queue), not spread evenly;
//! - nothing is dropped, and nothing marked by coupling, while less than two packets wait.
//!
//! Its limit of 10,000 packets is the link's limit here.

use super::fifo::Fifo;
use super::refuse;
use super::ticks::Ticks;
use crate::drops::{Cause, Drops};
use crate::random::{Random, Source};
use crate::text::{Parameters, why, within};
use crate::units::{Probability, format_duration, parse_duration};
use crate::{Amount, Arrival, Ecn, Limit, Queue, Queued, Time};
use std::time::Duration;

/// Whose DualPI2 it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DualPi2Variant {
    /// RFC 9332, appendix A.
    #[default]
    Rfc,
    /// Linux's `sch_dualpi2`.
    Linux,
}

/// Two queues, one with low latency for L4S traffic (ECT(1) and CE) and one for all other traffic,
/// with coupled signals so that the flows of both get like shares. Written `dualpi2`,
/// `dualpi2:variant=linux` or
/// `dualpi2:target=15ms,update=15ms,alpha=0.15,beta=3,coupling=2,threshold=800us,ramp=400us,classic=6.25%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// Whose rules apply, and whose defaults.
    pub variant: DualPi2Variant,
    /// Delay of the Classic queue to hold. 15 ms. From 1 us to 10 s.
    pub target: Duration,
    /// Tupdate, the time between two updates of the probability. RFC: min(target, RTT_max / 3) = 15
    /// ms with RTT_max = 100 ms; Linux: 16 ms. From 1 us to 10 s.
    pub update: Duration,
    /// Gain of the deviation from the target, in 1/s. RFC: 0.1 Tupdate / RTT_max² = 0.15; Linux:
    /// 41/256. From 0 to 1000.
    pub alpha: f64,
    /// Gain of the trend, in 1/s. RFC: 0.3 / RTT_max = 3; Linux: 819/256. From 0 to 1000.
    pub beta: f64,
    /// k, the coupling factor: an L4S packet is marked with k times the base probability. 2. From 1
    /// to 100.
    pub coupling: f64,
    /// Waiting time above which L4S packets get native marks. RFC: 800 us; Linux: 1 ms. Up to 10 s.
    pub threshold: Duration,
    /// Over this range above the threshold the probability of native marks rises from 0 to 1; zero
    /// makes it a step. RFC: 400 us; Linux: zero. Up to 10 s.
    pub ramp: Duration,
    /// The part of the capacity that the Classic queue gets while both have packets waiting. RFC:
    /// 1/16; Linux: 10 %.
    pub classic: Probability,
}

impl DualPi2 {
    /// The parameters of RFC 9332, appendix A.1.
    pub fn rfc() -> Self {
        Self {
            variant: DualPi2Variant::Rfc,
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.15,
            beta: 3.0,
            coupling: 2.0,
            threshold: Duration::from_micros(800),
            ramp: Duration::from_micros(400),
            classic: Probability::new(1.0 / 16.0).unwrap_or_default(),
        }
    }

    /// The parameters of Linux's `sch_dualpi2`.
    pub fn linux() -> Self {
        Self {
            variant: DualPi2Variant::Linux,
            update: Duration::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            threshold: Duration::from_millis(1),
            ramp: Duration::ZERO,
            classic: Probability::new(0.1).unwrap_or_default(),
            ..Self::rfc()
        }
    }
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self::rfc()
    }
}

impl Parameters for DualPi2 {
    const NAME: &'static str = "dualpi2";
    /// The variant first, as it is what the others differ from.
    const KEYS: &'static [&'static str] =
        &["variant", "target", "update", "alpha", "beta", "coupling", "threshold", "ramp", "classic"];

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        use super::codel::duration;
        use super::pie::{LONGEST, gain};
        let range = |text| within(parse_duration(text).map_err(why)?, Duration::ZERO, LONGEST, format_duration);
        match key {
            "variant" => {
                *self = match value {
                    "rfc" => Self::rfc(),
                    "linux" => Self::linux(),
                    _ => return Err(format!("\"{value}\" is neither rfc nor linux")),
                }
            }
            "target" => self.target = duration(value, LONGEST)?,
            "update" => self.update = duration(value, LONGEST)?,
            "alpha" => self.alpha = gain(value)?,
            "beta" => self.beta = gain(value)?,
            "coupling" => self.coupling = within(gain(value)?, 1.0, 100.0, |number| number.to_string())?,
            "threshold" => self.threshold = range(value)?,
            "ramp" => self.ramp = range(value)?,
            _ => self.classic = value.parse().map_err(why)?,
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "variant" => match self.variant {
                DualPi2Variant::Rfc => return None,
                DualPi2Variant::Linux => "linux".to_owned(),
            },
            "target" => format_duration(self.target),
            "update" => format_duration(self.update),
            "alpha" => self.alpha.to_string(),
            "beta" => self.beta.to_string(),
            "coupling" => self.coupling.to_string(),
            "threshold" => format_duration(self.threshold),
            "ramp" => format_duration(self.ramp),
            _ => self.classic.to_string(),
        })
    }

    /// Those of the variant, which itself is printed unless it is the RFC's.
    fn defaults(&self) -> Self {
        match self.variant {
            DualPi2Variant::Rfc => Self::rfc(),
            DualPi2Variant::Linux => Self { variant: DualPi2Variant::Rfc, ..Self::linux() },
        }
    }
}

/// Chance of one of the two queues.
#[derive(Clone, Debug, Default)]
struct Even {
    count: f64,
}

impl Even {
    /// RFC 9332, appendix A.1, `recur()`: true as often as the likelihood says, evenly spread.
    fn strikes(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let strikes = self.count > 1.0;
        if strikes {
            self.count -= 1.0;
        }
        strikes
    }
}

/// The queue that [`DualPi2`] describes.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2Queue<T> {
    parameters: DualPi2,
    limit: Limit,
    /// Low latency.
    low: Fifo<T>,
    classic: Fifo<T>,
    /// p', the base probability.
    base: f64,
    /// The delay at the latest update.
    old_delay: Duration,
    ticks: Ticks,
    /// The weighted round robin, in bytes: positive when it is the Classic queue's turn.
    credit: f64,
    /// The largest packet so far, in bytes.
    largest: u32,
    even_low: Even,
    even_overload: Even,
    even_classic: Even,
    random: Random,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl<T> DualPi2Queue<T> {
    /// An empty pair of queues that, with the packet in service, hold at most `limit` together.
    pub(crate) fn new(parameters: DualPi2, limit: Limit, seed: u64) -> Self {
        Self {
            parameters,
            limit,
            low: Fifo::default(),
            classic: Fifo::default(),
            base: 0.0,
            old_delay: Duration::ZERO,
            ticks: Ticks::new(parameters.update),
            credit: 0.0,
            largest: 0,
            even_low: Even::default(),
            even_overload: Even::default(),
            even_classic: Even::default(),
            random: Random::new(seed, Source::Queue),
        }
    }

    fn is_linux(&self) -> bool {
        self.parameters.variant == DualPi2Variant::Linux
    }

    /// Makes up for the updates that are due.
    fn update_until(&mut self, now: Time) {
        while let Some(tick) = self.ticks.due(now) {
            if !self.update(tick) {
                self.ticks.skip(now);
            }
        }
    }

    /// `dualpi2_update()` of RFC 9332, appendix A.1; says whether it changed anything.
    fn update(&mut self, now: Time) -> bool {
        let age = |fifo: &Fifo<T>| fifo.head().map_or(Duration::ZERO, |head| head.sojourn(now));
        let mut delay = age(&self.classic);
        if self.is_linux() {
            delay = delay.max(age(&self.low));
        }
        let (old_delay, old_base) = (std::mem::replace(&mut self.old_delay, delay), self.base);
        let DualPi2 { target, alpha, beta, .. } = self.parameters;
        let seconds = |duration: Duration| duration.as_secs_f64();
        let deviation = alpha * (seconds(delay) - seconds(target));
        let trend = beta * (seconds(delay) - seconds(old_delay));
        self.base = (self.base + deviation + trend).clamp(0.0, 1.0);
        (delay, self.base) != (old_delay, old_base)
    }

    /// p_CL, the coupled probability of the L queue.
    fn coupled_probability(&self) -> f64 {
        self.parameters.coupling * self.base
    }

    /// p'_L, the native probability of the L queue: `laqm()` of appendix A.2. `alone` says that no
    /// other packet waits in the L queue (Th_len of one packet).
    fn native_probability(&self, sojourn: Duration, alone: bool) -> f64 {
        let DualPi2 { threshold, ramp, .. } = self.parameters;
        let above = sojourn.saturating_sub(threshold);
        if above.is_zero() || (alone && !self.is_linux()) {
            0.0
        } else if above >= ramp {
            1.0
        } else {
            above.as_secs_f64() / ramp.as_secs_f64()
        }
    }

    /// Takes the next packet from the queue whose turn it is; the second is whether it is the L queue.
    fn next(&mut self) -> Option<(Queued<T>, bool)> {
        let share = self.parameters.classic.as_f64();
        let (low, classic) = (self.low.backlog().packets > 0, self.classic.backlog().packets > 0);
        if !low && !classic {
            self.reset_credit();
        }
        let from_low = low && (!classic || self.credit <= 0.0);
        let packet = if from_low { self.low.pop() } else { self.classic.pop() }?;
        // With one queue alone there is nothing to share.
        if low && classic {
            let bytes = f64::from(packet.packet.bytes);
            self.credit += if from_low { share * bytes } else { (share - 1.0) * bytes };
        }
        Some((packet, from_low))
    }

    /// After an idle time the L queue may send first for as long as its weight lasts.
    fn reset_credit(&mut self) {
        self.credit = f64::from(self.largest) * (2.0 * self.parameters.classic.as_f64() - 1.0);
    }

    /// Whether less than two full packets wait: then Linux neither drops nor couples.
    fn nearly_empty(&self) -> bool {
        self.backlog_both().bytes < 2 * u64::from(self.largest)
    }

    fn backlog_both(&self) -> Amount {
        self.low.backlog() + self.classic.backlog()
    }

    /// What becomes of a packet that leaves the L queue: `dualpi2_dequeue()` with the treatment of
    /// overload, appendix A.2.
    fn judge_low(&mut self, sojourn: Duration) -> Verdict {
        let alone = self.low.backlog() == Amount::ZERO;
        let native = self.native_probability(sojourn, alone);
        let coupled = self.coupled_probability();
        let (probability, overload) = match self.parameters.variant {
            DualPi2Variant::Linux if self.nearly_empty() => (native, false),
            _ => (native.max(coupled), coupled >= 1.0),
        };
        // In overload marks alone no longer help, so that L4S traffic is dropped like Classic traffic.
        if overload && self.strikes_classic(true) {
            Verdict::Drop
        } else if self.strikes_low(probability) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    /// What becomes of a packet that leaves the Classic queue. In overload ECN is off.
    fn judge_classic(&mut self, ecn: Ecn) -> Verdict {
        if self.is_linux() && self.nearly_empty() || !self.strikes_classic(false) {
            return Verdict::Pass;
        }
        let overload = self.coupled_probability() >= 1.0; // the same as p_C >= p_Cmax = 1/k²
        if overload || !ecn.can_be_marked() { Verdict::Drop } else { Verdict::Mark }
    }

    fn strikes_low(&mut self, probability: f64) -> bool {
        match self.parameters.variant {
            DualPi2Variant::Rfc => self.even_low.strikes(probability.min(1.0)),
            DualPi2Variant::Linux => self.random.strikes(probability),
        }
    }

    /// Chance with the probability p_C, for either queue.
    fn strikes_classic(&mut self, low: bool) -> bool {
        let even = if low { &mut self.even_overload } else { &mut self.even_classic };
        match self.parameters.variant {
            DualPi2Variant::Rfc => even.strikes(self.base * self.base),
            DualPi2Variant::Linux => self.random.strikes(self.base) && self.random.strikes(self.base),
        }
    }
}

impl<T: Send> Queue<T> for DualPi2Queue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        self.update_until(packet.arrived);
        let bytes = packet.packet.bytes;
        let first = self.largest == 0;
        self.largest = self.largest.max(bytes);
        if first {
            self.reset_credit();
        }
        if !self.limit.allows(self.backlog_both() + in_service + Amount::one(bytes)) {
            return refuse(packet, Cause::Overflow, drops);
        }
        // The L4S identifier: RFC 9331, section 5.1.
        match packet.packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.low.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
        Arrival::Accepted
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>> {
        self.update_until(now);
        while let Some((mut packet, from_low)) = self.next() {
            let verdict =
                if from_low { self.judge_low(packet.sojourn(now)) } else { self.judge_classic(packet.packet.ecn) };
            match verdict {
                Verdict::Drop => drops.push(now, Cause::Aqm, packet.packet),
                Verdict::Mark => {
                    packet.mark();
                    return Some(packet);
                }
                Verdict::Pass => return Some(packet),
            }
        }
        None
    }

    fn backlog(&self) -> Amount {
        self.backlog_both()
    }
}

#[cfg(test)]
mod tests;
