// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tide fills the link: ramps that end where a queue begins, a queue of its own that it holds, looks at the empty link.

use crate::{Ack, Time};
use std::time::Duration;

use super::{Phase, Round, SMALL_PIPE, Tide, bursts::Bursts, listen::Listen};

/// Rounds that a change of the window is waited for: the rest of the one in which it is made, one until it is on the link, one until it is seen.
const SETTLE: u32 = 3;
/// Growth that is a ramp.
const RAMP: f64 = 1.0;
/// Smoothed loss above it is no chance.
const HEAVY_LOSS: f64 = 0.04;
/// The pause after that in base round trips: twice as long each time, so many times at the most.
const LOSS_PAUSE: u32 = 2;
const LOSS_PAUSES: u32 = 5;
/// Queues that vanish, in a row, for which fair queues are looked for.
const VANISHED: u32 = 3;
/// It was on the link for so long at the most in between, where the same happens again.
const BRIEFLY: Duration = Duration::from_secs(10);

/// It uses the link.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    began: Time,
    /// Growth per packet acknowledged, so that the window is 1 + growth times as large after a round trip.
    pub(super) growth: f64,
    /// That of the ramp that has just ended: the queue that it makes is its own.
    ramp: f64,
    /// And what was sent up to here may have met it; `None`: until it has settled.
    ramp_sent: Option<u64>,
    pub(super) settling: u32,
    /// The longest queue that may be of the latest ramp: none once a round after it has shown what it led to. Seconds.
    ramped: f64,
    /// Rounds without a queue worth the name, in a row.
    clean: u32,
    /// To look at the empty queue: rounds left, and the window to return to.
    pub(super) drain: Option<(u32, f64)>,
    near_empty: Time,
    /// Samples in a row above its own queue while it grows, and what was in flight when the first of these packets left.
    found: u32,
    led: f64,
    /// What was sent up to here belongs to the probes before.
    sent: u64,
    pub(super) bursts: Bursts,
}

impl Fill {
    /// What was sent up to `sent` comes back first.
    pub(super) fn new(growth: f64, now: Time, sent: u64) -> Self {
        Self {
            began: now,
            growth,
            ramp: 0.0,
            ramp_sent: None,
            settling: 0,
            ramped: 0.0,
            clean: 0,
            drain: None,
            near_empty: now,
            found: 0,
            led: 0.0,
            sent,
            bursts: Bursts::default(),
        }
    }
}

impl Tide {
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

    fn least_growth(&self) -> f64 {
        (self.path.own_queue() / self.path.base()).min(1.0)
    }

    /// Somebody else's queue, or its own in a link whose queues are fair: then one after the other is gone as soon as it has left.
    fn leave_queue(&mut self, ack: &Ack) {
        if matches!(&self.phase, Phase::Fill(fill) if ack.now - fill.began > BRIEFLY) {
            self.vanished = 0;
        }
        self.listen(ack.now, ack.nxt, self.path.whole().filter(|_| self.vanished >= VANISHED));
        if let Phase::Listen(listen) = &mut self.phase {
            listen.queue = true;
        }
    }

    /// Much loss, or others that are served in turn, where probes may hear of nobody: those of a policer, or with noise.
    fn leave_unheard(&mut self, ack: &Ack) {
        let Phase::Fill(fill) = &self.phase else { return };
        self.lossy = if ack.now - fill.began > BRIEFLY {
            self.lossy.saturating_sub(1)
        } else {
            (self.lossy + 1).min(LOSS_PAUSES)
        };
        self.listen(ack.now, ack.nxt, None);
        if let Phase::Listen(listen) = &mut self.phase {
            listen.pause = self.path.base() * f64::from(LOSS_PAUSE << self.lossy);
        }
    }

    /// Packets that left together come apart: others are served in turn, which probes tell, too, where there is little noise.
    fn leave_apart(&mut self, ack: &Ack) {
        if let Some(whole) = self.path.whole() {
            self.listen(ack.now, ack.nxt, Some(whole));
        } else {
            self.leave_unheard(ack);
        }
    }

    /// A ramp's packets leave in bursts; not behind a token bucket, by whose rate they always come apart, nor among those of other connections.
    pub(super) fn set_bursts(&mut self, nxt: u64) {
        let (packet, sure) = (self.path.packet(), self.senders < 2 && !self.path.lets_bursts_pass());
        if let Phase::Fill(fill) = &mut self.phase {
            fill.bursts.leave(fill.growth >= RAMP && sure, packet, nxt);
        }
    }

