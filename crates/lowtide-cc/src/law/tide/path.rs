// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Tide knows of its path: base RTT, rate, noise, spread; and the thresholds that follow from them.

use super::spread::Spread;
use crate::{Ack, Time};
use std::time::Duration;

/// Least or greatest value of the present span and the one before.
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

/// The least RTT of the present span and the one before, each with enough samples, so that no single packet decides. A
/// scheduling stall or a radio link delays all packets of an RTT and delivers them together. Therefore the time between
/// two samples counts as a third of a span at most.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    latest: Time,
    /// Time of the span so far, seconds.
    covered: f64,
    samples: u32,
    least: f64,
    before: Option<f64>,
}

impl Filter {
    /// In spans: the most that the time between two samples counts. Four samples may make a span.
    const GAP: f64 = 0.34;

    /// A span is over after `samples` samples and `seconds` seconds.
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

    /// Seconds; `None` before the first span is over.
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
    /// Whether a queue has been seen, so that the rate may be that of the link.
    queued: bool,
    /// When trains last ended, and the packet time that they measured.
    train: Option<(Time, f64)>,
    /// The same packet time, without a lower bound.
    fastest: Option<f64>,
    /// Noise of the latest rounds, the latest first.
    differences: [f64; Self::ROUNDS],
    /// Rounds that measured noise.
    rounds: usize,
    /// The latest of them in a row with no packets of the transfer's other connections.
    alone: usize,
    /// The least of their medians: cross traffic makes the noise of some rounds greater.
    noise: Extreme,
    pub(super) spread: Spread,
    fast: Filter,
    slow: Filter,
    mss: f64,
}

