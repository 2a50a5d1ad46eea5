// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of B that are farther away than others.

use lowtide_net::Time;
use std::{collections::VecDeque, net::Ipv4Addr, net::Ipv6Addr, time::Duration};

/// So many there can be: the last byte of an address tells them apart.
pub(crate) const MOST: usize = 200;

/// The IPv4 address of B's place with this number; 0 is B's own.
pub(crate) fn address4(b: Ipv4Addr, place: usize) -> Ipv4Addr {
    let mut octets = b.octets();
    octets[3] += place as u8; // at most MOST
    octets.into()
}

/// The IPv6 address of B's place with this number; 0 is B's own.
pub(crate) fn address6(b: Ipv6Addr, place: usize) -> Ipv6Addr {
    let mut octets = b.octets();
    octets[15] += place as u8; // at most MOST
    octets.into()
}

/// Which address of a packet is the one in B.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// From A to B.
    Destination,
    /// From B to A.
    Source,
}

/// The way between the link and B's places, in one direction. Packets of one place stay in order.
pub(crate) struct Far {
    end: End,
    b4: Ipv4Addr,
    b6: Ipv6Addr,
    places: Vec<Place>,
}

struct Place {
    delay: Duration,
    /// What is on its way, with the time at which it arrives.
    pipe: VecDeque<(Time, Box<[u8]>)>,
}

impl Far {
    /// The first place beside B's own is so far away as the first of `delays`, and so on.
    pub(crate) fn new(end: End, b4: Ipv4Addr, b6: Ipv6Addr, delays: impl IntoIterator<Item = Duration>) -> Self {
        let places = delays.into_iter().map(|delay| Place { delay, pipe: VecDeque::new() }).collect();
        Self { end, b4, b6, places }
    }

    /// A packet has come out of the link at `at`. Gives back one that has no farther to go.
    pub(crate) fn pass(&mut self, at: Time, packet: Box<[u8]>) -> Option<Box<[u8]>> {
        let index = self.place(&packet).and_then(|place| place.checked_sub(1));
        match index.and_then(|index| self.places.get_mut(index)) {
            Some(place) => {
                place.pipe.push_back((at + place.delay, packet));
                None
            }
            None => Some(packet),
        }
    }

    /// When the next packet arrives.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.places.iter().filter_map(|place| Some(place.pipe.front()?.0)).min()
    }

    /// The next packet that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Box<[u8]>> {
        let next = self.next_event().filter(|next| *next <= now)?;
        let place = self.places.iter_mut().find(|place| place.pipe.front().is_some_and(|front| front.0 == next))?;
        place.pipe.pop_front().map(|front| front.1)
    }

    /// The number of the place that a packet goes to or comes from.
    fn place(&self, packet: &[u8]) -> Option<usize> {
        let (address, b): (&[u8], &[u8]) = match (packet.first()? >> 4, self.end) {
            (4, End::Destination) => (packet.get(16..20)?, &self.b4.octets()),
            (4, End::Source) => (packet.get(12..16)?, &self.b4.octets()),
            (6, End::Destination) => (packet.get(24..40)?, &self.b6.octets()),
            (6, End::Source) => (packet.get(8..24)?, &self.b6.octets()),
            _ => return None,
        };
        let ((last, net), (b_last, b_net)) = (address.split_last()?, b.split_last()?);
        (net == b_net).then(|| last.checked_sub(*b_last).map(usize::from)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
    const B6: Ipv6Addr = Ipv6Addr::new(0xfd6c, 0x6f77, 0, 0, 0, 0, 0, 2);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn far(end: End) -> Far {
        Far::new(end, B4, B6, [30, 10].map(Duration::from_millis))
    }

    /// A packet whose address at `offset` is that one.
    fn packet(version: u8, offset: usize, address: &[u8]) -> Box<[u8]> {
        let mut packet = vec![0; 60];
        packet[0] = version << 4;
        packet[offset..][..address.len()].copy_from_slice(address);
        packet.into()
    }

    #[test]
    fn each_place_has_its_delay() {
        let mut far = far(End::Destination);
        let to = |place| packet(4, 16, &address4(B4, place).octets());
        assert!(far.pass(ms(1), to(0)).is_some(), "B's own address");
        assert!(far.pass(ms(1), to(3)).is_some(), "an address that B does not have");
        assert!(far.pass(ms(2), to(1)).is_none() && far.pass(ms(3), to(2)).is_none());
        assert_eq!(far.next_event(), Some(ms(13)));
        assert_eq!(far.pop(ms(12)), None);
        assert_eq!(far.pop(ms(40)), Some(to(2)));
        assert_eq!((far.pop(ms(31)), far.pop(ms(32)), far.next_event()), (None, Some(to(1)), None));
    }

    #[test]
    fn either_version_and_either_direction() {
        for (end, offset4, offset6) in [(End::Destination, 16, 24), (End::Source, 12, 8)] {
            let mut far = far(end);
            assert!(far.pass(ms(0), packet(4, offset4, &address4(B4, 1).octets())).is_none());
            assert!(far.pass(ms(0), packet(6, offset6, &address6(B6, 2).octets())).is_none());
            assert_eq!(far.next_event(), Some(ms(10)));
        }
    }

    #[test]
    fn what_is_no_packet_of_b_goes_straight_on() {
        let mut far = far(End::Source);
        for bytes in [&[][..], &[0x45], &[0x60; 39], &[0x10; 60]] {
            assert!(far.pass(ms(0), bytes.into()).is_some());
        }
    }
}
