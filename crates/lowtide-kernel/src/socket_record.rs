// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the BPF programs record of a socket, read.

use crate::bpf_skel::types;

/// The record that a map holds in these bytes.
pub(crate) fn record(bytes: impl AsRef<[u8]>) -> types::lt_socket_record {
    let mut record = types::lt_socket_record::default();
    plain::copy_from_bytes(&mut record, bytes.as_ref()).expect("as long as a record");
    record
}

/// Whether it has data to send, or sent some a moment ago.
pub(crate) fn is_sending(record: &types::lt_socket_record, now_ns: u64) -> bool {
    let limit = 1_000_000_000.max(4_000 * u64::from(record.srtt_us));
    let idle = record.unsent == 0 && record.packets_out == 0 && now_ns.saturating_sub(record.last_sent_ns) > limit;
    record.last_sent_ns > 0 && !idle
}

/// Payload bytes in flight, by whole segments.
pub(crate) fn in_flight(record: &types::lt_socket_record) -> u64 {
    u64::from(record.packets_out) * u64::from(record.mss)
}
