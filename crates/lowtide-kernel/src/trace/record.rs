// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record of a trace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{Direction, bpf_skel::types::lt_trace_record, fixed::Q16};

/// Why there is a record: `enum lt_trace_event` of `bpf/shared.h`, in its order.
pub const EVENTS: [&str; 11] =
    ["round", "backoff", "loss", "mark", "phantom", "shared", "timeout", "recovered", "undone", "restart", "missed"];

/// The states of the kernel's stack: its `enum tcp_ca_state`.
pub const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// What a law does with a download: `enum lt_download_state`.
pub const DOWNLOAD_STATES: [&str; 4] = ["", "ordinary", "fills", "yields"];

/// Thresholds from here on are none: TCP_INFINITE_SSTHRESH.
const NO_THRESHOLD: u64 = 0x7fff_ffff << 16;

/// What a trace has of a connection at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The place of its programs among those that are traced.
    pub source: usize,
    /// Its number among the connections of those programs, from 1.
    pub connection: u32,
    /// Why there is a record, one of [`EVENTS`].
    pub event: &'static str,
    /// Its socket's inode, while a process has it.
    pub inode: Option<u64>,
    /// Its socket's cgroup.
    pub cgroup: u64,
    /// Whether the law governs what the connection sends (`Up`) or what it receives (`Down`).
    pub direction: Direction,
    /// The law's window, in segments; where the law is the kernel's, the stack's.
    pub cwnd: f64,
    /// Slow-start threshold in segments, if there is one yet.
    pub ssthresh: Option<f64>,
    /// The stack's window, in segments; of a download the one that was advertised last.
    pub stack_cwnd: u32,
    /// Segments in flight; of a download those that the sender may have in flight.
    pub in_flight: u32,
    /// Smoothed round trip, µs.
    pub srtt_us: Option<u32>,
    /// Least round trip since the round began, µs.
    pub rtt_min_us: Option<u32>,
    /// The greatest.
    pub rtt_max_us: Option<u32>,
    /// Segments delivered since the round began.
    pub delivered: u32,
    /// Of those, with CE.
    pub marked: u32,
    /// w, if there is one.
    pub weight: Option<f64>,
    /// The stack's state, one of [`STATES`]; of a download one of [`DOWNLOAD_STATES`].
    pub state: &'static str,
    /// Port of this end.
    pub local_port: u16,
    /// The other end.
    pub remote: SocketAddr,
    /// What the law wrote: as many as [`values`](super::names::values) has, or none.
    pub values: Vec<i64>,
}

impl Record {
    /// What the programs wrote; `None` if these are no such bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Record> {
        if bytes.len() < size_of::<lt_trace_record>() {
            return None;
        }
        // SAFETY: integers, for which any bytes are a value; a copy, as the bytes need not be aligned.
        Record::decode(&unsafe { bytes.as_ptr().cast::<lt_trace_record>().read_unaligned() })
    }

    fn decode(raw: &lt_trace_record) -> Option<Record> {
        let measured = |value: u32| (value > 0).then_some(value);
        let (direction, weight, states) = match raw.receives {
            0 => (Direction::Up, f64::from_bits(raw.weight), &STATES[..]),
            _ => (Direction::Down, raw.weight as f64 / Q16, &DOWNLOAD_STATES[..]),
        };
        let address: IpAddr = match raw.ipv6 {
            0 => Ipv4Addr::new(raw.remote[0], raw.remote[1], raw.remote[2], raw.remote[3]).into(),
            _ => Ipv6Addr::from(raw.remote).to_canonical(),
        };
        Some(Record {
            time_ns: raw.time_ns,
            source: raw.source as usize,
            connection: raw.connection,
            event: EVENTS.get(raw.event as usize)?,
            inode: (raw.inode > 0).then_some(raw.inode),
            cgroup: raw.cgroup,
            direction,
            cwnd: raw.cwnd_q16 as f64 / Q16,
            ssthresh: (raw.ssthresh_q16 < NO_THRESHOLD).then_some(raw.ssthresh_q16 as f64 / Q16),
            stack_cwnd: raw.stack_cwnd,
            in_flight: raw.in_flight,
            srtt_us: measured(raw.srtt_us),
            rtt_min_us: measured(raw.rtt_min_us),
            rtt_max_us: measured(raw.rtt_max_us),
            delivered: raw.delivered,
            marked: raw.marked,
            weight: (weight > 0.0).then_some(weight),
            state: states.get(raw.state as usize)?,
            local_port: raw.local_port,
            remote: SocketAddr::new(address, raw.remote_port),
            values: raw.values.get(..raw.values_count as usize)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> lt_trace_record {
        let mut remote = [0; 16];
        remote[..4].copy_from_slice(&[192, 0, 2, 7]);
        lt_trace_record {
            time_ns: 5,
            cwnd_q16: 5 << 15,
            ssthresh_q16: NO_THRESHOLD,
            weight: 0.25_f64.to_bits(),
            values: [1, -2, 3, 4, 5, 6, 7, 8],
            values_count: 2,
            event: 2,
            rtt_min_us: 40_000,
            remote_port: 443,
            remote,
            ..Default::default()
        }
    }

    #[test]
    fn the_documentation_has_every_event_and_state() {
        let page = include_str!("../../../../docs/tracing.md");
        for word in EVENTS.iter().chain(&STATES).chain(&DOWNLOAD_STATES[1..]) {
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
    }

    #[test]
    fn a_record_is_read() {
        let record = Record::decode(&raw()).unwrap();
        assert_eq!((record.event, record.state, record.cwnd), ("loss", "open", 2.5));
        assert_eq!((record.ssthresh, record.weight, record.inode), (None, Some(0.25), None));
        assert_eq!((record.rtt_min_us, record.rtt_max_us), (Some(40_000), None));
        assert_eq!((record.remote.to_string().as_str(), &record.values[..]), ("192.0.2.7:443", &[1, -2][..]));
    }

    #[test]
    fn a_download_has_a_weight_and_states_of_its_own() {
        let record = Record::decode(&lt_trace_record { receives: 1, weight: 1 << 14, state: 3, ..raw() }).unwrap();
        assert_eq!((record.direction, record.weight, record.state), (Direction::Down, Some(0.25), "yields"));
    }

    #[test]
    fn addresses_of_ipv6_are_read() {
        let remote = Ipv6Addr::LOCALHOST.octets();
        let record = Record::decode(&lt_trace_record { ipv6: 1, remote, ..raw() }).unwrap();
        assert_eq!(record.remote.to_string(), "[::1]:443");
    }

    #[test]
    fn what_is_no_record_is_none() {
        assert_eq!(Record::read(&[0; 20]), None);
        assert_eq!(Record::decode(&lt_trace_record { event: 99, ..raw() }), None);
        assert_eq!(Record::decode(&lt_trace_record { values_count: 9, ..raw() }), None);
    }
}
