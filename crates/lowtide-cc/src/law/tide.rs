// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tide: submissive, and it fills the link. A law of our own, grown out of the papers':
//!
//! * a queue of its own that is small and depends on no buffer (Eclipse's aim), in units of delay;
//! * any queue that its own growth does not explain is somebody else's (CDG's gradient, made an attribution), and then it leaves at once, to a
//!   probe now and then (overload mode's drain; the probes are of TCP Nice's kind, below one segment a round trip);
//! * freed capacity is taken exponentially, but bounded in delay (acceleration mode), and below what was safe before.
//!
//! ```text
//!          3 good probes                 somebody else's queue, much loss, a timeout
//! LISTEN ───────────────► FILL: ramp ──► hold ──► adjust ───────────────────────────► LISTEN
//!                            ▲ known-safe region          │
//!                            └────────────────────────────┘ queue below 3/4 of its own
//! ```
//!
//! It begins with LISTEN: trains of packets tell how long one takes on the link, and whether others are served in turn.
//!
//! What is safe is the whole pipe while it has been alone, and half of the window that met others since.
//!
//! Losses alone say nothing: they count where there is a queue of its own, or where it sends more than the pipe holds. A small pipe is the
//! exception, whose buffer may be smaller than the thresholds: there a loss that its own growth does not explain is somebody else's.
//!
//! With a weight it is no less submissive where it can be alone, and takes its part of a link that others hold full: [`Share`], which at a weight
//! of 1 is one ordinary flow. Without one it only probes.
//!
//! What another connection has measured as the empty round trip is a hint to it, until the evidence is against it: [`Hint`](hint::Hint).
//!
//! docs/tide.md has its parts with their reasons, docs/rivals.md has it beside the others.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal, Time, Weighted,
    part::Rounds, text::parameters,
};
use std::time::Duration;

mod fair;
mod hint;
mod listen;
mod path;
mod share;
#[cfg(test)]
mod tests;

use fair::Fair;
use listen::Listen;
use path::Path;
use share::Share;

parameters! {
    /// Parameters of Tide.
    pub struct Parameters for "tide" {
        /// In a full queue, the part of the link's rate that probes may take.
        probe_share: f64 = 0.005, in 0.0001..=0.1;
        /// The least pairs of probes per second.
        probe_rate: f64 = 3.0, in 0.1..=100.0;
        /// How long without a queue near empty until the base delay is measured anew; 0: never.
        drain: Duration = Duration::from_secs(10), in Duration::ZERO..=Duration::from_secs(3600);
        /// Whether to use classic ECN.
        ecn: bool = false;
        /// What is known of the base delay from before: a hint; 0: nothing.
        base_rtt: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(8);
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(Tide {
            parameters: self.clone(),
            path: Path::new(flow.mss, (!self.base_rtt.is_zero()).then_some(self.base_rtt)),
            phase: Phase::Listen(Listen { stale: true, first: true, trains: Listen::TRAINS, ..Listen::default() }),
            window: 2.0,
            cap: None,
            last_full_rate: None,
            confirmed: false,
            loss: 0.0,
            srtt: 0.0,
            before: None,
            rounds: Rounds::default(),
            round: Round::default(),
            fair: Fair::default(),
            vanished: 0,
            share: None,
            flow: *flow,
        })
    }

    /// What it asks of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// Rounds that a change of the window is waited for: the rest of the one in which it is made, one until it is on the link, one until it is seen.
const SETTLE: u32 = 3;
/// A pipe of fewer packets may have a buffer smaller than the thresholds: there a loss says more.
const SMALL_PIPE: f64 = 8.0;
/// The window for pairs of probes: a host lets half of a window go at once.
const PAIRS: f64 = 4.0;
/// Good probes in a row that say that the link is free; and in a fair queue, which is empty now and then.
const GOOD: u32 = 3;
const GOOD_APART: u32 = 6;
/// Queues that vanish, in a row, for which fair queues are looked for; in between it was on the link for so long at the most.
const VANISHED: u32 = 3;
const BRIEFLY: Duration = Duration::from_secs(10);
/// Base round trips of somebody else's queue without an end.
const LONG: f64 = 32.0;
/// How long it waits at the most for others in a fair queue to go, before it takes their part for the link's loss: a route may change.
const FAIR_WAIT: Duration = Duration::from_secs(300);
/// A receiver that keeps an ACK back does so for 40 ms or more.
const ACK_DELAY: Duration = Duration::from_millis(30);
/// Smoothed loss above it is no chance.
const HEAVY_LOSS: f64 = 0.04;

#[derive(Clone, Debug)]
enum Phase {
    Fill(Fill),
    Listen(Listen),
}

/// It uses the link.
#[derive(Clone, Debug)]
struct Fill {
    began: Time,
    /// Growth per packet acknowledged, so that the window is 1 + growth times as large after a round trip.
    growth: f64,
    /// That of the ramp that has just ended: the queue that it makes is its own.
    ramp: f64,
    settling: u32,
    /// Rounds without a queue worth the name, in a row.
    clean: u32,
    /// To look at the empty queue: rounds left, and the window to return to.
    drain: Option<(u32, f64)>,
    near_empty: Time,
    /// Samples in a row above its own queue while it grows, and what was in flight when the first of these packets left.
    found: u32,
    led: f64,
    /// What was sent up to here belongs to the probes before.
    sent: u64,
}

impl Fill {
    const fn new(growth: f64, now: Time) -> Self {
        Self {
            began: now,
            growth,
            ramp: 0.0,
            settling: 0,
            clean: 0,
            drain: None,
            near_empty: now,
            found: 0,
            led: 0.0,
            sent: 0,
        }
    }
}

/// The samples of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    samples: u32,
    sum: f64,
    least: f64,
    last: f64,
    /// From each sample to the next.
    steps: f64,
    packets: f64,
    lost: f64,
    /// Whether the window has grown in it.
    grew: bool,
    /// Whether the window was what limited it.
    limited: bool,
}

