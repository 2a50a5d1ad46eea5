// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few fields of raw IPv4 and IPv6 packets that a link cares about.

use crate::Ecn;

/// What a link has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// 4 or 6.
    pub version: u8,
    /// Length in bytes of the whole packet, as its header states it.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: Ecn,
}

/// Reads the header of a raw IP packet; `None` if it is neither IPv4 (RFC 791) nor IPv6 (RFC 8200),
/// or shorter than its fixed header.
pub fn read_header(packet: &[u8]) -> Option<Header> {
    let word = |at: usize| Some(u32::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => Some(Header { version: 4, bytes: word(2)?, ecn: Ecn::from_bits(packet[1]) }),
        6 if packet.len() >= 40 => {
            Some(Header { version: 6, bytes: 40 + word(4)?, ecn: Ecn::from_bits(packet[1] >> 4) })
        }
        _ => None,
    }
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
        assert_eq!(read_header(&four), Some(Header { version: 4, bytes: 1500, ecn: Ecn::Ect0 }));
        let mut six = [0; 40];
        six[..6].copy_from_slice(&[0x60, 0b01 << 4, 0, 0, 0x05, 0xb4]);
        assert_eq!(read_header(&six), Some(Header { version: 6, bytes: 1500, ecn: Ecn::Ect1 }));
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
