// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's queues count, asked by netlink: `tc -s qdisc` ten times a second would cost more than the traffic.

use anyhow::{Context, Result, bail};
use nix::{
    net::if_::if_nametoindex,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket},
};
use std::os::fd::{AsRawFd, OwnedFd};

// linux/rtnetlink.h, linux/netlink.h, linux/gen_stats.h: the user API
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const HEADER: usize = 16;
const TCMSG: usize = 20;

/// The handles of the token bucket and of the queue before it.
const BUCKET: u32 = 2 << 16;
const QUEUE: u32 = 3 << 16;

/// What was counted at a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
    pub(crate) queued_packets: u32,
    pub(crate) queued_bytes: u32,
}

/// The queues of two devices of the namespace that it was opened in.
pub(crate) struct Queues {
    socket: OwnedFd,
    devices: [u32; 2],
    buffer: Vec<u8>,
}

impl Queues {
    /// Of these devices.
    pub(crate) fn open(devices: [&str; 2]) -> Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        let index = |name: &str| if_nametoindex(name).with_context(|| format!("the device {name}"));
        Ok(Self { socket, devices: [index(devices[0])?, index(devices[1])?], buffer: vec![0; 1 << 16] })
    }

    /// Their counts. A device without a bottleneck has none.
    pub(crate) fn look(&mut self) -> Result<[Seen; 2]> {
        let mut request = Vec::with_capacity(HEADER + TCMSG);
        request.extend(((HEADER + TCMSG) as u32).to_ne_bytes());
        request.extend(RTM_GETQDISC.to_ne_bytes());
        request.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
        request.resize(HEADER + TCMSG, 0);
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).context("asking for the queues")?;
        let mut seen = [Seen::default(); 2];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
            if take(&self.buffer[..length], &self.devices, &mut seen)? {
                return Ok(seen);
            }
        }
    }
}

/// Reads the messages of an answer; whether it was the last.
fn take(mut bytes: &[u8], devices: &[u32; 2], seen: &mut [Seen; 2]) -> Result<bool> {
    while let Some(length) = word(bytes, 0).map(|length| length as usize) {
        if length < HEADER || length > bytes.len() {
            bail!("the kernel's answer is cut");
        }
        let (message, rest) = bytes.split_at(length);
        match half(message, 4) {
            Some(NLMSG_DONE) => return Ok(true),
            Some(NLMSG_ERROR) => bail!("the kernel refuses, with {}", word(message, HEADER).unwrap_or(0) as i32),
            Some(RTM_NEWQDISC) => qdisc(message, devices, seen),
            _ => {}
        }
        bytes = rest.get(length.next_multiple_of(4) - length..).unwrap_or_default();
    }
    Ok(false)
}

fn qdisc(message: &[u8], devices: &[u32; 2], seen: &mut [Seen; 2]) {
    let (Some(device), Some(handle)) = (word(message, HEADER + 4), word(message, HEADER + 8)) else { return };
    let Some(place) = devices.iter().position(|it| *it == device) else { return };
    let (seen, attributes) = (&mut seen[place], &message[HEADER + TCMSG..]);
    let mut statistics: &[u8] = &[];
    let mut kind = "";
    for (name, value) in Attributes(attributes) {
        match name {
            TCA_KIND => kind = std::str::from_utf8(value).unwrap_or_default().trim_end_matches('\0'),
            TCA_STATS2 => statistics = value,
            _ => {}
        }
    }
    for (name, value) in Attributes(statistics) {
        let number = |index: usize| word(value, 4 * index).unwrap_or(0);
        match (handle, name) {
            (BUCKET, TCA_STATS_BASIC) => {
                seen.bytes = u64::from(number(0)) | u64::from(number(1)) << 32;
                seen.packets = number(2).into();
            }
            (QUEUE, TCA_STATS_QUEUE) => {
                (seen.queued_packets, seen.queued_bytes, seen.drops) = (number(0), number(1), number(2).into());
            }
            // the places of ecn_mark and ce_mark in linux/pkt_sched.h
            (QUEUE, TCA_STATS_APP) => {
                seen.marks = match kind {
                    "codel" => u64::from(number(6)) + u64::from(number(8)),
                    "fq_codel" => u64::from(number(3)) + u64::from(number(7)),
                    "pie" => number(9).into(),
                    _ => 0,
                }
            }
            _ => {}
        }
    }
}

/// Attributes by their names.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, name) = (half(self.0, 0)? as usize, half(self.0, 2)?);
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((name & 0x3fff, value))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = ((value.len() + 4) as u16).to_ne_bytes().into();
        bytes.extend(name.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn message(device: u32, handle: u32, kind: &str, statistics: &[(u16, &[u32])]) -> Vec<u8> {
        let nested: Vec<u8> = statistics.iter().flat_map(|(name, value)| attribute(*name, &words(value))).collect();
        let body = [
            words(&[0, device, handle, 0, 0]),
            attribute(TCA_KIND, format!("{kind}\0").as_bytes()),
            attribute(TCA_STATS2 | 0x8000, &nested),
        ]
        .concat();
        let mut bytes = words(&[(HEADER + body.len()) as u32, RTM_NEWQDISC.into(), 0, 0]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn counts_come_from_the_right_places() {
        let mut answer = message(7, BUCKET, "tbf", &[(TCA_STATS_BASIC, &[5, 1, 3, 0])]);
        let queue: &[(u16, &[u32])] =
            &[(TCA_STATS_QUEUE, &[4, 6000, 9, 0, 0]), (TCA_STATS_APP, &[0, 0, 0, 0, 0, 0, 30, 0, 40])];
        answer.extend(message(7, QUEUE, "codel", queue));
        answer.extend(message(8, BUCKET, "tbf", &[(TCA_STATS_BASIC, &[1, 0, 1, 0])]));
        let mut seen = [Seen::default(); 2];
        assert!(!take(&answer, &[8, 7], &mut seen).unwrap());
        let seven = Seen { packets: 3, bytes: 5 | 1 << 32, drops: 9, marks: 70, queued_packets: 4, queued_bytes: 6000 };
        assert_eq!(seen, [Seen { packets: 1, bytes: 1, ..Seen::default() }, seven]);
        assert!(take(&words(&[16, NLMSG_DONE.into(), 0, 0]), &[8, 7], &mut seen).unwrap());
        assert!(take(&answer[..20], &[8, 7], &mut seen).is_err());
    }
}
