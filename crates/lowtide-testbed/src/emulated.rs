// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's bottleneck as the emulator has it.

use crate::route::{Counts, Route};
use anyhow::Result;
use lowtide_emu::{Config, DEVICE, Emulator, Namespace};
use lowtide_net::{Amount, LossModel, Rate, Reordering, Statistics};
use lowtide_sim::scenario::{Bottleneck, Scenario};
use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU32, Ordering},
};

/// The rate of a direction without a bottleneck: 100 Gbit/s, at which nothing waits.
const UNLIMITED: u64 = 100_000_000_000;

/// Why the emulator cannot be this scenario's path.
pub(crate) fn refusal(scenario: &Scenario) -> Option<String> {
    let [link] = scenario.bottlenecks.as_slice() else {
        return Some("the emulator has one bottleneck, and this scenario more".to_owned());
    };
    let chance = |it: &Bottleneck| (it.loss, it.reordering, it.police);
    let same = match &scenario.reverse {
        Some(reverse) => {
            let queue = |it: &Bottleneck| (it.schedule.clone(), it.rtt, it.buffer, it.queue.clone(), it.burst);
            queue(link) == queue(reverse) && chance(link) == chance(reverse) && link.jitter == reverse.jitter
        }
        // a burst of a direction where nothing waits is none
        None => chance(link) == (LossModel::NONE, Reordering::NONE, None) && link.jitter == link.reverse_jitter,
    };
    if !same {
        let what = "both directions of the emulator have the same queue, buffer, round trip, schedule, burst, policer, loss, jitter and \
                    reordering, which this scenario has not";
        return Some(what.to_owned());
    }
    let nearer = scenario.flows.iter().find(|flow| flow.rtt < link.rtt);
    nearer.map(|flow| format!("{}: its rtt is below the bottleneck's", flow.name))
}

fn configuration(scenario: &Scenario) -> Result<Config> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let link = &scenario.bottlenecks[0];
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = |side| format!("lt{}bed{number}{side}", std::process::id());
    let unlimited = Rate::from_bits_per_second(UNLIMITED).expect("it is above zero");
    Ok(Config {
        reverse_rate: Some(scenario.reverse.as_ref().map_or(unlimited, |reverse| reverse.rate)),
        schedule: link.schedule.clone(),
        reverse_schedule: scenario.reverse.as_ref().and_then(|reverse| reverse.schedule.clone()),
        burst: link.burst,
        rtt_schedule: link.rtt_schedule.clone(),
        extra_delays: scenario.flows.iter().map(|flow| flow.rtt.saturating_sub(link.rtt)).collect(),
        buffer: link.buffer,
        discipline: link.queue.clone(),
        loss: link.loss,
        jitter: link.jitter,
        reordering: link.reordering,
        police: link.police,
        seed: scenario.seed,
        realtime: true,
        ..Config::new(name("a"), name("b"), link.rate, link.rtt)
    })
}

/// An emulator.
pub(crate) struct Emulated(Emulator);

impl Emulated {
    /// For a scenario that was not refused.
    pub(crate) fn start(scenario: &Scenario) -> Result<Self> {
        Ok(Self(Emulator::start_held(configuration(scenario)?)?))
    }
}

impl Route for Emulated {
    fn a(&self) -> &Namespace {
        self.0.a()
    }

    fn b(&self) -> &Namespace {
        self.0.b()
    }

    fn a_device(&self) -> &str {
        DEVICE
    }

    fn b_device(&self) -> &str {
        DEVICE
    }

    fn a4(&self) -> Ipv4Addr {
        self.0.a4()
    }

    fn b4(&self, flow: usize) -> Ipv4Addr {
        self.0.far4(flow).expect("there is one for each flow")
    }

    fn begin(&self) {
        self.0.begin();
    }

    fn counts(&self) -> Result<[Counts; 2]> {
        self.0.check()?;
        let totals = self.0.totals();
        Ok([counts(&totals.forward, totals.forward_queue), counts(&totals.reverse, totals.reverse_queue)])
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.0.stop()?;
        Ok(())
    }
}

fn counts(statistics: &Statistics, queue: Amount) -> Counts {
    Counts {
        packets: statistics.delivered.packets,
        bytes: statistics.delivered.bytes,
        drops: statistics.dropped().packets,
        marks: statistics.marked.packets,
        queued_packets: queue.packets,
        queued_bytes: queue.bytes,
        waited: statistics.queueing_delay_sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn scenario(link: &str) -> Scenario {
        let text = format!(
            "duration = \"9s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"20ms\"\n{link}[[flow]]\nname = \"a\"\ncc = \"reno\"\n"
        );
        Scenario::parse(&text, Path::new("test"), &[]).unwrap()
    }

    #[test]
    fn jitter_and_round_trips_are_those_of_the_simulator() {
        let scenario = scenario(
            "jitter = \"3ms:normal\"\nreverse_jitter = \"3ms:normal\"\nrtt_schedule = [{ at = \"5s\", rtt = \"80ms\" }]\n",
        );
        assert_eq!(refusal(&scenario), None);
        let (config, link) = (configuration(&scenario).unwrap(), &scenario.bottlenecks[0]);
        let [there, back] = link.wires(1).map(|wire| wire.expect("the round trip changes"));
        assert_eq!((config.forward().jitter, config.reverse().jitter), (link.jitter, back.jitter));
        assert_eq!((config.forward().delay, config.reverse().delay), (there.delay, back.delay));
    }

    #[test]
    fn jitter_of_one_way_alone_is_refused() {
        for link in ["jitter = \"3ms\"\n", "reverse_jitter = \"3ms\"\n"] {
            assert!(refusal(&scenario(link)).unwrap().contains("both directions of the emulator"), "{link}");
        }
    }
}
