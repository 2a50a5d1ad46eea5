// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios of the numerical model: `model = "fluid"`.

use super::{
    RatioKind, ScenarioError, Steering, deadline, flow,
    frame::{self, Frame, frame},
    print,
    steering::part,
    tree::{Table, unknown, whole},
    values::{number, time, time_or_none},
};
use crate::fluid::{Capacity, DueTransfer, Model, Price, Ratio, Role, Source, TCP, Window};
use lowtide_deadline::DEFAULT_RATIO_INCREASE_LIMIT;
use lowtide_net::units::format_duration;
use std::{fmt, str::FromStr, time::Duration};

/// The name of this kind of file, the value of its key `model`.
pub(super) const FLUID: &str = "fluid";

/// As in the paper (section III-C), except the step of time: it does not give one. With 50 ms a rate follows its wish
/// within 2.5 s, and all that the paper shows is seen; with a second the ten seconds without other traffic could not be
/// used.
const STEP: Duration = Duration::from_millis(50);
const TRACKING: f64 = 0.02;
const PLACES: u32 = 100;
const REDRAW: Duration = Duration::from_secs(5);

/// What guards against a price of nothing.
const MOST_RATE: f64 = 200.0;
const LEAST_PRICE: f64 = 1e-12;

/// A sample interval unless given.
const SAMPLE: Duration = Duration::from_secs(1);
/// The shortest step of time, and the most samples, which are all kept.
const SHORTEST_STEP: Duration = Duration::from_millis(1);
const MOST_SAMPLES: u128 = 200_000;

/// Keys that only scenarios of packets have.
const OF_PACKETS: [&str; 2] = ["reverse", "tcp"];
const OF_LINKS: [&str; 10] =
    ["rate", "rtt", "schedule", "buffer", "queue", "loss", "jitter", "reordering", "police", "burst"];
const OF_FLOWS: [&str; 9] = ["cc", "source", "tcp", "actuator", "gap", "rtt", "access", "path", "direction"];
const OF_RATIOS: [&str; 3] = ["ratio_standard", "ratio_every", "ratio_losses"];

/// Reads a model that can be computed.
pub(super) fn model(root: &Table) -> Result<Model, ScenarioError> {
    let Frame { seed, duration, measure_from, sample_interval, spans } = frame(root, SAMPLE)?;
    let step = root.read("step", time_or_none)?.unwrap_or(STEP);
    if step < SHORTEST_STEP || step > duration {
        return Err(root.error("step", "step: it has to be 1ms or more, and no longer than the duration"));
    }
    if sample_interval < step || duration.as_nanos() / sample_interval.as_nanos() > MOST_SAMPLES {
        return Err(root.error(
            "sample",
            format!(
                "sample: it has to be a step of time ({}) or more, and make at most {MOST_SAMPLES} samples",
                format_duration(step)
            ),
        ));
    }
    let tracking = root.read("tracking", part)?.unwrap_or(TRACKING);
    let most_rate = root.read("most_rate", |text| number(text, 1e-3, 1e12))?.unwrap_or(MOST_RATE);
    let least_price = root.read("least_price", part)?.unwrap_or(LEAST_PRICE);
    without_meaning(root, &OF_PACKETS)?;
    let Some(link) = root.get("bottleneck") else { return Err(root.origin.error("there is no [bottleneck]")) };
    let (capacity, places) = bottleneck(link.table("bottleneck")?)?;
    let around = Surroundings { duration, step, mean: capacity.mean, places };
    let sources = frame::flows(root, |table| source(table, &around), |source| &source.name)?;
    root.finish()?;
    Ok(Model {
        seed,
        duration,
        measure_from,
        sample_interval,
        spans,
        step,
        tracking,
        most_rate,
        least_price,
        capacity,
        places,
        sources,
    })
}

/// Keys that mean nothing without packets.
fn without_meaning(table: &Table, keys: &[&str]) -> Result<(), ScenarioError> {
    match table.entries.iter().find(|entry| keys.contains(&entry.key.as_str())) {
        Some(entry) => {
            Err(entry.origin.error(format!("`{}` has no meaning in a fluid model; leave it out", entry.key)))
        }
        None => Ok(()),
    }
}

