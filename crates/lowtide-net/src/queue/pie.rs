// SPDX-License-Identifier: MIT OR Apache-2.0
//! PIE, "proportional integral controller enhanced": RFC 8033.
//!
//! Where this differs from the RFC:
//!
//! - The queueing latency is that of the latest packet sent, by its time of arrival (section 4.2
//!   allows it), and zero once the queue is empty. So there is no estimate of the departure rate
//!   (section 4.3).
//! - The controller is always active: section 5.6's switching it off is left out, as an idle queue's
//!   probability is zero anyway.
//! - Random dropping by packet size (section 5.1's byte mode) is left out.

use super::fifo::Fifo;
use super::refuse;
use super::ticks::Ticks;
use crate::drops::{Cause, Drops};
use crate::random::{Random, Source};
use crate::text::{Parameters, print_switch, switch, why, within};
use crate::units::{Probability, format_duration, parse_duration};
use crate::{Amount, Arrival, Limit, Queue, Queued, Time};
use std::time::Duration;

/// A FIFO that drops arriving packets with a probability which a proportional-integral controller
/// derives from the queueing latency. Written
/// `pie:target=15ms,update=15ms,alpha=0.125,beta=1.25,burst=150ms,ecn=on,mark=0.1,derandomise=on`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// QDELAY_REF, the latency to hold. RFC 8033, section 4.2: 15 ms. From 1 us to 10 s.
    pub target: Duration,
    /// T_UPDATE, the time between two updates of the probability. RFC 8033, section 4.2: 15 ms. From
    /// 1 us to 10 s.
    pub update: Duration,
    /// Gain of the deviation from the target, in 1/s. RFC 8033, section 4.2: 0.125. From 0 to 1000.
    pub alpha: f64,
    /// Gain of the trend, in 1/s. RFC 8033, section 4.2: 1.25. From 0 to 1000.
    pub beta: f64,
    /// MAX_BURST, how long a burst is let through. RFC 8033, section 4.4: 150 ms. Up to 10 s.
    pub burst: Duration,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 8033, section 5.1). Off unless
    /// asked for, as in Linux.
    pub ecn: bool,
    /// The probability from which on ECN-capable packets are dropped all the same (RFC 8033, section
    /// 5.1: 0.1).
    pub mark: Probability,
    /// Whether drops are spread evenly (RFC 8033, section 5.4). Off.
    pub derandomise: bool,
}

impl Default for Pie {
    fn default() -> Self {
        let fifteen = Duration::from_millis(15);
        Self {
            target: fifteen,
            update: fifteen,
            alpha: 0.125,
            beta: 1.25,
            burst: Duration::from_millis(150),
            ecn: false,
            mark: Probability::new(0.1).unwrap_or_default(),
            derandomise: false,
        }
    }
}

impl Parameters for Pie {
    const NAME: &'static str = "pie";
    const KEYS: &'static [&'static str] = &["target", "update", "alpha", "beta", "burst", "ecn", "mark", "derandomise"];

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let positive = |text| super::codel::duration(text, LONGEST);
        match key {
            "target" => self.target = positive(value)?,
            "update" => self.update = positive(value)?,
            "alpha" => self.alpha = gain(value)?,
            "beta" => self.beta = gain(value)?,
            "burst" => {
                self.burst = within(parse_duration(value).map_err(why)?, Duration::ZERO, LONGEST, format_duration)?;
            }
            "ecn" => self.ecn = switch(value)?,
            "mark" => self.mark = value.parse().map_err(why)?,
            _ => self.derandomise = switch(value)?,
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "target" => format_duration(self.target),
            "update" => format_duration(self.update),
            "alpha" => self.alpha.to_string(),
            "beta" => self.beta.to_string(),
            "burst" => format_duration(self.burst),
            "ecn" => print_switch(self.ecn),
            "mark" => self.mark.to_string(),
            _ => print_switch(self.derandomise),
        })
    }

    fn defaults(&self) -> Self {
        Self::default()
    }
}

pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// A controller's gain, from 0 to 1000 per second.
pub(super) fn gain(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    within(number, 0.0, 1000.0, |number| number.to_string())
}

/// The controller of RFC 8033, section 4.2.
#[derive(Clone, Debug)]
struct Controller {
    /// PIE->drop_prob_.
    probability: f64,
    /// PIE->qdelay_old_.
    old_latency: Duration,
    /// PIE->burst_allowance_.
    burst_allowance: Duration,
}

