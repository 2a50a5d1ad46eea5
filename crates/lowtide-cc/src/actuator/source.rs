// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a sender makes up signals, and how many.
//!
//! To see `1/w` times the price `p` it adds `p(1/w - 1)` signals per packet to those of the network. It goes on with
//! that as long as the price is fresh: until `v·τ` after the latest real signal, with τ the mean interval between
//! those, and only over a queue.

use super::Phantom;
use crate::{Ack, Time};
use std::time::Duration;

/// Chance of a signal per ACK before the first real one (the paper's listing, "Initially rand() < 0.25").
const EARLY: f64 = 0.25;
/// τ before the first real signal: this, or so many round trips.
const TAU_0: Duration = Duration::from_secs(1);
const TAU_0_ROUNDS: u32 = 10;

/// What the real signals tell.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// When the latest came.
    last: Option<Time>,
    /// The mean interval between them.
    tau: Duration,
    /// Mean numbers of signals and of packets in an interval; their ratio is p.
    signals: f64,
    packets: f64,
    /// The same of the present interval.
    new_signals: f64,
    new_packets: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    parameters: Phantom,
    /// Whether each marked packet is a signal, instead of each episode.
    by_packet: bool,
    started: Option<Time>,
    measured: Measured,
    /// What was measured before the latest signal.
    before: Option<Measured>,
    /// A loss is being repaired: another signal is no news.
    repairing: bool,
    round_end: u64,
    round_min: Duration,
    past_min: Duration,
    base: Duration,
}

impl Source {
    pub(super) fn new(parameters: &Phantom, by_packet: bool) -> Self {
        Self {
            parameters: parameters.clone(),
            by_packet,
            started: None,
            measured: Measured::default(),
            before: None,
            repairing: false,
            round_end: 0,
            round_min: Duration::MAX,
            past_min: Duration::MAX,
            base: Duration::MAX,
        }
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        self.started.get_or_insert(now);
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.started.get_or_insert(ack.now);
        self.measured.new_packets += f64::from(ack.packets);
        if self.by_packet {
            self.measured.new_signals += f64::from(ack.marked);
        }
        if ack.una > self.round_end {
            self.round_end = ack.nxt;
            self.past_min = self.round_min;
            self.round_min = Duration::MAX;
        }
        if let Some(rtt) = ack.rtt {
            self.base = self.base.min(rtt);
            self.round_min = self.round_min.min(rtt);
        }
    }

    /// A real signal. `repair`: it is a loss, and those that come before its repair tell nothing new.
    pub(super) fn on_real(&mut self, now: Time, repair: bool) {
        if self.repairing {
            return;
        }
        self.repairing = repair;
        self.before = Some(self.measured);
        let m = &mut self.measured;
        let since = now - m.last.or(self.started).unwrap_or(now);
        let signals = if self.by_packet { m.new_signals.max(1.0) } else { 1.0 };
        let packets = m.new_packets.max(1.0);
        if m.last.is_some() {
            let (tau, loss) = (self.parameters.tau_gain, self.parameters.loss_gain);
            m.tau = m.tau.mul_f64(1.0 - tau) + since.mul_f64(tau);
            m.signals += loss * (signals - m.signals);
            m.packets += loss * (packets - m.packets);
        } else {
            (m.tau, m.signals, m.packets) = (since, signals, packets);
        }
        (m.last, m.new_signals, m.new_packets) = (Some(now), 0.0, 0.0);
    }

    pub(super) fn on_recovered(&mut self) {
        self.repairing = false;
    }

    /// The latest loss was none.
    pub(super) fn on_spurious(&mut self) {
        self.repairing = false;
        if let Some(before) = self.before.take() {
            let Measured { new_signals, new_packets, .. } = self.measured;
            self.measured = before;
            self.measured.new_signals += new_signals;
            self.measured.new_packets += new_packets;
        }
    }

    /// Real signals per packet (p); 0 before the first.
    pub(super) fn price(&self) -> f64 {
        if self.measured.packets > 0.0 { self.measured.signals / self.measured.packets } else { 0.0 }
    }

    pub(super) const fn tau(&self) -> Duration {
        self.measured.tau
    }

    /// Whether the queue was empty in the last round: then it has no price, and nothing times `1/w` is nothing. Without
    /// that, a flow that holds itself down could not tell its own silence from the network's.
    fn queue_is_empty(&self) -> bool {
        let floor = self.parameters.floor;
        let slack = floor.max(self.base / 16);
        !floor.is_zero() && self.past_min != Duration::MAX && self.past_min <= self.base.saturating_add(slack)
    }

