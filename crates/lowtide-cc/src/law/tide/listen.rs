// SPDX-License-Identifier: MIT OR Apache-2.0
//! LISTEN: Tide sends probes, and measures what they find. Two events mimic cross traffic: a drop of the link's rate,
//! and a longer route. They leave the RTTs of probes alike, while with cross traffic each probe waits a different time
//! for the packet in service. So where RTTs differ by less than a part of a packet time, Tide checks whether the
//! path has changed, by probes of four packets: their ACKs show the present packet time. These probes are out of step
//! with whatever is periodic on the link. If RTTs are still alike by that packet time, the path has changed.

use super::{fair::Fair, path::Path, spread::Spread};
use crate::Time;
use std::mem;

/// Base RTTs in LISTEN that are long.
pub(super) const LONG: f64 = 32.0;

/// State of LISTEN. A probe is two packets at once, since a receiver may delay the ACK of a single one.
#[derive(Clone, Debug, Default)]
pub(super) struct Listen {
    /// When LISTEN began, or when packets came apart in it.
    pub(super) began: Time,
    /// Least duration of LISTEN, seconds.
    pub(super) pause: f64,
    /// Longest queue of a probe, seconds.
    pub(super) peak: f64,
    /// Whether what is acknowledged first was sent before LISTEN.
    pub(super) stale: bool,
    /// Whether there was no FILL yet, so that noise is unknown.
    pub(super) first: bool,
    /// Probes measured since LISTEN began.
    pub(super) probes: u32,
    /// The latest of them in a row that were good.
    pub(super) good: u32,
    /// Whether the latest one was not good, but only as earlier ones had found a queue.
    pub(super) empty: bool,
    /// RTTs of the latest eight probes, the latest first, seconds.
    pub(super) rtts: [f64; 8],
    /// Probes in a row that met no other packets of the transfer, without 3 base RTTs without an ACK between them.
    pub(super) in_a_row: u32,
    /// Whether the RTTs of eight such probes, up to the latest and to each second one before it, showed a spread: a bit
    /// each.
    pub(super) showed: u32,
    /// Whether those up to the latest may have shown one.
    pub(super) unsure: bool,
    /// The longest time between two ACKs since the latest probe, seconds. All ACKs count, also those of short segments,
    /// which have no RTT sample: with short connections there may be a handshake between two probes.
    pub(super) gap: f64,
    /// How often the spread was measured anew, when the latest time began, the longest RTT of probes since then, and
    /// that of the period before, seconds.
    pub(super) remeasured: u32,
    pub(super) period: Time,
    pub(super) longest: f64,
    pub(super) limit: Option<f64>,
    /// Fair-queue LISTEN: the rate of the whole link, packets per second.
    pub(super) whole: Option<f64>,
    /// Trains left: probes of four that measure the packet time.
    pub(super) trains: u32,
    /// Packet time of the fastest train so far, seconds.
    pub(super) least_packet: Option<f64>,
    /// Trains with cross traffic between their packets.
    pub(super) apart: u32,
    /// Whether a good pair is confirmed by a probe of four: in BDPs of enough packets, where `whole()` is known.
    pub(super) confirms: bool,
    /// Probes of the check for a changed path so far: RTTs are alike although they find a queue. 0: no check.
    pub(super) check_probes: u32,
    /// Since when RTTs have been alike but for noise, and the least of them then, seconds.
    pub(super) stays: Time,
    pub(super) stayed: f64,
    /// Packet time as far as known, seconds.
    pub(super) packet: f64,
    /// Whether a queue was the reason for LISTEN.
    pub(super) queue: bool,
    /// Packets of the latest probe, as far as it left together, that were acknowledged after its first ACK.
    pub(super) packets: f64,
    /// The time from that ACK to the last one, seconds.
    pub(super) seconds: f64,
    /// Time of the latest ACK.
    pub(super) acknowledged: Time,
    /// RTT of the latest ACK, seconds.
    pub(super) rtt: f64,
}

impl Listen {
    /// Packets of a train, a check probe, or a probe of fair-queue LISTEN: ACKs show whether they arrived together,
    /// and the packet time.
    pub(super) const FOUR: u64 = 4;
    /// The window of CUBIC hardly changes for some seconds before it meets the queue's limit: by less than 1 ms of
    /// 500 Mbit/s for 9 s.
    const STAYS: f64 = 10.0;
    /// The pace of probes that ACKs clock, packets per base RTT: it does not hold them back.
    pub(super) const ACK_CLOCKED: f64 = 8.0;
    /// Times the noise: nine in ten groups of eight random delays, of which the longest does not count, differ by less.
    const NOISES: f64 = 3.0;
    /// The most of that, seconds.
    const NOISES_MOST: f64 = 1e-3;
    /// Trains that measure the packet time.
    pub(super) const TRAINS: u32 = 3;

