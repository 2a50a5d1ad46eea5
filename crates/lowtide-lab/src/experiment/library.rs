// SPDX-License-Identifier: MIT OR Apache-2.0
//! All experiments: those in the program, or those of a directory.

use super::Experiment;
use crate::error::{LabError, Result};
use lowtide_net::{file, nearest};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// Experiments, and the scenarios that they take up.
#[derive(Clone, Debug)]
pub struct Library {
    /// In the order of papers and names.
    pub experiments: Vec<Experiment>,
    /// Where scenarios are looked for before those in the program.
    directory: Option<PathBuf>,
}

impl Library {
    /// The experiments in the program.
    ///
    /// # Errors
    /// What is wrong with one of them; the tests see to it that nothing is.
    pub fn built_in() -> Result<Self> {
        Self::of(EXPERIMENTS.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(), None)
    }

    /// The experiments of a directory: the TOML files of its subdirectories.
    ///
    /// # Errors
    /// A file that cannot be read, or what is wrong with one.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut texts = BTreeMap::new();
        for folder in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
            for file in entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")) {
                let text = file::read_text(&file, Experiment::MOST_BYTES).map_err(LabError::at("read", &file))?;
                texts.insert(file.display().to_string(), text);
            }
        }
        if texts.is_empty() {
            let directory = directory.display();
            return Err(LabError::new(format!(
                "{directory} has no experiments; they are like PAPER/NAME.toml in there"
            )));
        }
        Self::of(texts, Some(directory.to_owned()))
    }

    fn of(texts: BTreeMap<String, String>, directory: Option<PathBuf>) -> Result<Self> {
        let mut experiments: Vec<Experiment> =
            texts.iter().map(|(path, text)| Experiment::parse(path, text)).collect::<Result<_>>()?;
        experiments.sort_by(|a, b| (&a.paper, &a.id).cmp(&(&b.paper, &b.id)));
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for experiment in &experiments {
            let words = experiment.targets.iter().map(|target| target.id.as_str()).chain([experiment.id.as_str()]);
            for word in words {
                if let Some(other) = owners.insert(word, &experiment.id) {
                    return Err(LabError::new(format!(
                        "the experiments {other} and {} both have {word}",
                        experiment.id
                    )));
                }
            }
        }
        Ok(Self { experiments, directory })
    }

    /// Those that the words name: experiments, targets or papers; all, if there are none.
    ///
    /// # Errors
    /// A word that names nothing.
    pub fn choose(&self, words: &[String]) -> Result<Vec<&Experiment>> {
        for word in words {
            if !self.experiments.iter().any(|experiment| experiment.goes_by(word)) {
                return Err(self.unknown(word));
            }
        }
        let chosen = |it: &&Experiment| words.is_empty() || words.iter().any(|word| it.goes_by(word));
        Ok(self.experiments.iter().filter(chosen).collect())
    }

    fn unknown(&self, word: &str) -> LabError {
        let known = self.experiments.iter().flat_map(|experiment| {
            experiment
                .targets
                .iter()
                .map(|target| target.id.as_str())
                .chain([experiment.id.as_str(), &experiment.paper])
        });
        let hint = nearest(word, known).map_or(String::new(), |nearest| format!(" Did you mean {nearest}?"));
        LabError::new(format!(
            "\"{word}\" is no experiment, target or paper; `lowtide lab list` shows what there is.{hint}"
        ))
    }

    /// The text of a scenario and the path by which messages name it: of the experiments' directory, or of the program.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn scenario(&self, name: &str) -> Result<(PathBuf, String)> {
        if let Some(path) = self.directory.as_ref().map(|directory| directory.join(name)).filter(|path| path.exists()) {
            let text = file::read_text(&path, file::MOST).map_err(LabError::at("read", &path))?;
            return Ok((path, text));
        }
        match SCENARIOS.iter().find(|(path, _)| *path == name) {
            Some((path, text)) => Ok((Path::new("scenarios").join(path), (*text).to_owned())),
            None => Err(LabError::new(format!("there is no scenario {name} in scenarios/"))),
        }
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(LabError::at("read", directory))?;
    let entries = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut entries = entries.map_err(LabError::at("read", directory))?;
    entries.sort();
    Ok(entries)
}
