// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where an experiment takes place.

use crate::error::{LabError, Result};
use std::{fmt, str::FromStr};

/// Where an experiment takes place. Every place makes the same kind of recording of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the simulator.
    #[default]
    Sim,
    /// In this machine's kernel, through the emulator.
    Kernel,
    /// In a kernel that runs in virtual time.
    Guest,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "sim",
            Self::Kernel => "kernel",
            Self::Guest => "guest",
        })
    }
}

impl FromStr for Place {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self> {
        let found = [Self::Sim, Self::Kernel, Self::Guest].into_iter().find(|place| place.to_string() == text);
        found.ok_or_else(|| LabError::new(format!("\"{text}\" is none of sim, kernel and guest")))
    }
}
