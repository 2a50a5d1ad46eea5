// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an emulator is asked to be.

use crate::Error;
use lowtide_net::{BufferSize, Discipline, LinkConfig, Probability, Rate};
use std::time::Duration;

/// The two namespaces and the link between them.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of namespace A, the side of the senders.
    pub a: String,
    /// Name of namespace B.
    pub b: String,
    /// Rate from A to B, counted in IP bytes.
    pub rate: Rate,
    /// Rate from B to A; the same as `rate` if `None`.
    pub reverse_rate: Option<Rate>,
    /// Base round-trip time: half of it is the propagation delay of either direction.
    pub rtt: Duration,
    /// Buffer in front of each direction, relative to the rate of that direction.
    pub buffer: BufferSize,
    /// Queue discipline of both directions.
    pub discipline: Discipline,
    /// Probability of loss in either direction, for each packet on its own.
    pub loss: Probability,
    /// Largest IP packet in bytes, 576 to 65535. Below 1280 there is no IPv6 (RFC 8200, section 5).
    pub mtu: u32,
    /// Seed of the losses.
    pub seed: u64,
    /// Ask for real-time scheduling (SCHED_FIFO, the lowest priority) of the thread that moves the
    /// packets; without the permission for that it goes on as an ordinary thread. Worth it on a
    /// busy machine.
    pub realtime: bool,
}

impl Config {
    /// A symmetric link with a tail-drop buffer of one bandwidth-delay product, without loss, with
    /// an MTU of 1500 bytes.
    pub fn new(a: impl Into<String>, b: impl Into<String>, rate: Rate, rtt: Duration) -> Self {
        Self {
            a: a.into(),
            b: b.into(),
            rate,
            reverse_rate: None,
            rtt,
            buffer: BufferSize::Bdp(1.0),
            discipline: Discipline::TailDrop,
            loss: Probability::NEVER,
            mtu: 1500,
            seed: 1,
            realtime: false,
        }
    }

    /// The link from A to B.
    pub fn forward(&self) -> LinkConfig {
        self.direction(self.rate, self.rtt / 2, self.seed)
    }

    /// The link from B to A.
    pub fn reverse(&self) -> LinkConfig {
        let rate = self.reverse_rate.unwrap_or(self.rate);
        self.direction(rate, self.rtt - self.rtt / 2, self.seed.wrapping_add(1))
    }

    fn direction(&self, rate: Rate, delay: Duration, seed: u64) -> LinkConfig {
        LinkConfig {
            rate,
            delay,
            limit: self.buffer.resolve(rate, self.rtt, self.mtu),
            discipline: self.discipline,
            loss: self.loss,
            seed,
        }
    }

    /// # Errors
    /// [`Error::Config`] if a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for name in [&self.a, &self.b] {
            let valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > 100 || name.starts_with(['.', '-']) || !name.chars().all(valid) {
                return Err(Error::Config(format!(
                    "\"{name}\" cannot name a network namespace; use letters, digits, - and _"
                )));
            }
        }
        if self.a == self.b {
            return Err(Error::Config(format!(
                "the two network namespaces need different names, not twice {}",
                self.a
            )));
        }
        if !(576..=65_535).contains(&self.mtu) {
            return Err(Error::Config(format!(
                "an MTU of {} bytes is not possible; choose one from 576 to 65535",
                self.mtu
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_net::Limit;

    fn config() -> Config {
        Config::new("a", "b", "20mbit".parse().unwrap(), Duration::from_millis(41))
    }

    #[test]
    fn the_directions_share_the_round_trip() {
        let config = Config { reverse_rate: Some("2mbit".parse().unwrap()), ..config() };
        let (forward, reverse) = (config.forward(), config.reverse());
        assert_eq!(forward.delay + reverse.delay, config.rtt);
        assert_eq!(forward.limit, Limit::Bytes(102_500));
        assert_eq!(reverse.limit, Limit::Bytes(10_250));
        assert_ne!(forward.seed, reverse.seed);
    }

    #[test]
    fn impossible_values_are_refused_in_a_sentence() {
        let refusal = |config: Config| config.check().unwrap_err().to_string();
        assert!(config().check().is_ok());
        let config = |a: &str, mtu| Config { a: a.into(), mtu, ..config() };
        assert!(refusal(config("b", 1500)).contains("different names"));
        assert!(refusal(config("a", 575)).contains("576 to 65535"));
        for name in ["", "..", "-n", "x/y", "x y"] {
            assert!(refusal(config(name, 1500)).contains("cannot name"), "{name}");
        }
    }
}
