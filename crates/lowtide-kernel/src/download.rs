// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a transfer receives, at one instant.

use std::{collections::HashSet, time::Duration};

use crate::bpf_skel::types;

/// A connection on which nothing came for so long, or for four round trips, has nothing to receive.
const IDLE_LEAST_NS: u64 = 1_000_000_000;

/// `enum lt_download_state`.
const FREE: u32 = 1;
const YIELDS: u32 = 3;

/// What comes in on the connections whose downloads are governed. All is zero and nothing where they are not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Download {
    /// Connections on which data came in the last second, or four round trips.
    pub receiving: u32,
    /// Pairs of networks that these go between, one at the least.
    pub paths: u32,
    /// Some of their senders use all of the window that they are granted: they have more to send.
    pub limited: bool,
    /// Windows are the stack's, as the weight is 1.
    pub free: bool,
    /// The law of most of them leaves the link to competing flows.
    pub yields: bool,
    /// Mean of their round trips.
    pub srtt: Option<Duration>,
    /// How long the queue on their way here is, in time: the mean.
    pub queue: Option<Duration>,
    /// What they are granted to receive, bytes.
    pub window_bytes: u64,
    /// Payload bytes of a full segment, mean.
    pub segment_bytes: Option<u32>,
}

impl Download {
    pub(crate) fn of(records: &[types::lt_socket_record], now_ns: u64) -> Download {
        let receives = |record: &&types::lt_socket_record| {
            let idle = now_ns.saturating_sub(record.arrived_ns);
            let limit = IDLE_LEAST_NS.max(4_000 * u64::from(record.download_srtt_us));
            record.download_state != 0 && record.arrived_ns > 0 && idle <= limit
        };
        let receiving: Vec<_> = records.iter().filter(receives).collect();
        let number = receiving.len();
        let mean = |values: Vec<u64>| values.iter().sum::<u64>().checked_div(values.len() as u64);
        let micros = |value: fn(&types::lt_socket_record) -> Option<u32>| {
            let known: Vec<u64> = receiving.iter().filter_map(|record| value(record)).map(u64::from).collect();
            mean(known).map(Duration::from_micros)
        };
        let in_state = |state| receiving.iter().filter(|record| record.download_state == state).count();
        let networks = receiving.iter().map(|r| (r.download_path.local.word, r.download_path.remote.word));
        let segments = receiving.iter().map(|record| u64::from(record.download_mss)).filter(|bytes| *bytes > 0);
        Download {
            receiving: number as u32,
            paths: networks.collect::<HashSet<_>>().len().max(1) as u32,
            limited: receiving.iter().any(|record| record.download_limited != 0),
            free: number > 0 && in_state(FREE) == number,
            yields: 2 * in_state(YIELDS) > number,
            srtt: micros(|record| (record.download_srtt_us > 0).then_some(record.download_srtt_us)),
            queue: micros(|record| {
                (record.download_base_us > 0).then(|| record.download_delay_us.saturating_sub(record.download_base_us))
            }),
            window_bytes: receiving.iter().map(|record| u64::from(record.window)).sum(),
            segment_bytes: mean(segments.collect()).map(|bytes| bytes as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100_000_000_000;

    fn record(download_state: u32, since_ns: u64) -> types::lt_socket_record {
        types::lt_socket_record {
            arrived_ns: NOW - since_ns,
            download_state,
            download_srtt_us: 60_000,
            download_base_us: 40_000,
            download_delay_us: 45_000,
            download_mss: 1448,
            window: 10_000,
            ..Default::default()
        }
    }

    #[test]
    fn only_what_receives_counts() {
        let limited = types::lt_socket_record { download_limited: 1, ..record(YIELDS, 900_000_000) };
        let records = [limited, record(YIELDS, 1), record(FREE, 1), record(FREE, 2_000_000_000), record(0, 1)];
        let download = Download::of(&records, NOW);
        assert_eq!((download.receiving, download.paths, download.window_bytes), (3, 1, 30_000));
        assert!(download.limited && download.yields && !download.free);
        assert_eq!(download.queue, Some(Duration::from_millis(5)));
        assert_eq!((download.srtt, download.segment_bytes), (Some(Duration::from_millis(60)), Some(1448)));
    }

    #[test]
    fn nothing_is_nothing() {
        let download = Download::of(&[record(0, 1)], NOW);
        assert_eq!(download, Download { paths: 1, ..Download::default() });
    }
}
