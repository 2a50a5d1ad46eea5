// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ramp sends bursts. Behind fair queues a ramp up to the fair share meets no queue, whatever the cross traffic is;
//! but then bursts come apart. In a FIFO nothing comes between their packets.

use crate::{Ack, Time};

/// The bursts of a ramp, and how they arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    on: bool,
    /// The first byte sent in bursts.
    from: u64,
    /// The end of the latest data sent in bursts.
    to: u64,
    acknowledged: Time,
    /// Whether the latest ACK was for such data.
    acks_burst: bool,
    /// Part of the ACKs that came apart, smoothed.
    apart: f64,
}

impl Bursts {
    /// Packets that leave together: two ACKs show whether they arrived together.
    pub(super) const BURST: u64 = 4;
    /// Longest packet time for bursts, seconds: with longer ones they are a queue of more than 2 ms to cross traffic.
    const PACKET: f64 = 1e-3;
    /// In packet times. A packet of cross traffic after each own packet makes the distance 2, one after every other
    /// 1.5, as with a queue that is new to the scheduler. A link that is a little slower than before stays below.
    const APART: f64 = 1.4;
    /// The first ACK of a burst comes apart in any case.
    const MOST: f64 = 0.875;

    /// From the byte `nxt` on packets leave in bursts if `ramps` and the `packet` time (seconds) is short, else alone.
    pub(super) fn leave(&mut self, ramps: bool, packet: f64, nxt: u64) {
        let on = ramps && packet <= Self::PACKET;
        if on && !self.on {
            (self.on, self.from, self.apart) = (true, nxt, 0.0);
        } else if !on && self.on {
            (self.on, self.to) = (false, nxt);
        }
    }

    /// Whether an ACK came more than 1.4 packet times per packet after the one before.
    pub(super) fn apart(seconds: f64, packets: u32, whole: f64) -> bool {
        seconds * whole > Self::APART * f64::from(packets)
    }

    /// An ACK. True: bursts come apart on a link of this rate, packets per second.
    pub(super) fn on_ack(&mut self, ack: &Ack, whole: f64) -> bool {
        let passed = (ack.now - self.acknowledged).as_secs_f64();
        self.acknowledged = ack.now;
        self.acks_burst = self.from < ack.una && (self.on || ack.una <= self.to);
        let limited = ack.window_limited && !ack.reducing && !ack.app_limited();
        // one ACK for a whole burst shows no spacing
        if !self.acks_burst || !limited || !(1..=2).contains(&ack.packets) {
            self.apart = 0.0;
            return false;
        }
        let apart = Self::apart(passed, ack.packets, whole);
        self.apart += (f64::from(u8::from(apart)) - self.apart) / 8.0;
        self.apart > Self::MOST
    }

    /// Whether the latest ACK was for a packet of a burst.
    pub(super) const fn acks_burst(&self) -> bool {
        self.acks_burst
    }

    /// Packets that leave together.
    pub(super) const fn burst(&self) -> u64 {
        if self.on { Self::BURST } else { 1 }
    }

    /// How long the last packet of a burst waits for the others, seconds.
    pub(super) fn wait(&self, packet: f64) -> f64 {
        if self.on { (Self::BURST - 1) as f64 * packet } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Packet time of the link.
    const PACKET: Duration = Duration::from_micros(240);
    const MSS: u64 = 1448;

    /// A ramp from the byte `from` on. Each of `packets` has an ACK: that of the first of a burst comes `first` after
    /// the one before, the others `others`. Whether these bursts come apart.
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
        // ACKs for two packets, with two of cross traffic between, or one
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
    fn only_what_left_in_bursts_counts() {
        let mut bursts = ramp();
        let ack = |una| Ack { una, packets: 1, window_limited: true, ..Ack::default() };
        let counts = |bursts: &mut Bursts, una| {
            bursts.on_ack(&ack(una), 1.0);
            bursts.acks_burst()
        };
        assert!(!counts(&mut bursts, 1000));
        assert!(counts(&mut bursts, 2000));
        bursts.leave(false, PACKET.as_secs_f64(), 5000);
        assert_eq!((bursts.burst(), bursts.wait(1.0)), (1, 0.0));
        assert!(counts(&mut bursts, 5000));
        assert!(!counts(&mut bursts, 6000));
    }

    #[test]
    fn on_slow_links_packets_leave_one_by_one() {
        let mut bursts = Bursts::default();
        bursts.leave(true, 2e-3, 1000);
        assert_eq!(bursts.burst(), 1);
        assert_eq!((ramp().burst(), ramp().wait(1.0)), (4, 3.0));
    }
}
