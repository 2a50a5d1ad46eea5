// SPDX-License-Identifier: MIT OR Apache-2.0
//! From which network to which a connection goes.

use std::net::{IpAddr, Ipv6Addr};

unsafe extern "C" {
    fn native_path_between(path: *mut [[u8; 16]; 2], local: *const [u32; 4], remote: *const [u32; 4]) -> bool;
}

/// As the kernel has it: IPv4 within IPv6, in network order.
fn words(address: &str) -> [u32; 4] {
    let octets = match address.parse().unwrap() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    std::array::from_fn(|n| u32::from_ne_bytes(octets[4 * n..][..4].try_into().unwrap()))
}

fn path(local: &str, remote: &str) -> Option<[String; 2]> {
    let mut path = [[0; 16]; 2];
    // SAFETY: both structures are of 32-bit words alone, and the function keeps no pointer.
    let there = unsafe { native_path_between(&raw mut path, &words(local), &words(remote)) };
    there.then(|| path.map(|octets| Ipv6Addr::from(octets).to_canonical().to_string()))
}

#[test]
fn networks_have_24_bits_and_48() {
    for (local, remote, networks) in [
        ("192.0.2.77", "198.51.100.255", ["192.0.2.0", "198.51.100.0"]),
        ("::ffff:192.0.2.77", "::ffff:198.51.100.9", ["192.0.2.0", "198.51.100.0"]),
        ("2001:db8:aaaa:1::5", "2001:db8:bbbb:ffff:ffff::1", ["2001:db8:aaaa::", "2001:db8:bbbb::"]),
        ("10.0.0.1", "10.0.0.2", ["10.0.0.0", "10.0.0.0"]),
    ] {
        assert_eq!(path(local, remote), Some(networks.map(str::to_owned)), "{local} {remote}");
    }
}

#[test]
fn what_stays_within_the_machine_is_no_path() {
    for (local, remote) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "127.9.9.9"),
        ("::1", "::1"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::5", "2001:db8::5"),
        ("0.0.0.0", "0.0.0.0"),
    ] {
        assert_eq!(path(local, remote), None, "{local} {remote}");
    }
}
