// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tide: uses spare capacity, and leaves the link to cross traffic. A law of our own, grown out of the papers':
//!
//! * a small self-induced queue, in units of delay, which depends on no buffer (Eclipse's aim);
//! * a queue that its own growth does not explain is caused by cross traffic (CDG's gradient, made an attribution);
//!   then it stops at once but for probes (overload mode's drain; the probes are of TCP Nice's kind, below one segment
//!   per RTT);
//! * spare capacity is taken exponentially, but with a bound in delay (acceleration mode), up to the safe window.
//!
//! LISTEN sends only probes, FILL uses the link. A flow begins with LISTEN: trains of packets measure the packet time,
//! and show whether cross traffic has fair queues of its own. Good probes end LISTEN. A queue of cross traffic, heavy
//! loss or a timeout ends FILL.
//!
//! The safe window is the BDP once a window of that size has met a queue. Else it is the window that last met one, or
//! half of the window that last met cross traffic.
//!
//! A loss counts only with a self-induced queue, or with a window above the BDP. Small BDPs are the exception, as their
//! buffers may be below the thresholds: there a loss that own growth does not explain is caused by cross traffic.
//!
//! With a weight Tide also takes its share of a link that cross traffic keeps full: [`Share`], which at a weight of 1
//! is one ordinary flow. Without a weight it only sends probes there.
//!
//! docs/tide.md has the states, thresholds and limits, docs/results/rivals.md the comparison with other laws.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, LinkRates, Reaction, Recovered, Restart, Signal, Stance, Time,
    Weighted, part::Rounds, text::parameters,
};
use std::time::Duration;

mod bursts;
mod fair;
mod fill;
mod listen;
mod path;
mod share;
mod spread;
#[cfg(test)]
mod tests;
mod verdict;

use fair::Fair;
use fill::Fill;
use listen::Listen;
use path::Path;
use share::Share;

