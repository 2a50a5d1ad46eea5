// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Tide makes of what its probes hear: somebody else, a free link, another path.

use crate::Ack;
use std::{mem, time::Duration};

use super::{BEGIN, PAIRS, Phase, SMALL_PIPE, Tide, fair::Fair, fill::Fill, listen::Listen};

/// Good probes in a row that say that the link is free; and in a fair queue, which is empty now and then.
const GOOD: u32 = 3;
const GOOD_APART: u32 = 6;
/// Base round trips of somebody else's queue without an end.
const LONG: f64 = 32.0;
/// A receiver that keeps an ACK back does so for 40 ms or more.
const ACK_DELAY: Duration = Duration::from_millis(30);
/// How long it waits at the most for others in a fair queue to go, before it takes their part for the link's loss: a route may change.
const FAIR_WAIT: Duration = Duration::from_secs(300);

impl Tide {
    /// An ACK while it listens.
    pub(super) fn hear(&mut self, ack: &Ack) {
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
            && !ack.app_limited()
            && (ack.packets > 1 || passed < ACK_DELAY);
        let passed = passed.as_secs_f64();
        let rtt = ack.rtt.map_or(listen.rtt + passed, |rtt| rtt.as_secs_f64());
        if told && !self.rounds.ended(ack.una) {
            listen.arrive(f64::from(ack.packets), passed, rtt, self.path.packet());
        }
        (listen.acknowledged, listen.rtt) = (ack.now, rtt);
        // what was sent before still comes back for a while
        if !self.rounds.ended(ack.una) || self.round.samples == 0 {
            return;
        }
        let least = self.round.least;
        if let Some(share) = &mut self.share {
            share.on_round(least - self.path.base(), &self.path);
        }
        self.start_round(ack.nxt);
        self.probe(ack, least);
    }

    /// A round of listening is over that found this round trip at least.
    fn probe(&mut self, ack: &Ack, rtt: f64) {
        let probes_only = self.share() < PAIRS;
        let Phase::Listen(listen) = &mut self.phase else { return };
        let since = ack.now - listen.began;
        let (noise, middle, own, base) =
            (self.path.noise(), self.path.middle(), self.path.own_queue(), self.path.base());
        if listen.whole.is_some() && since > FAIR_WAIT {
            listen.whole = None;
            self.path.forget_rate();
        }
        let whole = self.path.whole();
        // what other connections of the transfer send makes a queue, too
        let alone = self.senders < 2 || ack.beside + ack.burst == 0;
        listen.on_probe(ack.now, rtt, base, alone);
        if alone {
            self.path.on_probe(listen.spread(base));
        }
        let looks = alone && listen.looks(&self.path, self.senders);
        let look_back = (noise / Listen::SAME).clamp(1.0, 8.0) as usize;
        let known = look_back.min(listen.probes as usize);
        let queue = listen.heard[..known].iter().fold(f64::INFINITY, |least, rtt| least.min(*rtt)) - base;
        let (seconds, packets) = (mem::take(&mut listen.seconds), mem::take(&mut listen.packets));
        // among the packets of other connections trains tell nothing
        if self.senders > 1 {
            listen.trains = 0;
        }
        if !probes_only {
            (listen.closer, listen.trains, listen.confirms) = (0, 0, false);
        }
        if let Some(packet) = listen.train(packets, seconds, whole) {
            self.path.on_train(ack.now, packet);
            if let Some(share) = &mut self.share {
                share.begin(self.srtt / self.path.packet());
            }
            // no queue, but somebody else is served in turn
            if queue < middle && whole.is_some() && listen.comes_apart() {
                listen.whole = whole;
            }
        }
        let stale = mem::take(&mut listen.stale);
        listen.measure(packets, seconds, self.path.packet());
        // what its weight sends leaves otherwise
        let told = listen.whole.or(whole.filter(|_| listen.confirming())).filter(|_| probes_only);
        let apart = !stale && told.is_some_and(|whole| packets >= 2.0 && !Fair::together(seconds, packets, whole));
        let anew = listen.first && listen.trains == 0 && !looks;
        // in doubt whether the path is another one, only an empty link is free
        if !anew && (queue >= (if listen.closer > 0 { 0.75 * own } else { middle }) || apart) {
            listen.good = 0;
            if apart && listen.whole.is_none() {
                // it waits for them from now on
                (listen.whole, listen.began) = (told, ack.now);
            }
            if probes_only && listen.doubts() {
                self.path.renew(ack.now, listen.least());
                self.forget();
                self.begin_again(ack, 1.0);
            }
            return;
        }
        // what was sent before tells nothing of others in turn
        if stale && told.is_some() {
            return;
        }
        listen.closer = 0;
        listen.good += 1;
        let enough = if listen.whole.is_some() { GOOD_APART } else { GOOD };
        if !anew && (looks || listen.trains > 0 || listen.good < enough || since.as_secs_f64() < listen.pause) {
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
        self.phase = Phase::Fill(Fill::new(growth, ack.now, ack.nxt));
        // a 16th of the pipe in small ones
        (self.window, self.loss) = (self.path.pipe().map_or(BEGIN, |pipe| BEGIN.min(pipe / 16.0)).max(2.0), 0.0);
        self.path.restart_filters();
        self.start_round(ack.nxt);
        self.set_bursts(ack.nxt);
    }
}
