// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was recorded elsewhere before, perhaps on another machine.

use super::{Player, Request};
use crate::{LabError, Place, Recording};

/// Stands for who made recordings that are kept, and makes none.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where they were made.
    pub place: Place,
    /// In this environment.
    pub environment: String,
    /// The version of the program that looks at them.
    pub version: String,
}

impl Player for Kept {
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

    fn play(&self, request: &Request) -> Result<Recording, LabError> {
        Err(LabError::new(self.refusal(request).unwrap_or_default()))
    }
}
