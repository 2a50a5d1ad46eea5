// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel sets for a whole host, and a scenario for each flow.

use crate::route::Route;
use anyhow::{Context, Result, anyhow};
use lowtide_cc::EcnUse;
use lowtide_emu::Namespace;
use lowtide_sim::scenario::{Flow, Scenario, Tcp, Transport};
use std::fs;

/// Sets both hosts up.
pub(crate) fn prepare(route: &dyn Route, scenario: &Scenario) -> Result<()> {
    [route.a(), route.b()].into_iter().try_for_each(|host| prepare_one(host, scenario))
}

fn prepare_one(host: &Namespace, scenario: &Scenario) -> Result<()> {
    let tcp: Vec<&Tcp> = scenario.flows.iter().filter_map(tcp).collect();
    let ecn = tcp.iter().any(|tcp| tcp.law.ecn_use() != EcnUse::Off);
    let validate = tcp.iter().all(|tcp| tcp.validate_window);
    let receive = tcp.iter().map(|tcp| tcp.receive_window).max().unwrap_or(6 << 20);
    // of its memory a kernel advertises half (6.1) or five eighths (6.18, at whole segments); it shall be no less than
    // is asked for
    let memory = 2 * receive;
    for (name, value) in [
        ("tcp_ecn", if ecn { "1" } else { "0" }.to_owned()),
        ("tcp_slow_start_after_idle", u8::from(validate).to_string()),
        ("tcp_rmem", format!("4096 131072 {memory}")),
        ("tcp_wmem", format!("4096 16384 {memory}")),
    ] {
        host.run(|| fs::write(format!("/proc/sys/net/ipv4/{name}"), value))?.map_err(|it| anyhow!("{name}: {it}"))?;
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

/// The kernel's release.
pub(crate) fn release() -> Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").context("reading the kernel's release")?;
    Ok(text.trim().to_owned())
}
