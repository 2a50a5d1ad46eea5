// SPDX-License-Identifier: MIT OR Apache-2.0
//! LISTEN: what Tide concludes from its probes: cross traffic, a free link, or a changed path.

use crate::{Ack, Time};
use std::{mem, time::Duration};

use super::{
    BEGIN, PAIRS, Phase, SMALL_BDP, Tide,
    fair::Fair,
    fill::Fill,
    listen::{LONG, Listen},
    path::Path,
};

/// Good probes in a row that end LISTEN.
const GOOD: u32 = 3;
/// The same in a fair-queue LISTEN: competing fair queues are empty now and then.
const GOOD_APART: u32 = 6;
/// Delayed ACKs come 40 ms or more later.
const ACK_DELAY: Duration = Duration::from_millis(30);
/// The longest fair-queue LISTEN, seconds. Then the rate is forgotten: packets come apart on a link that has become
/// slower, too.
const FAIR_WAIT: f64 = 300.0;
/// Of so many probes two have to be short.
const TWO_OF: usize = 4;

/// The two least values; infinite where there are fewer.
fn least_two(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::INFINITY), |(least, second), value| {
        (least.min(*value), second.min(value.max(least)))
    })
}

impl Tide {
    /// An ACK in LISTEN.
    pub(super) fn on_listen_ack(&mut self, ack: &Ack) {
        let probes_only = self.share() < PAIRS;
        let Phase::Listen(listen) = &mut self.phase else { return };
        if listen.first && listen.began == Time::ZERO {
            listen.began = ack.now;
        }
        // While trains are due little is known of the path, so the share does not grow. With `PAIRS` or more there are
        // none.
        let first_measures = probes_only && listen.trains > 0;
        if let Some(share) = self.share.as_mut().filter(|_| !ack.reducing && !first_measures) {
            share.on_ack(ack);
        }
        let passed = ack.now - listen.acknowledged;
        // The first ACK of a probe ends the round of the one before. Packets after the fourth belong to the next probe.
        // The ACK of a single packet may be delayed. An application-limited sender may not have sent the packets
        // together.
        let counts = ack.packets > 0
            && listen.packets + f64::from(ack.packets) < Listen::FOUR as f64
            && !ack.app_limited()
            && (ack.packets > 1 || passed < ACK_DELAY);
        let passed = passed.as_secs_f64();
        let rtt = ack.rtt.map_or(listen.rtt + passed, |rtt| rtt.as_secs_f64());
        if counts && !self.rounds.ended(ack.una) {
            listen.arrive(f64::from(ack.packets), passed, rtt, self.path.packet());
        }
        (listen.acknowledged, listen.gap, listen.rtt) = (ack.now, listen.gap.max(passed), rtt);
        // packets that were sent before the round are still acknowledged
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

    /// A round of LISTEN has ended. `rtt` is its least RTT, seconds.
    fn probe(&mut self, ack: &Ack, rtt: f64) {
        let probes_only = self.share() < PAIRS;
        let Phase::Listen(listen) = &mut self.phase else { return };
        let since = ack.now - listen.began;
        let (noise, free_link_queue, own, base) =
            (self.path.noise(), self.path.free_link_queue(), self.path.own_queue(), self.path.base());
        // while noise is unknown jitter may have taken the packets apart
        let most = if self.path.knows_noise() { FAIR_WAIT } else { Listen::REMEASURE };
        if listen.whole.is_some() && since.as_secs_f64() > most {
            listen.whole = None;
            self.path.forget_rate();
        }
        let whole = self.path.whole();
        // packets of the transfer's other connections queue, too
        let alone = self.senders < 2 || ack.beside + ack.burst == 0;
        listen.on_probe(rtt, base, alone);
        if alone {
            let reading = listen.spread_reading(base, self.path.packet());
            self.path.spread.on_probe(reading, base, listen.is_unsure());
            // they have found none, but were not alike either
            if reading.is_none() && self.path.spread.is_none() && self.path.has_noise() {
                self.path.spread.ask();
            }
        }
        // packets that left together come apart by themselves
        if self.path.is_spread() {
            listen.whole = None;
        }
        if probes_only && listen.is_too_long(ack.now, &self.path) {
            self.path.spread.measure_again();
        }
        let measures = alone && listen.measures_spread(&self.path, self.senders);
        let look_back = (noise / Path::SAME).clamp(1.0, 8.0) as usize;
        let known = look_back.min(listen.probes as usize);
        let (least, second) = least_two(&listen.rtts[..known]);
        // a single short RTT would make the verdicts good for as long as they look back
        let queue = if known >= TWO_OF { second } else { least } - base;
        let (seconds, packets) = (mem::take(&mut listen.seconds), mem::take(&mut listen.packets));
        // between the packets of other connections trains do not measure the packet time
        if self.senders > 1 {
            listen.trains = 0;
        }
        if !probes_only {
            (listen.check_probes, listen.trains, listen.confirms) = (0, 0, false);
        }
        if let Some(packet) = listen.train(packets, seconds, whole) {
            self.path.on_train(ack.now, packet);
            if let Some(share) = &mut self.share {
                share.begin(self.srtt / self.path.packet());
            }
            // trains found no queue, but cross traffic: it has a fair queue of its own
            if queue < free_link_queue && whole.is_some() && listen.comes_apart() {
                listen.whole = whole;
            }
        }
        let stale = mem::take(&mut listen.stale);
        listen.measure(packets, seconds, self.path.packet());
        // packets of a weighted share of `PAIRS` or more do not leave together
        let fair_rate = listen.whole.or(whole.filter(|_| listen.confirming())).filter(|_| probes_only);
        let apart = !stale && fair_rate.is_some_and(|whole| packets >= 2.0 && !Fair::together(seconds, packets, whole));
        let anew = listen.first && listen.trains == 0 && !measures;
        // while the path may have changed, only an empty queue is a good probe
        if !anew && (queue >= (if listen.check_probes > 0 { 0.75 * own } else { free_link_queue }) || apart) {
            (listen.good, listen.empty) = (0, !apart && rtt < base + free_link_queue);
            if apart && listen.whole.is_none() {
                // a fair-queue LISTEN from now on
                (listen.whole, listen.began) = (fair_rate, ack.now);
            }
            if !probes_only {
                return;
            }
            let stays = !self.path.is_spread() && listen.stays(ack.now, noise, whole);
            if listen.path_changed() || stays {
                self.path.renew(ack.now, listen.least());
                self.forget();
                self.return_to_fill(ack, 1.0);
            }
            return;
        }
        // the round began before LISTEN, so its packets do not show cross traffic
        if stale && fair_rate.is_some() {
            return;
        }
        listen.check_probes = 0;
        listen.good += 1;
        let enough = if listen.whole.is_some() { GOOD_APART } else { GOOD };
        if !anew && (measures || listen.trains > 0 || listen.good < enough || since.as_secs_f64() < listen.pause) {
            return;
        }
        self.vanished = if listen.queue && listen.probes <= GOOD + 2 { self.vanished + 1 } else { 0 };
        // a long standing queue implies a buffer that can absorb a ramp of that size
        if since.as_secs_f64() > LONG * base
            && let (Some(known), Some(bdp)) = (self.safe_window, self.path.bdp())
        {
            self.safe_window = Some(known.max((listen.peak / base).clamp(0.5, 1.0) * bdp));
        }
        // the ACK of a pair is for its second packet, which waited for the first; in a small BDP that counts as a queue
        let packet = self.path.packet();
        let waited = if base >= SMALL_BDP * packet { packet } else { 0.0 };
        self.return_to_fill(ack, if !anew && queue - waited > 0.75 * own { 0.0 } else { 1.0 });
    }

    /// From LISTEN to FILL.
    fn return_to_fill(&mut self, ack: &Ack, growth: f64) {
        self.phase = Phase::Fill(Fill::new(growth, ack.now, ack.nxt));
        // BDP/16 if that is less
        (self.window, self.loss) = (self.path.bdp().map_or(BEGIN, |bdp| BEGIN.min(bdp / 16.0)).max(2.0), 0.0);
        self.path.restart_filters();
        self.start_round(ack.nxt);
        self.set_bursts(ack.nxt);
    }
}
