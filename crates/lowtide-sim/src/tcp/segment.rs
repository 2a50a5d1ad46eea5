// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two ends of a connection send each other.

use lowtide_net::Time;

/// A segment of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte. A SYN takes no sequence number here.
    pub seq: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// Timestamp option: when it was sent (TSval).
    pub sent: Time,
    /// Timestamp option: `sent` of the newest ACK that had arrived (TSecr).
    pub echo: Time,
    /// It opens the connection.
    pub syn: bool,
    /// It is the last one of the stream. The end of the stream takes one sequence number after the last byte.
    pub fin: bool,
    /// CWR: the window was reduced (classic ECN).
    pub cwr: bool,
}

impl Segment {
    /// The sequence number after it.
    pub const fn end(&self) -> u64 {
        self.seq + self.bytes as u64 + self.fin as u64
    }
}

/// An acknowledgement of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Next byte expected.
    pub ack: u64,
    /// Receive window in bytes, from `ack` on.
    pub window: u64,
    /// What it holds above a hole; the first block may report a duplicate instead (RFC 2883).
    pub sack: SackBlocks,
    /// Timestamp option: `sent` of the segment that the RFC 7323 rules say to echo (TSecr).
    pub echo: Time,
    /// Timestamp option: the receiver's clock when it sent this (TSval).
    pub sent: Time,
    /// It answers a SYN.
    pub syn: bool,
    /// ECE: a mark was seen and not yet answered by CWR (classic ECN).
    pub ece: bool,
    /// Accurate ECN: packets seen with CE since the start of the connection.
    pub ce_packets: u64,
    /// Accurate ECN: their payload bytes.
    pub ce_bytes: u64,
}

/// At most three SACK blocks, the newest first (RFC 2018; a timestamp option leaves room for three).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); 3],
    used: u8,
}

impl SackBlocks {
    /// Adds a block `[start, end)`, if there is room.
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.used)) {
            *block = (start, end);
            self.used += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..usize::from(self.used)]
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
}
