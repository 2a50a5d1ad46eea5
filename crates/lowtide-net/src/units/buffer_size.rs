// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of buffers.

use super::{Rate, UnitError, decimal, format_duration, parse_duration};
use crate::Limit;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const BYTE_UNITS: [(u64, &str); 7] = [
    (1_000_000_000, "gb"),
    (1_000_000, "mb"),
    (1_000, "kb"),
    (1, "b"),
    (1 << 30, "gib"),
    (1 << 20, "mib"),
    (1 << 10, "kib"),
];
const PRINTED_BYTE_UNITS: [(u64, &str); 4] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];

/// The size of a buffer: `150kB`, `64KiB`, `67p` (packets), `30ms` (of the link's rate), `1bdp`
/// (bandwidth-delay products).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferSize {
    /// Bytes.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
    /// What the link sends in this time.
    Time(Duration),
    /// Multiples of what the link sends in one base round-trip time. Finite, not negative.
    Bdp(f64),
}

impl BufferSize {
    /// The limit of a queue in front of a link of this `rate`, on a path with this base round-trip
    /// time and this MTU in bytes. It always has room for one packet: the one in service.
    pub fn resolve(self, rate: Rate, rtt: Duration, mtu: u32) -> Limit {
        let bytes = match self {
            Self::Packets(packets) => return Limit::Packets(packets.max(1)),
            Self::Bytes(bytes) => bytes,
            Self::Time(time) => rate.bytes_in(time.as_nanos()),
            Self::Bdp(factor) => (factor * rate.bytes_in(rtt.as_nanos()) as f64).round() as u64,
        };
        Limit::Bytes(bytes.max(u64::from(mtu)))
    }
}

impl FromStr for BufferSize {
    type Err = UnitError;

    /// Reads a number with one of the units b, kB, MB, GB, KiB, MiB, GiB, p, ns, us, ms, s, bdp.
    ///
    /// # Errors
    /// Another unit, a number that does not fit, or a fraction of a packet.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text);
        let bytes = BYTE_UNITS.iter().find(|(_, name)| *name == unit);
        match (unit.as_str(), bytes) {
            ("p", _) => number.parse().ok().map(Self::Packets),
            ("bdp", _) => number.parse().ok().map(Self::Bdp),
            (_, Some((unit, _))) => decimal::scale(number, *unit).map(Self::Bytes),
            _ => parse_duration(text).ok().map(Self::Time),
        }
        .filter(|size| !matches!(size, Self::Bdp(factor) if !factor.is_finite()))
        .ok_or_else(|| UnitError::new(text, "a buffer size", "1bdp, 150kB, 67p or 30ms"))
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.pad(&decimal::format(*bytes, &PRINTED_BYTE_UNITS)),
            Self::Packets(packets) => f.pad(&format!("{packets}p")),
            Self::Time(time) => f.pad(&format_duration(*time)),
            Self::Bdp(factor) => f.pad(&format!("{factor}bdp")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> BufferSize {
        text.parse().unwrap()
    }

    #[test]
    fn sizes_are_read_and_printed() {
        for (text, value) in [
            ("1bdp", BufferSize::Bdp(1.0)),
            ("0.5bdp", BufferSize::Bdp(0.5)),
            ("150kB", BufferSize::Bytes(150_000)),
            ("1.5MB", BufferSize::Bytes(1_500_000)),
            ("1500B", BufferSize::Bytes(1500)),
            ("64KiB", BufferSize::Bytes(65_536)),
            ("67p", BufferSize::Packets(67)),
            ("30ms", BufferSize::Time(Duration::from_millis(30))),
        ] {
            assert_eq!(size(text), value);
            assert_eq!(size(&value.to_string()), value);
        }
        assert_eq!(size("1500B").to_string(), "1.5kB");
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in ["", "1", "p", "1.5p", "1kbit", "bdp", "1.bdp.", "-1bdp", "1 bdp s"] {
            assert!(wrong.parse::<BufferSize>().is_err(), "{wrong}");
        }
        assert_eq!(
            "big".parse::<BufferSize>().unwrap_err().to_string(),
            "\"big\" is not a buffer size; write it like 1bdp, 150kB, 67p or 30ms"
        );
    }

    #[test]
    fn sizes_become_limits() {
        let limit = |text: &str| {
            let rate = "20mbit".parse().unwrap();
            size(text).resolve(rate, Duration::from_millis(40), 1500)
        };
        assert_eq!(limit("1bdp"), Limit::Bytes(100_000));
        assert_eq!(limit("0.5bdp"), Limit::Bytes(50_000));
        assert_eq!(limit("30ms"), Limit::Bytes(75_000));
        assert_eq!(limit("64KiB"), Limit::Bytes(65_536));
        assert_eq!(limit("67p"), Limit::Packets(67));
        assert_eq!(limit("0bdp"), Limit::Bytes(1500));
        assert_eq!(limit("0p"), Limit::Packets(1));
    }
}
