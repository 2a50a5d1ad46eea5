// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario with the TCP of this machine's kernel, in real time, and records it.

use crate::{
    access,
    bottleneck::Bottleneck,
    clock::Clock,
    emulated, hosts,
    laws::{self, Host},
    modules,
    priority::{Lateness, raise_priority},
    record::{Recorder, Sample},
    route::Route,
    supported, tc,
    traffic::{Flows, Traffic},
};
use anyhow::{Result, anyhow, bail};
use lowtide_cc::Random;
use lowtide_kernel::Registration;
use lowtide_lab::{Packets, Recording, testbed::Request};
use std::{path::Path, thread, time::Duration};

/// What the kernel's own laws need to have set, of a scenario that a kernel with these laws can run; or why it cannot,
/// in a sentence.
pub(crate) fn parameters(request: &Request, bottleneck: Bottleneck, laws: &str) -> Result<modules::Parameters, String> {
    modules::wanted(&supported::hosts(request, bottleneck, laws)?)
}

/// How to run it.
pub struct Options<'a> {
    /// What is between the hosts.
    pub bottleneck: Bottleneck,
    /// Lowtide's own program.
    pub program: &'a Path,
    /// Whether a law of ours is registered even where it can outlive its process.
    pub plain_registration: bool,
    /// Asked now and then: whether to give up.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// Runs it, in as much time as it says.
///
/// # Errors
/// A refusal, an interruption, or what went wrong.
pub fn run(request: &Request, options: &Options<'_>) -> Result<Recording> {
    let hosts = supported::hosts(request, options.bottleneck, &laws::available())
        .and_then(|hosts| modules::check(&modules::wanted(&hosts)?).map(|()| hosts))
        .map_err(|why| anyhow!("this cannot run here: {why}"))?;
    if !options.plain_registration
        && hosts.iter().any(Host::has_our_law)
        && Registration::of_this_kernel() == Registration::Plain
    {
        bail!(
            "before Linux 6.4 a law of ours can outlive its process, so it is only registered on a machine that ends with the \
             run, as a guest does"
        );
    }
    let seen = thread::scope(|scope| {
        let all = || {
            raise_priority();
            observe(request, &hosts, options)
        };
        scope.spawn(all).join().map_err(|_| anyhow!("what runs it panicked"))
    })??;
    let mut recorder = Recorder::new(&request.scenario);
    seen.samples.into_iter().for_each(|sample| recorder.record(sample));
    Ok(recorder.finish(&seen.finished, seen.packets, seen.standstill))
}

/// What was seen of a run.
struct Run {
    samples: Vec<Sample>,
    /// When all data of each flow had been acknowledged.
    finished: Vec<Option<Duration>>,
    /// Of the flows of datagrams, those that arrived.
    packets: Vec<Option<Packets>>,
    /// For how long the machine did not run who should have run, at the most.
    standstill: Duration,
}

fn observe(request: &Request, hosts: &[Host], options: &Options<'_>) -> Result<Run> {
    let scenario = &request.scenario;
    let route: Box<dyn Route> = match options.bottleneck {
        Bottleneck::Emulator => Box::new(emulated::Emulated::start(scenario)?),
        Bottleneck::Tc => Box::new(tc::Tc::start(scenario)?),
    };
    hosts::prepare(&*route, scenario)?;
    let priorities = access::prepare(&*route, &scenario.flows)?;
    let clock = Clock::default();
    let mut flows = Flows::new(&clock);
    let mut seeds = Random::new(scenario.seed);
    for (index, ((flow, host), priority)) in scenario.flows.iter().zip(hosts).zip(priorities).enumerate() {
        let of = (index, flow, host);
        flows.flows.push(Traffic::start(&*route, of, seeds.bits(), priority, options.program, &clock)?);
    }
    // with tc the time is the kernel's own, and in a guest only work takes time
    let lateness = (options.bottleneck == Bottleneck::Emulator).then(Lateness::start);
    let look = |flows: &Flows<'_>, due| -> Result<Sample> {
        let at = clock.now();
        Ok(Sample { due, at, flows: flows.flows.iter().map(Traffic::see).collect(), links: route.counts()? })
    };
    route.begin();
    clock.begin();
    let mut samples = vec![look(&flows, Duration::ZERO)?];
    let mut due = scenario.sample_interval;
    while due <= scenario.duration {
        clock.sleep_until(due);
        samples.push(look(&flows, due)?);
        flows.check()?;
        due += scenario.sample_interval;
        if (options.interrupted)() {
            bail!("interrupted");
        }
    }
    clock.end();
    let standstill = lateness.map_or(Duration::ZERO, Lateness::stop);
    let finished = flows.flows.iter().map(Traffic::finished).collect();
    let packets = flows.flows.iter().zip(hosts);
    let packets = packets.map(|(flow, host)| matches!(host, Host::Nobody).then(|| flow.arrivals().into())).collect();
    flows.end()?;
    route.stop()?;
    Ok(Run { samples, finished, packets, standstill })
}
