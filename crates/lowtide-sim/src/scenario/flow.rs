// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[flow]]`, and the `[tcp]` settings of all of them.

use super::{
    Bottleneck, Direction, Flow, ScenarioError, Source, Tcp, Transport, deadline,
    tree::{Node, Table, Value, boolean, unknown, whole},
    values::{bytes, time_or_none},
};
use lowtide_cc::{Actuator, Flow as Controlled, Law, LawError};
use lowtide_net::{Class, units::format_duration};
use lowtide_port::Ported;
use std::{path::Path, time::Duration};

/// What a flow is read against.
pub(super) struct Surroundings<'a> {
    pub(super) bottlenecks: &'a [Bottleneck],
    /// The simulated time.
    pub(super) duration: Duration,
    /// The `[tcp]` table of the whole file.
    pub(super) tcp: Option<&'a Table>,
    pub(super) folder: &'a Path,
}

/// Reads the flows of one table: one, or `count` of them.
pub(super) fn read(table: &Table, around: &Surroundings<'_>) -> Result<Vec<Flow>, ScenarioError> {
    let name: String = table.need("name", "\"bg\"", super::frame::name)?;
    let source = source(table, around.folder)?;
    let transport = transport(table, &source, around.tcp)?;
    let (start, stop) = times(table, around.duration)?;
    let actuator = actuator(table, &transport)?;
    let deadline = deadline::read(table, &source, &transport, actuator.as_ref())?;
    let receiver = receiver(table, &transport, deadline.is_some())?;
    let weight = weight(table, (&transport, receiver.as_ref()), deadline.is_some())?;
    let path = path(table, around.bottlenecks)?;
    let rtt = rtt(table, path.iter().map(|link| &around.bottlenecks[*link]))?;
    let access = table.read("access", str::parse)?;
    let direction = table.read("direction", direction)?.unwrap_or_default();
    let class = table.read("class", class)?.unwrap_or_default();
    let count = count(table)?;
    table.finish()?;
    let flow = Flow {
        name,
        transport,
        receiver,
        source,
        start,
        stop,
        deadline,
        weight,
        actuator,
        rtt,
        access,
        path,
        direction,
        class,
    };
    Ok(counted(flow, count, |flow| &mut flow.name))
}

/// `count`: how many alike.
pub(super) fn count(table: &Table) -> Result<Option<u64>, ScenarioError> {
    table.read("count", whole(1..=10_000))
}

/// One flow, or so many, which are numbered.
pub(super) fn counted<T: Clone>(flow: T, count: Option<u64>, name: impl Fn(&mut T) -> &mut String) -> Vec<T> {
    let Some(count) = count else { return vec![flow] };
    let numbered = |n| {
        let mut flow = flow.clone();
        let name = name(&mut flow);
        *name = format!("{name}-{n}");
        flow
    };
    (1..=count).map(numbered).collect()
}

/// `source`, or `size` alone for a sized one.
fn source(table: &Table, folder: &Path) -> Result<Source, ScenarioError> {
    let source = table.read("source", |text| Source::read(text, folder))?;
    let size = table.read("size", bytes)?;
    match (source, size) {
        (Some(_), Some(_)) => {
            let source =
                table.peek("source").map_or("", |node| if let Value::Text(text) = &node.value { text } else { "" });
            Err(table.error("size", format!("size: the source `{source}` takes none; leave out one of the two")))
        }
        (Some(source), None) => Ok(source),
        (None, Some(size)) => Ok(Source::Sized(size)),
        (None, None) => Ok(Source::Greedy),
    }
}

/// TCP under the law `cc`; datagrams if there is none and the source has times of its own.
fn transport(table: &Table, source: &Source, common: Option<&Table>) -> Result<Transport, ScenarioError> {
    let own = table.get("tcp").map(|node| node.table("tcp")).transpose()?;
    match table.read("cc", law)? {
        Some((law, port)) => {
            let mut tcp = Tcp { port, ..Tcp::new(law) };
            for settings in [common, own].into_iter().flatten() {
                apply(settings, &mut tcp)?;
            }
            Ok(Transport::Tcp(Box::new(tcp)))
        }
        None if !source.is_timed() => Err(table.origin.error(
            "`cc` is missing here; write it like cc = \"cubic\" (only cbr, poisson and trace go without: by UDP)",
        )),
        None if own.is_some() => Err(table.error("tcp", "tcp: this flow has no cc and goes by UDP")),
        None => Ok(Transport::Udp),
    }
}

