// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs scenarios with the TCP of a kernel, in place of the simulator.

mod file;
mod recorded;

pub use recorded::Recorded;

use crate::{LabError, Place, Recording, recording::matches};
use lowtide_sim::scenario::Scenario;
use std::{collections::BTreeMap, fmt};

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The scenario, with its seed.
    pub scenario: Scenario,
    /// Flows, or patterns of their names, that run a law of the kernel in place of the one that the scenario has, and
    /// its name there.
    pub kernel_laws: BTreeMap<String, String>,
}

impl Request {
    /// Whether each pattern of the kernel's laws is meant: it goes with a flow, and no flow with two of them.
    ///
    /// # Errors
    /// Which one is not, in a sentence.
    pub fn check_kernel_laws(&self) -> Result<(), LabError> {
        let flows = || self.scenario.flows.iter().map(|flow| flow.name.as_str());
        for pattern in self.kernel_laws.keys() {
            if !flows().any(|flow| matches(pattern, flow)) {
                return Err(LabError::new(format!("kernel_law: no flow is called {pattern}")));
            }
        }
        for flow in flows() {
            let all: Vec<&str> = self.kernel_laws.keys().filter(|it| matches(it, flow)).map(String::as_str).collect();
            if all.len() > 1 {
                return Err(LabError::new(format!("kernel_law: {flow} goes with {}", all.join(" and with "))));
            }
        }
        Ok(())
    }

    /// The kernel's law that this flow is to run, if the scenario's own is not meant.
    pub fn kernel_law(&self, flow: &str) -> Option<&str> {
        self.kernel_laws.iter().find(|(pattern, _)| matches(pattern, flow)).map(|(_, law)| law.as_str())
    }
}

/// Whether a recording is from this version. Who knows of no machine, only of a program, leaves the rest out.
pub fn same_version(recorded: Option<&str>, version: &str) -> bool {
    recorded.and_then(|it| it.strip_prefix(version)).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Runs scenarios with the TCP of a kernel. Its recordings have the shape of the simulator's.
pub trait Testbed: fmt::Debug + Sync {
    /// Where.
    fn place(&self) -> Place;

    /// What of the place decides on results, such as the kernel's release; a recording of another one is not taken for
    /// this one's.
    fn environment(&self) -> &str;

    /// The version of the program and of the machine that run it, kept with a recording; see [`same_version`].
    fn version(&self) -> &str;

    /// So many runs at the same time do not disturb each other.
    fn at_once(&self) -> usize;

    /// What of this scenario cannot be had there, in a sentence; it is then not run.
    fn refusal(&self, request: &Request) -> Option<String>;

    /// Runs it.
    ///
    /// # Errors
    /// What went wrong, in a sentence.
    fn run(&self, request: &Request) -> Result<Recording, LabError>;
}
