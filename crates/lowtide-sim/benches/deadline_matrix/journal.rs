// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has been measured already: a file with a line for each run, so that a long series can be broken off and taken
//! up again. A line holds as long as the scenario and the sources that it came from are the same.

use crate::Failure;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

#[derive(Deserialize, Serialize)]
struct Line {
    key: String,
    name: String,
    result: Value,
}

/// The file, and what is in it.
pub(crate) struct Journal {
    file: File,
    results: BTreeMap<String, Value>,
    version: u64,
}

impl Journal {
    /// Opens a file, or makes it. What cannot be read (the last line, if the machine went down) is measured again.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file)?;
        }
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        Ok(Self { file, results: lines.map(|line| (line.key, line.result)).collect(), version: version()? })
    }

    /// What this scenario came to.
    pub(crate) fn get<T: DeserializeOwned>(&self, scenario: &str) -> Option<T> {
        serde_json::from_value(self.results.get(&self.key(scenario))?.clone()).ok()
    }

    /// Remembers it.
    pub(crate) fn put<T: Serialize>(&mut self, scenario: &str, name: &str, result: &T) -> Result<(), Failure> {
        let line = Line { key: self.key(scenario), name: name.to_owned(), result: serde_json::to_value(result)? };
        writeln!(self.file, "{}", serde_json::to_string(&line)?)?;
        self.results.insert(line.key, line.result);
        Ok(())
    }

    fn key(&self, scenario: &str) -> String {
        format!("{:016x}", hash(self.version, scenario.as_bytes()))
    }
}

/// What results follow from: the sources of the simulator and of what it is made of, and how this bench measures.
fn version() -> Result<u64, Failure> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("there is no folder of crates")?;
    let sources = ["lowtide-cc/src", "lowtide-deadline/src", "lowtide-net/src", "lowtide-sim/src"];
    let measure = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/deadline_matrix/measure.rs");
    let mut files = vec![measure.into()];
    let mut folders: Vec<_> = sources.iter().map(|source| crates.join(source)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files.iter().try_fold(OFFSET, |sum, file| Ok(hash(sum, &fs::read(file)?)))
}

/// FNV-1a (Fowler, Noll and Vo), the same on every machine.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