/// A law, and whether it is the kernel's port of it.
fn law(text: &str) -> Result<(Law, bool), String> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let (ports, others): (Vec<&str>, Vec<&str>) = parameters.split(',').partition(|part| part.starts_with("port="));
    let plain = if ports.is_empty() { text.to_owned() } else { format!("{name}:{}", others.join(",")) };
    let law: Law = plain.parse().map_err(|error: LawError| error.to_string())?;
    match ports[..] {
        [] => Ok((law, false)),
        ["port=kernel"] => {
            Ported::new(&law).map_err(|refusal| refusal.to_string())?;
            Ok((law, true))
        }
        _ => Err(format!("`{}`: a law has one port, port=kernel", ports.join(","))),
    }
}

/// Settings of TCP over those that are there.
pub(super) fn apply(table: &Table, tcp: &mut Tcp) -> Result<(), ScenarioError> {
    let small = |value: Option<u64>, usual: u32| value.and_then(|value| u32::try_from(value).ok()).unwrap_or(usual);
    tcp.mss = small(table.read("mss", within(64, 65_000))?, tcp.mss);
    tcp.header = small(table.read("header", header)?, tcp.header);
    tcp.initial_window = small(table.read("initial_window", whole(1..=100_000))?, tcp.initial_window);
    tcp.receive_window = table.read("receive_window", within(1, 1 << 30))?.unwrap_or(tcp.receive_window);
    tcp.ack_every = small(table.read("ack_every", whole(1..=1000))?, tcp.ack_every);
    tcp.ack_delay = table.read("ack_delay", time_or_none)?.unwrap_or(tcp.ack_delay);
    tcp.quick_acks = small(table.read("quick_acks", whole(0..=100_000))?, tcp.quick_acks);
    tcp.pacing = table.read("pacing", boolean)?.unwrap_or(tcp.pacing);
    tcp.validate_window = table.read("validate_window", boolean)?.unwrap_or(tcp.validate_window);
    tcp.rto_min = table.read("rto_min", time_or_none)?.unwrap_or(tcp.rto_min);
    table.finish()?;
    if tcp.mss + tcp.header > 65_535 {
        return Err(
            table.error("mss", "mss: together with the header this is more than an IP packet holds, 65535 bytes")
        );
    }
    Ok(())
}

/// An amount of data within bounds, in bytes.
fn within(least: u64, most: u64) -> impl Fn(&str) -> Result<u64, String> {
    move |text| {
        let bytes = bytes(text).map_err(|error| error.to_string())?;
        let range = || format!("\"{text}\" is out of range; it must be from {least}B to {most}B");
        (least..=most).contains(&bytes).then_some(bytes).ok_or_else(range)
    }
}

/// IP and TCP header: 20 bytes each, and options.
fn header(text: &str) -> Result<u64, String> {
    let bytes = within(40, 80)(text)?;
    bytes.is_multiple_of(4).then_some(bytes).ok_or_else(|| format!("\"{text}\" is not a multiple of four bytes"))
}

/// `start` and `stop`.
pub(super) fn times(table: &Table, duration: Duration) -> Result<(Duration, Option<Duration>), ScenarioError> {
    let start = table.read("start", time_or_none)?.unwrap_or_default();
    let stop = table.read("stop", time_or_none)?;
    if start >= duration {
        return Err(table.error("start", "start: the simulation is over by then"));
    }
    if stop.is_some_and(|stop| stop <= start) {
        return Err(table.error("stop", "stop: it has to be after the start"));
    }
    Ok((start, stop))
}

/// How the law takes a weight.
fn actuator(table: &Table, transport: &Transport) -> Result<Option<Actuator>, ScenarioError> {
    let Some(actuator) = table.read("actuator", str::parse::<Actuator>)? else { return Ok(None) };
    let Transport::Tcp(tcp) = transport else {
        return Err(table.error("actuator", "actuator: it needs TCP; name a law, like cc = \"cubic\""));
    };
    let flow = Controlled { mss: tcp.mss, initial_window: tcp.initial_window, seed: 0 };
    match tcp.law.build_weighted(&flow, &actuator) {
        Ok(_) => Ok(Some(actuator)),
        Err(error) => Err(table.error("actuator", format!("actuator: {error}"))),
    }
}