    /// A ramp ends: it has met a queue, or what is known to be safe.
    fn end_ramp(fill: &mut Fill, nxt: u64) {
        (fill.ramp, fill.ramp_sent) = (fill.growth, Some(nxt));
        (fill.growth, fill.settling, fill.ramped) = (0.0, SETTLE, f64::INFINITY);
    }

    /// What was sent after a ramp tells nothing of it, where a round trip has samples enough to show that.
    fn outlive_ramp(&mut self, una: u64) {
        let large = self.path.sure_pipe().is_some_and(|pipe| pipe >= SMALL_PIPE);
        let Phase::Fill(fill) = &mut self.phase else { return };
        if large && fill.ramp_sent.take_if(|sent| una >= *sent).is_some() {
            fill.ramp = 0.0;
            self.path.restart_filters();
        }
    }

    /// A ramp looks for a queue, sample by sample: it does not grow into what may be one.
    fn find(&mut self, ack: &Ack, own: f64) {
        let (Phase::Fill(fill), Some(rtt)) = (&mut self.phase, ack.rtt) else { return };
        if ack.una <= fill.sent {
            self.path.restart_filters();
            self.round = Round::default();
            return;
        }
        if fill.growth == 0.0 || rtt.as_secs_f64() - self.path.base() <= own + fill.bursts.wait(self.path.packet()) {
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
    fn meet(&mut self, nxt: u64) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.path.see_queue();
        // what grew in two round trips at the most: a sample of a packet that left in a lull says little
        let led = fill.led.max(self.window / (1.0 + fill.growth) / (1.0 + fill.growth));
        self.window = self.window.min(led).max(2.0);
        self.cap = Some(self.window);
        Self::end_ramp(fill, nxt);
        let rate = self.path.rate();
        if let (Some(rate), Some(last)) = (rate, self.last_full_rate)
            && (rate / last - 1.0).abs() < 0.05
        {
            self.confirmed = self.has_all();
        }
        self.last_full_rate = rate;
    }

    /// A token bucket may have hidden this queue from the ramp that made it: that shows when what fills the queue is taken back. What is
    /// left then is taken back, too, if it is half of what the queue was in between, or less.
    fn take_back(&mut self, ack: &Ack, queue: f64) {
        let base = self.path.base();
        let Phase::Fill(fill) = &mut self.phase else { return };
        // it still grows, twice as long at the most; a round begins here: one until less is on the link, one until that is seen
        (fill.ramp, fill.ramp_sent) = (2.0 * queue / base, None);
        (fill.growth, fill.settling, fill.ramped) = (0.0, SETTLE - 1, queue / 2.0);
        self.window = (self.window * base / (base + queue) - 1.0).max(2.0);
        self.cap = Some(self.window);
        self.path.restart_filters();
        self.start_round(ack.nxt);
    }

    /// An ACK while it fills the link.
    pub(super) fn fill(&mut self, ack: &Ack) {
        // an ordinary flow by construction, whatever is believed of the link
        if let Some(share) = self.share.as_mut().filter(|share| share.is_whole() && !ack.reducing) {
            share.on_ack(ack);
        }
        self.path.on_rate(ack);
        if let Some(whole) = self.path.rate() {
            self.fair.on_ack(ack, whole);
            let rules = self.share_rules();
            if let Phase::Fill(fill) = &mut self.phase
                && fill.bursts.on_ack(ack, whole)
                && !rules
            {
                self.leave_apart(ack);
                return;
            }
        }
        // what its own connections send outside of the window is nobody else's
        let foreign = self.path.foreign_queue() + f64::from(ack.beside) * self.path.packet();
        let own = self.path.own_queue() + f64::from(ack.burst) * self.path.packet();
        self.find(ack, own);
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.round.limited |= ack.window_limited;
        let before = self.window;
        let unheard = 4 * fill.found < self.path.samples(self.window);
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
            self.meet(ack.nxt);
        }
        let (near, pipe) = (self.safe(), self.path.sure_pipe());
        let rules = self.share_rules();
        let Phase::Fill(fill) = &mut self.phase else { return };
        let crosses = |part: f64, of: Option<f64>| of.is_some_and(|of| (before..self.window).contains(&(part * of)));
        if fill.growth > 0.05 && (crosses(0.95, near) || (near.is_some() && crosses(0.93, pipe))) {
            Self::end_ramp(fill, ack.nxt);
            if pipe.is_some() && self.senders < 2 && !rules {
                self.fair.put_to_test(self.window);
            }
        }
        self.outlive_ramp(ack.una);
        // what its own growth makes is its own, until it has been seen to end
        let Phase::Fill(fill) = &mut self.phase else { return };
        let ramp = if fill.settling > 0 { fill.ramp } else { fill.growth } * self.path.base();
        let ramped = if fill.growth > 0.0 { f64::INFINITY } else { fill.ramped };
        let queue = self.path.slow_queue().unwrap_or(0.0);
        if fill.settling > 0 && ramped > 0.0 {
            fill.ramped = ramped.max(queue / 2.0);
        }
        if queue > foreign + ramp {
            if queue <= ramped && self.path.lets_bursts_pass() {
                self.take_back(ack, queue);
            } else {
                self.leave_queue(ack);
            }
        } else if self.rounds.ended(ack.una) && self.round.samples >= self.path.samples(self.window) {
            self.end_round(ack);
        }
        self.set_bursts(ack.nxt);
    }