struct Tide {
    parameters: Parameters,
    path: Path,
    phase: Phase,
    /// Packets, in Fill.
    window: f64,
    /// A window that led to a queue: below it growth is safe.
    cap: Option<f64>,
    /// The link's rate when a ramp last met a queue.
    last_full_rate: Option<f64>,
    /// Whether the link's rate is known for sure, so that the window needs no more than the pipe.
    confirmed: bool,
    /// Part of the packets lost, smoothed over rounds.
    loss: f64,
    srtt: f64,
    /// The window before the latest loss.
    before: Option<f64>,
    rounds: Rounds,
    round: Round,
    fair: Fair,
    /// Queues of others in a row that were gone as soon as it had left: where queues are fair, it was its own.
    vanished: u32,
    /// What its weight is worth, if it has one.
    share: Option<Share>,
    flow: Flow,
}

impl Tide {
    /// What it may grow to fast.
    fn safe(&self) -> Option<f64> {
        if self.confirmed { self.path.pipe() } else { self.cap }
    }

    /// Whether its window holds what the link is known to carry: a queue is met with less where others have a part of it.
    fn has_all(&self) -> bool {
        self.path.pipe().is_some_and(|pipe| self.window >= 0.9 * pipe)
    }

    /// Linear growth per round: by the root of what is the same delay on any link, since the rate that a flow knows is its own part: so a small
    /// one grows more for its size than a large one, and they come to be equal.
    fn step(&self) -> f64 {
        let Some(rate) = self.path.rate() else { return 0.1 };
        let same_delay = (rate * self.path.base() / 256.0).min(0.25e-3 * rate);
        (0.1 * same_delay).sqrt().max(0.1)
    }

    /// Whether packets leave in pairs where it fills the link: those that are further apart than the receiver waits for a second one would each have
    /// its ACK kept back.
    fn in_pairs(&self, window: f64) -> bool {
        window * ACK_DELAY.as_secs_f64() < self.srtt
    }

    /// What the second of a pair waits for the first, which is its own: whose ACK comes now left a round trip ago.
    fn second(&self) -> f64 {
        let growth = if let Phase::Fill(fill) = &self.phase { fill.growth } else { 0.0 };
        if self.in_pairs(self.window / (1.0 + growth)) { self.path.packet_at_most() } else { 0.0 }
    }

