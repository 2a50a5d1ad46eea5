// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of paths: the least round trip from one network to another, as connections measure it. A connection that begins is given it as a
//! hint (`bpf/paths.h`); what becomes of that is its law's business.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use crate::programs::types;

/// From one network to another: addresses whose last bits are 0, of IPv4 all after 24 bits and of IPv6 all after 48 (`bpf/law/network.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Where connections come from, which stands for the interface and the uplink.
    pub local: IpAddr,
    /// Where they go.
    pub remote: IpAddr,
}

/// What connections say of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The least round trip that they had.
    pub base: Duration,
    /// What was known before, if it has turned out to be too small.
    pub refuted: Option<Duration>,
}

impl Seen {
    /// A round trip that is longer by so much than what is known says that this still holds.
    const NEAR: Duration = Duration::from_millis(1);

    /// What is to be known of a path from now on, of which `known` was until now. `None`: there is nothing new in it. A round trip that is longer
    /// than what is known says nothing, as there may have been a queue all the time, unless the connection has found that to be wrong.
    pub fn after(&self, known: Option<Duration>) -> Option<Duration> {
        match known {
            Some(known) if self.refuted != Some(known) => {
                (self.base <= known + Self::NEAR).then_some(known.min(self.base))
            }
            _ => Some(self.base),
        }
    }
}

/// Of one path.
#[derive(Debug, Clone, Copy)]
struct Known {
    base: Duration,
    /// By this transfer's own connections, and when the last of them said something new: nanoseconds of CLOCK_MONOTONIC.
    seen: Option<(Seen, u64)>,
}

/// All paths of a transfer of which something is known.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: HashMap<Path, Known>,
}

/// What the connections that are to come are told: a path's base, or nothing more of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Known(Path, Duration),
    Forgotten(Path),
}

impl Paths {
    /// As many as the BPF programs have room for: `LT_PATHS`.
    const MOST: usize = 1024;

    /// Something from an earlier time.
    pub(crate) fn recall(&mut self, path: Path, base: Duration) -> Vec<Change> {
        self.set(path, Known { base, seen: None })
    }

    /// A live connection says this, at this time in nanoseconds.
    pub(crate) fn learn(&mut self, path: Path, now: Seen, now_ns: u64) -> Vec<Change> {
        let before = self.known.get(&path).copied();
        let Some(base) = now.after(before.map(|known| known.base)) else { return Vec::new() };
        // what has been refuted once stays so for whoever keeps it beyond this transfer
        let refuted = before.and_then(|known| known.seen).and_then(|(seen, _)| seen.refuted).or(now.refuted);
        let seen = Some((Seen { base, refuted }, now_ns));
        match self.known.get_mut(&path) {
            Some(known) if known.base == base => {
                known.seen = seen;
                Vec::new()
            }
            _ => self.set(path, Known { base, seen }),
        }
    }

    /// What this transfer's connections have said, and how long ago.
    pub(crate) fn seen(&self, now_ns: u64) -> impl Iterator<Item = (Path, Seen, Duration)> {
        self.known.iter().filter_map(move |(path, known)| {
            let (seen, at) = known.seen?;
            Some((*path, seen, Duration::from_nanos(now_ns.saturating_sub(at))))
        })
    }

    /// What has been of no use for longest makes room.
    fn set(&mut self, path: Path, known: Known) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.known.len() >= Self::MOST && !self.known.contains_key(&path) {
            let oldest = self.known.iter().min_by_key(|(path, known)| (known.seen.map(|(_, at)| at), **path));
            let oldest = *oldest.expect("there are many").0;
            self.known.remove(&oldest);
            changes.push(Change::Forgotten(oldest));
        }
        self.known.insert(path, known);
        changes.push(Change::Known(path, known.base));
        changes
    }
}

/// What a socket says, if anything.
pub(crate) fn seen(record: &types::lt_socket_record) -> Option<(Path, Seen)> {
    let duration = |us: u32| (us > 0).then(|| Duration::from_micros(us.into()));
    let base = duration(record.base_us)?;
    let path = Path { local: address(&record.path.local), remote: address(&record.path.remote) };
    Some((path, Seen { base, refuted: duration(record.wrong_hint_us) }))
}

