// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a testbed recorded before, perhaps on another machine.

use super::{Request, Testbed};
use crate::{LabError, Place, Recording};

/// Stands for who made recordings that are kept, and makes none.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Where they were made.
    pub place: Place,
    /// In this environment.
    pub environment: String,
    /// The version of the program that looks at them.
    pub version: String,
}

impl Testbed for Recorded {
    fn place(&self) -> Place {
        self.place
    }

    fn environment(&self) -> &str {
        &self.environment
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn at_once(&self) -> usize {
        crate::runner::cores()
    }

    fn refusal(&self, _request: &Request) -> Option<String> {
        Some(format!("nothing is run on the {} here", self.place))
    }

    fn run(&self, request: &Request) -> Result<Recording, LabError> {
        Err(LabError::new(self.refusal(request).unwrap_or_default()))
    }
}
