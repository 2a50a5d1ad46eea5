// SPDX-License-Identifier: MIT OR Apache-2.0
//! The access links of flows: a class of HTB for each on the sender's device, which packets find by the priority of
//! their socket.

use crate::route::Route;
use anyhow::{Context, Result};
use lowtide_net::Rate;
use lowtide_sim::scenario::{Direction, Flow};

/// The handle of the HTB; a priority is a class's handle.
const MAJOR: u32 = 0x10;

/// Packets that an access link holds: as many as come, since nothing is lost there.
const QUEUE: u32 = 10_000;

/// Makes the access links of these flows, and gives the priority of each flow that has one.
pub(crate) fn prepare(route: &dyn Route, flows: &[Flow]) -> Result<Vec<Option<u32>>> {
    for (host, device, direction) in
        [(route.a(), route.a_device(), Direction::Forward), (route.b(), route.b_device(), Direction::Reverse)]
    {
        let of = flows.iter().enumerate().filter(|(_, flow)| flow.direction == direction);
        let links: Vec<(usize, Rate)> = of.filter_map(|(index, flow)| Some((index, flow.access?))).collect();
        if !links.is_empty() {
            host.tc(&commands(device, &links)).context("the access links of the flows")?;
        }
    }
    let priority = |(index, flow): (usize, &Flow)| flow.access.map(|_| MAJOR << 16 | minor(index));
    Ok(flows.iter().enumerate().map(priority).collect())
}

/// Of the class of the flow with this index.
fn minor(index: usize) -> u32 {
    index as u32 + 1
}

/// What has no class, as of other flows, passes at once: HTB's class 0.
fn commands(device: &str, links: &[(usize, Rate)]) -> String {
    let mut commands = format!("qdisc replace dev {device} root handle {MAJOR:x}: htb default 0 direct_qlen {QUEUE}\n");
    for (index, rate) in links {
        let (minor, bits) = (minor(*index), rate.bits_per_second());
        commands += &format!(
            "class add dev {device} parent {MAJOR:x}: classid {MAJOR:x}:{minor:x} htb rate {bits}bit ceil {bits}bit burst 1600 cburst 1600 quantum 1514\n\
             qdisc add dev {device} parent {MAJOR:x}:{minor:x} pfifo limit {QUEUE}\n"
        );
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_is_a_class() {
        let text = commands("eth0", &[(0, "300mbit".parse().unwrap()), (9, "1gbit".parse().unwrap())]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].contains("dev eth0 root handle 10: htb default 0"), "{text}");
        assert!(lines[1].contains("classid 10:1 htb rate 300000000bit"), "{text}");
        assert!(lines[3].contains("classid 10:a htb rate 1000000000bit"), "{text}");
    }
}