/// The law by which the receiver chooses its windows.
fn receiver(table: &Table, transport: &Transport, deadline: bool) -> Result<Option<Law>, ScenarioError> {
    let read = |text: &str| {
        let law: Law = text.parse().map_err(|error: LawError| error.to_string())?;
        let ported = Ported::new(&law).map_err(|refusal| refusal.to_string())?;
        let able = ported.governs_downloads().then_some(law);
        able.ok_or_else(|| format!("{} does not govern what is received; tide does", ported.law().name()))
    };
    let Some(law) = table.read("receiver", read)? else { return Ok(None) };
    match transport {
        Transport::Udp => {
            Err(table.error("receiver", "receiver: it needs TCP; name the sender's law, like cc = \"cubic\""))
        }
        Transport::Tcp(_) if deadline => {
            Err(table.error("receiver", "receiver: a deadline steers the sender; give this flow a weight instead"))
        }
        Transport::Tcp(_) => Ok(Some(law)),
    }
}

/// Whether a law at the receiver takes a weight: there the law itself has to.
fn weighs(law: &Law) -> bool {
    Ported::new(law).is_ok_and(|ported| ported.takes_weight())
}

/// What is wrong with both.
pub(super) const WEIGHT_AND_DEADLINE: &str = "weight: it follows from the deadline; leave out one of the two";

/// A weight that stays the same.
fn weight(
    table: &Table,
    (transport, receiver): (&Transport, Option<&Law>),
    deadline: bool,
) -> Result<Option<f64>, ScenarioError> {
    let read = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|weight| *weight > 0.0 && *weight <= 1.0);
        let number = if text == "none" { Some(None) } else { number.map(Some) };
        number.ok_or_else(|| format!("\"{text}\" is not a weight; it has to be above 0 and at most 1, or none"))
    };
    let Some(weight) = table.read("weight", read)?.flatten() else { return Ok(None) };
    match transport {
        _ if deadline => Err(table.error("weight", WEIGHT_AND_DEADLINE)),
        _ if receiver.is_some_and(weighs) => Ok(Some(weight)),
        _ if let Some(law) = receiver => {
            Err(table.error("weight", format!("weight: {} takes none at the receiver; tide does", law.name())))
        }
        Transport::Tcp(tcp) if tcp.law.takes_weight() => Ok(Some(weight)),
        Transport::Tcp(tcp) => {
            let law = tcp.law.name();
            Err(table.error("weight", format!("weight: {law} takes none; cdg and cubic do")))
        }
        Transport::Udp => Err(table.error("weight", "weight: it needs TCP; name a law, like cc = \"cdg\"")),
    }
}

/// The base round trip; what its bottlenecks add unless given.
fn rtt<'a>(table: &Table, path: impl Iterator<Item = &'a Bottleneck> + Clone) -> Result<Duration, ScenarioError> {
    let Some(rtt) = table.read("rtt", time_or_none)? else { return Ok(path.map(|link| link.rtt).sum()) };
    let changing: Duration = path.filter(|link| link.rtt_schedule.is_some()).map(|link| link.rtt).sum();
    if rtt < changing {
        let least = format_duration(changing);
        let what =
            format!("rtt: the bottlenecks with an `rtt_schedule` on its path have more; it has to be {least} or more");
        return Err(table.error("rtt", what));
    }
    Ok(rtt)
}

/// Names of bottlenecks, in their order; all of them if there is no `path`.
fn path(table: &Table, bottlenecks: &[Bottleneck]) -> Result<Vec<usize>, ScenarioError> {
    let Some(node) = table.get("path") else { return Ok((0..bottlenecks.len()).collect()) };
    let Value::Array(names) = &node.value else {
        return Err(node.origin.error("path: names of bottlenecks are expected here, like path = [\"a\", \"b\"]"));
    };
    let index = |name: &Node| {
        name.read("path", |text| {
            let names: Vec<&str> = bottlenecks.iter().map(|link| link.name.as_str()).collect();
            names.iter().position(|name| *name == text).ok_or_else(|| unknown("bottleneck", text, &names))
        })
    };
    let path = names.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    if path.is_empty() {
        return Err(node.origin.error("path: at least one bottleneck has to be in it"));
    }
    if !path.is_sorted_by(|a, b| a < b) {
        return Err(node
            .origin
            .error("path: bottlenecks are passed once each, in the order in which the file has them"));
    }
    Ok(path)
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "forward" => Ok(Direction::Forward),
        "reverse" => Ok(Direction::Reverse),
        _ => Err(format!("\"{text}\" is neither forward nor reverse")),
    }
}

fn class(text: &str) -> Result<Class, String> {
    match text {
        "foreground" => Ok(Class::Foreground),
        "background" => Ok(Class::Background),
        _ => Err(format!("\"{text}\" is neither foreground nor background")),
    }
}
