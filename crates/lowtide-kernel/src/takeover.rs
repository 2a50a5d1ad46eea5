// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group that is there already: its open sockets get the law, and at the end what they had before.

use std::net::IpAddr;

use crate::{Error, Result, bpf_skel::types};

/// Which connections of a group are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// Those with this port on either side; 0: any.
    pub port: u16,
    /// Those to or from this network: an address, and how many of its bits count.
    pub peer: Option<(IpAddr, u8)>,
}

impl Selection {
    /// Reads a network: `192.0.2.0/24`, `2001:db8::/32`, or one address.
    ///
    /// # Errors
    /// [`Error::NoNetwork`].
    pub fn network(text: &str) -> Result<(IpAddr, u8)> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let network = || {
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
            (bits <= most).then_some((address, bits))
        };
        network().ok_or_else(|| Error::NoNetwork { text: text.to_owned() })
    }

    /// As the programs have it: IPv4 is within IPv6.
    pub(crate) fn peer_words(&self) -> ([u32; 4], u32) {
        let Some((address, bits)) = self.peer else { return ([0; 4], 0) };
        let (octets, bits) = match address {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), 96 + u32::from(bits)),
            IpAddr::V6(address) => (address.octets(), u32::from(bits)),
        };
        let word = |at: usize| u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        ([0, 4, 8, 12].map(word), bits)
    }
}

/// What became of open sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// They have the law.
    pub taken: u32,
    /// They could not be given it, and are not governed.
    pub refused: u32,
    /// The kernel's reason for the last of these.
    pub errno: Option<i32>,
    /// Network namespaces that were not looked at, as there are too many.
    pub left_out: u32,
}

impl Taken {
    /// From what the programs answered, one for each socket.
    pub(crate) fn from_answers(bytes: &[u8]) -> Taken {
        let mut taken = Taken::default();
        for answer in bytes.chunks_exact(size_of::<types::lt_taken>()) {
            let mut one = types::lt_taken::default();
            plain::copy_from_bytes(&mut one, answer).expect("as long as an answer");
            taken.taken += one.taken;
            if one.taken == 0 {
                taken.refused += 1;
                taken.errno = Some(-one.error);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_lie_within_ipv6() {
        let words = |text: &str| {
            let peer = Some(Selection::network(text).unwrap());
            let (words, bits) = Selection { port: 0, peer }.peer_words();
            (words.map(u32::from_be), bits)
        };
        assert_eq!(words("192.0.2.0/24"), ([0, 0, 0xffff, 0xc000_0200], 120));
        assert_eq!(words("192.0.2.7"), ([0, 0, 0xffff, 0xc000_0207], 128));
        assert_eq!(words("2001:db8::/32"), ([0x2001_0db8, 0, 0, 0], 32));
        assert_eq!(Selection::default().peer_words(), ([0; 4], 0));
        for text in ["", "192.0.2.0/33", "192.0.2/24", "::/129", "host", "192.0.2.0/-1"] {
            assert!(Selection::network(text).unwrap_err().to_string().contains("is no network"), "{text}");
        }
    }
}