    /// Of eight RTTs that differ evenly at random, the second longest exceeds the base RTT by 7/9 of their range. Nine
    /// of ten RTTs exceed it by at most 0.9 of that.
    const SPREAD: f64 = 0.9 * 9.0 / 7.0;
    /// Least sum of the steps between RTTs, in units of their range. RTTs that differ at random have 3, those in a
    /// queue that grows and drains at most 2.
    const WALK: f64 = 2.5;
    /// From this on they may be either.
    const UNSURE: f64 = 2.0;
    /// In the queue of a CUBIC flow RTTs differ at random by as many packet times. So if RTTs differ by less, the eight
    /// up to the fourth probe before have to show a spread, too.
    const PACKETS: f64 = 3.0;
    /// Probes that suffice if their RTTs are alike, and no longer than the base RTT.
    const FEW: u32 = 3;
    /// The same if they are longer, as three delays may be alike by chance.
    const MANY: usize = 5;
    /// LISTEN lasts so long before the spread is measured anew, at least [`LONG`] base RTTs. Then twice as long, and so
    /// on. The window of CUBIC has about such a period.
    pub(super) const REMEASURE: f64 = 16.0;
    /// Those probes are at most this part of what the link carries meanwhile.
    const REMEASURE_LOAD: f64 = 0.01;
    /// The pace of those probes, in parts of the usual one: one every 2.5 base RTTs, just below what counts as close.
    pub(super) const REMEASURE_PACE: f64 = 0.4;

    /// Whether the spread is still measured. Several connections skip that in the first LISTEN, as their own packets
    /// queue.
    pub(super) fn measures_spread(&self, path: &Path, senders: u32) -> bool {
        let begins = self.first && path.is_spread() && self.probes < Spread::FIRST_PROBES;
        (path.spread.is_due() || begins) && !(self.first && senders > 1)
    }

    /// Whether a probe leaves as soon as the one before is acknowledged: while the spread is measured, but not anew.
    /// Two probes in flight make rounds of two round trips: these take twice as long, and show the shorter RTT.
    pub(super) fn is_ack_clocked(&self, path: &Path, senders: u32) -> bool {
        self.measures_spread(path, senders) && !self.remeasures_spread() && self.burst() < Self::FOUR
    }

    /// Packets of a probe.
    pub(super) const fn burst(&self) -> u64 {
        if self.whole.is_some() || self.check_probes > 0 || self.trains > 0 || self.confirming() {
            Self::FOUR
        } else {
            2
        }
    }

    /// Records the RTT of a probe, seconds. `alone`: it met no other packets of the transfer.
    pub(super) fn on_probe(&mut self, rtt: f64, base: f64, alone: bool) {
        (self.peak, self.longest) = (self.peak.max(rtt - base), self.longest.max(rtt));
        self.rtts.rotate_right(1);
        self.rtts[0] = rtt;
        self.probes = self.probes.saturating_add(1);
        if !self.stale {
            let soon = alone && self.gap < 3.0 * base;
            self.in_a_row = if soon { self.in_a_row + 1 } else { u32::from(alone) };
        }
        self.gap = 0.0;
    }

    /// Whether LISTEN is so long that the spread is to be measured anew: without one each delay is taken for a queue.
    pub(super) fn is_too_long(&mut self, now: Time, path: &Path) -> bool {
        if self.probes == 1 {
            self.period = now;
        }
        let probes = f64::from(2 * Spread::PROBES) * path.packet();
        let least = Self::REMEASURE.max(LONG * path.base()).max(probes / Self::REMEASURE_LOAD);
        let enough = least * f64::from(1 << self.remeasured.min(16));
        let over = self.whole.is_none() && (now - self.period).as_secs_f64() > enough;
        if over {
            (self.remeasured, self.period, self.limit) = (self.remeasured + 1, now, Some(mem::take(&mut self.longest)));
        }
        over
    }

    /// Whether the spread is measured anew since LISTEN has lasted long.
    pub(super) const fn remeasures_spread(&self) -> bool {
        self.remeasured > 0
    }

