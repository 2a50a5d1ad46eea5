// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Tide hears while others have the link. Two things look like others and are none: a link that has become slower, and a route that has become
//! longer. They stand still, and others do not: a packet waits for the one in service, one longer than another. So where the round trips of probes
//! differ by less than a part of a packet's time, it looks closer: by probes of four, whose ACKs tell how long a packet takes on the link now, and
//! which are out of step with whatever is periodic there. What stands still by that measure as well is the path.

use super::{fair::Fair, path::Path};
use crate::{Stance, Time};

/// It sends a probe now and then, to hear whether the link is free: two packets at once, as a receiver may keep the ACK of a single one back.
#[derive(Clone, Debug, Default)]
pub(super) struct Listen {
    /// When it began to listen.
    pub(super) began: Time,
    /// Seconds that it listens at the least.
    pub(super) pause: f64,
    /// The greatest queue that was heard, seconds.
    pub(super) peak: f64,
    /// Whether what comes back first was sent before.
    pub(super) stale: bool,
    /// Whether it has never filled the link: so it does not know its noise.
    pub(super) first: bool,
    /// Heard of so far.
    pub(super) probes: u32,
    /// The latest of them that found a free link, in a row.
    pub(super) good: u32,
    /// Round trips of the latest eight, the latest first.
    pub(super) heard: [f64; 8],
    /// How many in a row came soon after each other, and when the latest did.
    pub(super) close: u32,
    pub(super) probed: Time,
    /// In a fair queue: the rate of the whole link, packets per second.
    pub(super) whole: Option<f64>,
    /// Probes of four to come that measure how long a packet takes on the link; the least that it has taken so far, seconds; and how many of them
    /// came with others' packets in between.
    pub(super) trains: u32,
    pub(super) least_packet: Option<f64>,
    pub(super) apart: u32,
    /// Whether four packets can confirm what a pair has found: in a pipe large enough for them, where they tell of others.
    pub(super) confirms: bool,
    /// Probes since it looks closer, as round trips stand still though they tell of a queue; 0: it does not.
    pub(super) closer: u32,
    /// The time of a packet on the link, as far as known: seconds.
    pub(super) packet: f64,
    /// Whether it left for a queue.
    pub(super) queue: bool,
    /// From the first ACK of what left together in the latest probe to the last: packets, and the time that they took.
    pub(super) packets: f64,
    pub(super) seconds: f64,
    /// The latest ACK, and the round trip that it has found.
    pub(super) acknowledged: Time,
    pub(super) rtt: f64,
}

impl Listen {
    /// Packets of a probe in a fair queue, of a train, or if it looks closer: two ACKs tell whether they arrived together, and how long one took.
    pub(super) const FOUR: u64 = 4;
    /// Packets' times on the link: round trips of probes that differ by less have not waited for others' packets in service.
    pub(super) const ALIKE: f64 = 0.2;
    /// Trains that tell how long a packet takes on the link.
    pub(super) const TRAINS: u32 = 3;

    /// Of eight round trips that differ at random, evenly, the second longest is longer than the empty one by 7/9 of what they differ by.
    const SPREAD: f64 = 9.0 / 7.0;
    /// Steps from one to the next add up to three times their range where they differ at random, and to twice at the most where a queue grows and drains.
    const WALK: f64 = 2.5;
    /// So many probes are enough where they are alike.
    const FEW: u32 = 3;
    /// Those that differ by less are alike: there is nothing to look at. Seconds.
    pub(super) const SAME: f64 = 0.25e-3;
    /// Probes that tell for the first time how much round trips differ.
    pub(super) const LOOKS: u32 = Stance::LOOK_ROUND_TRIPS;

    /// Whether it still measures how much round trips differ. Several connections begin without it: they make queues of their own.
    pub(super) fn looks(&self, path: &Path, senders: u32) -> bool {
        let begins = self.first && path.is_spread() && self.probes < Self::LOOKS;
        (path.learns_spread() || begins) && !(self.first && senders > 1)
    }

    /// Packets of a probe.
    pub(super) const fn burst(&self) -> u64 {
        if self.whole.is_some() || self.closer > 0 || self.trains > 0 || self.confirming() { Self::FOUR } else { 2 }
    }

    /// A probe has come back that found this round trip, and met no other packets of the transfer if it was `alone`.
    pub(super) fn on_probe(&mut self, now: Time, rtt: f64, base: f64, alone: bool) {
        self.peak = self.peak.max(rtt - base);
        self.heard.rotate_right(1);
        self.heard[0] = rtt;
        self.probes = self.probes.saturating_add(1);
        if !self.stale {
            let soon = alone && (now - self.probed).as_secs_f64() < 3.0 * base;
            (self.close, self.probed) = (if soon { self.close + 1 } else { u32::from(alone) }, now);
        }
    }