    fn end_round(&mut self, ack: &Ack) {
        let (round, own, base) = (self.round, self.path.own_queue(), self.path.base());
        let Phase::Fill(fill) = &mut self.phase else { return };
        let queue = round.least - base;
        let samples = f64::from(round.samples);
        // growth makes the later ones longer
        let spread = if round.grew { 0.0 } else { round.sum / samples - round.least };
        // in bursts one packet waits for another
        if !fill.bursts.heard() {
            self.path.on_round(ack.now, spread.max(round.steps / (samples - 1.0).max(1.0)));
        }
        if fill.settling == 0 {
            fill.ramped = 0.0;
        }
        let sent = round.packets + round.lost;
        if sent > 0.0 {
            self.loss += (round.lost / sent - self.loss) / 8.0;
        }
        if queue < own / 2.0 {
            fill.near_empty = ack.now;
        }
        // several connections have begun without a look: where round trips differ by more than their own packets cause they look now
        if self.path.learns_spread() && self.path.noise() > self.path.packet().max(Listen::SAME) {
            self.listen(ack.now, ack.nxt, None);
            return;
        }
        if self.senders > 1 {
            self.fair.restart();
        } else if let Some(whole) = self.path.rate()
            && self.fair.on_round(ack.now, round.packets, queue > 0.75 * own, whole)
        {
            let window = self.window;
            self.leave_apart(ack);
            self.cap = Some(window);
            return;
        }
        if let Some((left, window)) = fill.drain {
            fill.drain = Some((left - 1, window)).filter(|(left, _)| *left > 0);
            if fill.drain.is_none() {
                // what comes back at once is a ramp, too
                (fill.ramp, fill.ramp_sent, fill.settling) = (window / self.window - 1.0, None, SETTLE);
                (self.window, fill.near_empty) = (window, ack.now);
            }
        } else if fill.settling > 0 {
            fill.settling -= 1;
        } else if self.loss > HEAVY_LOSS {
            self.leave_unheard(ack);
            return;
        } else if fill.found > 0 && fill.growth > 0.0 && queue >= 0.75 * own {
            self.meet(ack.nxt);
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
        let (least, safe, pipe) = (self.least_growth(), self.safe(), self.path.sure_pipe());
        let patience = if self.confirmed && safe.is_some_and(|safe| self.window > 0.93 * safe) { 24 } else { 1 };
        let Phase::Fill(fill) = &mut self.phase else { return };
        let doubled = (2.0 * fill.growth).max(least);
        if safe.is_none_or(|safe| self.window < 0.93 * safe) {
            (fill.growth, fill.clean) = (doubled.min(1.0), 0);
        } else if let Some(pipe) = pipe.filter(|pipe| self.window < 0.93 * pipe) {
            let missing = 0.95 * pipe / self.window - 1.0;
            (fill.growth, fill.clean) = (doubled.min(missing).min(0.5), 0);
        } else {
            fill.clean += 1;
            fill.growth = if fill.clean <= patience { least } else { doubled.min(0.5f64.max(least)) };
        }
    }

    /// After a long time with a queue the base may be one that was measured in it. What comes back at once is a ramp, which hides a queue of
    /// others that is as long: so a look goes no deeper than what is somebody else's.
    fn look_at_base(&mut self, now: Time, queue: f64) {
        let (base, drain) = (self.path.base(), self.parameters.drain);
        let depth = (base / 20.0).min(self.path.foreign_queue());
        let Phase::Fill(fill) = &mut self.phase else { return };
        if drain.is_zero() || fill.drain.is_some() || fill.growth > 0.0 || now - fill.near_empty < drain {
            return;
        }
        fill.drain = Some((SETTLE, self.window));
        self.window = (self.window * (base - depth) / (base + queue.max(0.0)) - 1.0).max(2.0);
    }
}
