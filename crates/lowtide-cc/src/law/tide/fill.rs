// SPDX-License-Identifier: MIT OR Apache-2.0
//! FILL: Tide uses the link. Ramps end where a queue begins; a self-induced queue is held; drains measure the base RTT.

use crate::{Ack, Time};
use std::{mem, time::Duration};

use super::{Phase, Round, SMALL_BDP, Tide, bursts::Bursts};

/// Rounds until a change of the window shows: the rest of the present one, one until it is on the link, one until it is
/// seen.
const SETTLE: u32 = 3;
/// Growth of a ramp: the window doubles per RTT.
const RAMP: f64 = 1.0;
/// Growth for which the pace leaves room, and whose queue and losses are its own.
pub(super) const GROWS: f64 = 0.25;
/// Smoothed loss above it is not chance.
const HEAVY_LOSS: f64 = 0.04;
/// Smoothed loss above it, in a window that hardly grows, is that of a full queue.
const OVERFLOW: f64 = 0.01;
/// A round has the samples of so many RTTs at the most.
const ROUND_RTTS: f64 = 4.0;
/// The pause after heavy loss, base RTTs, doubled each time up to [`LOSS_PAUSES`] times.
const LOSS_PAUSE: u32 = 2;
const LOSS_PAUSES: u32 = 5;
/// Vanished queues in a row that lead to a fair-queue LISTEN.
const VANISHED: u32 = 3;
/// A FILL that ends sooner counts as the same event.
const BRIEFLY: Duration = Duration::from_secs(10);
/// After this time in FILL a flow with a part of the BDP stands longer queues.
const TOLERANT: Duration = Duration::from_secs(2);

/// State of FILL.
#[derive(Clone, Debug)]
pub(super) struct Fill {
    began: Time,
    /// Packets that the window gains per packet acknowledged: after an RTT it is 1 + growth times as large.
    pub(super) growth: f64,
    /// Growth of the latest ramp or of the end of drain: its queue is self-induced.
    ramp: f64,
    /// Data sent up to here may have met the queue of the ramp; `None` once it is acknowledged.
    ramp_sent: Option<u64>,
    /// Growth before a pause.
    paused: f64,
    /// Rounds of settle left.
    pub(super) settling: u32,
    /// Longest queue that the latest ramp may have caused, seconds; 0: it has settled.
    ramped: f64,
    /// Rounds in a row below 0.75 own_queue, with a window beyond the safe one.
    clean: u32,
    /// The delivery rate after the latest of these, packets per second.
    clean_rate: f64,
    /// Rounds of drain left, and the window after it.
    pub(super) drain: Option<(u32, f64)>,
    /// The latest round with a queue below own_queue / 2.
    near_empty: Time,
    /// RTT samples in a row above own_queue while the window grows.
    found: u32,
    /// Packets in flight when the first of these packets left.
    led: f64,
    /// Data up to here was sent in LISTEN.
    sent: u64,
    /// Whether packets of this FILL were lost.
    pub(super) lost: bool,
    pub(super) bursts: Bursts,
}

impl Fill {
    /// `sent`: data up to here was sent in LISTEN.
    pub(super) fn new(growth: f64, now: Time, sent: u64) -> Self {
        Self {
            began: now,
            growth,
            ramp: 0.0,
            ramp_sent: None,
            paused: 0.0,
            settling: 0,
            ramped: 0.0,
            clean: 0,
            clean_rate: 0.0,
            drain: None,
            near_empty: now,
            found: 0,
            led: 0.0,
            sent,
            lost: false,
            bursts: Bursts::default(),
        }
    }
}

impl Tide {
    /// Whether the window is at least 0.9 BDP. With less a queue is met if cross traffic has a part of the link.
    fn has_whole_link(&self) -> bool {
        self.path.bdp().is_some_and(|bdp| self.window >= 0.9 * bdp)
    }

