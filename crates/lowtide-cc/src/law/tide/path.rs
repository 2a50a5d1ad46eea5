// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Tide knows of its path: the empty round trip, the link's rate, the noise of both, and from these the queue that is its own and the one
//! that is somebody else's.

use super::listen::Listen;
use crate::{Ack, Time};
use std::time::Duration;

/// The least or greatest value of the last one or two spans of this length.
#[derive(Clone, Copy, Debug)]
struct Extreme {
    span: Duration,
    sign: f64,
    began: Time,
    current: Option<f64>,
    previous: Option<f64>,
}

impl Extreme {
    const fn least(span: Duration) -> Self {
        Self { span, sign: 1.0, began: Time::ZERO, current: None, previous: None }
    }

    const fn greatest(span: Duration) -> Self {
        Self { sign: -1.0, ..Self::least(span) }
    }

    fn add(&mut self, now: Time, value: f64) {
        if self.current.is_none() || now - self.began > self.span {
            (self.previous, self.current, self.began) = (self.current, None, now);
        }
        let value = value * self.sign;
        self.current = Some(self.current.map_or(value, |best| best.min(value)));
    }

    fn value(&self) -> Option<f64> {
        let best = match (self.previous, self.current) {
            (Some(previous), Some(current)) => Some(previous.min(current)),
            (one, other) => one.or(other),
        };
        best.map(|value| value * self.sign)
    }
}

/// The least round trip of two spans with enough samples each, so that one packet's luck or bad luck decides nothing. A host that stands still for a
/// moment, or a radio, makes all packets of a round trip late, and passes them on together: what counts of the time between two samples is a third of
/// a span at the most.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    latest: Time,
    /// Seconds.
    covered: f64,
    samples: u32,
    least: f64,
    before: Option<f64>,
}

impl Filter {
    /// A third, so that four samples may make a span.
    const GAP: f64 = 0.34;

    /// A span is over after so many samples and so many seconds.
    fn add(&mut self, now: Time, rtt: f64, samples: u32, seconds: f64) {
        if self.samples == 0 {
            (self.covered, self.least) = (0.0, rtt);
        } else {
            self.covered += (now - self.latest).as_secs_f64().min(Self::GAP * seconds);
        }
        self.latest = now;
        self.least = self.least.min(rtt);
        self.samples += 1;
        if self.samples >= samples && self.covered >= seconds {
            (self.before, self.samples) = (Some(self.least), 0);
        }
    }

    /// `None` before the first span is over.
    fn value(&self) -> Option<f64> {
        self.before.map(|before| if self.samples > 0 { before.min(self.least) } else { before })
    }

    fn restart(&mut self) {
        *self = Self::default();
    }
}

/// Times are seconds, rates packets per second.
#[derive(Clone, Debug)]
pub(super) struct Path {
    base: Extreme,
    rate: Extreme,
    /// Whether a queue has been seen yet at all.
    queued: bool,
    /// The time of a packet on the link as trains of packets told it last, and when.
    train: Option<(Time, f64)>,
    /// That as it was measured, however short.
    fastest: Option<f64>,
    /// How much the round trips of the latest rounds differed, the latest first.
    differences: [f64; Self::ROUNDS],
    /// How many of them there have been.
    rounds: usize,
    /// The least of their medians: what others do to round trips for a while is none of the path's noise.
    noise: Extreme,
    /// How much longer than the empty one round trips of a free link take at the most, as probes told: seconds.
    spread: f64,
    /// The empty round trip as it was known then.
    spread_base: f64,
    /// Probes that have looked for it; more than [`Listen::LOOKS`]: it is known, or none.
    looks: u32,
    fast: Filter,
    slow: Filter,
    mss: f64,
}

impl Path {
    /// The time of a packet on a link of 10 Mbit/s, seconds.
    const PACKET: f64 = 1.2e-3;
    /// How long a base delay counts: a route may change.
    const BASE_SPAN: Duration = Duration::from_secs(300);
    /// How long a greatest rate counts, and a least noise: capacity may go, and a path may change.
    const RATE_SPAN: Duration = Duration::from_secs(30);
    /// Where order is kept, a packet waits for those that are late before it: the closer packets come, the more of the spread is in every round trip.
    /// So much of it may be there without a queue, and may be for a moment.
    const SPREAD_OWN: f64 = 0.75;
    const SPREAD_FOREIGN: f64 = 1.0;
    /// The least of eight probes of a free link finds less than this part of it.
    const SPREAD_FREE: f64 = 0.5;
    /// RTTs that differ at random are in the mean longer than the least by half of the spread.
    const SPREAD_NOISE: f64 = 0.5;
    /// Rounds of which the middle one shows the noise: what somebody else's queue does to single ones is none of the path's.
    const ROUNDS: usize = 8;