impl Path {
    /// Packet time at 10 Mbit/s, seconds.
    const PACKET: f64 = 1.2e-3;
    /// The least self-induced queue, seconds.
    pub(super) const OWN: f64 = 1e-3;
    /// RTTs that differ by less are alike, seconds.
    pub(super) const SAME: f64 = 0.25e-3;
    /// In packet times: RTTs of probes that differ by less did not wait for packets of cross traffic.
    pub(super) const ALIKE: f64 = 0.2;
    /// After twice that a base RTT no longer counts: routes change.
    const BASE_SPAN: Duration = Duration::from_secs(300);
    /// The same for a rate and for noise: capacity changes, and so do paths.
    const RATE_SPAN: Duration = Duration::from_secs(30);
    /// Packets stay in order and wait for late ones. So the closer they follow each other, the more of the spread is in
    /// each RTT. This part may stand there without a queue.
    const SPREAD_OWN: f64 = 0.75;
    /// This part may be there for a moment, without a queue.
    const SPREAD_CROSS_TRAFFIC: f64 = 1.0;
    /// The least RTT of eight probes of a free link is below this part of the spread.
    const SPREAD_FREE: f64 = 0.5;
    /// The mean of RTTs that differ at random is this part of the spread above the least.
    const SPREAD_NOISE: f64 = 0.5;
    /// Packets stay in order: on a full link the latest one so far delays those behind it, by a packet time less each.
    /// So RTTs there differ by a third or more of the root of packet time times spread. If they differ by less than
    /// this part of it, probes measured the spread among packets of cross traffic.
    const SPREAD_SHOWS: f64 = 0.25;
    /// Rounds whose median is the noise: a queue of cross traffic in a few rounds does not count.
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
            alone: 0,
            noise: Extreme::least(Self::RATE_SPAN),
            spread: Spread::default(),
            fast: Filter::default(),
            slow: Filter::default(),
            mss: f64::from(mss),
        }
    }

    /// An RTT sample, seconds, with the window, packets. `unspaced`: packets of the transfer leave together, and queue
    /// for less than an RTT. True: the path is much shorter than it seemed, so what was learned was learned in a queue.
    pub(super) fn on_sample(&mut self, now: Time, rtt: f64, window: f64, unspaced: bool) -> bool {
        let shorter = rtt < 0.9 * self.base();
        self.base.add(now, rtt);
        if shorter {
            self.forget();
            if self.spread.is_none() {
                self.spread.ask();
            }
        }
        self.spread.on_base(self.base());
        let (samples, base, noise) = (self.samples(window), self.base(), self.noise());
        let least = if unspaced { base } else { 0.0 };
        self.fast.add(now, rtt, samples, base.min(4.0 * noise).max(least));
        self.slow.add(now, rtt, samples, (base / 4.0).max(base.min(2.0 * noise)).max(least));
        shorter
    }

    fn forget(&mut self) {
        let Self { base, train, fastest, spread, mss, .. } = *self;
        *self = Self { base, train, fastest, spread, ..Self::new(mss as u32) };
        self.base.previous = None;
    }

    /// The path has changed: everything is forgotten, and `rtt` is the base RTT, seconds.
    pub(super) fn renew(&mut self, now: Time, rtt: f64) {
        *self = Self { spread: Spread::none(), ..Self::new(self.mss as u32) };
        self.base.add(now, rtt);
    }

    /// A sample of the delivery rate.
    pub(super) fn on_rate(&mut self, ack: &Ack) {
        let Some(sample) = ack.rate.filter(|sample| !sample.interval.is_zero()) else { return };
        let rate = sample.delivered as f64 / self.mss / sample.interval.as_secs_f64();
        // an application-limited sample is a lower bound
        if !sample.app_limited || self.rate().is_some_and(|known| rate > known) {
            self.rate.add(ack.now, rate);
        }
    }

    /// The link's rate may have changed.
    pub(super) fn forget_rate(&mut self) {
        self.rate = Extreme::greatest(Self::RATE_SPAN);
        (self.train, self.fastest) = (None, None);
    }

    /// A round of FILL has ended, of this noise, seconds. `alone`: with no packets of the transfer's other connections.
    pub(super) fn on_round(&mut self, now: Time, difference: f64, alone: bool) {
        self.alone = if alone { self.alone + 1 } else { 0 };
        self.differences.rotate_right(1);
        self.differences[0] = difference;
        let mut sorted = self.differences;
        sorted.sort_unstable_by(f64::total_cmp);
        self.rounds += 1;
        if self.rounds >= Self::ROUNDS {
            let median = sorted[Self::ROUNDS / 2];
            self.noise.add(now, median);
            let spread = self.spread();
            let shown = (self.packet_at_most().min(spread) * spread).sqrt();
            if self.alone >= Self::ROUNDS && median < Self::SPREAD_SHOWS * shown {
                self.spread = Spread::none();
            }
        }
    }

    /// Earlier samples say nothing about the queue from now on.
    pub(super) fn restart_filters(&mut self) {
        self.fast.restart();
        self.slow.restart();
    }

    pub(super) fn see_queue(&mut self) {
        self.queued = true;
    }

    /// The base RTT, seconds; 0 before the first sample.
    pub(super) fn base(&self) -> f64 {
        self.base.value().unwrap_or(0.0)
    }

    /// The greatest delivery rate, packets per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.value()
    }

    /// BDP, packets.
    pub(super) fn bdp(&self) -> Option<f64> {
        self.rate().map(|rate| rate * self.base())
    }

    /// BDP of the link. Unknown until a queue has been seen: a flow that grows has more in flight than its rate shows.
    pub(super) fn link_bdp(&self) -> Option<f64> {
        self.bdp().filter(|_| self.queued)
    }

    /// BDP, but not behind a token bucket, which may have let more pass than the link carries.
    pub(super) fn sure_bdp(&self) -> Option<f64> {
        self.bdp().filter(|_| !self.lets_bursts_pass())
    }

    /// How much RTTs differ without a queue, seconds.
    pub(super) fn noise(&self) -> f64 {
        self.measured_noise().max(Self::SPREAD_NOISE * self.spread())
    }

    /// As rounds of FILL have shown it, seconds. It counts if probes of LISTEN, which has no packets of its own in the
    /// queue, have found a spread. Else the packets of cross traffic were the cause, and would hide their own queue.
    fn measured_noise(&self) -> f64 {
        let noise = self.noise.value().unwrap_or(0.0);
        if self.is_spread() { noise } else { noise.min(Self::SAME) }
    }

    /// The spread, seconds; 0: none, or unknown.
    fn spread(&self) -> f64 {
        self.spread.seconds(self.base())
    }

    /// Whether the path has a spread.
    pub(super) fn is_spread(&self) -> bool {
        self.spread() > 0.0
    }

    /// Noise that own packets do not explain, and that is enough to hide a queue. Those of several connections queue
    /// behind each other.
    pub(super) fn has_noise(&self) -> bool {
        let packet = self.packet();
        let own = if self.alone < Self::ROUNDS { packet } else { packet.min(Self::OWN) };
        self.noise.value().is_some_and(|noise| noise > own.max(Self::SAME))
    }

    /// Whether rounds have measured the noise.
    pub(super) fn knows_noise(&self) -> bool {
        self.noise.value().is_some()
    }

    /// The link's rate if packets that left together can show cross traffic: noise is below a fifth of a packet time.
    pub(super) fn whole(&self) -> Option<f64> {
        self.rate().filter(|rate| self.noise() * rate < Self::ALIKE)
    }

    /// RTT samples that suffice for a standing queue. Of delays of up to J, with a mean step of J/3, the least of n
    /// exceeds the own queue with a probability of about exp(-n own/J): 1/1000 for n = 3 ln(1000) noise/own. At most
    /// what the window has in four RTTs, with an ACK for two packets.
    pub(super) fn samples(&self, window: f64) -> u32 {
        let sure = ((20.0 * self.noise() / self.own_queue()).clamp(4.0, 32.0) as u32).next_power_of_two();
        sure.min((2.0 * window) as u32).max(4)
    }

    /// Trains measured this packet time, seconds. Less than an eighth of the known one, or of that of 10 Mbit/s, shows
    /// that ACKs waited for each other.
    pub(super) fn on_train(&mut self, now: Time, packet: f64) {
        self.fastest = Some(packet);
        self.train = None;
        self.train = Some((now, packet.max(self.packet().min(Self::PACKET) / 8.0)));
    }

    /// Whether packets that left together passed as on a link more than eight times as fast as the known rate. Then a
    /// token bucket lets them pass, and hides the queue of a ramp until it is empty.
    pub(super) fn lets_bursts_pass(&self) -> bool {
        self.fastest.zip(self.rate()).is_some_and(|(packet, rate)| 8.0 * packet * rate < 1.0)
    }

    /// Whether trains measured the packet time within the last `RATE_SPAN`.
    pub(super) fn knows_packet(&self, now: Time) -> bool {
        self.train.is_some_and(|(at, _)| now - at < Self::RATE_SPAN)
    }

    /// The packet time of the link, seconds. A flow's own rate shows only its part of the link, trains all of it.
    pub(super) fn packet(&self) -> f64 {
        let alone = self.link().map(|rate| 1.0 / rate);
        match (alone, self.train) {
            (Some(alone), Some((_, train))) => alone.min(train),
            (Some(packet), None) | (None, Some((_, packet))) => packet,
            (None, None) => Self::PACKET,
        }
    }

    /// The link's rate, packets per second: the greatest rate if there was a queue.
    pub(super) fn link(&self) -> Option<f64> {
        self.rate().filter(|_| self.queued)
    }

    /// The packet time, at most that of 1 Mbit/s, seconds: on slower links each own packet is a queue.
    pub(super) fn packet_at_most(&self) -> f64 {
        self.packet().min(12.5e-3)
    }

    fn allowance(&self) -> f64 {
        self.measured_noise().min(self.base() / 16.0)
    }

    /// The least self-induced queue, seconds.
    pub(super) fn least_own(&self) -> f64 {
        self.packet_at_most().max(Self::OWN)
    }

    /// The self-induced queue, seconds. Well below that at which AQM drops, and that which ends Hybrid Slow Start.
    pub(super) fn own(&self) -> f64 {
        self.least_own() + self.allowance()
    }

    /// Two packets more may be self-induced: windows are of whole packets, and an ACK is for two.
    fn cross_traffic(&self) -> f64 {
        self.own() + (2.0 * self.packet_at_most()).max(2e-3) + self.allowance()
    }

    /// [`Self::own`], and the part of the spread that looks like a queue, seconds.
    pub(super) fn own_queue(&self) -> f64 {
        self.own() + Self::SPREAD_OWN * self.spread()
    }

    /// A longer standing queue is caused by cross traffic, seconds.
    pub(super) fn cross_traffic_queue(&self) -> f64 {
        self.cross_traffic() + Self::SPREAD_CROSS_TRAFFIC * self.spread()
    }

    /// The mean of both without their spread, and half of the spread, seconds. Probes find less on a free link.
    pub(super) fn free_link_queue(&self) -> f64 {
        (self.own() + self.cross_traffic()) / 2.0 + Self::SPREAD_FREE * self.spread()
    }

    /// Standing queue of the last few packets, seconds.
    pub(super) fn fast_queue(&self) -> Option<f64> {
        self.fast.value().map(|rtt| rtt - self.base())
    }

    /// Standing queue over a quarter of an RTT or more, seconds.
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
        path.on_sample(now, 0.04, 10.0, false);
        assert_eq!(path.samples(100.0), 4);
        (0..Path::ROUNDS).for_each(|_| path.on_round(now, 4e-3, true));
        assert_eq!(path.samples(100.0), 4, "probes have not found a spread: these may be the packets of cross traffic");
        path.spread.on_probe(Some(0.1e-3), 0.04, false);
        assert_eq!([2.0, 4.0, 8.0, 16.0, 100.0].map(|window| path.samples(window)), [4, 8, 16, 32, 32]);
    }

    #[test]
    fn a_spread_that_rounds_do_not_show_was_measured_among_packets_of_cross_traffic() {
        // packet time 1.2 ms, spread 5 ms: a quarter of the root is 0.61 ms
        for (alone, difference, known) in [(true, 0.7e-3, true), (true, 0.5e-3, false), (false, 0.5e-3, true)] {
            let mut path = Path::new(1000);
            let now = Time::from_nanos(1_000_000_000);
            path.on_sample(now, 0.04, 10.0, false);
            path.spread.on_probe(Some(5e-3), 0.04, false);
            (1..Path::ROUNDS).for_each(|_| path.on_round(now, difference, alone));
            assert!(path.is_spread(), "seven rounds are few");
            path.on_round(now, difference, alone);
            assert_eq!(path.is_spread(), known, "{alone} {difference}");
            assert!(known || path.spread.is_none());
        }
    }

    /// The longest slow queue, seconds. A packet is acknowledged each 0.6 ms, at an RTT of 40 ms. ACKs that are due
    /// within one RTT from time 0 on come at the time that `late` gives, later ones `after` seconds late, as their
    /// packets left late.
    fn longest(after: f64, late: impl Fn(f64) -> f64) -> f64 {
        let (mut path, mut longest) = (Path::new(1000), 0.0_f64);
        for n in 0..400_u32 {
            let due = 0.6e-3 * f64::from(n) - 0.12;
            let (at, rtt) = match n {
                200..266 => (late(due), late(due) - due + 40e-3),
                266.. => (due + after, 40e-3),
                _ => (due, 40e-3),
            };
            path.on_sample(Time::from_nanos(((1.0 + at) * 1e9) as u64), rtt, 66.0, false);
            longest = longest.max(path.slow_queue().unwrap_or(0.0));
        }
        longest
    }

    #[test]
    fn a_moment_that_a_host_stands_still_is_no_queue() {
        // the ACKs under way arrive together when the stall ends, those of packets that it held up a while later
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
        assert!(path.lets_bursts_pass() && path.sure_bdp().is_none());
        rate(&mut path, 900);
        assert!(!path.lets_bursts_pass() && path.sure_bdp().is_some());
        path.forget_rate();
        rate(&mut path, 10);
        assert!(!path.lets_bursts_pass());
    }
}