fn bottleneck(table: &Table) -> Result<(Capacity, u32), ScenarioError> {
    without_meaning(table, &OF_LINKS)?;
    let mean = table.need("capacity", "90", |text| number(text, 1e-3, 1e9))?;
    let spread = table.read("spread", |text| number(text, 0.0, 1e9))?.unwrap_or(0.0);
    if spread >= mean {
        return Err(table.error("spread", "spread: it has to be less than the capacity"));
    }
    let redraw = table.read("redraw", time)?.unwrap_or(REDRAW);
    let places = table.read("places", whole(1..=1_000_000))?.map_or(PLACES, |places| places as u32);
    table.finish()?;
    Ok((Capacity { mean, spread, redraw }, places))
}

/// What a source is read against.
struct Surroundings {
    duration: Duration,
    step: Duration,
    /// The mean capacity.
    mean: f64,
    places: u32,
}

fn source(table: &Table, around: &Surroundings) -> Result<Vec<Source>, ScenarioError> {
    without_meaning(table, &OF_FLOWS)?;
    let name = table.need("name", "\"tcp\"", frame::name)?;
    let windows = windows(table, around.duration)?;
    let alpha = table.read("alpha", |text| number(text, 0.1, 10.0))?.unwrap_or(TCP);
    let price: Price = table.read("price", str::parse)?.unwrap_or_default();
    if let Price::Exceeds(queue) = price
        && queue >= around.places
    {
        let places = around.places;
        return Err(table.error("price", format!("price: a queue with {places} places never exceeds {queue}")));
    }
    let policy = table.table_or_empty("policy")?;
    without_meaning(&policy, &OF_RATIOS)?;
    let role = role(table, &policy, around.mean)?;
    let ratio = ratio(&policy, around.step)?;
    policy.finish()?;
    let count = flow::count(table)?;
    table.finish()?;
    let source = Source { name, windows, alpha, price, role, ratio };
    Ok(flow::counted(source, count, |source| &mut source.name))
}

/// `start` and `stop`, or several `windows`.
fn windows(table: &Table, duration: Duration) -> Result<Vec<Window>, ScenarioError> {
    let window = |table: &Table| flow::times(table, duration).map(|(start, stop)| Window { start, stop });
    let Some(node) = table.get("windows") else { return Ok(vec![window(table)?]) };
    for key in ["start", "stop", "deadline"] {
        if table.peek(key).is_some() {
            return Err(table.error(key, format!("{key}: the flow has windows; leave out one of the two")));
        }
    }
    let tables = node.tables("windows")?;
    let windows = tables
        .iter()
        .map(|table| {
            let window = window(table)?;
            table.finish().map(|()| window)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let follows = |a: &Window, b: &Window| a.stop.is_some_and(|stop| stop <= b.start);
    match (windows.is_empty(), windows.is_sorted_by(follows)) {
        (true, _) => Err(node.origin.error("windows: at least one has to be in it")),
        (_, false) => Err(node.origin.error("windows: each has to begin after the end of the one before")),
        _ => Ok(windows),
    }
}

/// A weight that stays the same, or a deadline.
fn role(table: &Table, policy: &Table, capacity: f64) -> Result<Role, ScenarioError> {
    let weight = table.read("weight", part)?;
    let Some(deadline) = deadline::after(table)? else {
        ["size", "eta", "control"].into_iter().try_for_each(|key| deadline::needs_a_deadline(table, key))?;
        Steering::KEYS.into_iter().try_for_each(|key| deadline::needs_a_deadline(policy, key))?;
        return Ok(Role::Greedy(weight.unwrap_or(1.0)));
    };
    if weight.is_some() {
        return Err(table.error("weight", flow::WEIGHT_AND_DEADLINE));
    }
    let size = table.read("size", |text| number(text, 1e-3, 1e12))?;
    let eta = table.read("eta", part)?;
    let size = match (size, eta) {
        (Some(_), Some(_)) => return Err(table.error("eta", "eta: there is a size already; leave out one of the two")),
        (Some(size), None) => size,
        (None, Some(eta)) => eta * capacity * deadline.as_secs_f64(),
        (None, None) => {
            return Err(table.error("deadline", "deadline: it needs a size, like size = 11700 or eta = 0.1"));
        }
    };
    Ok(Role::Transfer(DueTransfer { size, deadline, steering: Steering::read(table, policy)? }))
}

fn ratio(policy: &Table, step: Duration) -> Result<Option<Ratio>, ScenarioError> {
    let kind = policy.read("price_ratio", RatioKind::read)?.flatten();
    let increase_limit = policy.read("ratio_limit", part)?.unwrap_or(DEFAULT_RATIO_INCREASE_LIMIT);
    let interval = policy.read("ratio_interval", time_or_none)?.unwrap_or(step);
    if interval < step {
        let step = format_duration(step);
        return Err(
            policy.error("ratio_interval", format!("ratio_interval: it has to be a step of time ({step}) or more"))
        );
    }
    Ok(kind.map(|kind| Ratio { kind, increase_limit, interval }))
}

const PRICES: [&str; 2] = ["blocking", "exceeds"];

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("blocking", "") => Ok(Self::Blocking),
            ("blocking", _) => Err("blocking has no parameters".to_owned()),
            ("exceeds", queue) => {
                let queue = queue.parse().map_err(|_| "exceeds needs a number of packets, like exceeds:10")?;
                Ok(Self::Exceeds(queue))
            }
            (name, _) => Err(unknown("price", name, &PRICES)),
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocking => f.write_str("blocking"),
            Self::Exceeds(queue) => write!(f, "exceeds:{queue}"),
        }
    }
}