    /// Whether the spread is still measured after the first few probes, which were not alike.
    pub(super) const fn still_measures_spread(&self, path: &Path) -> bool {
        self.in_a_row >= Self::FEW && path.spread.is_due()
    }

    /// The spread of the path, from the latest probes: how much longer than the base RTT its RTTs are on a free link,
    /// seconds. `packet`: seconds. `None`: no reading, or the link is not free.
    pub(super) fn spread_reading(&mut self, base: f64, packet: f64) -> Option<f64> {
        let latest = &self.rtts[..(self.in_a_row as usize).min(Self::MANY)];
        // the ACK of a pair is for its second packet, which waited for the first
        let short = self.rtts[0] - base < packet + Path::SAME;
        let suffices = if short { Self::FEW as usize } else { Self::MANY };
        if latest.len() >= suffices && latest.iter().all(|rtt| (rtt - latest[0]).abs() < Path::SAME - 1e-9) {
            return Some(0.0);
        }
        if (self.in_a_row as usize) < self.rtts.len() || !self.in_a_row.is_multiple_of(2) {
            return None;
        }
        let mut sorted = self.rtts;
        sorted.sort_unstable_by(f64::total_cmp);
        // a scheduling stall may cause the longest
        let (least, most) = (sorted[0], sorted[6]);
        let walk: f64 = self.rtts.windows(2).map(|it| (it[0].min(most) - it[1].min(most)).abs()).sum();
        let spread = Self::SPREAD * (most - base).max(0.0);
        // the queue of cross traffic differs more over a long time than over a short one
        let always = self.limit.is_none_or(|limit| limit <= base + spread);
        let may_be = always && least - base < (spread / 2.0).max(Path::SAME);
        let random = may_be && walk >= Self::WALK * (most - least);
        self.unsure = may_be && walk >= Self::UNSURE * (most - least);
        self.showed = self.showed << 1 | u32::from(random);
        let sure = self.showed & 0b100 != 0 || most - least > Self::PACKETS * packet;
        (random && sure).then_some(spread)
    }

    /// Whether the latest eight probes showed a spread, or may have shown one.
    pub(super) const fn is_unsure(&self) -> bool {
        let unsure = self.unsure && self.probes < 2 * Spread::PROBES;
        self.in_a_row as usize >= self.rtts.len() && (self.showed & 1 != 0 || unsure)
    }

    /// A fair queue may serve a pair in one turn despite cross traffic. Therefore a probe of four has to confirm a good
    /// pair.
    pub(super) const fn confirming(&self) -> bool {
        self.confirms && self.good > 0
    }

    /// `packets` of a probe were acknowledged `passed` seconds after the ACK before. The ACK interval less the change
    /// of the RTT is the interval at which the packets left. The first one may leave alone, into what is left of the
    /// window. Packets that left apart show nothing by how they arrive, so counting starts over.
    pub(super) fn arrive(&mut self, packets: f64, passed: f64, rtt: f64, packet: f64) {
        let left_apart = (self.confirms || self.trains > 0) && (passed - (rtt - self.rtt)).abs() > packet / 2.0;
        (self.packets, self.seconds) =
            if left_apart { (0.0, 0.0) } else { (self.packets + packets, self.seconds + passed) };
    }

    /// The pace of probes of four, out of step with the packets of cross traffic: the distance to the next probe is
    /// longer by eighths of a packet time, five more each time. So, whatever that distance is, seven of eight waits for
    /// packets of cross traffic differ by at least a fifth of a packet time if these are at least 0.85 as long as the
    /// own ones.
    pub(super) fn out_of_step(&self, pace: f64) -> f64 {
        if self.burst() < Self::FOUR {
            return pace;
        }
        let (packets, eighths) = (Self::FOUR as f64, f64::from(5 * (self.probes % 8) % 8));
        packets / (packets / pace + eighths / 8.0 * self.packet)
    }

    /// Whether the RTTs of the latest probes differ by less than a fifth of a packet time. Then there is no cross
    /// traffic: each probe would wait a different time for the packet in service.
    fn rtts_alike(&self) -> bool {
        self.is_alike(Path::ALIKE * self.packet)
    }

    /// Whether the RTTs of the latest probes differ by less than this, seconds. A scheduling stall may cause the
    /// longest, so it does not count.
    fn is_alike(&self, seconds: f64) -> bool {
        let (mut most, mut longest) = (0.0f64, 0.0f64);
        for rtt in self.rtts {
            (most, longest) = (most.max(longest.min(rtt)), longest.max(rtt));
        }
        self.probes as usize > self.rtts.len() && most - self.least() < seconds
    }

