// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results on disk, one file for each run, found again by what they depend on.

use crate::{
    Place, Recording,
    error::{LabError, Result},
    experiment::{Experiment, SeriesOf},
    expression::{Series, Value, Where},
    testbed::{Request, Testbed},
};
use lowtide_net::file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    env, fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// Bytes that a result may have: a recording holds every packet.
const MOST: u64 = 1 << 30;

/// A hash of all code and of the compiler that the results depend on.
pub const VERSION: &str = env!("LOWTIDE_RESULTS_VERSION");

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Of this experiment.
    pub experiment: String,
    /// In this cell.
    pub place: Where,
    /// With this seed.
    pub seed: u64,
    /// What was measured.
    pub measures: BTreeMap<String, Value>,
    /// What is drawn over time.
    pub series: BTreeMap<String, Curve>,
    /// How long it took, in seconds.
    pub wall_s: f64,
}

/// A time series as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Seconds.
    pub times: Vec<f64>,
    /// As many values.
    pub values: Vec<f64>,
}

impl From<&Series> for Curve {
    fn from(series: &Series) -> Self {
        let (times, values) = series.present().filter(|(_, value)| value.is_finite()).unzip();
        Self { times, values }
    }
}

/// What a run's result depends on, as a short text.
pub(crate) fn key(
    experiment: &Experiment,
    scenario: &str,
    variables: &[(String, String)],
    series: &[&SeriesOf],
) -> String {
    let mut hash = Sha256::new();
    let mut put = |part: &str| put(&mut hash, part);
    // functions for figures and bands alone are changed without running anything
    let measures = experiment.measures_of_runs().map(|it| it.value.as_str());
    let needed = measures.chain(series.iter().map(|it| it.value.as_str())).map(|text| experiment.functions_for(text));
    let functions = needed.max_by_key(|text| text.len()).unwrap_or_default();
    [VERSION, scenario, functions].into_iter().for_each(&mut put);
    variables.iter().flat_map(|(name, value)| [name, value]).for_each(|text| put(text));
    experiment.record.packets.iter().for_each(|text| put(text));
    experiment.measures_of_runs().flat_map(|it| [&it.name, &it.value]).for_each(|text| put(text));
    series.iter().flat_map(|it| [&it.name, &it.value]).for_each(|text| put(text));
    finish(hash)
}

/// What a recording of a testbed depends on, as a short text: the scenario, and the machine with its kernel. What is
/// measured of it is not in it, nor is the version of this program, which stands in the recording: it takes too long to
/// make.
pub(crate) fn key_of_recording(testbed: &dyn Testbed, request: &Request) -> String {
    let mut hash = Sha256::new();
    let (place, scenario) = (testbed.place().to_string(), request.scenario.to_toml());
    [place.as_str(), testbed.environment(), &scenario].into_iter().for_each(|text| put(&mut hash, text));
    request.kernel_laws.iter().flat_map(|(flows, law)| [flows, law]).for_each(|text| put(&mut hash, text));
    finish(hash)
}

fn put(hash: &mut Sha256, part: &str) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