impl Model {
    /// The model in TOML, with every value that holds, given or not. Reading it gives the same model.
    pub fn to_toml(&self) -> String {
        let mut root = toml::Table::new();
        root.insert("model".into(), FLUID.into());
        root.insert("seed".into(), print::whole(self.seed));
        root.insert("duration".into(), print::time(self.duration));
        root.insert("measure_from".into(), print::time(self.measure_from));
        root.insert("sample".into(), print::time(self.sample_interval));
        root.insert("step".into(), print::time(self.step));
        root.insert("tracking".into(), self.tracking.into());
        root.insert("most_rate".into(), self.most_rate.into());
        root.insert("least_price".into(), self.least_price.into());
        let mut link = toml::Table::new();
        link.insert("capacity".into(), self.capacity.mean.into());
        link.insert("spread".into(), self.capacity.spread.into());
        link.insert("redraw".into(), print::time(self.capacity.redraw));
        link.insert("places".into(), print::whole(self.places.into()));
        root.insert("bottleneck".into(), link.into());
        let flows: Vec<toml::Value> = self.sources.iter().map(|source| print_source(source).into()).collect();
        root.insert("flow".into(), flows.into());
        print::spans(&self.spans, &mut root);
        root.to_string()
    }
}

fn print_source(source: &Source) -> toml::Table {
    let mut table = toml::Table::new();
    table.insert("name".into(), print::text(&source.name));
    match &source.windows[..] {
        [only] => print_window(only, &mut table),
        several => {
            let window = |window| {
                let mut table = toml::Table::new();
                print_window(window, &mut table);
                table.into()
            };
            table.insert("windows".into(), toml::Value::Array(several.iter().map(window).collect()));
        }
    }
    table.insert("alpha".into(), source.alpha.into());
    table.insert("price".into(), print::text(source.price));
    let mut policy = toml::Table::new();
    match &source.role {
        Role::Greedy(weight) => {
            table.insert("weight".into(), (*weight).into());
        }
        Role::Transfer(transfer) => {
            table.insert("deadline".into(), print::time(transfer.deadline));
            table.insert("size".into(), transfer.size.into());
            transfer.steering.print(&mut table, &mut policy);
        }
    }
    policy.insert("price_ratio".into(), RatioKind::name_of(source.ratio.map(|ratio| ratio.kind)).into());
    if let Some(ratio) = &source.ratio {
        policy.insert("ratio_limit".into(), ratio.increase_limit.into());
        policy.insert("ratio_interval".into(), print::time(ratio.interval));
    }
    table.insert("policy".into(), policy.into());
    table
}

fn print_window(window: &Window, table: &mut toml::Table) {
    table.insert("start".into(), print::time(window.start));
    if let Some(stop) = window.stop {
        table.insert("stop".into(), print::time(stop));
    }
}