    /// Packets that the window gains in hold in this round. Per RTT it is the root of a gain that is the same delay on
    /// any link. A flow knows only its own part of the rate, so a small one gains more for its size, and several Tides
    /// converge. The rounds of a small window last for several RTTs.
    fn step(&self) -> f64 {
        let Some(rate) = self.path.rate() else { return 0.1 };
        let same_delay = (rate * self.path.base() / 256.0).min(0.25e-3 * rate);
        (0.1 * same_delay).sqrt().max(0.1) * (self.round.packets / self.window).clamp(1.0, ROUND_RTTS)
    }

    /// In hold, how much longer a queue a flow with a part of the BDP stands, seconds: so the one with the most gives
    /// way first, and Tides converge. Not at first, nor after a loss: flows that losses limit take the link for short
    /// times, and their queues are as short.
    fn tolerance(&self, now: Time) -> f64 {
        let Phase::Fill(fill) = &self.phase else { return 0.0 };
        let holds = fill.growth == 0.0 && fill.settling == 0 && fill.drain.is_none();
        if !holds || fill.lost || now - fill.began < TOLERANT {
            return 0.0;
        }
        let missing = self.path.link_bdp().map_or(0.0, |bdp| (1.0 - self.window / bdp).max(0.0));
        missing * self.path.least_own()
    }

    /// Growth per packet that adds the self-induced queue in an RTT. The spread is no queue that may grow.
    fn least_growth(&self) -> f64 {
        (self.path.own() / self.path.base()).min(1.0)
    }

    /// A queue of cross traffic ends FILL. Behind fair queues it was self-induced, and vanishes as soon as FILL has
    /// ended: [`VANISHED`] such queues in a row lead to a fair-queue LISTEN.
    fn leave_queue(&mut self, ack: &Ack) {
        if matches!(&self.phase, Phase::Fill(fill) if ack.now - fill.began > BRIEFLY) {
            self.vanished = 0;
        }
        self.begin_listen(ack.now, ack.nxt, self.path.whole().filter(|_| self.vanished >= VANISHED));
        if let Phase::Listen(listen) = &mut self.phase {
            listen.queue = true;
        }
    }

    /// Heavy loss, or packets apart, end FILL where probes may find nothing: with a policer, or with noise. So LISTEN
    /// lasts for a pause.
    fn leave_for_a_pause(&mut self, ack: &Ack) {
        let Phase::Fill(fill) = &self.phase else { return };
        self.short_fills = if ack.now - fill.began > BRIEFLY {
            self.short_fills.saturating_sub(1)
        } else {
            (self.short_fills + 1).min(LOSS_PAUSES)
        };
        self.begin_listen(ack.now, ack.nxt, None);
        if let Phase::Listen(listen) = &mut self.phase {
            listen.pause = self.path.base() * f64::from(LOSS_PAUSE << self.short_fills);
        }
    }

    /// Packets that left together came apart: cross traffic behind fair queues. Probes find that, too, where noise is
    /// small.
    fn leave_apart(&mut self, ack: &Ack) {
        if let Some(whole) = self.path.whole() {
            self.begin_listen(ack.now, ack.nxt, Some(whole));
        } else {
            self.leave_for_a_pause(ack);
        }
    }

    /// A ramp sends bursts. Not behind a token bucket, by whose rate they always come apart, nor among packets of other
    /// connections.
    pub(super) fn set_bursts(&mut self, nxt: u64) {
        let (packet, sure) = (self.path.packet(), self.senders < 2 && !self.path.lets_bursts_pass());
        if let Phase::Fill(fill) = &mut self.phase {
            fill.bursts.leave(fill.growth >= RAMP && sure, packet, nxt);
        }
    }

    /// A ramp ends: it has met a queue, or reached the safe window or the BDP.
    fn end_ramp(fill: &mut Fill, nxt: u64) {
        (fill.ramp, fill.ramp_sent) = (fill.growth, Some(nxt));
        (fill.growth, fill.settling, fill.ramped) = (0.0, SETTLE, f64::INFINITY);
    }