    /// How many signals the ACK is to bring, on average, for this weight.
    pub(super) fn due(&self, ack: &Ack, slow_start: bool, weight: f64) -> f64 {
        let surplus = 1.0 / weight - 1.0;
        if surplus <= 0.0 || self.repairing || ack.packets == 0 || self.queue_is_empty() {
            return 0.0;
        }
        let v = self.parameters.v;
        if let Some(last) = self.measured.last {
            let fresh = ack.now - last < self.measured.tau.mul_f64(v);
            return if fresh { f64::from(ack.packets) * self.price() * surplus } else { 0.0 };
        }
        let tau_0 = TAU_0.max(ack.srtt * TAU_0_ROUNDS);
        let early = slow_start && ack.now - self.started.unwrap_or(ack.now) < tau_0.mul_f64(v);
        if early { EARLY.min(surplus) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// An ACK for one packet with this round-trip time.
    fn ack(ms: u64, rtt_ms: u64) -> Ack {
        let rtt = Duration::from_millis(rtt_ms);
        Ack { now: at(ms), packets: 1, rtt: Some(rtt), srtt: rtt, una: ms + 1, nxt: ms + 2, ..Ack::default() }
    }

    /// A source that has seen a signal at 1 s, after 100 packets, over a standing queue of 50 ms.
    fn seen() -> Source {
        let mut source = Source::new(&Phantom::default(), false);
        source.on_sent(at(0));
        source.on_ack(&ack(1, 100));
        for n in 0..99 {
            source.on_ack(&ack(10 + 10 * n, 150));
        }
        source.on_real(at(1000), false);
        source
    }

    #[test]
    fn the_total_is_p_over_w_until_v_tau() {
        let source = seen();
        assert_eq!((source.price(), source.tau()), (0.01, Duration::from_secs(1)));
        for (weight, due) in [(1.0, 0.0), (0.5, 0.01), (0.1, 0.09), (0.01, 0.99)] {
            let one = source.due(&ack(1001, 150), false, weight);
            assert!((one - due).abs() < 1e-12, "{weight}: {one}");
            let three = source.due(&Ack { packets: 3, ..ack(1001, 150) }, false, weight);
            assert!((three - 3.0 * due).abs() < 1e-12);
        }
        assert!(source.due(&ack(3999, 150), false, 0.1) > 0.0);
        assert_eq!(source.due(&ack(4000, 150), false, 0.1), 0.0, "it stops at v·τ sharp (E-10)");
        assert_eq!(source.due(&Ack { packets: 0, ..ack(1001, 150) }, false, 0.1), 0.0);
    }

    #[test]
    fn averages_move_by_an_eighth() {
        let mut source = seen();
        for n in 0..900 {
            source.on_ack(&ack(1001 + n, 150));
        }
        source.on_real(at(10_000), false);
        assert_eq!(source.tau(), Duration::from_secs(2));
        assert!((source.price() - 1.0 / 200.0).abs() < 1e-12, "{}", source.price());
        source.on_spurious();
        assert_eq!((source.price(), source.tau()), (0.01, Duration::from_secs(1)));
        source.on_real(at(10_000), false);
        assert!((source.price() - 1.0 / 200.0).abs() < 1e-12, "packets are not forgotten");
    }

    #[test]
    fn one_repair_is_one_signal() {
        let mut source = seen();
        source.on_real(at(2000), true);
        let after = (source.price(), source.tau());
        source.on_real(at(2500), true);
        assert_eq!((source.price(), source.tau()), after);
        assert_eq!(source.due(&ack(2600, 150), false, 0.1), 0.0, "none while it lasts");
        source.on_recovered();
        assert!(source.due(&ack(2600, 150), false, 0.1) > 0.0);
    }

    #[test]
    fn an_empty_queue_has_no_price() {
        let mut source = seen();
        // A sixteenth of 100 ms is above 2 ms.
        for (rtt, due) in [(106, false), (107, true)] {
            for n in 0..3 {
                source.on_ack(&ack(2000 + 10 * rtt + n, rtt));
            }
            assert_eq!(source.due(&ack(3500, rtt), false, 0.1) > 0.0, due, "{rtt} ms");
        }
        source.parameters.floor = Duration::ZERO;
        source.past_min = source.base;
        assert!(source.due(&ack(3500, 100), false, 0.1) > 0.0, "the paper has no such rule");
    }

    #[test]
    fn the_start_is_a_quarter_per_ack_and_ends() {
        let mut source = Source::new(&Phantom::default().floor(Duration::ZERO).unwrap(), false);
        source.on_sent(at(0));
        assert_eq!(source.due(&ack(100, 50), true, 0.01), 0.25);
        assert_eq!(source.due(&Ack { packets: 5, ..ack(100, 50) }, true, 0.01), 0.25, "per ACK");
        assert_eq!(source.due(&ack(100, 50), true, 0.9), 1.0 / 0.9 - 1.0);
        assert_eq!(source.due(&ack(100, 50), true, 1.0), 0.0);
        assert_eq!(source.due(&ack(100, 50), false, 0.01), 0.0, "slow start is over");
        assert_eq!(source.due(&ack(2999, 50), true, 0.01), 0.25);
        assert_eq!(source.due(&ack(3000, 50), true, 0.01), 0.0, "v·τ0 is over");
        assert_eq!(source.due(&ack(5999, 200), true, 0.01), 0.25, "τ0 is ten round trips");
        assert_eq!(source.due(&ack(6000, 200), true, 0.01), 0.0);
    }

    #[test]
    fn marks_count_by_packet_where_they_are_accurate() {
        let mut source = Source::new(&Phantom::default(), true);
        source.on_ack(&Ack { packets: 40, marked: 8, ..ack(10, 100) });
        source.on_real(at(20), false);
        assert_eq!(source.price(), 0.2);
    }
}