    /// A probe was not good. Whether the path has changed since RTTs were alike for [`Self::STAYS`] but for this
    /// `noise`, seconds, which hides from [`Self::still`] whether probes wait. `whole`: the rate of the link if packets
    /// that left together can show cross traffic; then less than half a packet time is alike.
    pub(super) fn stays(&mut self, now: Time, noise: f64, whole: Option<f64>) -> bool {
        let most = whole.map_or(Self::NOISES_MOST, |whole| 0.5 / whole);
        let (least, alike) = (self.least(), (Self::NOISES * noise).min(most));
        if !self.is_alike(alike) || (least - self.stayed).abs() > alike {
            (self.stays, self.stayed) = (now, least);
        }
        (now - self.stays).as_secs_f64() > Self::STAYS
    }

    /// The least RTT of the latest probes, seconds.
    pub(super) fn least(&self) -> f64 {
        self.rtts.iter().fold(f64::INFINITY, |least, rtt| least.min(*rtt))
    }

    /// Counts a train that was acknowledged. Returns the packet time of the fastest train after the last one: cross
    /// traffic between its packets makes a train slower. `whole`: the rate of the link if packets that left together
    /// can show cross traffic.
    pub(super) fn train(&mut self, packets: f64, seconds: f64, whole: Option<f64>) -> Option<f64> {
        if self.trains == 0 || self.stale {
            return None;
        }
        self.trains -= 1;
        if packets > 0.0 {
            let packet = seconds / packets;
            self.least_packet = Some(self.least_packet.map_or(packet, |least| least.min(packet)));
            self.apart += u32::from(whole.is_some_and(|whole| !Fair::together(seconds, packets, whole)));
        }
        self.least_packet.filter(|_| self.trains == 0)
    }

    /// Whether most trains had cross traffic between their packets. In a FIFO none has, in fair queues each has while
    /// competing flows are queued.
    pub(super) const fn comes_apart(&self) -> bool {
        2 * self.apart > Self::TRAINS
    }

    /// A check probe bounds the packet time from above: its ACKs but the first took this long. Less than an eighth of
    /// the `known` time shows that ACKs waited for each other.
    pub(super) fn measure(&mut self, packets: f64, seconds: f64, known: f64) {
        if self.check_probes == 0 {
            self.packet = known;
        } else if packets > 0.0 {
            self.packet = self.packet.min((seconds / packets).max(known / 8.0));
        }
    }