    /// Packets sent after a ramp do not meet its queue. In BDPs of enough packets a round has samples enough to see
    /// that.
    fn outlive_ramp(&mut self, una: u64) {
        let large = self.path.sure_bdp().is_some_and(|bdp| bdp >= SMALL_BDP);
        let Phase::Fill(fill) = &mut self.phase else { return };
        if large && fill.ramp_sent.take_if(|sent| una >= *sent).is_some() {
            fill.ramp = 0.0;
            self.path.restart_filters();
        }
    }

    /// Looks for a queue in each RTT sample while the window grows, so that a ramp does not grow into it.
    fn find(&mut self, ack: &Ack, own: f64) {
        let (Phase::Fill(fill), Some(rtt)) = (&mut self.phase, ack.rtt) else { return };
        if ack.una <= fill.sent {
            self.path.restart_filters();
            self.round = Round::default();
            return;
        }
        // of the first packet that finds a queue
        if fill.found == 0 {
            let flown = |sample: &crate::RateSample| sample.delivered as f64 / f64::from(self.flow.mss);
            fill.led = ack.rate.as_ref().map_or(self.window / (1.0 + fill.growth), flown);
        }
        let found = rtt.as_secs_f64() - self.path.base() > own + fill.bursts.wait(self.path.packet());
        fill.found = if found && fill.growth > 0.0 { fill.found + 1 } else { 0 };
    }