    pub(super) fn new(mss: u32) -> Self {
        Self {
            base: Extreme::least(Self::BASE_SPAN),
            rate: Extreme::greatest(Self::RATE_SPAN),
            queued: false,
            train: None,
            fastest: None,
            differences: [0.0; Self::ROUNDS],
            rounds: 0,
            noise: Extreme::least(Self::RATE_SPAN),
            spread: 0.0,
            spread_base: 0.0,
            looks: 0,
            fast: Filter::default(),
            slow: Filter::default(),
            mss: f64::from(mss),
        }
    }

    /// A round-trip sample. True if the path turned out to be much shorter than it seemed: all that was learned before was learned behind
    /// somebody's queue.
    pub(super) fn on_sample(&mut self, now: Time, rtt: f64, window: f64) -> bool {
        let shorter = rtt < 0.9 * self.base();
        self.base.add(now, rtt);
        if shorter {
            self.forget();
        }
        // that none of eight RTTs is in the lower half of what they differ by at random is rare: cross traffic caused a queue then
        if self.fell() > self.spread / 2.0 {
            self.forget_spread();
        }
        let (samples, base, noise) = (self.samples(window), self.base(), self.noise());
        self.fast.add(now, rtt, samples, base.min(4.0 * noise));
        self.slow.add(now, rtt, samples, (base / 4.0).max(base.min(2.0 * noise)));
        shorter
    }

    fn forget(&mut self) {
        let Self { base, train, fastest, spread, spread_base, looks, mss, .. } = *self;
        *self = Self { base, train, fastest, spread, spread_base, looks, ..Self::new(mss as u32) };
        self.base.previous = None;
    }

    /// The path is another one: all is anew, and this the empty round trip.
    pub(super) fn renew(&mut self, now: Time, rtt: f64) {
        *self = Self { looks: Listen::LOOKS + 1, ..Self::new(self.mss as u32) };
        self.base.add(now, rtt);
    }

    /// The link's rate may be this.
    pub(super) fn on_rate(&mut self, ack: &Ack) {
        let Some(sample) = ack.rate.filter(|sample| !sample.interval.is_zero()) else { return };
        let rate = sample.delivered as f64 / self.mss / sample.interval.as_secs_f64();
        // a rate that the program limited says only that the link can do as much
        if !sample.app_limited || self.rate().is_some_and(|known| rate > known) {
            self.rate.add(ack.now, rate);
        }
    }

    /// The link's rate may have changed without a sign.
    pub(super) fn forget_rate(&mut self) {
        self.rate = Extreme::greatest(Self::RATE_SPAN);
        (self.train, self.fastest) = (None, None);
    }

    /// The round trips of a round differed by so much.
    pub(super) fn on_round(&mut self, now: Time, difference: f64) {
        self.differences.rotate_right(1);
        self.differences[0] = difference;
        let mut sorted = self.differences;
        sorted.sort_unstable_by(f64::total_cmp);
        self.rounds += 1;
        if self.rounds >= Self::ROUNDS {
            self.noise.add(now, sorted[Self::ROUNDS / 2]);
        }
    }

    /// What is seen from now on has nothing to do with what was before.
    pub(super) fn restart_filters(&mut self) {
        self.fast.restart();
        self.slow.restart();
    }

    pub(super) fn see_queue(&mut self) {
        self.queued = true;
    }

    /// The empty round trip, as far as known: nothing before the first sample.
    pub(super) fn base(&self) -> f64 {
        self.base.value().unwrap_or(0.0)
    }

