// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue disciplines by name.

use crate::units::{UnitError, format_duration, parse_duration};
use crate::{Limit, Queue, Step, TailDrop};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Which queue a link has. Written `tail-drop` or `step:1ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; see [`TailDrop`].
    #[default]
    TailDrop,
    /// Marks above a threshold of waiting time; see [`Step`].
    Step {
        /// Waiting time above which an ECN-capable packet is marked.
        threshold: Duration,
    },
}

impl Discipline {
    /// An empty queue of this kind that holds at most `limit`, the packet in service included.
    pub fn queue<T: Send + 'static>(self, limit: Limit) -> Box<dyn Queue<T>> {
        match self {
            Self::TailDrop => Box::new(TailDrop::new(limit)),
            Self::Step { threshold } => Box::new(Step::new(limit, threshold)),
        }
    }
}

impl FromStr for Discipline {
    type Err = UnitError;

    /// Reads `tail-drop` or `step:THRESHOLD`.
    ///
    /// # Errors
    /// Any other text.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let threshold = |text| parse_duration(text).ok();
        match text.split_once(':') {
            None if text == "tail-drop" => Some(Self::TailDrop),
            Some(("step", text)) => threshold(text).map(|threshold| Self::Step { threshold }),
            _ => None,
        }
        .ok_or_else(|| UnitError::new(text, "a queue discipline", "tail-drop or step:1ms"))
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TailDrop => f.write_str("tail-drop"),
            Self::Step { threshold } => write!(f, "step:{}", format_duration(*threshold)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for name in ["tail-drop", "step:1ms", "step:250us"] {
            assert_eq!(name.parse::<Discipline>().unwrap().to_string(), name);
        }
        for wrong in ["", "step", "step:", "step:3", "red", "tail-drop:1ms"] {
            assert!(wrong.parse::<Discipline>().is_err(), "{wrong}");
        }
    }
}
