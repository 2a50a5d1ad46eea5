// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of datagrams: frames that come at times of their own.

use super::{
    clock::{Clock, PATIENCE},
    punctual::be_punctual,
    socket,
    traffic::{Board, Ends, Work, on_host},
};
use anyhow::{Context, Result, bail};
use lowtide_cc::Random;
use lowtide_sim::scenario::{Flow, MTU, Source, UDP_HEADER};
use std::{net::UdpSocket, thread, time::Duration};

/// Sender and receiver of a flow, with the class, the priority on its host and the seed of its chance.
pub(super) fn start(
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
        be_punctual();
        let mut buffer = vec![0; 1 << 16];
        while !until.is_over() {
            if let Ok(bytes) = receiver.recv(&mut buffer) {
                board.receive(bytes);
            }
        }
        Ok(())
    });
    let (mut frames, start, stop) = (Frames::new(&flow.source, seed)?, flow.start, flow.stop);
    let name = flow.name.clone();
    let mut scatter = move || -> Result<()> {
        let sender = UdpSocket::bind((from, 0))?;
        socket::mark(&sender, tos, priority)?;
        let payload = vec![0; (MTU - UDP_HEADER) as usize];
        while let Some((due, bytes)) = frames.next() {
            if !clock.sleep_until(start + due) || !clock.goes_on(stop) {
                break;
            }
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
        if !source.is_timed() {
            bail!("datagrams need a source with times of its own");
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
        assert!(Frames::new(&"greedy".parse().unwrap(), 1).is_err());
    }
}
