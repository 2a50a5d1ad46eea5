// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens on a path: scenarios, and what is measured of them.

use super::{Failure, links::Link};
use clap::ValueEnum;
use lowtide_cc::Random;
use lowtide_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

/// The law in whose place each other one is put: the kernel's CUBIC.
pub(crate) const REFERENCE: &str = "cubic";

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Traffic {
    /// The transfer is alone, then a flow comes for twenty seconds, then it is alone again
    Comes,
    /// Pages, then flows of a second, beside the transfer
    Short,
    /// Three transfers of different hosts
    Three,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Quantity {
    /// Rate of the transfer from second 4 until the flow comes, Mbit/s.
    Alone,
    /// Rate of the flow while it is there.
    Kept,
    /// Rate of the transfer from 3 s and 10 RTTs after the flow has left, for 10 s.
    After,
    /// Mean time of a page, seconds.
    Pages,
    /// Mean rate of the flows of a second.
    OnOff,
    /// Rate of three transfers together.
    Used,
    /// Jain's index of these rates.
    Jain,
}

/// When the flow comes, and when it leaves, seconds.
const COMES: f64 = 14.0;
const LEAVES: f64 = 34.0;
/// Pages begin.
const PAGES: u32 = 45;
const FIRST_PAGE: f64 = 8.0;
/// Seconds from one to the next: out of step with whatever has a period of a second.
const PAGE_EVERY: f64 = 0.354;
/// Part of the link that they take.
const PAGE_LOAD: f64 = 0.15;
/// Flows of a second, one every two seconds.
const FLOWS: u32 = 8;
const FIRST_FLOW: f64 = 26.0;
/// Three transfers are measured from here to the end.
const SETTLED: f64 = 10.0;
const THREE_END: f64 = 40.0;

/// How a run went, on the kernel or in the simulator.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Seconds.
    pub(crate) times: Vec<f64>,
    /// Bytes of each flow that had arrived by then.
    pub(crate) delivered: Vec<Vec<f64>>,
    /// When all of its data had been acknowledged, seconds.
    pub(crate) finished: Vec<Option<f64>>,
}

impl Course {
    /// Mean rate of a flow, Mbit/s.
    fn rate(&self, flow: usize, from: f64, to: f64) -> f64 {
        let at = |time: f64| self.times.partition_point(|it| *it < time - 1e-6).min(self.times.len() - 1);
        let (from, to) = (at(from), at(to));
        let bytes = self.delivered[flow][to] - self.delivered[flow][from];
        bytes * 8e-6 / (self.times[to] - self.times[from]).max(1e-9)
    }
}

/// Seconds.
fn page_starts(page: u32) -> f64 {
    FIRST_PAGE + PAGE_EVERY * f64::from(page)
}

impl Traffic {
    pub(crate) const ALL: [Self; 3] = [Self::Comes, Self::Short, Self::Three];