    /// A ramp has met a queue. The window returns to what was in flight when the first packet that found it left.
    fn meet(&mut self, nxt: u64) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.path.see_queue();
        // at most by two RTTs of growth: that packet may have left when little was in flight
        let led = fill.led.max(self.window / (1.0 + fill.growth) / (1.0 + fill.growth));
        self.window = self.window.min(led).max(2.0);
        self.safe_window = Some(self.window);
        Self::end_ramp(fill, nxt);
        let rate = self.path.rate();
        if let (Some(rate), Some(last)) = (rate, self.last_full_rate)
            && (rate / last - 1.0).abs() < 0.05
        {
            self.confirmed = self.has_whole_link();
        }
        self.last_full_rate = rate;
    }

    /// A token bucket may have hidden this queue from the ramp that caused it. That shows when the packets that fill
    /// the queue are taken back. If half of the longest queue or less is left, that is taken back, too.
    fn take_back(&mut self, ack: &Ack, queue: f64) {
        let base = self.path.base();
        let Phase::Fill(fill) = &mut self.phase else { return };
        // until then the queue may become twice as long; a round begins here: it ends when less is in flight, the next
        // one shows it
        (fill.ramp, fill.ramp_sent) = (2.0 * queue / base, None);
        (fill.growth, fill.settling, fill.ramped) = (0.0, SETTLE - 1, queue / 2.0);
        self.window = (self.window * base / (base + queue) - 1.0).max(2.0);
        self.safe_window = Some(self.window);
        self.path.restart_filters();
        self.start_round(ack.nxt);
    }

    /// An ACK in FILL.
    pub(super) fn on_fill_ack(&mut self, ack: &Ack) {
        // at weight 1 an ordinary flow, whatever Tide finds
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
        // packets of the transfer's other connections outside of the window are no cross traffic, nor are those that
        // the test sends together: where packet times are long they queue for several RTTs
        let own_packets = f64::from(ack.beside + ack.burst) + (self.fair.burst() - 1) as f64;
        let cross_traffic =
            self.path.cross_traffic_queue() + self.tolerance(ack.now) + own_packets * self.path.packet();
        let own = self.path.own_queue() + f64::from(ack.burst) * self.path.packet();
        self.find(ack, own);
        let Phase::Fill(fill) = &mut self.phase else { return };
        self.round.limited |= ack.window_limited;
        let before = self.window;
        let no_queue_yet = 4 * fill.found < self.path.samples(self.window);
        if ack.window_limited
            && !ack.reducing
            && fill.settling == 0
            && fill.drain.is_none()
            && fill.growth > 0.0
            && no_queue_yet
        {
            self.window += fill.growth * f64::from(ack.packets);
            self.round.grew = true;
        }
        if fill.growth > 0.0 && self.path.fast_queue().is_some_and(|queue| queue > own) {
            self.meet(ack.nxt);
        }
        let (near, bdp) = (self.safe(), self.path.sure_bdp());
        let rules = self.share_rules();
        let Phase::Fill(fill) = &mut self.phase else { return };
        let crosses = |part: f64, of: Option<f64>| of.is_some_and(|of| (before..self.window).contains(&(part * of)));
        if fill.growth > 0.05 && (crosses(0.95, near) || (near.is_some() && crosses(0.93, bdp))) {
            Self::end_ramp(fill, ack.nxt);
            if bdp.is_some() && self.senders < 2 && !rules {
                self.fair.put_to_test(self.window);
            }
        }
        self.outlive_ramp(ack.una);
        // own growth explains so much of a queue; in settle, the growth of the ramp does
        let Phase::Fill(fill) = &mut self.phase else { return };
        let ramp = if fill.settling > 0 { fill.ramp } else { fill.growth } * self.path.base();
        let ramped = if fill.growth > 0.0 { f64::INFINITY } else { fill.ramped };
        let queue = self.path.slow_queue().unwrap_or(0.0);
        if fill.settling > 0 && ramped > 0.0 {
            fill.ramped = ramped.max(queue / 2.0);
        }
        if queue > cross_traffic + ramp {
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
        // with growth later RTTs are longer, and so are those behind an initial window
        let bursts = f64::from(ack.burst) * self.path.packet();
        let longer = if round.grew { 0.0 } else { (round.sum / samples - round.least - bursts).max(0.0) };
        let alone = self.senders < 2 && ack.beside == 0;
        // in bursts packets wait for each other
        if !fill.bursts.acks_burst() {
            self.path.on_round(ack.now, longer.max(round.steps / (samples - 1.0).max(1.0)), alone);
        }
        if fill.settling == 0 {
            fill.ramped = 0.0;
        }
        let sent = round.packets + round.lost;
        if sent > 0.0 {
            self.loss += (round.lost / sent - self.loss) / 8.0;
        }
        // Losses go on although the window hardly grows: a queue overflows, and the spread was measured in it.
        let grows = fill.growth >= GROWS || fill.settling > 0;
        if round.lost > 0.0 && self.loss > OVERFLOW && !grows {
            self.path.spread.forget();
        }
        if queue < own / 2.0 {
            fill.near_empty = ack.now;
        }
        // Several connections have skipped the measurement of the spread, or probes found none by chance. RTTs differ
        // by more than own packets explain, so it is due. What a wrong spread taught of the safe window does not count.
        if self.path.has_noise() && self.path.spread.ask() {
            self.begin_listen(ack.now, ack.nxt, None);
            self.safe_window = None;
            return;
        }
        if self.senders > 1 {
            self.fair.restart();
        } else if let Some(whole) = self.path.rate()
            && self.fair.on_round(ack.now, round.packets, queue > 0.75 * own, whole)
        {
            let window = self.window;
            self.leave_apart(ack);
            self.safe_window = Some(window);
            return;
        }
        if let Some((left, window)) = fill.drain {
            fill.drain = Some((left - 1, window)).filter(|(left, _)| *left > 0);
            if fill.drain.is_none() {
                // the return to the old window is a ramp, too
                (fill.ramp, fill.ramp_sent, fill.settling) = (window / self.window - 1.0, None, SETTLE);
                (self.window, fill.near_empty) = (window, ack.now);
            }
        } else if fill.settling > 0 {
            fill.settling -= 1;
        } else if grows && round.lost > 0.0 {
            self.pause_growth(ack.nxt);
        } else if self.loss > HEAVY_LOSS {
            self.leave_for_a_pause(ack);
            return;
        } else if (fill.found > 0 && fill.growth > 0.0 && queue >= 0.75 * own) || (grows && queue > own) {
            self.meet(ack.nxt);
        } else if queue > own {
            self.path.see_queue();
            let excess = queue - own - self.tolerance(ack.now);
            self.window = (self.window + self.step() - self.window / 2.0 * excess / (base + queue)).max(2.0);
            (self.safe_window, self.confirmed) = (Some(self.window), self.has_whole_link());
            self.hold();
        } else if !round.limited {
            self.pause_growth(ack.nxt);
        } else if queue < 0.75 * own {
            self.regrow(alone);
        } else {
            self.window += self.step();
            self.hold();
        }
        self.look_at_base(ack.now, queue);
        self.start_round(ack.nxt);
    }

    /// A window that is not the limit, or losses while it grows. It may have outgrown the BDP unseen, so this ends a
    /// ramp, too. Without a queue growth goes on where it was.
    fn pause_growth(&mut self, nxt: u64) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        fill.paused = fill.paused.max(fill.growth);
        if fill.growth >= GROWS {
            Self::end_ramp(fill, nxt);
        }
        (fill.growth, fill.clean) = (0.0, 0);
    }

    /// No growth, until rounds without a queue follow.
    fn hold(&mut self) {
        let Phase::Fill(fill) = &mut self.phase else { return };
        (fill.growth, fill.paused, fill.clean) = (0.0, 0.0, 0);
    }

    /// A round below 0.75 own_queue, in a window that is the limit. Growth doubles: to at most 1 up to the safe window,
    /// to at most 1/2 up to the BDP. Beyond, it first stays at the least. Several connections seldom fill a window all
    /// at once, so the least RTT of a round may not show the queue of a window that is too large. For them growth stays
    /// at the least beyond the BDP as long as the delivery rate does not rise, and ends with the self-induced queue.
    /// `alone`: no packets of other connections.
    fn regrow(&mut self, alone: bool) {
        let (least, safe, bdp) = (self.least_growth(), self.safe(), self.path.sure_bdp());
        let patience = if self.confirmed && safe.is_some_and(|safe| self.window > 0.93 * safe) { 24 } else { 1 };
        let Phase::Fill(fill) = &mut self.phase else { return };
        let doubled = (2.0 * fill.growth).max(mem::take(&mut fill.paused)).max(least);
        if safe.is_none_or(|safe| self.window < 0.93 * safe) {
            (fill.growth, fill.clean) = (doubled.min(1.0), 0);
        } else if let Some(bdp) = bdp.filter(|bdp| self.window < 0.93 * bdp) {
            let missing = 0.95 * bdp / self.window - 1.0;
            (fill.growth, fill.clean) = (doubled.min(missing).min(0.5), 0);
        } else {
            fill.clean += 1;
            let rate = self.path.rate().unwrap_or(0.0);
            let rises = rate > mem::replace(&mut fill.clean_rate, rate);
            let limit = bdp.filter(|_| !alone && !rises).map(|bdp| bdp * (1.0 + least));
            fill.growth = if limit.is_some_and(|limit| self.window > limit) {
                0.0
            } else if limit.is_some() || fill.clean <= patience {
                least
            } else {
                doubled.min(0.5f64.max(least))
            };
        }
    }

    /// Drain. After a long time with a queue the base RTT may have been measured in it. The return to the old window is
    /// a ramp, and hides a queue of cross traffic that is as long. So the drain is at most `cross_traffic_queue` deep.
    fn look_at_base(&mut self, now: Time, queue: f64) {
        let (base, drain) = (self.path.base(), self.parameters.drain);
        let depth = (base / 20.0).min(self.path.cross_traffic_queue());
        let Phase::Fill(fill) = &mut self.phase else { return };
        if drain.is_zero() || fill.drain.is_some() || fill.growth > 0.0 || now - fill.near_empty < drain {
            return;
        }
        fill.drain = Some((SETTLE, self.window));
        self.window = (self.window * (base - depth) / (base + queue.max(0.0)) - 1.0).max(2.0);
    }
}
