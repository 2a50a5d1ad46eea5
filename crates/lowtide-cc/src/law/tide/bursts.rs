// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where each flow has a queue of its own, a ramp up to its fair part of the link meets no queue, whoever else is there. So its packets leave in
//! bursts: nobody else's come in between, but where others are served in turn.

use crate::{Ack, Time};

/// What the bursts of a ramp tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    on: bool,
    /// Of the data that left so the first byte, and the last.
    from: u64,
    to: u64,
    acknowledged: Time,
    /// Whether the latest ACK was for such data.
    heard: bool,
    /// Part of the ACKs that came apart, smoothed.
    apart: f64,
}

impl Bursts {
    /// Packets that leave together: two ACKs tell whether they arrived together.
    pub(super) const BURST: u64 = 4;
    /// Of a link with packets of a longer time a burst would be a queue for others, of more than two milliseconds. Seconds.
    const PACKET: f64 = 1e-3;
    /// Packets' times on the link: another's packet after each of its own makes two, after every other one, as where its queue is a new one to a
    /// link that serves others in turn, one and a half; and a link that gives a little less than it did is none.
    const APART: f64 = 1.4;
    /// The first ACK of each burst comes apart in any case.
    const MOST: f64 = 0.875;

    /// From the byte `nxt` on a ramp's packets, of so many seconds each, leave so, or no longer.
    pub(super) fn leave(&mut self, ramps: bool, packet: f64, nxt: u64) {
        let on = ramps && packet <= Self::PACKET;
        if on && !self.on {
            (self.on, self.from, self.apart) = (true, nxt, 0.0);
        } else if !on && self.on {
            (self.on, self.to) = (false, nxt);
        }
    }

    /// Whether so many packets, which left together, took so many seconds that others' came in between.
    pub(super) fn apart(seconds: f64, packets: u32, whole: f64) -> bool {
        seconds * whole > Self::APART * f64::from(packets)
    }

    /// An ACK. Whether bursts come apart on a link that carries so many packets per second.
    pub(super) fn on_ack(&mut self, ack: &Ack, whole: f64) -> bool {
        let passed = (ack.now - self.acknowledged).as_secs_f64();
        self.acknowledged = ack.now;
        self.heard = self.from < ack.una && (self.on || ack.una <= self.to);
        let limited = ack.window_limited && !ack.reducing && !ack.app_limited();
        // one ACK for all of a burst tells nothing
        if !self.heard || !limited || !(1..=2).contains(&ack.packets) {
            self.apart = 0.0;
            return false;
        }
        let apart = Self::apart(passed, ack.packets, whole);
        self.apart += (f64::from(u8::from(apart)) - self.apart) / 8.0;
        self.apart > Self::MOST
    }

    /// Whether the latest ACK was for a packet of a burst.
    pub(super) const fn heard(&self) -> bool {
        self.heard
    }

    /// Packets that leave together.
    pub(super) const fn burst(&self) -> u64 {
        if self.on { Self::BURST } else { 1 }
    }

    /// How long the last one of a burst waits for the others.
    pub(super) fn wait(&self, packet: f64) -> f64 {
        if self.on { (Self::BURST - 1) as f64 * packet } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The time of a packet on the link.
    const PACKET: Duration = Duration::from_micros(240);
    const MSS: u64 = 1448;

    /// A ramp from the byte `from` on, and an ACK for each of so many packets; the first of each burst comes a while after the one before, the others
    /// this long. Whether these bursts come apart.
    fn come(bursts: &mut Bursts, first: Duration, others: Duration, packets: u64, change: impl Fn(&mut Ack)) -> bool {
        let (mut now, mut apart) = (Time::from_nanos(1_000_000_000), false);
        for n in 0..packets {
            now = now + if n % Bursts::BURST == 0 { first } else { others };
            let mut ack =
                Ack { now, packets: 1, una: bursts.from + (n + 1) * MSS, window_limited: true, ..Ack::default() };
            change(&mut ack);
            apart |= bursts.on_ack(&ack, 1.0 / PACKET.as_secs_f64());
        }
        apart
    }

    fn ramp() -> Bursts {
        let mut bursts = Bursts::default();
        bursts.leave(true, PACKET.as_secs_f64(), 1000);
        bursts
    }

    #[test]
    fn bursts_that_arrive_together_are_not_apart_however_seldom_they_come() {
        assert!(!come(&mut ramp(), 40 * PACKET, PACKET, 400, |_| {}));
        // a link that has become a little slower
        assert!(!come(&mut ramp(), 40 * PACKET, PACKET * 13 / 10, 400, |_| {}));
    }

    #[test]
    fn bursts_with_others_between_their_packets_are_apart_within_five_of_them() {
        assert!(!come(&mut ramp(), 2 * PACKET, 2 * PACKET, 12, |_| {}));
        assert!(come(&mut ramp(), 2 * PACKET, 2 * PACKET, 20, |_| {}));
        // an ACK for two, and for two with one of others' in between
        assert!(come(&mut ramp(), 4 * PACKET, 4 * PACKET, 20, |ack| ack.packets = 2));
        assert!(come(&mut ramp(), 3 * PACKET, 3 * PACKET, 20, |ack| ack.packets = 2));
    }

    #[test]
    fn what_says_nothing_is_not_counted() {
        let apart = |change: fn(&mut Ack)| come(&mut ramp(), 9 * PACKET, 9 * PACKET, 400, change);
        assert!(!apart(|ack| ack.window_limited = false));
        assert!(!apart(|ack| ack.reducing = true));
        assert!(!apart(|ack| ack.packets = 4));
        assert!(!apart(|ack| ack.rate = Some(crate::RateSample { app_limited: true, ..Default::default() })));
    }

    #[test]
    fn only_what_left_in_bursts_is_heard() {
        let mut bursts = ramp();
        let ack = |una| Ack { una, packets: 1, window_limited: true, ..Ack::default() };
        let hears = |bursts: &mut Bursts, una| {
            bursts.on_ack(&ack(una), 1.0);
            bursts.heard()
        };
        assert!(!hears(&mut bursts, 1000));
        assert!(hears(&mut bursts, 2000));
        bursts.leave(false, PACKET.as_secs_f64(), 5000);
        assert_eq!((bursts.burst(), bursts.wait(1.0)), (1, 0.0));
        assert!(hears(&mut bursts, 5000));
        assert!(!hears(&mut bursts, 6000));
    }

    #[test]
    fn on_slow_links_packets_leave_one_by_one() {
        let mut bursts = Bursts::default();
        bursts.leave(true, 2e-3, 1000);
        assert_eq!(bursts.burst(), 1);
        assert_eq!((ramp().burst(), ramp().wait(1.0)), (4, 3.0));
    }
}
