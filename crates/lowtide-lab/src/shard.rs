// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of the runs, for several machines that share the work.

use crate::error::LabError;
use std::{num::ParseIntError, str::FromStr};

const SLURM_ID: &str = "SLURM_ARRAY_TASK_ID";
const SLURM_FIRST: &str = "SLURM_ARRAY_TASK_MIN";
const KUBERNETES_INDEX: &str = "JOB_COMPLETION_INDEX";

/// One of several equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0 on.
    index: usize,
    /// Of how many.
    of: usize,
}

/// Why the environment does not say which part this process has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoShard {
    /// There is no variable of a batch system.
    #[error("the environment has neither {SLURM_ID} nor {KUBERNETES_INDEX}")]
    NoBatchSystem,
    /// A variable is no whole number.
    #[error("{name} is \"{text}\", which is no number: {error}")]
    NotANumber {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
        /// What is wrong with it.
        error: ParseIntError,
    },
    /// Two variables contradict each other.
    #[error("{SLURM_ID} is less than {SLURM_FIRST}")]
    BeforeTheFirst,
    /// The batch system has more processes than there are parts.
    #[error("{name} makes this part {} of {of}", index + 1)]
    TooFew {
        /// The variable that names the part.
        name: &'static str,
        /// The part, from 0 on.
        index: usize,
        /// How many there are.
        of: usize,
    },
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part that a batch system gave this process, of `of` parts. `variable` looks up a variable of the
    /// environment.
    ///
    /// # Errors
    /// The environment names no part, or none of these.
    pub fn of_environment(of: usize, variable: impl Fn(&str) -> Option<String>) -> Result<Self, NoShard> {
        let number = |name: &'static str| -> Result<Option<usize>, NoShard> {
            let Some(text) = variable(name) else { return Ok(None) };
            text.trim().parse().map(Some).map_err(|error| NoShard::NotANumber { name, text, error })
        };
        let (index, name) = if let Some(task) = number(SLURM_ID)? {
            // an array may begin anywhere and have gaps: --array=10-40:10
            let (first, step) = (number(SLURM_FIRST)?, number("SLURM_ARRAY_TASK_STEP")?);
            let before = task.checked_sub(first.unwrap_or(0)).ok_or(NoShard::BeforeTheFirst)?;
            (before / step.unwrap_or(1).max(1), SLURM_ID)
        } else if let Some(index) = number(KUBERNETES_INDEX)? {
            (index, KUBERNETES_INDEX)
        } else {
            return Err(NoShard::NoBatchSystem);
        };
        if index < of { Ok(Self { index, of }) } else { Err(NoShard::TooFew { name, index, of }) }
    }

    /// Whether it is not the whole.
    pub fn is_part(&self) -> bool {
        self.of > 1
    }

    /// Whether the run of this number is in it.
    pub fn has(&self, number: usize) -> bool {
        number % self.of == self.index
    }
}

impl FromStr for Shard {
    type Err = LabError;

    /// `2/4`: the second of four parts.
    fn from_str(text: &str) -> Result<Self, LabError> {
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse::<usize>().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self { index: index - 1, of }),
            _ => Err(LabError::new(format!("\"{text}\" is not a part; write it like 2/4, the second of four"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_complete() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        assert!((0..100).all(|n| shards.iter().filter(|shard| shard.has(n)).count() == 1));
        assert!(!Shard::WHOLE.is_part() && shards[0].is_part() && Shard::WHOLE.has(7));
        for text in ["0/3", "4/3", "1", "a/b", "1/0", "-1/2"] {
            assert!(text.parse::<Shard>().unwrap_err().to_string().contains(text));
        }
    }

    #[test]
    fn batch_systems_say_which() {
        let of = |of, variables: &[(&str, &str)]| {
            let look =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Shard::of_environment(of, look)
        };
        assert_eq!(of(4, &[(KUBERNETES_INDEX, "0")]), Ok("1/4".parse().unwrap()));
        let slurm = [(SLURM_ID, "30"), (SLURM_FIRST, "10"), ("SLURM_ARRAY_TASK_STEP", "10")];
        assert_eq!(of(4, &slurm), Ok("3/4".parse().unwrap()));
        assert_eq!(of(2, &[(SLURM_ID, "1")]), Ok("2/2".parse().unwrap()));
        assert!(of(2, &slurm).unwrap_err().to_string().contains("part 3 of 2"));
        assert_eq!(of(2, &[(SLURM_ID, "1"), (SLURM_FIRST, "2")]), Err(NoShard::BeforeTheFirst));
        assert_eq!(of(2, &[]), Err(NoShard::NoBatchSystem));
        assert!(of(2, &[(KUBERNETES_INDEX, "x")]).unwrap_err().to_string().contains("\"x\""));
    }
}