    pub(crate) const fn quantities(self) -> &'static [Quantity] {
        match self {
            Self::Comes => &[Quantity::Alone, Quantity::Kept, Quantity::After],
            Self::Short => &[Quantity::Pages, Quantity::OnOff],
            Self::Three => &[Quantity::Used, Quantity::Jain],
        }
    }

    /// For how long the flow has been away when the transfer has to be back, seconds.
    fn back(link: &Link) -> f64 {
        LEAVES + 3.0 + 10.0 * link.rtt().as_secs_f64()
    }

    /// Seconds.
    pub(crate) fn duration(self, link: &Link) -> f64 {
        match self {
            Self::Comes => Self::back(link) + 10.0,
            Self::Short => FIRST_FLOW + 2.0 * f64::from(FLOWS),
            Self::Three => THREE_END,
        }
    }

    /// The scenario with a law for the transfer, and one for the flow that comes. Writes a trace to `folder`.
    pub(crate) fn scenario(
        self,
        link: &Link,
        law: &str,
        foreground: &str,
        folder: &Path,
        seed: u64,
    ) -> Result<Scenario, Failure> {
        let trace = "trace";
        if let Some(generate) = link.trace {
            fs::write(folder.join(trace), generate(&mut Random::new(1 + seed)))?;
        }
        let mut text = format!("duration = \"{}s\"\nseed = {}\n", self.duration(link), 1 + seed);
        text += &link.tables(trace);
        let mut flow = |name: &str, law: &str, rest: &str| {
            let (cc, paced) = match law {
                "cubic" => ("cubic:variant=linux", false),
                "reno" => ("reno:whole_segments=on", false),
                "bbr" => ("bbr1", false),
                own => (own, true), // Lowtide paces what it sends
            };
            let paced = if paced { "tcp = { pacing = true }\n" } else { "" };
            let _ = writeln!(text, "[[flow]]\nname = \"{name}\"\ncc = \"{cc}\"\n{paced}{rest}"); // a String takes it
        };
        match self {
            Self::Comes => {
                // in the reference it is the flow's rate alone that counts
                let ends = if law == REFERENCE { format!("stop = \"{COMES}s\"") } else { String::new() };
                flow("transfer", law, &ends);
                flow("flow", foreground, &format!("start = \"{COMES}s\"\nstop = \"{LEAVES}s\""));
                if law == REFERENCE {
                    flow("returns", law, &format!("start = \"{LEAVES}s\""));
                }
            }
            Self::Short => {
                let bytes = (f64::from(link.rate_mbit) * 1e6 / 8.0 * PAGE_EVERY * PAGE_LOAD) as u64;
                for page in 0..PAGES {
                    let start = page_starts(page);
                    flow(&format!("page{page}"), foreground, &format!("size = \"{bytes}B\"\nstart = \"{start}s\""));
                }
                for number in 0..FLOWS {
                    let start = FIRST_FLOW + 2.0 * f64::from(number);
                    let times = format!("start = \"{start}s\"\nstop = \"{}s\"", start + 1.0);
                    flow(&format!("flow{number}"), foreground, &times);
                }
                if law != REFERENCE {
                    flow("transfer", law, "");
                }
            }
            Self::Three => (0..3).for_each(|host| flow(&format!("host{host}"), law, &format!("start = \"{host}s\""))),
        }
        Ok(Scenario::parse(&text, &folder.join("scenario"), &[])?)
    }

    /// What a run of that scenario gave.
    pub(crate) fn measure(self, link: &Link, course: &Course) -> BTreeMap<Quantity, f64> {
        match self {
            Self::Comes => {
                let (back, returned) = (Self::back(link), if course.delivered.len() > 2 { 2 } else { 0 });
                [
                    (Quantity::Alone, course.rate(0, 4.0, COMES)),
                    (Quantity::Kept, course.rate(1, COMES, LEAVES)),
                    (Quantity::After, course.rate(returned, back, back + 10.0)),
                ]
                .into()
            }
            Self::Short => {
                let pages = (0..PAGES).map(|page| {
                    let start = page_starts(page);
                    course.finished[page as usize].unwrap_or_else(|| self.duration(link)) - start
                });
                let flows = (0..FLOWS).map(|number| {
                    let start = FIRST_FLOW + 2.0 * f64::from(number);
                    course.rate((PAGES + number) as usize, start, start + 1.0)
                });
                let (pages, flows) = (pages.sum::<f64>() / f64::from(PAGES), flows.sum::<f64>() / f64::from(FLOWS));
                [(Quantity::Pages, pages), (Quantity::OnOff, flows)].into()
            }
            Self::Three => {
                let rates: Vec<f64> = (0..3).map(|host| course.rate(host, SETTLED, THREE_END)).collect();
                let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
                [(Quantity::Used, sum), (Quantity::Jain, sum * sum / (3.0 * squares).max(1e-9))].into()
            }
        }
    }
}
