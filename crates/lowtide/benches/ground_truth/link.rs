// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's link and hosts, as the emulator and the kernel have them.

use super::Failure;
use lowtide_cc::EcnUse;
use lowtide_emu::{Config, Namespace};
use lowtide_sim::scenario::{Bottleneck, Flow, Scenario, Tcp, Transport};
use std::fs;

/// The same link; what the emulator cannot be is refused. `run` is part of the seed.
pub(crate) fn configuration(scenario: &Scenario, run: u64) -> Result<Config, Failure> {
    let [link] = scenario.bottlenecks.as_slice() else { return Err("the emulator has one bottleneck".into()) };
    let Some(reverse) = &scenario.reverse else { return Err("the emulator's reverse direction has a rate".into()) };
    let both = |it: &Bottleneck| {
        (
            it.schedule.clone(),
            it.rtt,
            it.buffer,
            it.queue.clone(),
            it.loss,
            it.jitter,
            it.reordering,
            it.police,
            it.burst,
        )
    };
    if both(link) != both(reverse) {
        return Err("both directions of the emulator have the same queue and the same chance".into());
    }
    let name = |side| format!("lt{}truth{side}", std::process::id());
    Ok(Config {
        reverse_rate: Some(reverse.rate),
        schedule: link.schedule.clone(),
        burst: link.burst,
        extra_delays: scenario.flows.iter().map(|flow| flow.rtt.saturating_sub(link.rtt)).collect(),
        buffer: link.buffer,
        discipline: link.queue.clone(),
        loss: link.loss,
        jitter: link.jitter,
        reordering: link.reordering,
        police: link.police,
        seed: scenario.seed.wrapping_add(run),
        realtime: true,
        ..Config::new(name("a"), name("b"), link.rate, link.rtt)
    })
}

/// What the kernel sets per namespace and the simulator per flow.
pub(crate) fn prepare(namespace: &Namespace, scenario: &Scenario) -> Result<(), Failure> {
    let tcp: Vec<&Tcp> = scenario.flows.iter().filter_map(tcp).collect();
    let ecn = tcp.iter().any(|tcp| tcp.law.ecn_use() == EcnUse::Classic);
    let validate = tcp.iter().all(|tcp| tcp.validate_window);
    let receive = tcp.iter().map(|tcp| tcp.receive_window).max().unwrap_or(6 << 20);
    for (name, value) in [
        ("tcp_ecn", if ecn { "1" } else { "0" }.to_owned()),
        ("tcp_slow_start_after_idle", u8::from(validate).to_string()),
        ("tcp_rmem", format!("4096 131072 {receive}")),
        ("tcp_wmem", format!("4096 16384 {}", 2 * receive)),
    ] {
        namespace
            .run(|| fs::write(format!("/proc/sys/net/ipv4/{name}"), value))?
            .map_err(|it| format!("{name}: {it}"))?;
    }
    Ok(())
}

/// What a flow sets of TCP, if it is one.
pub(crate) fn tcp(flow: &Flow) -> Option<&Tcp> {
    match &flow.transport {
        Transport::Tcp(tcp) => Some(tcp),
        Transport::Udp => None,
    }
}
