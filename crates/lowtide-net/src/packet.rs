// SPDX-License-Identifier: MIT OR Apache-2.0
//! What travels over a link, and how it is counted.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// 00: the transport does not understand marks.
    #[default]
    NotEct,
    /// 10: ECN-capable transport.
    Ect0,
    /// 01: ECN-capable transport; in RFC 9331 the mark of L4S traffic.
    Ect1,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    /// The two lowest bits of `bits`, as they stand in the header.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark such a packet: ECT(0) or ECT(1), not yet CE.
    pub const fn can_be_marked(self) -> bool {
        matches!(self, Self::Ect0 | Self::Ect1)
    }
}

/// Which kind of traffic a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// What a user waits for.
    #[default]
    Foreground,
    /// What may take what is left over: the DSCP is LE (RFC 8622), or CS1, which was used for it before (RFC 3662).
    Background,
}

impl Class {
    /// Of the six bits of a DSCP.
    pub const fn from_dscp(dscp: u8) -> Self {
        match dscp {
            0b000_001 | 0b001_000 => Self::Background,
            _ => Self::Foreground,
        }
    }
}

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// Length on the wire in bytes: the IP packet with its header.
    pub bytes: u32,
    /// Its ECN field; a queue that marks the packet sets this to [`Ecn::Ce`].
    pub ecn: Ecn,
    /// Its class; only a queue with priorities looks at it.
    pub class: Class,
    /// Which flow it belongs to: any number that is the same for all packets of a flow and differs
    /// between flows. Only a queue that tells flows apart looks at it.
    pub flow: u64,
    /// Whatever the caller wants to get back on delivery.
    pub payload: T,
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire of those packets.
    pub bytes: u64,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self { packets: 0, bytes: 0 };

    /// One packet of `bytes` bytes.
    pub const fn one(bytes: u32) -> Self {
        Self { packets: 1, bytes: bytes as u64 }
    }

    /// The larger of the two, field by field.
    pub fn max(self, other: Self) -> Self {
        Self { packets: self.packets.max(other.packets), bytes: self.bytes.max(other.bytes) }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Amount {
    type Output = Self;

    /// `other` must not be larger.
    fn sub(self, other: Self) -> Self {
        Self { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