    /// Whether it still measures how much RTTs differ after the first few, which were not alike.
    pub(super) const fn looks_on(&self, path: &Path) -> bool {
        self.close >= Self::FEW && path.learns_spread()
    }

    /// How much longer than the empty one round trips of this path are at the most where it is free, if it is, and the latest probes tell.
    pub(super) fn spread(&self, base: f64) -> Option<f64> {
        let heard = &self.heard[..(self.close as usize).min(self.heard.len())];
        if heard.len() < self.heard.len() {
            let alike = heard.iter().all(|rtt| (rtt - heard[0]).abs() < Self::SAME - 1e-9);
            return (self.close >= Self::FEW && alike).then_some(0.0);
        }
        let mut sorted = self.heard;
        sorted.sort_unstable_by(f64::total_cmp);
        // the longest may have met a scheduling stall
        let (least, most) = (sorted[0], sorted[6]);
        let walk: f64 = heard.windows(2).map(|it| (it[0].min(most) - it[1].min(most)).abs()).sum();
        let spread = Self::SPREAD * (most - base).max(0.0);
        let free = walk >= Self::WALK * (most - least) && least - base < (spread / 2.0).max(Self::SAME);
        (free && self.close.is_multiple_of(2)).then_some(spread)
    }

    /// A fair queue serves a pair in one turn, whoever else is there: so what one has found four have to find again, together.
    pub(super) const fn confirming(&self) -> bool {
        self.confirms && self.good > 0
    }

    /// So many packets have arrived `passed` seconds after the one before. The first packet of a probe may leave alone, into what is left of the
    /// window, and what has not left together tells nothing by how it arrives.
    pub(super) fn arrive(&mut self, packets: f64, passed: f64, rtt: f64, packet: f64) {
        let left_apart = self.confirms && (passed - (rtt - self.rtt)).abs() > packet / 2.0;
        (self.packets, self.seconds) =
            if left_apart { (0.0, 0.0) } else { (self.packets + packets, self.seconds + passed) };
    }

    /// The pace of probes of four, out of step with the packets of others: from one to the next it takes eighths of a packet's time longer, five
    /// more each time, so that seven of eight waits for packets of others, of four fifths of its own length or more, differ by a fifth of a packet's
    /// time at the least, whatever the distance of probes is.
    pub(super) fn out_of_step(&self, pace: f64) -> f64 {
        if self.burst() < Self::FOUR {
            return pace;
        }
        let (packets, eighths) = (Self::FOUR as f64, f64::from(5 * (self.probes % 8) % 8));
        packets / (packets / pace + eighths / 8.0 * self.packet)
    }

    /// Whether the round trips of the latest probes stand still by the time of a packet: nobody else is served then, as a packet would wait for the
    /// one in service, one longer than another. A host that was slow once is no sign: the longest does not count.
    fn still(&self) -> bool {
        let (mut most, mut longest) = (0.0f64, 0.0f64);
        for rtt in self.heard {
            (most, longest) = (most.max(longest.min(rtt)), longest.max(rtt));
        }
        self.probes as usize > self.heard.len() && most - self.least() < Self::ALIKE * self.packet
    }

    /// Of the latest probes.
    pub(super) fn least(&self) -> f64 {
        self.heard.iter().fold(f64::INFINITY, |least, rtt| least.min(*rtt))
    }

    /// A probe of four has come back. With the last of them the time that a packet took in the fastest: what comes between makes it longer. `whole`:
    /// the link's rate, where packets that left together tell of others.
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

    /// Whether most trains came with others' packets in between: in one queue none does, and in fair ones each while others' are not empty.
    pub(super) const fn comes_apart(&self) -> bool {
        2 * self.apart > Self::TRAINS
    }

    /// The packets of a closer probe took this long, the first ACK left out: what a packet takes on the link now is at most that. One that is
    /// `known` to take eight times as long is an ACK that waited for another.
    pub(super) fn measure(&mut self, packets: f64, seconds: f64, known: f64) {
        if self.closer == 0 {
            self.packet = known;
        } else if packets > 0.0 {
            self.packet = self.packet.min((seconds / packets).max(known / 8.0));
        }
    }