    /// The link's rate, once known.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.value()
    }

    /// Packets that fill the link without a queue.
    pub(super) fn pipe(&self) -> Option<f64> {
        self.rate().map(|rate| rate * self.base())
    }

    /// The same, but where a token bucket may have let more pass than the link carries.
    pub(super) fn sure_pipe(&self) -> Option<f64> {
        self.pipe().filter(|_| !self.lets_bursts_pass())
    }

    /// How much round trips differ without a queue.
    pub(super) fn noise(&self) -> f64 {
        self.measured_noise().max(Self::SPREAD_NOISE * self.spread())
    }

    /// As rounds have shown it.
    fn measured_noise(&self) -> f64 {
        self.noise.value().unwrap_or(0.0)
    }

    /// A probe came back: with those before it it tells how much longer than the empty one round trips of a free link take, or nothing. By chance that differs from one time to the next.
    pub(super) fn on_probe(&mut self, told: Option<f64>) {
        if !self.learns_spread() && !self.is_spread() {
            return;
        }
        self.looks = self.looks.saturating_add(1);
        if let Some(spread) = told {
            self.spread = if self.spread > 0.0 { (self.spread + spread) / 2.0 } else { spread };
            (self.spread_base, self.looks) = (self.base(), Listen::LOOKS + 1);
        }
    }

    /// Where the probes told of a spread, it was a queue that they met: it is measured anew.
    pub(super) fn forget_spread(&mut self) {
        if self.spread > 0.0 {
            (self.spread, self.looks) = (0.0, 0);
        }
    }

    /// Whether probes may still tell that for the first time: what so many have not found is caused by cross traffic later.
    pub(super) const fn learns_spread(&self) -> bool {
        self.spread == 0.0 && self.looks <= Listen::LOOKS
    }

    /// Whether they differ on this path.
    pub(super) fn is_spread(&self) -> bool {
        self.spread() > 0.0
    }

    /// Probes told of an RTT, which stays where the base RTT falls.
    fn spread(&self) -> f64 {
        if self.spread > 0.0 { (self.spread + self.fell()).min(self.base()) } else { 0.0 }
    }

    /// By how much the base RTT has fallen since probes told of the spread.
    fn fell(&self) -> f64 {
        (self.spread_base - self.base()).max(0.0)
    }

    /// Whether that has been measured.
    pub(super) fn knows_noise(&self) -> bool {
        self.noise.value().is_some()
    }

    /// The link's rate, where little noise lets packets tell whether others are served in turn, and a slower link from these.
    pub(super) fn whole(&self) -> Option<f64> {
        self.rate().filter(|rate| self.noise() * rate < Listen::ALIKE)
    }

    /// So many samples say something: of delays of up to J, whose mean step from one to the next is J/3, the least of n is longer than the own
    /// queue with a chance of about exp(-n own/J): one in a thousand for n = 3 ln(1000) noise/own.
    /// Not more than this window has in four round trips, where an ACK comes for two.
    pub(super) fn samples(&self, window: f64) -> u32 {
        let sure = ((20.0 * self.noise() / self.own_queue()).clamp(4.0, 32.0) as u32).next_power_of_two();
        sure.min((2.0 * window) as u32).max(4)
    }

    /// Packets that left together took this long each. Eight times less than at its own rate, or at 10 Mbit/s, are ACKs that waited for each other.
    pub(super) fn on_train(&mut self, now: Time, packet: f64) {
        self.fastest = Some(packet);
        self.train = None;
        self.train = Some((now, packet.max(self.packet().min(Self::PACKET) / 8.0)));
    }

    /// Whether packets that left together have passed as on a link eight times as fast as it is known to be: a token bucket lets them, and hides the
    /// queue that a ramp makes until it is empty.
    pub(super) fn lets_bursts_pass(&self) -> bool {
        self.fastest.zip(self.rate()).is_some_and(|(packet, rate)| 8.0 * packet * rate < 1.0)
    }

    /// Whether trains have told the time of a packet lately.
    pub(super) fn knows_packet(&self, now: Time) -> bool {
        self.train.is_some_and(|(told, _)| now - told < Self::RATE_SPAN)
    }

    /// The time of a packet on the link, seconds; on one of 10 Mbit/s before anything is known. Its own rate tells only its own part.
    pub(super) fn packet(&self) -> f64 {
        let alone = self.link().map(|rate| 1.0 / rate);
        match (alone, self.train) {
            (Some(alone), Some((_, train))) => alone.min(train),
            (Some(packet), None) | (None, Some((_, packet))) => packet,
            (None, None) => Self::PACKET,
        }
    }

    /// Packets per second that the link is known to carry: what it has carried is that only if there was a queue.
    pub(super) fn link(&self) -> Option<f64> {
        self.rate().filter(|_| self.queued)
    }

    /// That of 2 Mbit/s at the least: below, a packet of its own is a queue.
    pub(super) fn packet_at_most(&self) -> f64 {
        self.packet().min(6.25e-3)
    }

    fn allowance(&self) -> f64 {
        self.measured_noise().min(self.base() / 16.0)
    }

    /// Well under what AQM drops for, and what ends Hybrid Slow Start.
    fn own(&self) -> f64 {
        self.packet_at_most().max(1e-3) + self.allowance()
    }

    /// Windows are of whole packets, and an ACK comes for two, so two packets more may be its own.
    fn foreign(&self) -> f64 {
        self.own() + (2.0 * self.packet_at_most()).max(2e-3) + self.allowance()
    }

    /// The queue that Tide keeps itself at the most, and what looks like one.
    pub(super) fn own_queue(&self) -> f64 {
        self.own() + Self::SPREAD_OWN * self.spread()
    }

    /// A queue that can only be somebody else's.
    pub(super) fn foreign_queue(&self) -> f64 {
        self.foreign() + Self::SPREAD_FOREIGN * self.spread()
    }

    /// Between the two: what probes may find on a link that nobody uses.
    pub(super) fn middle(&self) -> f64 {
        (self.own() + self.foreign()) / 2.0 + Self::SPREAD_FREE * self.spread()
    }

    /// The queue of the last few packets.
    pub(super) fn fast_queue(&self) -> Option<f64> {
        self.fast.value().map(|rtt| rtt - self.base())
    }

    /// The queue over a quarter of a round trip or more.
    pub(super) fn slow_queue(&self) -> Option<f64> {
        self.slow.value().map(|rtt| rtt - self.base())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;

    #[test]
    fn noise_asks_for_more_samples_but_not_for_more_than_four_round_trips_have() {
        let mut path = Path::new(1000);
        let now = Time::from_nanos(1_000_000_000);
        path.on_sample(now, 0.04, 10.0);
        assert_eq!(path.samples(100.0), 4);
        (0..Path::ROUNDS).for_each(|_| path.on_round(now, 4e-3));
        assert_eq!([2.0, 4.0, 8.0, 16.0, 100.0].map(|window| path.samples(window)), [4, 8, 16, 32, 32]);
    }

    /// The longest slow queue, seconds, where a packet is acknowledged each 0.6 ms after 40 ms, but those of one round trip at the time after these
    /// `late` says, and what was sent then so much after it.
    fn longest(after: f64, late: impl Fn(f64) -> f64) -> f64 {
        let (mut path, mut longest) = (Path::new(1000), 0.0_f64);
        for n in 0..400_u32 {
            let due = 0.6e-3 * f64::from(n) - 0.12;
            let (at, rtt) = match n {
                200..266 => (late(due), late(due) - due + 40e-3),
                266.. => (due + after, 40e-3),
                _ => (due, 40e-3),
            };
            path.on_sample(Time::from_nanos(((1.0 + at) * 1e9) as u64), rtt, 66.0);
            longest = longest.max(path.slow_queue().unwrap_or(0.0));
        }
        longest
    }

    #[test]
    fn a_moment_that_a_host_stands_still_is_no_queue() {
        // the ACKs that were on their way come together when it goes on, and those of the packets that were a while later
        let still = longest(60e-3, |due| 60e-3 + if due < 20e-3 { 0.0 } else { 20e-3 } + 1e-3 * due);
        assert!(still < 1e-3, "{still}");
        let queue = longest(60e-3, |due| 60e-3 + due);
        assert!(queue > 59e-3, "{queue}");
    }

    #[test]
    fn a_train_tells_of_a_token_bucket_by_the_rate_as_it_is_known_now() {
        let mut path = Path::new(1000);
        let now = Time::from_nanos(1_000_000_000);
        let rate = |path: &mut Path, packets: u64| {
            let sample =
                RateSample { delivered: 1000 * packets, interval: Duration::from_secs(1), ..RateSample::default() };
            path.on_rate(&Ack { now, rate: Some(sample), ..Ack::default() });
        };
        path.on_train(now, 1e-3);
        assert!(!path.lets_bursts_pass());
        rate(&mut path, 10);
        assert!(path.lets_bursts_pass() && path.sure_pipe().is_none());
        rate(&mut path, 900);
        assert!(!path.lets_bursts_pass() && path.sure_pipe().is_some());
        path.forget_rate();
        rate(&mut path, 10);
        assert!(!path.lets_bursts_pass());
    }
}
