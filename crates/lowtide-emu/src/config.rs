// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of an emulator.

use crate::{Error, far};
use lowtide_net::{
    BufferSize, DelaySchedule, Discipline, Jitter, LinkConfig, LossModel, Police, Rate, Reordering, Schedule,
};
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
    /// Capacity from A to B over time, from the start of the emulator on, in the place of `rate`, which
    /// is then what the buffer's size refers to.
    pub schedule: Option<Schedule>,
    /// The same from B to A. If `None`, and there is no `reverse_rate` either, it is `schedule`.
    pub reverse_schedule: Option<Schedule>,
    /// Size of either shaper's token bucket in bytes; zero for none. See [`LinkConfig::burst`].
    pub burst: u64,
    /// Base round-trip time: half of it is the propagation delay of either direction.
    pub rtt: Duration,
    /// Base round-trip time over time, from the start of the emulator on, in the place of `rtt`, which is then what
    /// the buffer's size refers to. Packets keep their order where it falls; see [`LinkConfig::delay`].
    pub rtt_schedule: Option<DelaySchedule>,
    /// For each of them, B has a further address whose base round-trip time is so much longer, half of it behind the
    /// link in either direction; see [`Emulator::far4`](crate::Emulator::far4).
    pub extra_delays: Vec<Duration>,
    /// Buffer in front of each direction, relative to the rate of that direction.
    pub buffer: BufferSize,
    /// Queue discipline of both directions.
    pub discipline: Discipline,
    /// Random loss in either direction.
    pub loss: LossModel,
    /// Random delay in either direction that keeps the order.
    pub jitter: Jitter,
    /// Packets that fall back behind others, in either direction.
    pub reordering: Reordering,
    /// Policing of either direction, before the queue.
    pub police: Option<Police>,
    /// Largest IP packet in bytes, 576 to 65535. Below 1280 there is no IPv6 (RFC 8200, section 5).
    pub mtu: u32,
    /// Seed of all that is random.
    pub seed: u64,
    /// Keep a record of every packet from A to B, see [`Emulator::arrivals`](crate::Emulator::arrivals).
    /// It grows as long as the emulator runs.
    pub record: bool,
    /// Ask for real-time scheduling (SCHED_FIFO, the lowest priority) of the thread that moves the
    /// packets; without the permission for that it goes on as an ordinary thread. Worth it on a
    /// busy machine.
    pub realtime: bool,
}

impl Config {
    /// A symmetric link with a buffer of one bandwidth-delay product and tail drop, with nothing random,
    /// with an MTU of 1500 bytes.
    pub fn new(a: impl Into<String>, b: impl Into<String>, rate: Rate, rtt: Duration) -> Self {
        Self {
            a: a.into(),
            b: b.into(),
            rate,
            reverse_rate: None,
            schedule: None,
            reverse_schedule: None,
            burst: 0,
            rtt,
            rtt_schedule: None,
            extra_delays: Vec::new(),
            buffer: BufferSize::Bdp(1.0),
            discipline: Discipline::DropTail,
            loss: LossModel::NONE,
            jitter: Jitter::NONE,
            reordering: Reordering::NONE,
            police: None,
            mtu: 1500,
            seed: 1,
            record: false,
            realtime: false,
        }
    }

    /// The link from A to B.
    pub fn forward(&self) -> LinkConfig {
        self.direction(self.rate, self.schedule.as_ref(), |rtt| rtt / 2, self.seed)
    }

    /// The link from B to A.
    pub fn reverse(&self) -> LinkConfig {
        let rate = self.reverse_rate.unwrap_or(self.rate);
        let inherited = self.schedule.as_ref().filter(|_| self.reverse_rate.is_none());
        let schedule = self.reverse_schedule.as_ref().or(inherited);
        self.direction(rate, schedule, |rtt| rtt - rtt / 2, self.seed.wrapping_add(1))
    }