    /// A probe was not good. True if the path has changed: RTTs were alike for all of the check.
    pub(super) fn path_changed(&mut self) -> bool {
        let alike = self.rtts_alike();
        if self.check_probes > 0 {
            self.check_probes += 1;
            let over = self.check_probes as usize > self.rtts.len() + 1;
            if over && !alike {
                self.check_probes = 0;
            }
            return over && alike;
        }
        self.check_probes = u32::from(alike);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PACKET: f64 = 1e-3;

    fn after_probe(listen: &mut Listen, rtt: f64) -> bool {
        listen.rtts.rotate_right(1);
        listen.rtts[0] = rtt;
        listen.probes += 1;
        listen.path_changed()
    }

    #[test]
    fn what_stands_still_for_nine_probes_and_nine_of_the_check_is_the_path() {
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        let changed: Vec<bool> =
            (0..18).map(|probe| after_probe(&mut listen, if probe == 5 { 0.09 } else { 0.05 })).collect();
        assert!(changed[17] && !changed[..17].contains(&true), "{changed:?}");
    }

    #[test]
    fn what_moves_by_a_part_of_a_packet_is_somebody_else() {
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        assert!(!(0..200).any(|probe| after_probe(&mut listen, 0.05 + PACKET * f64::from(probe % 3) / 6.0)));
        assert_eq!(listen.check_probes, 0);
        // the check may find a shorter packet time than was known
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        let moves = |probe: u32| 0.05 + PACKET * f64::from(probe % 3) / 12.0;
        assert!(!(0..9).any(|probe| after_probe(&mut listen, moves(probe))));
        assert_eq!((listen.check_probes, listen.burst()), (1, Listen::FOUR));
        listen.packet = PACKET / 2.0;
        assert!(!(9..200).any(|probe| after_probe(&mut listen, moves(probe))));
    }

    #[test]
    fn what_differs_by_noise_for_ten_seconds_is_the_path_and_a_queue_moves() {
        let found = |rtt: fn(u64) -> f64, whole| {
            let mut listen = Listen { packet: PACKET, ..Listen::default() };
            (0..200u64).position(|probe| {
                listen.rtts.rotate_right(1);
                listen.rtts[0] = rtt(probe);
                listen.probes += 1;
                listen.stays(Time::ZERO + Duration::from_millis(100 * probe), 0.25e-3, whole)
            })
        };
        let noise = |probe: u64| 0.07 + 0.07e-3 * (probe * 5 % 8) as f64;
        assert_eq!(found(noise, None), Some(108), "eight probes, and 10 s");
        assert_eq!(
            found(|probe| if probe % 20 == 7 { 0.2 } else { 0.07 + 1e-6 * (probe % 3) as f64 }, None),
            Some(108)
        );
        // half a packet time at most if packets tell of fair queues, as those of others make probes wait
        assert_eq!(found(noise, Some(1.0 / 0.6e-3)), None);
        assert_eq!(found(|probe| 0.07 + 0.1e-3 * probe as f64, None), None, "a queue that grows by 1 ms a second");
    }

    /// The spread in ms from eight probes, one per RTT of 40 ms, whose RTTs exceed the base RTT by these ms.
    fn spread(longer: [f64; 8]) -> Option<f64> {
        let mut listen = Listen::default();
        for longer in longer {
            listen.on_probe(40e-3 + longer * 1e-3, 40e-3, true);
        }
        listen.spread_reading(40e-3, PACKET).map(|spread| (spread * 1e3).round())
    }

    #[test]
    fn what_differs_at_random_on_a_free_link_is_the_paths_and_a_queue_is_not() {
        let random = [3.0, 7.0, 1.0, 4.5, 2.0, 8.0, 5.0, 0.5];
        assert_eq!(spread(random), Some(8.0), "0.9 × 9/7 of the second longest");
        for (queue, what) in [
            ([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 31.0], "slow start"),
            ([30.0, 30.1, 30.0, 30.2, 30.1, 30.3, 0.0, 0.0], "a queue until its flow ends"),
            ([8.0, 30.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "a queue that drains, and grows again"),
            (random.map(|longer| longer + 20.0), "never near the base RTT"),
        ] {
            assert_eq!(spread(queue).filter(|spread| *spread > 1.0), None, "{what}");
        }
    }

    #[test]
    fn a_longer_time_with_longer_rtts_leaves_nothing_to_be_unsure_of() {
        for (limit, is_unsure) in [(None, true), (Some(45e-3), true), (Some(60e-3), false)] {
            let mut listen = Listen { limit, ..Listen::default() };
            for longer in [3.0, 7.0, 1.0, 4.5, 2.0, 8.0, 5.0, 0.5] {
                listen.on_probe(40e-3 + longer * 1e-3, 40e-3, true);
            }
            let reading = listen.spread_reading(40e-3, PACKET);
            assert_eq!((reading.is_some(), listen.is_unsure()), (is_unsure, is_unsure), "{limit:?}");
        }
    }

    #[test]
    fn three_that_are_alike_tell_of_nothing_to_look_at() {
        let mut listen = Listen::default();
        for (gap, rtt, reading) in [
            (40e-3, 41.4e-3, None),
            (40e-3, 41.4e-3, None),
            (40e-3, 41.4e-3, None), // longer than the base RTT and the wait for the first packet
            (121e-3, 40.9e-3, None),
            (40e-3, 40.9e-3, None),
            (40e-3, 41e-3, Some(0.0)),
            (40e-3, 40.9e-3, Some(0.0)),
            (121e-3, 40.9e-3, None), // no ACK for three base RTTs: counting starts over
            (40e-3, 41.5e-3, None),
            (40e-3, 41.5e-3, None), // one of three differs
            (40e-3, 41.5e-3, None), // one of four differs
        ] {
            listen.gap = gap;
            listen.on_probe(rtt, 40e-3, true);
            assert_eq!(listen.spread_reading(40e-3, PACKET), reading, "{rtt} s, {gap} s after an ACK");
        }
        listen.on_probe(41.5e-3, 40e-3, false);
        assert_eq!(listen.in_a_row, 0, "other packets of the transfer were beside it");
    }

    #[test]
    fn where_they_are_longer_five_have_to_be_alike() {
        let mut listen = Listen::default();
        let readings = [(); 6].map(|()| {
            listen.on_probe(41.4e-3, 40e-3, true);
            listen.spread_reading(40e-3, PACKET)
        });
        assert_eq!(readings, [None, None, None, None, Some(0.0), Some(0.0)]);
    }

    #[test]
    fn what_differs_by_three_packets_at_the_most_needs_a_second_look() {
        let longer = [0.5, 2.0, 0.0, 1.5, 1.0, 2.5, 0.0, 2.0, 1.0, 2.5, 0.5, 2.0];
        let mut listen = Listen::default();
        let readings: Vec<Option<f64>> = longer
            .map(|longer| {
                listen.on_probe(40e-3 + longer * PACKET, 40e-3, true);
                listen.spread_reading(40e-3, PACKET)
            })
            .into();
        assert!(readings[..11].iter().all(Option::is_none) && readings[11].is_some(), "{readings:?}");
        assert!(listen.spread_reading(40e-3, PACKET / 2.0).is_some(), "it differs by more");
    }

    #[test]
    fn what_has_not_left_together_tells_nothing_by_how_it_arrives() {
        // ACK interval and RTT of each ACK for one packet, in packet times
        let together = [(1.0, 21.0), (1.0, 22.0), (1.0, 23.0)];
        let one_before = [(9.0, 20.0), (1.0, 21.0), (1.0, 22.0)];
        let others_between = [(1.0, 21.0), (3.0, 24.0), (1.0, 25.0)];
        let pair = Listen { rtt: 20.0 * PACKET, ..Listen::default() };
        let train = Listen { trains: 1, ..pair.clone() };
        let confirms = Listen { confirms: true, ..pair.clone() };
        for (acks, probe, packets, times) in [
            (together, &train, 3.0, 3.0),
            (one_before, &train, 2.0, 2.0),
            (one_before, &confirms, 2.0, 2.0),
            (one_before, &pair, 3.0, 11.0),
            (others_between, &train, 3.0, 5.0),
        ] {
            let mut listen = probe.clone();
            for (passed, rtt) in acks {
                listen.arrive(1.0, passed * PACKET, rtt * PACKET, PACKET);
                listen.rtt = rtt * PACKET;
            }
            assert_eq!((listen.packets, (listen.seconds / PACKET).round()), (packets, times), "{acks:?}");
        }
    }

    #[test]
    fn most_of_three_trains_tell_of_others_and_the_fastest_how_long_a_packet_takes() {
        for (trains, apart) in [([1.0; 3], false), ([1.0, 2.0, 1.0], false), ([2.0, 1.0, 2.0], true)] {
            for whole in [Some(1.0 / PACKET), None] {
                let mut listen = Listen { trains: Listen::TRAINS, ..Listen::default() };
                let measured = trains.map(|packet| listen.train(3.0, 3.0 * packet * PACKET, whole));
                assert_eq!(measured, [None, None, Some(PACKET)]);
                assert_eq!(listen.comes_apart(), apart && whole.is_some(), "{trains:?}");
            }
        }
    }

    /// Whatever the distance of probes is, of eight waits for packets in service seven differ by more than `ALIKE`.
    #[test]
    fn probes_of_four_are_out_of_step_with_others() {
        for length in [0.85, 0.9, 1.0, 2.5] {
            let worst = worst_of_eight_waits(PACKET * length);
            assert!(worst * length > Path::ALIKE, "{length}: {worst}");
        }
    }

    /// As a part of the packet time of cross traffic.
    fn worst_of_eight_waits(others: f64) -> f64 {
        let mut worst = f64::INFINITY;
        for (first, pace) in
            (0..8).flat_map(|first| (0..500).map(move |pace| (first, 4.0 / (0.4 + 2e-6 * f64::from(pace)))))
        {
            let mut listen = Listen { packet: PACKET, whole: Some(1.0 / PACKET), probes: first, ..Listen::default() };
            let mut sent = 0.0;
            let phases: Vec<f64> = (0..8)
                .map(|_| {
                    let phase = sent / others % 1.0;
                    sent += Listen::FOUR as f64 / listen.out_of_step(pace);
                    listen.probes += 1;
                    phase
                })
                .collect();
            for shift in 0..50 {
                let mut waits: Vec<f64> = phases.iter().map(|phase| (phase + f64::from(shift) / 50.0) % 1.0).collect();
                waits.sort_unstable_by(f64::total_cmp);
                worst = worst.min(waits[6] - waits[0]);
            }
        }
        worst
    }
}