    fn least_growth(&self) -> f64 {
        (self.path.own_queue() / self.path.base()).clamp(1.0 / 64.0, 1.0)
    }

    fn on_sample(&mut self, ack: &Ack, rtt: f64) {
        if self.path.on_sample(ack.now, rtt) {
            self.forget();
        }
        let round = &mut self.round;
        if round.samples == 0 {
            (round.least, round.last) = (rtt, rtt);
        }
        round.least = round.least.min(rtt);
        round.steps += (rtt - round.last).abs();
        round.last = rtt;
        round.samples += 1;
        round.sum += rtt;
    }

    /// The path is another one than it seemed.
    const fn forget(&mut self) {
        (self.cap, self.confirmed, self.last_full_rate, self.vanished) = (None, false, None, 0);
    }

    /// From filling to listening; where queues are fair, until probes find that nobody else is served in turn on a link of the `whole` rate.
    fn listen(&mut self, now: Time, nxt: u64, whole: Option<f64>) {
        // somebody is there: what was safe before is not
        self.cap = Some(self.cap.unwrap_or(f64::INFINITY).min(self.window / 2.0).max(2.0));
        self.confirmed = false;
        self.path.see_queue();
        self.fair.restart();
        let window = self.window;
        if let Some(share) = &mut self.share {
            share.enter(window);
        }
        let large = self.path.pipe().is_some_and(|pipe| pipe >= SMALL_PIPE);
        let trains = if large || self.vanished > 0 || !self.path.knows_packet(now) { Listen::TRAINS } else { 0 };
        let packet = self.path.packet();
        self.phase = Phase::Listen(Listen { began: now, stale: true, whole, packet, trains, ..Listen::default() });
        self.start_round(nxt);
    }

    /// Somebody else's queue, or its own in a link whose queues are fair: then one after the other is gone as soon as it has left.
    fn leave_queue(&mut self, ack: &Ack) {
        if matches!(&self.phase, Phase::Fill(fill) if ack.now - fill.began > BRIEFLY) {
            self.vanished = 0;
        }
        self.listen(ack.now, ack.nxt, self.whole().filter(|_| self.vanished >= VANISHED));
        if let Phase::Listen(listen) = &mut self.phase {
            listen.queue = true;
        }
    }

    /// The link's rate, where little noise lets packets tell whether others are served in turn, and a slower link from these.
    fn whole(&self) -> Option<f64> {
        self.path.rate().filter(|rate| self.path.noise() * rate < Listen::ALIKE)
    }

    fn start_round(&mut self, nxt: u64) {
        self.rounds.start(nxt);
        self.round = Round::default();
    }

    /// A ramp ends: it has met a queue, or what is known to be safe.
    fn end_ramp(fill: &mut Fill) {
        (fill.ramp, fill.growth, fill.settling) = (fill.growth, 0.0, SETTLE);
    }

    /// A ramp looks for a queue, sample by sample: it does not grow into what may be one.
    fn find(&mut self, ack: &Ack, own: f64) {
        let (Phase::Fill(fill), Some(rtt)) = (&mut self.phase, ack.rtt) else { return };
        if ack.una <= fill.sent {
            self.path.restart_filters();
            self.round = Round::default();
            return;
        }
        if fill.growth == 0.0 || rtt.as_secs_f64() - self.path.base() <= own {
            fill.found = 0;
            return;
        }
        if fill.found == 0 {
            let flown = |sample: &crate::RateSample| sample.delivered as f64 / f64::from(self.flow.mss);
            fill.led = ack.rate.as_ref().map_or(self.window / (1.0 + fill.growth), flown);
        }
        fill.found += 1;
    }