impl Controller {
    /// One update, every T_UPDATE; says whether it changed anything.
    fn update(&mut self, parameters: &Pie, latency: Duration) -> bool {
        let Pie { target, alpha, beta, .. } = *parameters;
        let seconds = |duration: Duration| duration.as_secs_f64();
        let (old, before) = (self.old_latency, (self.probability, self.burst_allowance));
        let mut step = alpha * (seconds(latency) - seconds(target)) + beta * (seconds(latency) - seconds(old));
        step *= auto_tuning(self.probability);
        // Section 5.5: from 10 % on only slowly, as there the gain is at its largest.
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        // Section 5.5: a latency beyond all bounds needs more than the controller's pace.
        if latency > Duration::from_millis(250) {
            step += 0.02;
        }
        self.probability += step;
        // Section 4.2: an idle link forgets faster than linearly.
        if latency.is_zero() && old.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_latency = latency;
        // Section 4.4.
        let calm = self.probability == 0.0 && latency < target / 2 && old < target / 2;
        self.burst_allowance =
            if calm { parameters.burst } else { self.burst_allowance.saturating_sub(parameters.update) };
        before != (self.probability, self.burst_allowance) || old != latency
    }

    /// Section 4.1, the cases in which nothing is dropped however large the probability.
    fn protects(&self, target: Duration, waiting: Amount) -> bool {
        let light = self.old_latency < target / 2 && self.probability < 0.2;
        !self.burst_allowance.is_zero() || light || waiting.bytes <= 2 * MEAN_PACKET_SIZE
    }
}

/// MEAN_PKTSIZE in bytes: a full packet, as the RFC's safeguard is against idling the link.
const MEAN_PACKET_SIZE: u64 = 1500;

