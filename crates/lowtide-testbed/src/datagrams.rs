// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of datagrams: frames that come at times of their own. Each datagram begins with when its frame was sent.

use crate::{
    board::{Board, Ends, Work, on_host},
    clock::{Clock, PATIENCE},
    priority::raise_priority,
    socket,
};
use anyhow::{Context, Result, bail};
use lowtide_cc::Random;
use lowtide_sim::scenario::{Flow, MTU, Source, UDP_HEADER};
use std::{net::UdpSocket, thread, time::Duration};

/// The most that a datagram carries.
const PAYLOAD: usize = (MTU - UDP_HEADER) as usize;

/// The time that a datagram begins with: nanoseconds since the beginning.
const STAMP: usize = size_of::<u64>();

/// Sender and receiver of a flow, with the class, the priority on its host and the seed of its chance.
pub(crate) fn start(
    ends: &Ends<'_>,
    flow: &Flow,
    (tos, priority, seed): (u8, Option<u32>, u64),
    clock: Clock,
    board: &Board,
) -> Result<Vec<Work>> {
    let (from, at) = (ends.from, ends.to);
    let receiver = ends.receiver.run(|| UdpSocket::bind((at, 0)))??;
    let to = receiver.local_addr()?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let (board, until) = (board.clone(), clock.clone());
    let sink = thread::spawn(move || {
        raise_priority();
        let mut buffer = vec![0; 1 << 16];
        while !until.is_over() {
            if let Ok(bytes) = receiver.recv(&mut buffer) {
                let arrived = until.now();
                board.receive(bytes);
                let stamp = buffer[..bytes].first_chunk::<STAMP>().context("a datagram came without its time")?;
                board.arrive(Duration::from_nanos(u64::from_be_bytes(*stamp)), arrived);
            }
        }
        Ok(())
    });
    let (mut frames, start, stop) = (Frames::new(&flow.source, seed)?, flow.start, flow.stop);
    let name = flow.name.clone();
    let mut scatter = move || -> Result<()> {
        let sender = UdpSocket::bind((from, 0))?;
        socket::mark(&sender, tos, priority)?;
        let mut payload = vec![0; PAYLOAD];
        while let Some((due, bytes)) = frames.next() {
            if !clock.sleep_until(start + due) || !clock.goes_on(stop) {
                break;
            }
            payload[..STAMP].copy_from_slice(&(clock.now().as_nanos() as u64).to_be_bytes());
            let mut left = bytes as usize;
            while left > 0 {
                let part = left.min(payload.len());
                sender.send_to(&payload[..part], to)?;
                left -= part;
            }
        }
        Ok(())
    };
    let source = on_host(ends.sender, move || scatter().with_context(|| format!("the sender of {name}")))?;
    Ok(vec![sink, source])
}

/// The frames of a source, with their times after its start.
struct Frames {
    source: Source,
    random: Random,
    next: Duration,
    number: usize,
}

impl Frames {
    fn new(source: &Source, seed: u64) -> Result<Self> {
        let no_room = |bytes: &u64| (1..STAMP as u64).contains(&(bytes % PAYLOAD as u64));
        let without_room = match source {
            Source::Constant { bytes, .. } | Source::Poisson { bytes, .. } => Some(*bytes).filter(no_room),
            Source::Trace(entries) => entries.iter().map(|(_, bytes)| *bytes).find(no_room),
            _ => bail!("datagrams need a source with times of its own"),
        };
        if let Some(bytes) = without_room {
            bail!("of {bytes} B the last datagram has no room for its {STAMP} B of time");
        }
        Ok(Self { source: source.clone(), random: Random::new(seed), next: Duration::ZERO, number: 0 })
    }

    fn next(&mut self) -> Option<(Duration, u64)> {
        let number = self.number;
        self.number += 1;
        match &self.source {
            Source::Constant { bytes, interval } => Some((interval.saturating_mul(number as u32), *bytes)),
            Source::Poisson { bytes, mean } => {
                self.next += mean.mul_f64(-libm::log(1.0 - self.random.uniform()));
                Some((self.next, *bytes))
            }
            Source::Trace(entries) => entries.get(number).copied(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(source: &str) -> impl Iterator<Item = (Duration, u64)> {
        let mut frames = Frames::new(&source.parse().unwrap(), 1).unwrap();
        std::iter::from_fn(move || frames.next())
    }

    #[test]
    fn frames_come_when_their_source_says() {
        let ms = Duration::from_millis;
        let constant: Vec<_> = frames("cbr:bytes=20kB,interval=40ms").take(3).collect();
        assert_eq!(constant, [(ms(0), 20_000), (ms(40), 20_000), (ms(80), 20_000)]);
        assert_eq!(frames("at:1s=1kB,2s=2kB").collect::<Vec<_>>(), [(ms(1000), 1000), (ms(2000), 2000)]);
        let (last, _) = frames("poisson:mean=10ms").nth(9999).unwrap();
        assert!((95.0..105.0).contains(&last.as_secs_f64()), "{last:?}");
        for source in ["greedy", "cbr:bytes=1479B,interval=1ms", "at:1s=8B,2s=7B"] {
            assert!(Frames::new(&source.parse().unwrap(), 1).is_err(), "{source}");
        }
    }
}
