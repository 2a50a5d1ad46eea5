// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few fields of raw IPv4 and IPv6 packets that a link cares about.

use crate::{Class, Ecn};

/// What a link has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// 4 or 6.
    pub version: u8,
    /// Length in bytes of the whole packet, as its header states it.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// The class that its DSCP means.
    pub class: Class,
    /// The flow that it belongs to: a hash of addresses, protocol and, for transport protocols that
    /// have them, ports. The same on every machine.
    pub flow: u64,
}

/// Reads the header of a raw IP packet; `None` if it is neither IPv4 (RFC 791) nor IPv6 (RFC 8200),
/// or shorter than its fixed header.
pub fn read_header(packet: &[u8]) -> Option<Header> {
    let word = |at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => {
            // Fragments after the first one have no ports, so no fragment's ports count.
            let fragment = word(6) & 0x3fff != 0;
            let ports = if fragment { None } else { ports(packet, packet[9], 4 * usize::from(packet[0] & 0x0f)) };
            let flow = flow(&packet[12..20], packet[9], ports);
            Some(header(4, word(2), packet[1], flow))
        }
        6 if packet.len() >= 40 => {
            // Behind an extension header the ports are left alone: the addresses have to do.
            let flow = flow(&packet[8..40], packet[6], ports(packet, packet[6], 40));
            Some(header(6, 40 + word(4), (word(0) >> 4) as u8, flow))
        }
        _ => None,
    }
}

/// With the octet that DSCP (RFC 2474) and ECN share.
const fn header(version: u8, bytes: u32, traffic_class: u8, flow: u64) -> Header {
    let (class, ecn) = (Class::from_dscp(traffic_class >> 2), Ecn::from_bits(traffic_class));
    Header { version, bytes, ecn, class, flow }
}

/// The two ports at the beginning of a TCP, UDP, DCCP, SCTP or UDP-Lite header at `at`.
fn ports(packet: &[u8], protocol: u8, at: usize) -> Option<&[u8]> {
    matches!(protocol, 6 | 17 | 33 | 132 | 136).then(|| packet.get(at..at + 4)).flatten()
}

/// FNV-1a (Fowler, Noll and Vo) of what identifies a flow.
fn flow(addresses: &[u8], protocol: u8, ports: Option<&[u8]>) -> u64 {
    let bytes = addresses.iter().chain([&protocol]).chain(ports.unwrap_or_default());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Sets the ECN field of a raw IP packet to CE, and keeps the IPv4 header checksum right. Leaves
/// alone what [`read_header`] does not understand. Whether the packet may be marked is the queue's
/// decision.
pub fn set_ce(packet: &mut [u8]) {
    match read_header(packet).map(|header| header.version) {
        Some(4) => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 0b11;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&updated_checksum(checksum, old, new).to_be_bytes());
        }
        Some(6) => packet[1] |= 0b11 << 4,
        _ => {}
    }
}