/// A key of the BPF programs' map.
pub(crate) fn key(path: &Path) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(&octets(path.local));
    key[16..].copy_from_slice(&octets(path.remote));
    key
}

fn address(address: &types::lt_address) -> IpAddr {
    let mut octets = [0; 16];
    for (part, word) in octets.chunks_exact_mut(4).zip(address.word) {
        part.copy_from_slice(&word.to_ne_bytes());
    }
    Ipv6Addr::from(octets).to_canonical()
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn to(number: u8) -> Path {
        Path { local: [192, 0, 2, 0].into(), remote: [198, 51, number, 0].into() }
    }

    const fn seen(base: Duration) -> Seen {
        Seen { base, refuted: None }
    }

    #[test]
    fn the_least_counts_until_it_is_refuted() {
        for (known, base, refuted, expected) in [
            (None, 50, None, Some(50)),
            (Some(40), 50, None, None),
            (Some(40), 41, None, Some(40)),
            (Some(40), 30, None, Some(30)),
            (Some(40), 80, Some(40), Some(80)),
            (Some(30), 80, Some(40), None), // somebody knows better meanwhile
        ] {
            let seen = Seen { base: ms(base), refuted: refuted.map(ms) };
            assert_eq!(seen.after(known.map(ms)), expected.map(ms), "{seen:?} after {known:?}");
        }
    }

    #[test]
    fn connections_to_come_are_told_what_is_new() {
        let mut paths = Paths::default();
        assert_eq!(paths.recall(to(1), ms(40)), [Change::Known(to(1), ms(40))]);
        assert_eq!(paths.seen(0).count(), 0, "what was brought along is nobody's word");
        assert_eq!(paths.learn(to(1), seen(ms(60)), 1), []);
        assert_eq!(paths.seen(0).count(), 0, "and there is nothing new in a longer round trip");
        assert_eq!(paths.learn(to(1), seen(ms(41)), 2), []);
        assert_eq!(paths.learn(to(1), seen(ms(39)), 3), [Change::Known(to(1), ms(39))]);
        let wrong = Seen { base: ms(80), refuted: Some(ms(39)) };
        assert_eq!(paths.learn(to(1), wrong, 4), [Change::Known(to(1), ms(80))]);
        assert_eq!(paths.learn(to(1), seen(ms(70)), 5), [Change::Known(to(1), ms(70))]);
        let all: Vec<_> = paths.seen(1_000_000_005).collect();
        assert_eq!(all, [(to(1), Seen { base: ms(70), refuted: Some(ms(39)) }, Duration::from_secs(1))]);
    }

    #[test]
    fn what_has_been_of_no_use_for_longest_makes_room() {
        let mut paths = Paths::default();
        let path = |n: usize| Path { local: [192, 0, 2, 0].into(), remote: [10, (n >> 8) as u8, n as u8, 0].into() };
        for n in 0..Paths::MOST {
            paths.recall(path(n), ms(40));
        }
        paths.learn(path(0), seen(ms(40)), 1);
        assert_eq!(
            paths.learn(path(Paths::MOST), seen(ms(5)), 2),
            [Change::Forgotten(path(1)), Change::Known(path(Paths::MOST), ms(5))]
        );
    }

    #[test]
    fn a_path_is_the_same_in_the_programs() {
        let v6 = Path { local: "2001:db8:1::".parse().unwrap(), remote: "2001:db8:2::".parse().unwrap() };
        for path in [to(7), v6] {
            let key = key(&path);
            let mut record = types::lt_socket_record { base_us: 40_000, ..Default::default() };
            for (word, bytes) in record.path.local.word.iter_mut().zip(key[..16].chunks_exact(4)) {
                *word = u32::from_ne_bytes(bytes.try_into().unwrap());
            }
            for (word, bytes) in record.path.remote.word.iter_mut().zip(key[16..].chunks_exact(4)) {
                *word = u32::from_ne_bytes(bytes.try_into().unwrap());
            }
            assert_eq!(super::seen(&record), Some((path, seen(ms(40)))));
        }
        assert_eq!(super::seen(&types::lt_socket_record::default()), None);
    }
}