/// A number by chance that is always the same for these values.
pub(crate) fn chance(values: &[(String, String)]) -> u64 {
    let mut hash = Sha256::new();
    values.iter().flat_map(|(axis, value)| [axis, value]).for_each(|text| put(&mut hash, text));
    hash.finalize()[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn finish(hash: Sha256) -> String {
    hash.finalize()[..16].iter().fold(String::new(), |text, byte| text + format!("{byte:02x}").as_str())
}

/// How the names of recordings end.
const RECORDING: &str = "recording";
/// Of sentences why there is no recording.
const REFUSAL: &str = "refusal";
/// Of files that say in which environments there are recordings.
const ENVIRONMENT: &str = "environment";

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// In this directory, which is made when there is something to keep.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is unless another place is given: `target/lab` of the workspace that this is called in, else in the
    /// user's cache directory.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn usual() -> Result<Self> {
        let here =
            env::current_dir().map_err(|error| LabError::new(format!("there is no current directory: {error}")))?;
        if let Some(top) = here.ancestors().find(|path| path.join("crates/lowtide-lab/Cargo.toml").exists()) {
            return Ok(Self::new(top.join("target/lab")));
        }
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let caches = caches.ok_or_else(|| LabError::new("there is no place for results: HOME is not set"))?;
        Ok(Self::new(caches.join("lowtide/lab")))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, experiment: &str, key: &str) -> PathBuf {
        self.directory.join(experiment).join(format!("{key}.json"))
    }

    /// The result of this key.
    ///
    /// # Errors
    /// There is one that cannot be read.
    pub(crate) fn get(&self, experiment: &str, key: &str) -> Result<Option<Entry>> {
        let path = self.path(experiment, key);
        match file::read(&path, MOST) {
            Ok(text) => read(&path, &text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::at("read", &path)(error)),
        }
    }

    /// Keeps a result. A reader sees all of it or nothing meanwhile.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn put(&self, key: &str, entry: &Entry) -> Result<()> {
        let text =
            serde_json::to_vec(entry).map_err(|error| LabError::new(format!("a result cannot be kept: {error}")))?;
        write(&self.path(&entry.experiment, key), &text)
    }

    fn path_of(&self, experiment: &str, key: &str, kind: &str) -> PathBuf {
        self.directory.join(experiment).join(format!("{key}.{kind}"))
    }

    /// The recording of this key.
    ///
    /// # Errors
    /// There is one that cannot be read.
    pub(crate) fn recording(&self, experiment: &str, key: &str) -> Result<Option<Recording>> {
        let path = self.path_of(experiment, key, RECORDING);
        match file::read(&path, MOST) {
            Ok(text) => Recording::from_json(&text).map(Some).map_err(|error| error.within(path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::at("read", &path)(error)),
        }
    }

    /// Keeps a recording.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn put_recording(&self, experiment: &str, key: &str, recording: &Recording) -> Result<()> {
        write(&self.path_of(experiment, key, RECORDING), recording.to_json().as_bytes())
    }

    /// Why there is no recording of this key, as was last found where it would be made.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn refusal(&self, experiment: &str, key: &str) -> Result<Option<String>> {
        let path = self.path_of(experiment, key, REFUSAL);
        match file::read_text(&path, MOST) {
            Ok(why) => Ok(Some(why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::at("read", &path)(error)),
        }
    }

    /// Keeps why there is none, or that nothing is in the way.
    ///
    /// # Errors
    /// It cannot be written or removed.
    pub(crate) fn put_refusal(&self, experiment: &str, key: &str, why: Option<&str>) -> Result<()> {
        let path = self.path_of(experiment, key, REFUSAL);
        match why {
            Some(why) => write(&path, why.as_bytes()),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::at("remove", &path)(error)),
                _ => Ok(()),
            },
        }
    }

    /// Keeps that an experiment was run in this environment of a place just now.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn put_environment(&self, experiment: &str, place: Place, environment: &str) -> Result<()> {
        let text = format!("{place}\n{environment}");
        let mut hash = Sha256::new();
        put(&mut hash, &text);
        write(&self.path_of(experiment, &finish(hash), ENVIRONMENT), text.as_bytes())
    }

    /// The environments of a place that an experiment was run in, the one where that was last coming first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn environments(&self, experiment: &str, place: Place) -> Result<Vec<String>> {
        let directory = self.directory.join(experiment);
        if !directory.exists() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for file in list(&directory)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == ENVIRONMENT)) {
            let failed = LabError::at("read", &file);
            let text = file::read_text(&file, MOST).map_err(&failed)?;
            if let Some(environment) = text.strip_prefix(&format!("{place}\n")) {
                let when = file.metadata().and_then(|about| about.modified()).map_err(&failed)?;
                found.push((when, environment.to_owned()));
            }
        }
        found.sort();
        Ok(found.into_iter().rev().map(|(_, environment)| environment).collect())
    }

    /// Takes over all results of another cache; says how many were new.
    ///
    /// # Errors
    /// The other directory cannot be read or holds no results; or both have the same key with different results, which
    /// cannot be from the same program.
    pub fn merge(&self, other: &Path) -> Result<usize> {
        let (mut seen, mut new) = (0, 0);
        for folder in list(other)?.into_iter().filter(|path| path.is_dir()) {
            for kind in [RECORDING, REFUSAL, ENVIRONMENT] {
                for file in list(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == kind)) {
                    let ours = self.directory.join(file.strip_prefix(other).unwrap_or(&file));
                    seen += 1;
                    if !ours.exists() {
                        write(&ours, &file::read(&file, MOST).map_err(LabError::at("read", &file))?)?;
                        new += usize::from(kind == RECORDING);
                    }
                }
            }
            for file in list(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "json")) {
                let text = file::read(&file, MOST).map_err(LabError::at("read", &file))?;
                let theirs = read(&file, &text)?;
                let key = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                seen += 1;
                match self.get(&theirs.experiment, key)? {
                    None => {
                        write(&self.path(&theirs.experiment, key), &text)?;
                        new += 1;
                    }
                    Some(ours) if Entry { wall_s: 0.0, ..ours.clone() } == Entry { wall_s: 0.0, ..theirs.clone() } => {}
                    Some(_) => {
                        let (file, directory) = (file.display(), self.directory.display());
                        return Err(LabError::new(format!("{file} is not the same result as that in {directory}")));
                    }
                }
            }
        }
        if seen == 0 {
            return Err(LabError::new(format!("{} holds no results of the lab", other.display())));
        }
        Ok(new)
    }

    /// The mean time that a run of an experiment took, in seconds, if some were kept.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn seconds_per_run(&self, experiment: &str) -> Result<Option<f64>> {
        let directory = self.directory.join(experiment);
        if !directory.exists() {
            return Ok(None);
        }
        let files = list(&directory)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "json"));
        let mut times = Vec::new();
        // an estimate: some of them do
        for file in files.take(50) {
            let text = file::read(&file, MOST).map_err(LabError::at("read", &file))?;
            times.push(read(&file, &text)?.wall_s);
        }
        Ok(crate::statistics::mean(&times))
    }
}

