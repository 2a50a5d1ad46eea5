// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of the runs, for several machines that share the work.

use crate::error::{LabError, Result};
use std::{num::ParseIntError, str::FromStr};

/// One of several equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0 on.
    index: usize,
    /// Of how many.
    of: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part that a batch system gave this process, `of` so many in all; if `of` is not given, as many as the batch
    /// system says. `variable` looks up a variable of the environment.
    ///
    /// # Errors
    /// The batch system's number is none, or beyond `of`; or there is no batch system.
    pub fn of_environment(of: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let number = |name: &str| -> Result<Option<usize>> {
            let Some(text) = variable(name) else { return Ok(None) };
            let wrong =
                |error: ParseIntError| LabError::new(format!("{name} is \"{text}\", which is no number: {error}"));
            text.trim().parse().map(Some).map_err(wrong)
        };
        let (index, name) = if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
            // an array may begin anywhere and have gaps: --array=10-40:10
            let (first, step) = (number("SLURM_ARRAY_TASK_MIN")?, number("SLURM_ARRAY_TASK_STEP")?);
            let before = task.checked_sub(first.unwrap_or(0)).ok_or_else(|| {
                LabError::new("SLURM_ARRAY_TASK_ID is less than SLURM_ARRAY_TASK_MIN; say --shard I/N yourself")
            })?;
            (before / step.unwrap_or(1).max(1), "SLURM_ARRAY_TASK_ID")
        } else if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            (index, "JOB_COMPLETION_INDEX")
        } else {
            return Err(LabError::new(
                "--shards needs SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in the environment; without them use --shard I/N",
            ));
        };
        let of = match of {
            Some(of) => of,
            None => number("SLURM_ARRAY_TASK_COUNT")?
                .ok_or_else(|| LabError::new(format!("{name} is set; say --shards N")))?,
        };
        if index >= of {
            return Err(LabError::new(format!(
                "{name} makes this part {} of {of}; there are too few parts",
                index + 1
            )));
        }
        Ok(Self { index, of })
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
    fn from_str(text: &str) -> Result<Self> {
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
            Shard::of_environment(of, look).map_err(|error| error.to_string())
        };
        assert_eq!(of(Some(4), &[("JOB_COMPLETION_INDEX", "0")]), Ok("1/4".parse().unwrap()));
        let slurm = [("SLURM_ARRAY_TASK_ID", "30"), ("SLURM_ARRAY_TASK_MIN", "10"), ("SLURM_ARRAY_TASK_STEP", "10")];
        assert_eq!(of(Some(4), &slurm), Ok("3/4".parse().unwrap()));
        let counted = [("SLURM_ARRAY_TASK_ID", "1"), ("SLURM_ARRAY_TASK_COUNT", "2")];
        assert_eq!(of(None, &counted), Ok("2/2".parse().unwrap()));
        assert!(of(None, &[("JOB_COMPLETION_INDEX", "0")]).unwrap_err().contains("--shards N"));
        assert!(of(Some(2), &slurm).unwrap_err().contains("part 3 of 2"));
        assert!(of(Some(2), &[]).unwrap_err().contains("--shard I/N"));
        assert!(of(Some(2), &[("JOB_COMPLETION_INDEX", "x")]).unwrap_err().contains("\"x\""));
    }
}
