// SPDX-License-Identifier: MIT OR Apache-2.0
//! From TOML to a scenario that can be simulated.

use super::{
    Bottleneck, Flow, Scenario, ScenarioError, Span, Tcp,
    flow::{self, Surroundings},
    link, overrides,
    source::time_or_none,
    tree::{self, Table, whole},
};
use lowtide_cc::Law;
use std::{fs, path::Path, time::Duration};

/// The longest simulated time; sums of such times stay far from the end of 64 bits of nanoseconds.
const LONGEST: Duration = Duration::from_secs(1_000_000);

/// The shortest time between samples; they are what a long run fills a disk with.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(10);

impl Scenario {
    /// Reads a file. Each of `overrides` is `path=value` and replaces what the file says, as in `bottleneck.rate=20mbit` or
    /// `flow.bg.cc=cdg:g=4`.
    ///
    /// # Errors
    /// One sentence, with the place in the file or the override.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(path).map_err(|error| {
            ScenarioError::of_file(format!("cannot read it: {error}")).in_file(&path.display().to_string())
        })?;
        Self::parse(&text, path, overrides)
    }

    /// Reads a text as [`Scenario::read`] would read it in the file `path`, which need not exist: messages name it, and files
    /// of traces are looked for beside it.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let scenario = || {
            let mut root = tree::parse(text)?;
            overrides.iter().try_for_each(|text| overrides::apply(&mut root, text))?;
            scenario(&root, path.parent().unwrap_or(Path::new("")))
        };
        scenario().map_err(|error| error.in_file(&path.display().to_string()))
    }
}

fn scenario(root: &Table, folder: &Path) -> Result<Scenario, ScenarioError> {
    let seed = root.read("seed", whole(0..=u64::MAX))?.unwrap_or(1);
    let duration = root.need("duration", "\"120s\"", time_or_none)?;
    if duration.is_zero() || duration > LONGEST {
        return Err(root.error("duration", "duration: it has to be above zero and at most 1000000s"));
    }
    let measure_from = root.read("measure_from", time_or_none)?.unwrap_or_default();
    if measure_from >= duration {
        return Err(root.error("measure_from", "measure_from: the simulation is over by then"));
    }
    let sample_interval = root.read("sample", time_or_none)?.unwrap_or(Duration::from_millis(100));
    if sample_interval < SHORTEST_SAMPLE {
        return Err(root.error("sample", "sample: it has to be 10us or more"));
    }
    let bottlenecks = bottlenecks(root, folder)?;
    let reverse = match root.get("reverse") {
        Some(node) => Some(link::read(node.table("reverse")?, "reverse", folder)?),
        None => None,
    };
    if let Some(reverse) = reverse.as_ref().filter(|reverse| bottlenecks.iter().any(|link| link.name == reverse.name)) {
        return Err(root.error("reverse", format!("reverse: a bottleneck has the name `{}`, too", reverse.name)));
    }
    let tcp = root.get("tcp").map(|node| node.table("tcp")).transpose()?;
    if let Some(tcp) = tcp {
        // also where no flow goes by TCP, a mistake is one
        flow::apply(tcp, &mut Tcp::new(Law::Reno(Default::default())))?;
    }
    let flows = flows(root, &Surroundings { bottlenecks: &bottlenecks, duration, tcp, folder })?;
    let spans = spans(root, duration)?;
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

fn flows(root: &Table, around: &Surroundings<'_>) -> Result<Vec<Flow>, ScenarioError> {
    let tables = root.get("flow").map_or(Ok(Vec::new()), |node| node.tables("flow"))?;
    if tables.is_empty() {
        return Err(root.error("flow", "there is no [[flow]]"));
    }
    let mut flows: Vec<Flow> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for table in tables {
        for flow in flow::read(table, around)? {
            if !names.insert(flow.name.clone()) {
                return Err(table.error("name", format!("name: there is a flow `{}` already", flow.name)));
            }
            flows.push(flow);
        }
    }
    Ok(flows)
}

fn spans(root: &Table, duration: Duration) -> Result<Vec<Span>, ScenarioError> {
    let tables = root.get("span").map_or(Ok(Vec::new()), |node| node.tables("span"))?;
    let span = |table: &Table| {
        let from = table.need("from", "\"400s\"", time_or_none)?;
        let to = table.need("to", "\"600s\"", time_or_none)?;
        table.finish()?;
        match from < to && to <= duration {
            true => Ok(Span { from, to }),
            false => Err(table.error("to", "to: it has to be after `from`, and not after the end of the simulation")),
        }
    };
    tables.into_iter().map(span).collect()
}

/// A name: what does not need quotes in TOML, in CSV or on a command line.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("\"{text}\" is not a name; it has to be of letters, digits, - and _"))
}