fn read(path: &Path, text: &[u8]) -> Result<Entry> {
    serde_json::from_slice(text).map_err(|error| {
        LabError::new(format!("{} is not a result of the lab ({error}); remove it and run again", path.display()))
    })
}

/// Writes a file beside its place and moves it there.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<()> {
    let failed = LabError::at("write", path);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(&failed)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lab-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less what the umask takes
    let mut file = builder.tempfile_in(directory).map_err(&failed)?;
    file.write_all(text).map_err(&failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = LabError::at("read", directory);
    let entries = fs::read_dir(directory).map_err(&failed)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>().map_err(&failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seed: u64, share: f64) -> Entry {
        let measures =
            BTreeMap::from([("share".to_owned(), Value::from(share)), ("none".to_owned(), Value::Number(None))]);
        let curve = Curve { times: vec![0.1], values: vec![1.0 / 3.0] };
        let place = vec![("rtt".to_owned(), "20".to_owned())];
        Entry {
            experiment: "e".to_owned(),
            place,
            seed,
            measures,
            series: [("r".to_owned(), curve)].into(),
            wall_s: 0.5,
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("new"));
        assert_eq!(cache.get("e", "k"), Ok(None));
        cache.put("k", &entry(1, 0.1)).unwrap();
        assert_eq!(cache.get("e", "k"), Ok(Some(entry(1, 0.1))));
        assert_eq!(cache.seconds_per_run("e"), Ok(Some(0.5)));
        fs::write(cache.path("e", "k"), "{").unwrap();
        assert!(cache.get("e", "k").unwrap_err().to_string().contains("remove it"));
    }

    #[test]
    fn the_newest_environment_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("a"));
        assert_eq!(cache.environments("e", Place::Guest), Ok(Vec::new()));
        for (place, environment) in [(Place::Guest, "6.1"), (Place::Guest, "6.12"), (Place::Kernel, "6.18")] {
            cache.put_environment("e", place, environment).unwrap();
        }
        let of_61 = list(&cache.directory().join("e")).unwrap().into_iter();
        let of_61 = of_61.into_iter().find(|file| fs::read_to_string(file).unwrap().ends_with("\n6.1")).unwrap();
        let at = |seconds| std::time::SystemTime::now() + std::time::Duration::from_secs(seconds);
        fs::File::options().append(true).open(of_61).unwrap().set_modified(at(60)).unwrap();
        let environments = cache.environments("e", Place::Guest).unwrap();
        assert_eq!(environments, ["6.1", "6.12"]);
        assert_eq!(cache.environments("e", Place::Kernel).unwrap(), ["6.18"]);
    }

    #[test]
    fn caches_unite_unless_they_disagree() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| Cache::new(directory.path().join(name)));
        a.put("k1", &entry(1, 0.1)).unwrap();
        b.put("k1", &Entry { wall_s: 9.0, ..entry(1, 0.1) }).unwrap();
        b.put("k2", &entry(2, 0.2)).unwrap();
        assert_eq!(a.merge(b.directory()), Ok(1));
        assert_eq!(a.get("e", "k2"), Ok(Some(entry(2, 0.2))));
        b.put("k1", &entry(1, 0.9)).unwrap();
        assert!(a.merge(b.directory()).unwrap_err().to_string().contains("not the same result"));
        assert!(a.merge(directory.path()).unwrap_err().to_string().contains("holds no results"));
    }
}