parameters! {
    /// Parameters of Tide.
    pub struct Parameters for "tide" {
        /// While probes find queues, the greatest part of the link's rate that they take.
        probe_share: f64 = 0.005, in 0.0001..=0.1;
        /// The least probes per second, of two packets or four.
        probe_rate: f64 = 1.0, in 0.1..=100.0;
        /// Time without a nearly empty queue until the base RTT is measured anew; 0: never.
        drain: Duration = Duration::from_secs(10), in Duration::ZERO..=Duration::from_secs(3600);
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(Tide {
            parameters: self.clone(),
            path: Path::new(flow.mss),
            phase: Phase::Listen(Listen { stale: true, first: true, trains: Listen::TRAINS, ..Listen::default() }),
            window: 2.0,
            safe_window: None,
            last_full_rate: None,
            confirmed: false,
            loss: 0.0,
            srtt: 0.0,
            before: None,
            rounds: Rounds::default(),
            round: Round::default(),
            fair: Fair::default(),
            vanished: 0,
            senders: 1,
            short_fills: 0,
            share: None,
            flow: *flow,
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// Packets. In a smaller BDP buffers may be below the thresholds, so a loss counts.
const SMALL_BDP: f64 = 8.0;
/// Window for pairs of probes, packets: hosts send up to half of a window at once.
const PAIRS: f64 = 4.0;
/// Times the share's rate: effectively unpaced.
const UNPACED: f64 = 4.0;
/// Window that any flow begins with (RFC 6928), and the greatest after an idle time (RFC 5681, section 4.1), packets.
const BEGIN: f64 = 10.0;

#[derive(Clone, Debug)]
enum Phase {
    Fill(Fill),
    Listen(Listen),
}

/// A round: its RTT samples, in seconds, and its packets.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    samples: u32,
    sum: f64,
    least: f64,
    last: f64,
    /// Sum of the steps from one sample to the next.
    steps: f64,
    packets: f64,
    lost: f64,
    /// Whether the window has grown in it.
    grew: bool,
    /// Whether the window was the limit.
    limited: bool,
}

struct Tide {
    parameters: Parameters,
    path: Path,
    phase: Phase,
    /// Of FILL, packets.
    window: f64,
    /// Safe window unless `confirmed`, packets: one that met a queue, or half of one that met cross traffic.
    safe_window: Option<f64>,
    /// The rate when a ramp last met a queue, packets per second.
    last_full_rate: Option<f64>,
    /// Whether a window of at least 0.9 BDP met a queue, so that the rate is that of the link.
    confirmed: bool,
    /// Part of the packets lost, smoothed over rounds.
    loss: f64,
    srtt: f64,
    /// The window before the latest loss, packets.
    before: Option<f64>,
    rounds: Rounds,
    round: Round,
    fair: Fair,
    /// Queues in a row that were gone soon after FILL: in fair queues they were self-induced.
    vanished: u32,
    /// Connections that fill the window, at least 1.
    senders: u32,
    /// Short FILLs that loss or packets apart ended, less long ones; at most 5.
    short_fills: u32,
    /// The weighted share, if there is a weight.
    share: Option<Share>,
    flow: Flow,
}

impl Tide {
    /// The safe window, up to which growth may be fast, packets.
    fn safe(&self) -> Option<f64> {
        if self.confirmed { self.path.bdp() } else { self.safe_window }
    }

    fn on_sample(&mut self, ack: &Ack, rtt: f64) {
        if self.path.on_sample(ack.now, rtt, self.window, ack.senders > 1 || ack.burst > 0) {
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

    /// The path is not what it seemed, so nothing is safe.
    fn forget(&mut self) {
        (self.safe_window, self.confirmed, self.last_full_rate, self.vanished) = (None, false, None, 0);
        if let Phase::Listen(listen) = &mut self.phase {
            (listen.remeasured, listen.longest, listen.limit) = (0, 0.0, None);
        }
    }

    /// From FILL to LISTEN. `whole`: fair-queue LISTEN, until probes show that the link of this rate is free of cross
    /// traffic.
    fn begin_listen(&mut self, now: Time, nxt: u64, whole: Option<f64>) {
        // cross traffic: the window is no longer safe
        self.safe_window = Some(self.safe_window.unwrap_or(f64::INFINITY).min(self.window / 2.0).max(2.0));
        self.confirmed = false;
        self.path.see_queue();
        self.fair.restart();
        let window = self.window;
        if let Some(share) = &mut self.share {
            share.enter(window);
        }
        let large = self.path.bdp().is_some_and(|bdp| bdp >= SMALL_BDP);
        let trains = if large || self.vanished > 0 || !self.path.knows_packet(now) { Listen::TRAINS } else { 0 };
        let packet = self.path.packet();
        self.phase = Phase::Listen(Listen {
            began: now,
            stale: true,
            whole,
            packet,
            trains,
            confirms: large && self.path.knows_noise() && self.path.whole().is_some(),
            ..Listen::default()
        });
        self.start_round(nxt);
    }

    fn start_round(&mut self, nxt: u64) {
        self.rounds.start(nxt);
        self.round = Round::default();
    }

    /// The window of the weighted share, packets.
    fn share(&self) -> f64 {
        self.share.as_ref().map_or(0.0, Share::cwnd)
    }

    /// Whether the weighted share is what Tide sends.
    fn share_rules(&self) -> bool {
        self.share() > 0.0 && (self.share() > self.window || matches!(self.phase, Phase::Listen(_)))
    }

    /// Whether Tide sends as an ordinary flow: its share is a window, not just a pace of probes. The pace of
    /// [`UNPACED`] times its rate only spreads the bursts that ACKs for many segments cause.
    fn is_ordinary(&self) -> bool {
        self.share_rules() && self.share() >= PAIRS
    }

    /// Packets per second.
    fn pace(&self) -> f64 {
        if self.is_ordinary() {
            return UNPACED * self.share() / self.srtt.max(1e-6);
        }
        match &self.phase {
            Phase::Listen(listen) => {
                let share = 1.2 * (self.share() / self.srtt.max(1e-6));
                if listen.is_ack_clocked(&self.path, self.senders) {
                    return (Listen::ACK_CLOCKED / self.path.base().max(1e-6)).max(share);
                }
                let often = if listen.burst() == Listen::FOUR { 3.0 } else { 2.0 } / self.path.base().max(1e-6);
                if listen.probes < 4 || listen.good > 0 || listen.empty {
                    return often.max(share);
                }
                if listen.measures_spread(&self.path, self.senders) {
                    return (if listen.remeasures_spread() { Listen::REMEASURE_PACE * often } else { often })
                        .max(share);
                }
                let rate = self.path.rate().unwrap_or(1.0 / self.path.packet());
                let least = listen.burst() as f64 * self.parameters.probe_rate;
                let seldom = (self.parameters.probe_share * rate).max(least).min(often);
                listen.out_of_step(seldom.max(share))
            }
            Phase::Fill(fill) => {
                let gain = if fill.growth >= fill::GROWS { 1.25 } else { 1.1 };
                gain * self.window.max(self.share()) / self.srtt.max(1e-6)
            }
        }
    }
}

impl CongestionControl for Tide {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.srtt = ack.srtt.as_secs_f64();
        self.senders = ack.senders.max(1);
        self.round.packets += f64::from(ack.packets);
        self.round.lost += ack.lost as f64 / f64::from(self.flow.mss);
        let rtt = ack.rtt.map(|rtt| rtt.as_secs_f64());
        if let Some(rtt) = rtt {
            self.on_sample(ack, rtt);
        }
        match &self.phase {
            Phase::Fill(_) => self.on_fill_ack(ack),
            Phase::Listen(_) => self.on_listen_ack(ack),
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let rules = self.share_rules();
        if let Some(share) = self.share.as_mut().filter(|_| rules) {
            if congestion.signal == Signal::Timeout { share.on_timeout() } else { share.on_congestion() }
        }
        let fill = match &mut self.phase {
            Phase::Listen(listen) => return listen.in_a_row = 0, // RTTs differ as the full queue drains
            Phase::Fill(fill) => fill,
        };
        let own = self.path.own_queue();
        let bdp = self.path.link_bdp();
        let queued = self.path.fast_queue().is_some_and(|queue| queue > 0.75 * own);
        let beyond = bdp.is_some_and(|bdp| self.window > bdp);
        self.before = Some(self.window);
        fill.lost = true;
        // own growth explains the loss
        let grows = fill.growth > 0.0 || fill.settling > 0;
        if !grows {
            self.path.spread.forget(); // the queue was full: RTTs differ as it fills and drains
        }
        if congestion.signal == Signal::Timeout || (!grows && bdp.is_some_and(|bdp| bdp < SMALL_BDP)) {
            self.begin_listen(congestion.now, congestion.nxt, None);
        } else if queued || beyond || congestion.signal != Signal::Loss {
            self.window = (0.95 * bdp.map_or(self.window, |bdp| bdp.min(self.window))).max(2.0);
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
        // cross traffic may have begun during the idle time
        if matches!(self.phase, Phase::Fill(_)) {
            self.phase = Phase::Fill(Fill::new(1.0, restart.now, 0));
            self.window = self.window.min(BEGIN);
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
                ((self.window - self.fair.held_back()).max(2.0).max(self.share()) * f64::from(self.flow.mss)) as u64
            }
            Phase::Listen(ref listen) => {
                let one = self.srtt == 0.0 || listen.is_ack_clocked(&self.path, self.senders);
                let probes = if one { listen.burst() } else { 2 * listen.burst() };
                (self.share().max(probes as f64) * f64::from(self.flow.mss)) as u64
            }
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        (self.srtt > 0.0).then(|| ((self.pace() * f64::from(self.flow.mss)) as u64).max(1))
    }

    /// In FILL a packet leaves alone: the second of two would find a queue, which on a slow link is all of `own_queue`.
    fn least_burst(&self) -> u64 {
        if self.is_ordinary() {
            return 2;
        }
        match &self.phase {
            Phase::Fill(fill) => fill.bursts.burst().max(self.fair.burst()),
            Phase::Listen(listen) => listen.burst(),
        }
    }

    fn stance(&self) -> Stance {
        match &self.phase {
            _ if self.is_ordinary() => Stance::Window,
            Phase::Fill(_) => Stance::Fills,
            Phase::Listen(listen) => {
                Stance::Probes { since: listen.began, measures: listen.still_measures_spread(&self.path) }
            }
        }
    }

    fn link_rates(&self) -> Option<LinkRates> {
        let bytes = |packets: f64| (packets * f64::from(self.flow.mss)) as u64;
        Some(LinkRates { known: bytes(self.path.link().unwrap_or(0.0)), at_most: bytes(1.0 / self.path.packet()) })
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let ms = |seconds: f64| seconds * 1e3;
        show("base", ms(self.path.base()));
        show("noise", ms(self.path.noise()));
        show("own_queue", ms(self.path.own_queue()));
        show("cross_traffic_queue", ms(self.path.cross_traffic_queue()));
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