/// The checksum after one 16-bit word of the header changed from `old` to `new`: RFC 1624,
/// equation 3.
fn updated_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 over the whole header; 0 if its checksum field is right.
    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn ipv4(fields: [u8; 20]) -> [u8; 20] {
        let mut header = fields;
        header[0] = 0x45;
        header[10..12].fill(0);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>) {
            let header = read_header(&bytes);
            set_ce(&mut bytes);
            let after = read_header(&bytes);
            prop_assert_eq!(after.map(|h| h.flow), header.map(|h| h.flow), "a mark makes no other flow");
        }

        #[test]
        fn marking_ipv4_keeps_the_checksum_right(fields: [u8; 20]) {
            let before = ipv4(fields);
            let mut after = before;
            set_ce(&mut after);
            prop_assert_eq!(checksum(&after), 0);
            prop_assert_eq!(read_header(&after).unwrap().ecn, Ecn::Ce);
            prop_assert_eq!(after[1] >> 2, before[1] >> 2, "the DSCP stays");
            let rest = |packet: &[u8; 20]| [&packet[2..10], &packet[12..]].concat();
            prop_assert_eq!(rest(&after), rest(&before));
        }

        #[test]
        fn marking_ipv6_touches_two_bits(mut before: [u8; 40]) {
            before[0] = 0x60 | (before[0] & 0x0f);
            let mut after = before;
            set_ce(&mut after);
            prop_assert_eq!(read_header(&after).unwrap().ecn, Ecn::Ce);
            after[1] &= !0x30;
            before[1] &= !0x30;
            prop_assert_eq!(after, before);
        }
    }

    #[test]
    fn lengths_and_ecn_are_read() {
        let mut four = [0; 24];
        four[..4].copy_from_slice(&[0x46, 0b10, 0x05, 0xdc]);
        let header = read_header(&four).unwrap();
        assert_eq!((header.version, header.bytes, header.ecn), (4, 1500, Ecn::Ect0));
        let mut six = [0; 40];
        six[..6].copy_from_slice(&[0x60, 0b01 << 4, 0, 0, 0x05, 0xb4]);
        let header = read_header(&six).unwrap();
        assert_eq!((header.version, header.bytes, header.ecn), (6, 1500, Ecn::Ect1));
    }

    #[test]
    fn the_dscps_of_the_background_are_its_class() {
        for (dscp, class) in [
            (0, Class::Foreground),
            (1, Class::Background),
            (8, Class::Background),
            (46, Class::Foreground),
            (0b001_001, Class::Foreground),
        ] {
            let traffic_class = dscp << 2 | 0b10;
            let mut four = [0; 20];
            four[..2].copy_from_slice(&[0x45, traffic_class]);
            let mut six = [0; 40];
            six[..2].copy_from_slice(&[0x60 | traffic_class >> 4, traffic_class << 4]);
            for header in [read_header(&four).unwrap(), read_header(&six).unwrap()] {
                assert_eq!((header.class, header.ecn), (class, Ecn::Ect0), "DSCP {dscp}, IPv{}", header.version);
            }
        }
    }

    #[test]
    fn a_flow_is_addresses_protocol_and_ports() {
        let flow = |packet: &[u8]| read_header(packet).unwrap().flow;
        let mut six = [0; 60];
        six[0] = 0x60;
        six[6] = 6;
        // IPv4 with a word of options, so that the ports are at 24.
        let mut four = [0; 44];
        four[0] = 0x46;
        four[9] = 17;
        // Where a change makes another flow, and where it does not.
        let cases: [(&[u8], &[usize], &[usize]); 2] = [
            (&four, &[9, 12, 15, 16, 19, 24, 25, 26, 27], &[1, 2, 3, 4, 5, 8, 10, 11, 20, 23, 28, 40]),
            (&six, &[6, 8, 23, 24, 39, 40, 41, 42, 43], &[1, 2, 3, 4, 5, 7, 44, 59]),
        ];
        for (packet, other, same) in cases {
            let changed = |at: usize| {
                let mut changed = packet.to_vec();
                changed[at] ^= 1;
                flow(&changed)
            };
            for &at in other {
                assert_ne!(changed(at), flow(packet), "byte {at} of IPv{}", packet[0] >> 4);
            }
            for &at in same {
                assert_eq!(changed(at), flow(packet), "byte {at} of IPv{}", packet[0] >> 4);
            }
        }
    }

    #[test]
    fn what_has_no_ports_is_told_apart_by_its_addresses() {
        // Protocol, the two bytes of flags and fragment offset, and whether byte 20 matters.
        for (protocol, fragment, matters) in [
            (6, [0, 0], true),
            (1, [0, 0], false),    // ICMP: what would be ports is type, code and checksum
            (6, [0, 1], false),    // a fragment, by its offset
            (6, [0x20, 0], false), // by "more fragments"
            (6, [0x40, 0], true),  // "don't fragment" is none
        ] {
            let flow = |at_20: u8| {
                let mut packet = [0; 28];
                (packet[0], packet[9], packet[20]) = (0x45, protocol, at_20);
                packet[6..8].copy_from_slice(&fragment);
                read_header(&packet).unwrap().flow
            };
            assert_eq!(flow(0) != flow(1), matters, "protocol {protocol}, fragment {fragment:?}");
        }
    }

    #[test]
    fn what_is_no_ip_packet_stays_as_it_is() {
        for mut bytes in [vec![], vec![0x45; 19], vec![0x60; 39], vec![0x10; 60]] {
            let before = bytes.clone();
            assert_eq!(read_header(&bytes), None);
            set_ce(&mut bytes);
            assert_eq!(bytes, before);
        }
    }
}