    /// `part` is this direction's of a round trip.
    fn direction(
        &self,
        rate: Rate,
        schedule: Option<&Schedule>,
        part: impl Fn(Duration) -> Duration,
        seed: u64,
    ) -> LinkConfig {
        let delay = self.rtt_schedule.as_ref().map_or_else(|| part(self.rtt).into(), |rtt| rtt.map(&part));
        LinkConfig {
            burst: self.burst,
            jitter: self.jitter,
            reordering: self.reordering,
            discipline: self.discipline.clone(),
            loss: self.loss,
            police: self.police,
            seed,
            ..LinkConfig::new(
                schedule.cloned().unwrap_or(rate.into()),
                delay,
                self.buffer.resolve(rate, self.rtt, self.mtu),
            )
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
        if self.extra_delays.len() > far::MOST {
            return Err(Error::Config(format!(
                "{} extra delays are too many; give at most {}",
                self.extra_delays.len(),
                far::MOST
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
    use lowtide_net::{Limit, Time};

    fn config() -> Config {
        Config::new("a", "b", "20mbit".parse().unwrap(), Duration::from_millis(41))
    }

    #[test]
    fn the_directions_share_the_round_trip() {
        let config = Config { reverse_rate: Some("2mbit".parse().unwrap()), ..config() };
        let (forward, reverse) = (config.forward(), config.reverse());
        let at = Time::ZERO;
        assert_eq!(forward.delay.at(at) + reverse.delay.at(at), config.rtt);
        assert_eq!(forward.limit, Limit::Bytes(102_500));
        assert_eq!(reverse.limit, Limit::Bytes(10_250));
        assert_ne!(forward.seed, reverse.seed);
    }

    #[test]
    fn a_round_trip_that_changes_is_shared_all_the_time() {
        let rtt: DelaySchedule = "0s:20ms,10s:201ns,every:15s".parse().unwrap();
        let config = Config { rtt_schedule: Some(rtt), ..config() };
        let (forward, reverse) = (config.forward(), config.reverse());
        assert_eq!(forward.delay.to_string(), "0s:10ms,10s:100ns,every:15s");
        assert_eq!(reverse.delay.to_string(), "0s:10ms,10s:101ns,every:15s");
        assert_eq!(forward.limit, Limit::Bytes(102_500), "of the round trip that is given");
    }

    #[test]
    fn the_reverse_direction_is_as_the_forward_one_unless_told_otherwise() {
        let steps: Schedule = "0s:20mbit,1s:10mbit".parse().unwrap();
        let other: Schedule = "0s:5mbit,2s:1mbit".parse().unwrap();
        let rate: Rate = "2mbit".parse().unwrap();
        let both = Config { schedule: Some(steps.clone()), ..config() };
        assert_eq!((both.forward().capacity, both.reverse().capacity), (steps.clone(), steps));
        let own_rate = Config { reverse_rate: Some(rate), ..both.clone() };
        assert_eq!(own_rate.reverse().capacity, rate.into());
        let own_schedule = Config { reverse_schedule: Some(other.clone()), ..own_rate };
        assert_eq!(own_schedule.reverse().capacity, other);
        assert_eq!(own_schedule.reverse().limit, Limit::Bytes(10_250), "of the rate that is given");
        assert_eq!(config().reverse().capacity, config().rate.into());
    }

    #[test]
    fn impossible_values_are_refused_in_a_sentence() {
        let refusal = |config: Config| config.check().unwrap_err().to_string();
        assert!(config().check().is_ok());
        let config = |a: &str, mtu| Config { a: a.into(), mtu, ..config() };
        assert!(refusal(config("b", 1500)).contains("different names"));
        assert!(refusal(config("a", 575)).contains("576 to 65535"));
        let many = Config { extra_delays: vec![Duration::ZERO; 201], ..self::config() };
        assert!(refusal(many).contains("at most 200"));
        for name in ["", "..", "-n", "x/y", "x y"] {
            assert!(refusal(config(name, 1500)).contains("cannot name"), "{name}");
        }
    }
}
