// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tide: submissive, and it fills the link. A law of our own, grown out of the papers':
//!
//! * a small self-induced queue, in units of delay, which depends on no buffer (Eclipse's aim);
//! * a queue that its own growth does not explain is caused by cross traffic (CDG's gradient, made an attribution);
//!   then it leaves at once, to a probe now and then (overload mode's drain; the probes are of TCP Nice's kind, below
//!   one segment per round trip);
//! * freed capacity is taken exponentially, but bounded in delay (acceleration mode), up to what was safe before.
//!
//! LISTEN probes, FILL uses the link. A flow begins with LISTEN: trains of packets tell how long one takes on the link,
//! and whether others are served in turn. FILL begins after good probes, and ends with a queue of cross traffic, much
//! loss, or a timeout.
//!
//! What is safe is the whole bandwidth-delay product while it has been alone, and half of the window that met cross
//! traffic since.
//!
//! Losses alone say nothing: they count where there is a self-induced queue, or where it sends more than the
//! bandwidth-delay product. A small one is the exception, whose buffer may be smaller than the thresholds: there a loss
//! that its own growth does not explain is caused by cross traffic.
//!
//! With a weight it is no less submissive where it can be alone, and takes its share of a link that others keep full:
//! [`Share`], which at a weight of 1 is one ordinary flow. Without one it only probes.
//!
//! docs/tide.md has its states, thresholds and limits, docs/results/rivals.md has it beside the others.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, LinkRates, Reaction, Recovered, Restart, Signal, Stance, Time,
    Weighted, part::Rounds, text::parameters,
};
use std::time::Duration;

mod bursts;
mod fair;
mod fill;
mod hear;
mod listen;
mod path;
mod share;
#[cfg(test)]
mod tests;

use fair::Fair;
use fill::Fill;
use listen::Listen;
use path::Path;
use share::Share;

parameters! {
    /// Parameters of Tide.
    pub struct Parameters for "tide" {
        /// In a full queue, the part of the link's rate that probes may take.
        probe_share: f64 = 0.005, in 0.0001..=0.1;
        /// The least probes per second, of two packets or four.
        probe_rate: f64 = 1.0, in 0.1..=100.0;
        /// How long without a queue near empty until the base delay is measured anew; 0: never.
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
            senders: 1,
            lossy: 0,
            share: None,
            flow: *flow,
        })
    }

    /// What it asks of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// A pipe of fewer packets may have a buffer smaller than the thresholds: there a loss says more.
const SMALL_PIPE: f64 = 8.0;
/// The window for pairs of probes: a host lets half of a window go at once.
const PAIRS: f64 = 4.0;
/// Times the rate of its weighted share: effectively unpaced.
const UNPACED: f64 = 4.0;
/// Packets that any flow begins with (RFC 6928), and at the most after a pause (RFC 5681, section 4.1).
const BEGIN: f64 = 10.0;

#[derive(Clone, Debug)]
enum Phase {
    Fill(Fill),
    Listen(Listen),
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
    /// Connections that fill its window, 1 at the least.
    senders: u32,
    /// Times it has left for what probes may not hear of, less those that it stayed for long.
    lossy: u32,
    /// What its weight is worth, if it has one.
    share: Option<Share>,
    flow: Flow,
}

impl Tide {
    /// What it may grow to fast.
    fn safe(&self) -> Option<f64> {
        if self.confirmed { self.path.pipe() } else { self.cap }
    }

    fn on_sample(&mut self, ack: &Ack, rtt: f64) {
        if self.path.on_sample(ack.now, rtt, self.window) {
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

    /// Packets that its weight allows.
    fn share(&self) -> f64 {
        self.share.as_ref().map_or(0.0, Share::cwnd)
    }

    /// Whether what its weight is worth is what it sends.
    fn share_rules(&self) -> bool {
        self.share() > 0.0 && (self.share() > self.window || matches!(self.phase, Phase::Listen(_)))
    }

    /// The same with a window and not just a pace. It is then paced at [`UNPACED`] times its rate, which only takes bursts apart that the receiver's
    /// ACKs make.
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
                let often = if listen.burst() == Listen::FOUR { 3.0 } else { 2.0 } / self.path.base().max(1e-6);
                if listen.probes < 4 || listen.good > 0 || listen.looks(&self.path, self.senders) {
                    return often.max(share);
                }
                let rate = self.path.rate().unwrap_or(1.0 / self.path.packet());
                let least = listen.burst() as f64 * self.parameters.probe_rate;
                let seldom = (self.parameters.probe_share * rate).max(least).min(often);
                listen.out_of_step(seldom.max(share))
            }
            Phase::Fill(fill) => {
                let gain = if fill.growth >= 0.25 { 1.25 } else { 1.1 };
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
            Phase::Fill(_) => self.fill(ack),
            Phase::Listen(_) => self.hear(ack),
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let rules = self.share_rules();
        if let Some(share) = self.share.as_mut().filter(|_| rules) {
            if congestion.signal == Signal::Timeout { share.on_timeout() } else { share.on_congestion() }
        }
        let fill = match &mut self.phase {
            Phase::Listen(listen) => return listen.close = 0, // RTTs differ as the full queue drains
            Phase::Fill(fill) => fill,
        };
        let own = self.path.own_queue();
        let pipe = self.path.pipe();
        let queued = self.path.fast_queue().is_some_and(|queue| queue > 0.75 * own);
        let beyond = pipe.is_some_and(|pipe| self.window > pipe);
        self.before = Some(self.window);
        // what its own growth explains is nobody else's
        let grows = fill.growth > 0.0 || fill.settling > 0;
        if !grows {
            self.path.forget_spread(); // the queue was full, and RTTs differ as that fills and drains
        }
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
            Phase::Listen(listen) => Stance::Probes { since: listen.began, looks: listen.looks_on(&self.path) },
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
