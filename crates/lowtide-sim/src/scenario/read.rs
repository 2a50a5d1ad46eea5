// SPDX-License-Identifier: MIT OR Apache-2.0
//! From TOML to a scenario that can be simulated.

use super::{
    Bottleneck, Scenario, ScenarioError, Tcp,
    flow::{self, Surroundings},
    frame::{Frame, flows, frame},
    link,
    tree::Table,
};
use lowtide_cc::Law;
use std::{path::Path, time::Duration};

/// Time between samples unless given.
const SAMPLE: Duration = Duration::from_millis(100);

/// The shortest time between samples; they are what a long run fills a disk with.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(10);

pub(super) fn scenario(root: &Table, folder: &Path) -> Result<Scenario, ScenarioError> {
    let Frame { seed, duration, measure_from, sample_interval, spans } = frame(root, SAMPLE)?;
    if sample_interval < SHORTEST_SAMPLE {
        return Err(root.error("sample", "sample: it has to be 10us or more"));
    }
    let bottlenecks = bottlenecks(root, folder)?;
    let reverse = match root.get("reverse") {
        Some(node) => Some(link::read_reverse(node.table("reverse")?, &bottlenecks, folder)?),
        None => None,
    };
    let tcp = root.get("tcp").map(|node| node.table("tcp")).transpose()?;
    if let Some(tcp) = tcp {
        // also where no flow goes by TCP, a mistake is one
        flow::apply(tcp, &mut Tcp::new(Law::Reno(Default::default())))?;
    }
    let around = Surroundings { bottlenecks: &bottlenecks, duration, tcp, folder };
    let flows = flows(root, |table| flow::read(table, &around), |flow| &flow.name)?;
    root.finish()?;
    Ok(Scenario { seed, duration, measure_from, bottlenecks, reverse, flows, sample_interval, spans })
}

fn bottlenecks(root: &Table, folder: &Path) -> Result<Vec<Bottleneck>, ScenarioError> {
    let tables = root.get("bottleneck").map_or(Ok(Vec::new()), |node| node.tables("bottleneck"))?;
    if tables.is_empty() {
        return Err(root.error("bottleneck", "there is no [bottleneck]"));
    }
    let mut links: Vec<Bottleneck> = Vec::new();
    for table in &tables {
        if tables.len() > 1 && table.peek("name").is_none() {
            return Err(table.origin.error("`name` is missing here; with several bottlenecks each needs one"));
        }
        let link = link::read(table, "bottleneck", folder)?;
        if links.iter().any(|other| other.name == link.name) {
            return Err(table.error("name", format!("name: there is a bottleneck `{}` already", link.name)));
        }
        links.push(link);
    }
    Ok(links)
}