    /// A ramp has met a queue: back to what was in flight when the first packet left that found it.
    fn meet(&mut self) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.path.see_queue();
        // what grew in two round trips at the most: a sample of a packet that left in a lull says little
        let led = fill.led.max(self.window / (1.0 + fill.growth) / (1.0 + fill.growth));
        self.window = self.window.min(led).max(2.0);
        self.cap = Some(self.window);
        Self::end_ramp(fill);
        let rate = self.path.rate();
        if let (Some(rate), Some(last)) = (rate, self.last_full_rate)
            && (rate / last - 1.0).abs() < 0.05
        {
            self.confirmed = self.has_all();
        }
        self.last_full_rate = rate;
    }

    fn fill(&mut self, ack: &Ack) {
        self.path.on_rate(ack);
        if let Some(whole) = self.path.rate() {
            self.fair.on_ack(ack.now, ack.packets, whole);
        }
        let second = self.second();
        let (own, foreign) = (self.path.own_queue() + second, self.path.foreign_queue() + second);
        self.find(ack, own);
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.round.limited |= ack.window_limited;
        let before = self.window;
        let unheard = 4 * fill.found < self.path.samples();
        if ack.window_limited
            && !ack.reducing
            && fill.settling == 0
            && fill.drain.is_none()
            && fill.growth > 0.0
            && unheard
        {
            self.window += fill.growth * f64::from(ack.packets);
            self.round.grew = true;
        }
        if fill.growth > 0.0 && self.path.fast_queue().is_some_and(|queue| queue > own) {
            self.meet();
        }
        let near = self.safe();
        let Phase::Fill(fill) = &mut self.phase else { return };
        if fill.growth > 0.05 && near.is_some_and(|near| (before..self.window).contains(&(0.95 * near))) {
            Self::end_ramp(fill);
        }
        // what its own growth makes is its own, until it has been seen to end
        let ramp = if fill.settling > 0 { fill.ramp } else { fill.growth } * self.path.base();
        if self.path.slow_queue().is_some_and(|queue| queue > foreign + ramp) {
            self.leave_queue(ack);
            return;
        }
        if self.rounds.ended(ack.una) && self.round.samples >= self.path.samples() {
            self.end_round(ack);
        }
    }

    fn end_round(&mut self, ack: &Ack) {
        let (round, own, base) = (self.round, self.path.own_queue() + self.second(), self.path.base());
        let Phase::Fill(fill) = &mut self.phase else { return };
        let queue = round.least - base;
        let samples = f64::from(round.samples);
        // growth makes the later ones longer
        let spread = if round.grew { 0.0 } else { round.sum / samples - round.least };
        self.path.on_round(ack.now, spread.max(round.steps / (samples - 1.0).max(1.0)));
        let sent = round.packets + round.lost;
        if sent > 0.0 {
            self.loss += (round.lost / sent - self.loss) / 8.0;
        }
        if queue < own / 2.0 {
            fill.near_empty = ack.now;
        }
        if let Some(whole) = self.path.rate()
            && self.fair.on_round(ack.now, round.packets, queue > 0.75 * own, whole)
        {
            let window = self.window;
            self.listen(ack.now, ack.nxt, Some(whole));
            self.cap = Some(window);
            return;
        }
        if let Some((left, window)) = fill.drain {
            fill.drain = Some((left - 1, window)).filter(|(left, _)| *left > 0);
            if fill.drain.is_none() {
                // what comes back at once is a ramp, too
                (fill.ramp, fill.settling) = (window / self.window - 1.0, SETTLE);
                (self.window, fill.near_empty) = (window, ack.now);
            }
        } else if fill.settling > 0 {
            fill.settling -= 1;
        } else if self.loss > HEAVY_LOSS {
            self.listen(ack.now, ack.nxt, None);
            return;
        } else if fill.found > 0 && fill.growth > 0.0 && queue >= 0.75 * own {
            self.meet();
        } else if queue > own {
            self.path.see_queue();
            let step = self.step();
            self.window = (self.window + step - self.window / 2.0 * (queue - own) / (base + queue)).max(2.0);
            (self.cap, self.confirmed) = (Some(self.window), self.has_all());
            self.hold();
        } else if !round.limited {
            self.hold();
        } else if queue < 0.75 * own {
            self.regrow();
        } else {
            self.window += self.step();
            self.hold();
        }
        self.look_at_base(ack.now, queue);
        self.start_round(ack.nxt);
    }

    /// No growth, until rounds are clean again.
    fn hold(&mut self) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        (fill.growth, fill.clean) = (0.0, 0);
    }

    /// A round without a queue worth the name.
    fn regrow(&mut self) {
        let (least, safe) = (self.least_growth(), self.safe());
        let patience = if self.confirmed && safe.is_some_and(|safe| self.window > 0.93 * safe) { 24 } else { 1 };
        let Phase::Fill(fill) = &mut self.phase else { return };
        if safe.is_none_or(|safe| self.window < 0.93 * safe) {
            fill.growth = (2.0 * fill.growth).clamp(least, 1.0);
            fill.clean = 0;
        } else {
            fill.clean += 1;
            fill.growth =
                if fill.clean <= patience { least } else { (2.0 * fill.growth).clamp(least, 0.5f64.max(least)) };
        }
    }

    /// After a long time with a queue the base may be one that was measured in it.
    fn look_at_base(&mut self, now: Time, queue: f64) {
        let (base, drain) = (self.path.base(), self.parameters.drain);
        let Phase::Fill(fill) = &mut self.phase else { return };
        if drain.is_zero() || fill.drain.is_some() || fill.growth > 0.0 || now - fill.near_empty < drain {
            return;
        }
        fill.drain = Some((SETTLE, self.window));
        self.window = (0.95 * self.window * base / (base + queue.max(0.0)) - 1.0).max(2.0);
    }

    /// Packets that its weight allows.
    fn share(&self) -> f64 {
        self.share.as_ref().map_or(0.0, Share::cwnd)
    }

    fn heard(&mut self, ack: &Ack) {
        let probes_only = self.share() < PAIRS;
        let Phase::Listen(listen) = &mut self.phase else { return };
        // with more packets than these there are no trains, and before them it knows little of the path
        let first_measures = probes_only && listen.trains > 0;
        if let Some(share) = self.share.as_mut().filter(|_| !ack.reducing && !first_measures) {
            share.on_ack(ack);
        }
        let passed = ack.now - listen.acknowledged;
        // the first packets of a probe end the round of the one before, and what comes after four is the next one's; the ACK of a single one
        // may have waited for another, and a program that has little to send tells nothing
        let told = ack.packets > 0
            && listen.packets + f64::from(ack.packets) < Listen::FOUR as f64
            && !ack.rate.is_some_and(|rate| rate.app_limited)
            && (ack.packets > 1 || passed < ACK_DELAY);
        if told && !self.rounds.ended(ack.una) {
            listen.packets += f64::from(ack.packets);
            listen.seconds += passed.as_secs_f64();
        }
        listen.acknowledged = ack.now;
        // what was sent before still comes back for a while
        if !self.rounds.ended(ack.una) || self.round.samples == 0 {
            return;
        }
        let (least, base) = (self.round.least, self.path.base());
        if let Some(share) = &mut self.share {
            share.on_round(least - base);
        }
        self.start_round(ack.nxt);
        self.probe(ack, least);
    }

    fn probe(&mut self, ack: &Ack, rtt: f64) {
        let (probes_only, whole) = (self.share() < PAIRS, self.whole());
        let Phase::Listen(listen) = &mut self.phase else { return };
        let since = ack.now - listen.began;
        let (noise, middle, own, base) =
            (self.path.noise(), self.path.middle(), self.path.own_queue(), self.path.base());
        if listen.whole.is_some() && since > FAIR_WAIT {
            listen.whole = None;
            self.path.forget_rate();
        }
        listen.peak = listen.peak.max(rtt - base);
        listen.heard.rotate_right(1);
        listen.heard[0] = rtt;
        listen.probes = listen.probes.saturating_add(1);
        let look_back = (noise / 1e-3).clamp(1.0, 8.0) as usize;
        let known = look_back.min(listen.probes as usize);
        let queue = listen.heard[..known].iter().fold(f64::INFINITY, |least, rtt| least.min(*rtt)) - base;
        let (seconds, packets) = (std::mem::take(&mut listen.seconds), std::mem::take(&mut listen.packets));
        if !probes_only {
            (listen.closer, listen.trains) = (0, 0);
        }
        if let Some(packet) = listen.train(packets, seconds) {
            self.path.on_train(ack.now, packet);
            if let Some(share) = &mut self.share {
                share.begin(self.srtt / self.path.packet());
            }
            // no queue, but somebody else is served in turn
            if queue < middle && whole.is_some_and(|whole| !Fair::together(packet, 1.0, whole)) {
                listen.whole = whole;
            }
        }
        let stale = std::mem::take(&mut listen.stale);
        listen.measure(packets, seconds, self.path.packet());
        // what its weight sends leaves otherwise
        let told = listen.whole.filter(|_| probes_only);
        let apart = !stale && told.is_some_and(|whole| !Fair::together(seconds, packets, whole));
        let anew = listen.first && !self.path.is_hinted() && listen.trains == 0;
        // in doubt whether the path is another one, only an empty link is free
        if !anew && (queue >= (if listen.closer > 0 { 0.75 * own } else { middle }) || apart) {
            listen.good = 0;
            if probes_only && listen.doubts() {
                self.path.renew(ack.now, listen.least());
                self.forget();
                self.begin_again(ack, 1.0);
            }
            return;
        }
        listen.closer = 0;
        listen.good += 1;
        let enough = if listen.whole.is_some() { GOOD_APART } else { GOOD };
        if !anew && (listen.trains > 0 || listen.good < enough) {
            return;
        }
        self.vanished = if listen.queue && listen.probes <= GOOD + 2 { self.vanished + 1 } else { 0 };
        // whoever held a queue for long has a buffer that takes a ramp of as much
        if since.as_secs_f64() > LONG * base
            && let (Some(cap), Some(pipe)) = (self.cap, self.path.pipe())
        {
            self.cap = Some(cap.max((listen.peak / base).clamp(0.5, 1.0) * pipe));
        }
        // an ACK comes for two packets, of which the second has waited for the first; in a small pipe that is a queue as any
        let packet = self.path.packet();
        let waited = if base >= SMALL_PIPE * packet { packet } else { 0.0 };
        self.begin_again(ack, if !anew && queue - waited > 0.75 * own { 0.0 } else { 1.0 });
    }

    /// From listening to filling.
    fn begin_again(&mut self, ack: &Ack, growth: f64) {
        self.phase = Phase::Fill(Fill { sent: ack.nxt, ..Fill::new(growth, ack.now) });
        (self.window, self.loss) = (2.0, 0.0);
        self.path.restart_filters();
        self.start_round(ack.nxt);
    }

    /// Packets per second.
    fn pace(&self) -> f64 {
        let base = self.path.base().max(1e-6);
        match &self.phase {
            Phase::Listen(listen) => {
                let share = 1.2 * self.share() / self.srtt.max(1e-6);
                if self.share() >= PAIRS {
                    return share;
                }
                let often = if listen.trains > 0 { 3.0 } else { 2.0 } / base;
                if listen.probes < 4 || listen.good > 0 {
                    return often.max(share);
                }
                let probes = self.path.rate().map_or(0.0, |rate| self.parameters.probe_share * rate);
                let seldom = probes.max(2.0 * self.parameters.probe_rate).min(often);
                listen.out_of_step(seldom.max(share))
            }
            Phase::Fill(fill) => {
                let gain = if fill.growth >= 0.25 { 1.25 } else { 1.1 };
                let rate = gain * self.window.max(self.share()) / self.srtt.max(1e-6);
                match self.path.rate().filter(|_| self.confirmed) {
                    Some(link) => rate.min((1.02 * link).max(1.05 * self.window.max(self.share()) / base)),
                    None => rate,
                }
            }
        }
    }
}

