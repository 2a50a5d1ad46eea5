// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group that is there already: its open sockets get the law, and at the end what they had before. Sockets are found
//! by their network namespace, so each that a process of the group is in is looked at.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    net::IpAddr,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    thread,
};

use libbpf_rs::{Iter, Link};
use nix::sched::{CloneFlags, setns};

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

/// The network namespaces of a group's processes, each held by a file, by its number.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    known: BTreeMap<u64, File>,
}

/// A process can be in as many as it likes, one after the other, and what is held stays: so no more are held than this.
const MOST_NETWORKS: usize = 256;
/// A look takes a millisecond or more for each new one, and we have other things to do: after the first look no more
/// than these at a time.
const NEW_NETWORKS: usize = 16;

impl Networks {
    /// Those that these processes have come to be in since the last look, the numbers of the new ones; and how
    /// many more there was no room for. Those without processes make room.
    pub(crate) fn look(&mut self, processes: &[i32]) -> (Vec<u64>, u32) {
        // one that has ended meanwhile is in none
        let place = |pid: i32| PathBuf::from(format!("/proc/{pid}/ns/net"));
        let number = |path: PathBuf| Some((fs::metadata(&path).ok()?.ino(), path));
        let now: BTreeMap<u64, PathBuf> = processes.iter().filter_map(|pid| number(place(*pid))).collect();
        let new: Vec<_> = now.iter().filter(|(number, _)| !self.known.contains_key(number)).collect();
        if self.known.len() + new.len() > MOST_NETWORKS {
            self.known.retain(|number, _| now.contains_key(number));
        }
        let room = MOST_NETWORKS.saturating_sub(self.known.len());
        let most = if self.known.is_empty() { room } else { room.min(NEW_NETWORKS) };
        let mut taken = Vec::new();
        for (_, path) in new.iter().take(most) {
            // the process may be elsewhere by now
            let Ok(network) = File::open(path) else { continue };
            let Ok(about) = network.metadata() else { continue };
            if self.known.insert(about.ino(), network).is_none() {
                taken.push(about.ino());
            }
        }
        (taken, new.len().saturating_sub(room) as u32)
    }

    pub(crate) fn all(&self) -> Vec<u64> {
        self.known.keys().copied().collect()
    }

    /// Reads the iterator in these namespaces.
    ///
    /// # Errors
    /// [`Error::Observe`]: no right to enter one, or the read fails; all others have been read then.
    pub(crate) fn read(&self, iterator: &Link, networks: &[u64]) -> Result<Taken> {
        let (mut taken, mut failed) = (Taken::default(), None);
        for network in networks.iter().filter_map(|number| self.known.get(number)) {
            let bytes = match read_in(network, iterator) {
                Ok(bytes) => bytes,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            for answer in bytes.chunks_exact(size_of::<types::lt_taken>()) {
                let mut one = types::lt_taken::default();
                plain::copy_from_bytes(&mut one, answer).expect("as long as an answer");
                taken.taken += one.taken;
                if one.taken == 0 {
                    taken.refused += 1;
                    taken.errno = Some(-one.error);
                }
            }
        }
        failed.map_or(Ok(taken), |error| Err(Error::Observe(error)))
    }
}

/// A thread of its own enters the namespace and ends with it: this one stays where it is.
fn read_in(network: &File, iterator: &Link) -> io::Result<Vec<u8>> {
    // a link is no thread's own, but its type does not say so
    struct Shared<'a>(&'a Link);
    // SAFETY: reading takes the link's descriptor and nothing else, and this thread waits for the other one.
    unsafe impl Send for Shared<'_> {}
    let shared = Shared(iterator);
    let read = move || {
        let shared = shared;
        setns(network, CloneFlags::CLONE_NEWNET)?;
        let mut bytes = Vec::new();
        Iter::new(shared.0).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    thread::scope(|scope| scope.spawn(read).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