/// Section 4.2: the smaller the probability, the smaller must the gains be for the same stability.
fn auto_tuning(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    let step = STEPS.iter().find(|(below, _)| probability < *below);
    step.map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

/// The queue that [`Pie`] describes.
#[derive(Clone, Debug)]
pub(crate) struct PieQueue<T> {
    fifo: Fifo<T>,
    parameters: Pie,
    limit: Limit,
    controller: Controller,
    ticks: Ticks,
    /// Of the latest packet sent; zero if the queue is empty.
    latency: Duration,
    /// PIE->accu_prob_.
    accumulated: f64,
    random: Random,
}

impl<T> PieQueue<T> {
    /// An empty queue that, with the packet in service, holds at most `limit`.
    pub(crate) fn new(parameters: Pie, limit: Limit, seed: u64) -> Self {
        Self {
            fifo: Fifo::default(),
            parameters,
            limit,
            controller: Controller { probability: 0.0, old_latency: Duration::ZERO, burst_allowance: parameters.burst },
            ticks: Ticks::new(parameters.update),
            latency: Duration::ZERO,
            accumulated: 0.0,
            random: Random::new(seed, Source::Queue),
        }
    }

    /// Makes up for the updates that are due.
    fn update_until(&mut self, now: Time) {
        while self.ticks.due(now).is_some() {
            if !self.controller.update(&self.parameters, self.latency) {
                self.ticks.skip(now);
            }
        }
    }

    /// Whether chance picks the arriving packet.
    fn strikes(&mut self) -> bool {
        let probability = self.controller.probability;
        if !self.parameters.derandomise {
            return self.random.strikes(probability);
        }
        // Section 5.4: neither two drops close together nor a long time without one.
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        let strikes = match self.accumulated {
            ..0.85 => false,
            8.5.. => true,
            _ => self.random.strikes(probability),
        };
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }
}

impl<T: Send> Queue<T> for PieQueue<T> {
    fn enqueue(&mut self, mut packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        self.update_until(packet.arrived);
        let waiting = self.fifo.backlog();
        if !self.limit.allows(waiting + in_service + Amount::one(packet.packet.bytes)) {
            return refuse(packet, Cause::Overflow, drops);
        }
        if !self.controller.protects(self.parameters.target, waiting) && self.strikes() {
            // Section 5.1: with many marks the senders evidently do not heed them.
            let may_mark = self.parameters.ecn && self.controller.probability < self.parameters.mark.as_f64();
            if !(may_mark && packet.mark()) {
                return refuse(packet, Cause::Aqm, drops);
            }
        }
        self.fifo.push(packet);
        Arrival::Accepted
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<T>) -> Option<Queued<T>> {
        self.update_until(now);
        let packet = self.fifo.pop()?;
        let last = self.fifo.backlog() == Amount::ZERO;
        self.latency = if last { Duration::ZERO } else { packet.sojourn(now) };
        Some(packet)
    }

    fn backlog(&self) -> Amount {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use crate::queue::testing::ecn_packet;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn controller(probability: f64, old_latency: Duration) -> Controller {
        Controller { probability, old_latency, burst_allowance: Duration::ZERO }
    }

    /// The probability after one update.
    fn updated(probability: f64, old: Duration, latency: Duration) -> f64 {
        let mut controller = controller(probability, old);
        controller.update(&Pie::default(), latency);
        controller.probability
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn an_update_follows_deviation_and_trend() {
        // 0.125 * (25 - 15) ms + 1.25 * (25 - 20) ms = 7.5e-3, at full gain.
        assert!(close(updated(0.5, ms(20), ms(25)), 0.5 + 7.5e-3));
        // 0.125 * (5 - 15) ms + 1.25 * (5 - 20) ms = -20e-3.
        assert!(close(updated(0.5, ms(20), ms(5)), 0.5 - 20e-3));
        assert_eq!(updated(0.001, ms(200), ms(1)), 0.0, "never below zero");
        assert_eq!(updated(0.99, ms(200), ms(400)), 1.0, "never above one");
    }

    #[test]
    fn gains_shrink_with_the_probability() {
        // RFC 8033, section 4.2. The step at full gain is 7.5e-3.
        for (probability, divisor) in [
            (0.0, 2048.0),
            (0.9e-6, 2048.0),
            (1e-6, 512.0),
            (0.9e-5, 512.0),
            (1e-5, 128.0),
            (1e-4, 32.0),
            (1e-3, 8.0),
            (1e-2, 2.0),
            (0.099, 2.0),
            (0.1, 1.0),
        ] {
            assert!(close(updated(probability, ms(20), ms(25)), probability + 7.5e-3 / divisor), "{probability}");
        }
    }

    #[test]
    fn large_steps_are_capped_and_huge_latency_is_answered() {
        // 0.125 * 85 ms + 1.25 * 90 ms = 0.123: capped from 10 % on, at half the gain below.
        assert!(close(updated(0.3, ms(10), ms(100)), 0.32));
        assert!(close(updated(0.09, ms(10), ms(100)), 0.09 + 0.123_125 / 2.0));
        // Above 250 ms 2 % more: 0.125 * 245 ms = 0.030625, capped.
        assert!(close(updated(0.3, ms(260), ms(260)), 0.34));
        assert!(close(updated(0.3, ms(250), ms(250)), 0.32));
    }

    #[test]
    fn an_idle_queue_forgets_exponentially() {
        let step = -0.125 * 15e-3;
        assert!(close(updated(0.5, ms(0), ms(0)), (0.5 + step) * 0.98));
        assert!(close(updated(0.5, ms(1), ms(0)), 0.5 + step - 1.25e-3), "not while the queue has just emptied");
    }

    #[test]
    fn the_burst_allowance_runs_out_and_returns() {
        let parameters = Pie::default();
        let mut controller = Controller { burst_allowance: ms(150), ..controller(0.0, Duration::ZERO) };
        for n in 1..=10 {
            assert!(controller.protects(parameters.target, Amount { packets: 100, bytes: 150_000 }));
            controller.update(&parameters, ms(100));
            assert_eq!(controller.burst_allowance, ms(150 - 15 * n));
        }
        assert!(!controller.protects(parameters.target, Amount { packets: 100, bytes: 150_000 }));
        // Both the present and the old latency have to be below half the target, and p zero.
        controller.probability = 0.0;
        controller.update(&parameters, ms(7));
        assert_eq!(controller.burst_allowance, ms(0), "the old latency was 100 ms");
        controller.update(&parameters, ms(7));
        assert_eq!(controller.burst_allowance, ms(150));
    }

    #[test]
    fn safeguards_protect_a_light_load_and_a_short_queue() {
        let target = ms(15);
        let (long, short) = (Amount { packets: 3, bytes: 4500 }, Amount { packets: 2, bytes: 3000 });
        assert!(controller(0.19, ms(7)).protects(target, long));
        assert!(!controller(0.21, ms(7)).protects(target, long));
        assert!(!controller(0.19, ms(8)).protects(target, long));
        assert!(controller(0.9, ms(100)).protects(target, short));
        assert!(!controller(0.9, ms(100)).protects(target, Amount { packets: 2, bytes: 3001 }));
    }

    /// A queue that is emptied by a packet each millisecond and offered two, for `milliseconds`.
    /// Returns the times of drops by the law, and of marks.
    fn overloaded(parameters: &str, milliseconds: u64, ecn: Ecn) -> (Vec<u64>, Vec<u64>) {
        let parameters = crate::text::read(Pie::default(), parameters).unwrap();
        let mut queue = PieQueue::new(parameters, Limit::Packets(100_000), 1);
        let drops = &mut Drops::default();
        drops.keep();
        let mut marks = Vec::new();
        for now in 0..milliseconds {
            let at = Time::ZERO + ms(now);
            queue.dequeue(at, drops);
            for _ in 0..2 {
                queue.enqueue(ecn_packet(at, 1500, ecn), Amount::ZERO, drops);
                marks.extend(queue.fifo.newest().filter(|packet| packet.marked && packet.arrived == at).map(|_| now));
            }
        }
        (drops.take().map(|dropped| dropped.at.as_nanos() / 1_000_000).collect(), marks)
    }

    #[test]
    fn a_burst_passes_and_a_standing_queue_does_not() {
        let (drops, _) = overloaded("", 1500, Ecn::NotEct);
        // The allowance of 150 ms is used up by ten updates; the probability begins at zero.
        assert!(*drops.first().unwrap() >= 150, "{drops:?}");
        let (longer, _) = overloaded("burst=600ms", 1500, Ecn::NotEct);
        assert!(*longer.first().unwrap() >= 600, "{longer:?}");
        // In the end as much is dropped as is too much, or more, as the queue has to shrink.
        let late = drops.iter().filter(|at| **at >= 1000).count();
        assert!(late >= 400, "{late} of 1000");
    }

    #[test]
    fn marks_take_the_place_of_drops_up_to_ten_percent() {
        let (drops, marks) = overloaded("ecn=on", 1500, Ecn::Ect0);
        assert!(!marks.is_empty() && !drops.is_empty());
        // The probability only rises here, so drops begin when marks end.
        assert!(marks.last() <= drops.first(), "{marks:?} {drops:?}");
        let (_, marks) = overloaded("ecn=on,mark=0", 1500, Ecn::Ect0);
        assert!(marks.is_empty());
        let (drops, marks) = overloaded("ecn=on,mark=1", 700, Ecn::Ect0);
        assert!(drops.is_empty() && marks.len() > 100, "{} {}", drops.len(), marks.len());
        let (drops, marks) = overloaded("ecn=on", 1500, Ecn::NotEct);
        assert!(marks.is_empty() && !drops.is_empty());
    }

    #[test]
    fn derandomised_drops_are_neither_close_nor_far() {
        let mut queue = PieQueue::<u64>::new(Pie { derandomise: true, ..Pie::default() }, Limit::Packets(9), 1);
        queue.controller.probability = 0.1;
        let struck: Vec<usize> = (0..100_000).filter(|_| queue.strikes()).collect();
        let gaps: Vec<usize> = struck.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 9 * 0.1 is the first sum of at least 0.85, and 85 * 0.1 the first of at least 8.5.
        assert_eq!(gaps.iter().min(), Some(&9));
        assert!(*gaps.iter().max().unwrap() <= 86);
        queue.parameters.derandomise = false;
        let struck = (0..100_000).filter(|_| queue.strikes()).count();
        // Five standard deviations of the binomial distribution are 474.
        assert!((9526..=10474).contains(&struck), "{struck}");
    }

    #[test]
    fn updates_are_made_up_for_at_their_times() {
        let parameters = Pie::default();
        let mut busy = PieQueue::<u64>::new(parameters, Limit::Packets(1000), 1);
        let mut lazy = busy.clone();
        for queue in [&mut busy, &mut lazy] {
            (queue.latency, queue.controller.probability) = (ms(40), 0.3);
        }
        for now in 0..=1000 {
            busy.update_until(Time::ZERO + ms(now));
        }
        lazy.update_until(Time::ZERO + ms(1000));
        assert!(busy.controller.probability > 0.3);
        assert_eq!(lazy.controller.probability, busy.controller.probability);
        assert_eq!(lazy.ticks.due(Time::ZERO + ms(1005)), Some(Time::ZERO + ms(1005)));
        // A very long idle time ends somewhere, and this does, too.
        lazy.latency = Duration::ZERO;
        lazy.update_until(Time::from_nanos(u64::MAX / 2));
        assert_eq!(lazy.controller.probability, 0.0);
        assert_eq!(lazy.controller.burst_allowance, ms(150));
        assert_eq!(lazy.ticks.due(Time::from_nanos(u64::MAX / 2)), None, "none of them is left");
    }

    #[test]
    fn the_latency_is_that_of_the_latest_packet_and_zero_behind_the_last() {
        let mut queue = PieQueue::<u64>::new(Pie::default(), Limit::Packets(9), 1);
        let drops = &mut Drops::default();
        for at in [0, 10] {
            queue.enqueue(ecn_packet(Time::ZERO + ms(at), 1500, Ecn::NotEct), Amount::ZERO, drops);
        }
        queue.dequeue(Time::ZERO + ms(40), drops);
        assert_eq!(queue.latency, ms(40));
        queue.dequeue(Time::ZERO + ms(80), drops);
        assert_eq!(queue.latency, ms(0));
    }
}