    /// The latest probe told of somebody else. Whether the path is another one than it was, as round trips have stood still for so long as it looked closer.
    pub(super) fn doubts(&mut self) -> bool {
        let still = self.still();
        if self.closer > 0 {
            self.closer += 1;
            let over = self.closer as usize > self.heard.len() + 1;
            if over && !still {
                self.closer = 0;
            }
            return over && still;
        }
        self.closer = u32::from(still);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PACKET: f64 = 1e-3;

    fn hear(listen: &mut Listen, rtt: f64) -> bool {
        listen.heard.rotate_right(1);
        listen.heard[0] = rtt;
        listen.probes += 1;
        listen.doubts()
    }

    #[test]
    fn what_stands_still_for_nine_probes_and_nine_closer_ones_is_the_path() {
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        let heard: Vec<bool> = (0..18).map(|probe| hear(&mut listen, if probe == 5 { 0.09 } else { 0.05 })).collect();
        assert!(heard[17] && !heard[..17].contains(&true), "{heard:?}");
    }

    #[test]
    fn what_moves_by_a_part_of_a_packet_is_somebody_else() {
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        assert!(!(0..200).any(|probe| hear(&mut listen, 0.05 + PACKET * f64::from(probe % 3) / 6.0)));
        assert_eq!(listen.closer, 0);
        // looking closer it may find that a packet takes less than was known
        let mut listen = Listen { packet: PACKET, ..Listen::default() };
        let moves = |probe: u32| 0.05 + PACKET * f64::from(probe % 3) / 12.0;
        assert!(!(0..9).any(|probe| hear(&mut listen, moves(probe))));
        assert_eq!((listen.closer, listen.burst()), (1, Listen::FOUR));
        listen.packet = PACKET / 2.0;
        assert!(!(9..200).any(|probe| hear(&mut listen, moves(probe))));
    }

    /// What eight probes tell, a round trip of 40 ms after each other, whose round trips are so many milliseconds longer than the empty one.
    fn spread(longer: [f64; 8]) -> Option<f64> {
        let mut listen = Listen::default();
        for (n, longer) in longer.into_iter().enumerate() {
            let now = Time::ZERO + Duration::from_millis(40 * (n as u64 + 1));
            listen.on_probe(now, 40e-3 + longer * 1e-3, 40e-3, true);
        }
        listen.spread(40e-3).map(|spread| (spread * 1e3).round())
    }

    #[test]
    fn what_differs_at_random_on_a_free_link_is_the_paths_and_a_queue_is_not() {
        let random = [3.0, 7.0, 1.0, 4.5, 2.0, 8.0, 5.0, 0.5];
        assert_eq!(spread(random), Some(9.0), "9/7 of the second longest");
        for (queue, what) in [
            ([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 31.0], "slow start"),
            ([30.0, 30.1, 30.0, 30.2, 30.1, 30.3, 0.0, 0.0], "a queue until its flow ends"),
            ([8.0, 30.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "a queue that drains, and grows again"),
            (random.map(|longer| longer + 20.0), "never near the empty round trip"),
        ] {
            assert_eq!(spread(queue).filter(|spread| *spread > 1.0), None, "{what}");
        }
    }

    #[test]
    fn three_that_are_alike_tell_of_nothing_to_look_at() {
        let mut listen = Listen::default();
        for (ms, rtt, told) in [
            (40, 40.9e-3, None),
            (80, 40.9e-3, None),
            (120, 41e-3, Some(0.0)),
            (160, 40.9e-3, Some(0.0)),
            (600, 40.9e-3, None), // what comes later than three round trips begins anew
            (640, 41.5e-3, None), // one of them differs
            (680, 41.5e-3, None),
            (720, 41.5e-3, None), // nor are all
        ] {
            listen.on_probe(Time::ZERO + Duration::from_millis(ms), rtt, 40e-3, true);
            assert_eq!(listen.spread(40e-3), told, "{ms}");
        }
        listen.on_probe(Time::ZERO + Duration::from_millis(760), 41.5e-3, 40e-3, false);
        assert_eq!(listen.close, 0, "other packets of the transfer were beside it");
    }

    #[test]
    fn what_has_not_left_together_tells_nothing_by_how_it_arrives() {
        // passed and round trip of each ACK of one packet, in packets' times
        let together = [(1.0, 21.0), (1.0, 22.0), (1.0, 23.0)];
        let one_before = [(9.0, 20.0), (1.0, 21.0), (1.0, 22.0)];
        let others_between = [(1.0, 21.0), (3.0, 24.0), (1.0, 25.0)];
        for (acks, confirms, packets, times) in [
            (together, true, 3.0, 3.0),
            (one_before, true, 2.0, 2.0),
            (one_before, false, 3.0, 11.0),
            (others_between, true, 3.0, 5.0),
        ] {
            let mut listen = Listen { confirms, rtt: 20.0 * PACKET, ..Listen::default() };
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
                let told = trains.map(|packet| listen.train(3.0, 3.0 * packet * PACKET, whole));
                assert_eq!(told, [None, None, Some(PACKET)]);
                assert_eq!(listen.comes_apart(), apart && whole.is_some(), "{trains:?}");
            }
        }
    }

    /// Whatever the distance of probes is, of eight waits for others in service seven differ by more than what counts as still.
    #[test]
    fn probes_of_four_are_out_of_step_with_others() {
        for length in [0.85, 0.9, 1.0, 2.5] {
            let worst = worst_of_eight_waits(PACKET * length);
            assert!(worst * length > Listen::ALIKE, "{length}: {worst}");
        }
    }

    /// As a part of the others' time in service.
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
