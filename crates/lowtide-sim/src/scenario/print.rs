// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a scenario back to TOML.

use super::{Bottleneck, Direction, Flow, Scenario, Span, Tcp, Transport, deadline};
use lowtide_net::{Class, Jitter, LossModel, Reordering, units::format_duration};
use std::time::Duration;
use toml::{Table, Value};

impl Scenario {
    /// The scenario in TOML, with every value that holds, given or not. Reading it gives the same scenario; traffic of
    /// a trace is in it, the file of a capacity's trace is needed again.
    pub fn to_toml(&self) -> String {
        let mut root = Table::new();
        root.insert("seed".into(), whole(self.seed));
        root.insert("duration".into(), time(self.duration));
        root.insert("measure_from".into(), time(self.measure_from));
        root.insert("sample".into(), time(self.sample_interval));
        let links: Vec<Value> = self.bottlenecks.iter().map(|link| link_table(link).into()).collect();
        root.insert("bottleneck".into(), Value::Array(links));
        if let Some(reverse) = &self.reverse {
            root.insert("reverse".into(), link_table(reverse).into());
        }
        let flows: Vec<Value> = self.flows.iter().map(|flow| flow_table(flow, &self.bottlenecks).into()).collect();
        root.insert("flow".into(), Value::Array(flows));
        spans(&self.spans, &mut root);
        root.to_string()
    }
}

/// The key `span`.
pub(super) fn spans(spans: &[Span], root: &mut Table) {
    let span = |span: &Span| {
        let bounds = [("from".to_owned(), time(span.from)), ("to".to_owned(), time(span.to))];
        Value::Table(bounds.into_iter().collect())
    };
    if !spans.is_empty() {
        root.insert("span".into(), Value::Array(spans.iter().map(span).collect()));
    }
}

fn link_table(link: &Bottleneck) -> Table {
    let mut table = Table::new();
    table.insert("name".into(), text(&link.name));
    table.insert("rate".into(), text(link.rate));
    if let Some(schedule) = &link.schedule {
        table.insert("schedule".into(), text(schedule));
    }
    table.insert("rtt".into(), time(link.rtt));
    if let Some(schedule) = &link.rtt_schedule {
        table.insert("rtt_schedule".into(), text(schedule));
    }
    table.insert("buffer".into(), text(link.buffer));
    table.insert("queue".into(), text(&link.queue));
    if link.loss != LossModel::NONE {
        table.insert("loss".into(), text(link.loss));
    }
    if link.jitter != Jitter::NONE {
        table.insert("jitter".into(), text(link.jitter));
    }
    if link.reverse_jitter != Jitter::NONE {
        table.insert("reverse_jitter".into(), text(link.reverse_jitter));
    }
    if link.reordering != Reordering::NONE {
        table.insert("reordering".into(), text(link.reordering));
    }
    if let Some(police) = &link.police {
        table.insert("police".into(), text(police));
    }
    if link.burst > 0 {
        table.insert("burst".into(), bytes(link.burst));
    }
    table
}

fn flow_table(flow: &Flow, links: &[Bottleneck]) -> Table {
    let mut table = Table::new();
    table.insert("name".into(), text(&flow.name));
    if let Transport::Tcp(tcp) = &flow.transport {
        table.insert("cc".into(), text(law(tcp)));
    }
    if let Some(receiver) = &flow.receiver {
        table.insert("receiver".into(), text(receiver));
    }
    table.insert("source".into(), text(&flow.source));
    table.insert("start".into(), time(flow.start));
    if let Some(deadline) = &flow.deadline {
        deadline::print(deadline, &mut table);
    }
    if let Some(weight) = flow.weight {
        table.insert("weight".into(), weight.into());
    }
    if let Some(actuator) = &flow.actuator {
        table.insert("actuator".into(), text(actuator));
    }
    if let Some(stop) = flow.stop {
        table.insert("stop".into(), time(stop));
    }
    table.insert("rtt".into(), time(flow.rtt));
    if let Some(access) = flow.access {
        table.insert("access".into(), text(access));
    }
    let path = flow.path.iter().filter_map(|link| links.get(*link)).map(|link| text(&link.name)).collect();
    table.insert("path".into(), Value::Array(path));
    let direction = match flow.direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
    };
    table.insert("direction".into(), text(direction));
    let class = match flow.class {
        Class::Foreground => "foreground",
        Class::Background => "background",
    };
    table.insert("class".into(), text(class));
    if let Transport::Tcp(tcp) = &flow.transport {
        table.insert("tcp".into(), tcp_table(tcp).into());
    }
    table
}

fn tcp_table(tcp: &Tcp) -> Table {
    let mut table = Table::new();
    table.insert("mss".into(), bytes(tcp.mss.into()));
    table.insert("header".into(), bytes(tcp.header.into()));
    table.insert("initial_window".into(), whole(tcp.initial_window.into()));
    table.insert("receive_window".into(), bytes(tcp.receive_window));
    table.insert("ack_every".into(), whole(tcp.ack_every.into()));
    table.insert("ack_delay".into(), time(tcp.ack_delay));
    table.insert("pacing".into(), tcp.pacing.into());
    table.insert("validate_window".into(), tcp.validate_window.into());
    table.insert("quick_acks".into(), whole(tcp.quick_acks.into()));
    table.insert("rto_min".into(), time(tcp.rto_min));
    table
}

pub(super) fn text(value: impl ToString) -> Value {
    Value::String(value.to_string())
}

pub(super) fn time(duration: Duration) -> Value {
    text(format_duration(duration))
}

fn bytes(bytes: u64) -> Value {
    text(format_args!("{bytes}B"))
}

/// TOML's numbers have a sign, so a larger one goes as a text.
pub(super) fn whole(number: u64) -> Value {
    i64::try_from(number).map_or_else(|_| text(number), Value::Integer)
}

/// The law as it is written.
fn law(tcp: &Tcp) -> String {
    let law = tcp.law.to_string();
    let separator = if law.contains(':') { ',' } else { ':' };
    if tcp.port { format!("{law}{separator}port=kernel") } else { law }
}