impl CongestionControl for Tide {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.srtt = ack.srtt.as_secs_f64();
        self.round.packets += f64::from(ack.packets);
        self.round.lost += ack.lost as f64 / f64::from(self.flow.mss);
        let rtt = ack.rtt.map(|rtt| rtt.as_secs_f64());
        if let Some(rtt) = rtt {
            self.on_sample(ack, rtt);
        }
        match &self.phase {
            Phase::Fill(_) => self.fill(ack),
            Phase::Listen(_) => self.heard(ack),
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let rules = self.share() > self.window || matches!(self.phase, Phase::Listen(_));
        if let Some(share) = self.share.as_mut().filter(|_| rules) {
            if congestion.signal == Signal::Timeout { share.on_timeout() } else { share.on_congestion() }
        }
        let Phase::Fill(fill) = &self.phase else { return };
        let own = self.path.own_queue() + self.second();
        let pipe = self.path.pipe();
        let queued = self.path.fast_queue().is_some_and(|queue| queue > 0.75 * own);
        let beyond = pipe.is_some_and(|pipe| self.window > pipe);
        let window = fill.drain.map_or(self.window, |(_, window)| window);
        self.before = Some(window);
        // what its own growth explains is nobody else's
        let grows = fill.growth > 0.0 || fill.settling > 0;
        if congestion.signal == Signal::Timeout || (!grows && pipe.is_some_and(|pipe| pipe < SMALL_PIPE)) {
            self.listen(congestion.now, congestion.nxt, None);
        } else if queued || beyond || congestion.signal != Signal::Loss {
            self.window = (0.95 * pipe.map_or(self.window, |pipe| pipe.min(self.window))).max(2.0);
            let Phase::Fill(fill) = &mut self.phase else { return };
            (fill.growth, fill.drain) = (0.0, None);
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.before = None;
    }

    fn on_spurious(&mut self) {
        if let Some(before) = self.before.take() {
            self.window = self.window.max(before);
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        // nobody knows who came meanwhile
        if matches!(self.phase, Phase::Fill(_)) {
            self.phase = Phase::Fill(Fill::new(1.0, restart.now));
            self.window = 2.0;
        }
        if let Some(share) = &mut self.share {
            share.on_restart(restart);
        }
        self.vanished = 0;
        self.path.restart_filters();
        self.fair.restart();
        self.start_round(restart.nxt);
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.window = self.window.min((self.window * factor).max(2.0));
        true
    }

    fn window(&self) -> u64 {
        match self.phase {
            Phase::Fill(_) => {
                let window = if self.in_pairs(self.window) { 2.0 * (self.window / 2.0).floor() } else { self.window };
                ((window - self.fair.held_back()).max(2.0).max(self.share()) * f64::from(self.flow.mss)) as u64
            }
            Phase::Listen(ref listen) => {
                let probes = if self.srtt > 0.0 { 2 * listen.burst() } else { listen.burst() };
                (self.share().max(probes as f64) * f64::from(self.flow.mss)) as u64
            }
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        (self.srtt > 0.0).then(|| ((self.pace() * f64::from(self.flow.mss)) as u64).max(1))
    }

    /// A packet by itself where it fills the link: the second of two would find a queue, which on a slow link is all that it allows itself.
    fn least_burst(&self) -> u64 {
        match &self.phase {
            Phase::Fill(_) if self.in_pairs(self.window) => self.fair.burst().max(2),
            Phase::Fill(_) => self.fair.burst(),
            Phase::Listen(listen) => listen.burst(),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let ms = |seconds: f64| seconds * 1e3;
        show("base", ms(self.path.base()));
        show("noise", ms(self.path.noise()));
        show("own_queue", ms(self.path.own_queue()));
        show("foreign_queue", ms(self.path.foreign_queue()));
        if let Some(rate) = self.path.rate() {
            show("rate", rate);
        }
        if let Some(safe) = self.safe() {
            show("safe", safe);
        }
        match &self.phase {
            Phase::Fill(fill) => {
                show("listens", 0.0);
                show("growth", fill.growth);
            }
            Phase::Listen(listen) => {
                show("listens", 1.0);
                show("good_probes", f64::from(listen.good));
            }
        }
        if let Some(queue) = self.path.slow_queue() {
            show("queue", ms(queue));
        }
        show("loss", self.loss);
        if let Some(share) = &self.share {
            show("share", share.cwnd());
        }
    }
}

impl Weighted for Tide {
    fn set_weight(&mut self, weight: f64) {
        match &mut self.share {
            Some(share) => share.set_weight(weight),
            None => self.share = Some(Share::new(&self.flow, weight)),
        }
    }
}
