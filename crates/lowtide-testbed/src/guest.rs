// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's place `guest`: scenarios run by `lowtide lab testbed` in a Debian kernel under QEMU, in virtual time.

use crate::{Bottleneck, VERSION, run};
use anyhow::Result;
use lowtide_guest::{Guest, Image, Job, Program};
use lowtide_lab::{
    Cache, LabError, Place, Recording,
    testbed::{Request, Testbed},
};
use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// What Debian's kernels have, beside Reno and CUBIC as modules.
const LAWS: &str = "reno cubic cdg lp vegas nv dctcp bbr";
/// Of iproute2, which makes the namespaces and the queues.
const TOOLS: [&str; 2] = ["ip", "tc"];
/// What lowtide is called in the guest, whatever it is called here.
const LOWTIDE: &str = "lowtide";
/// The host's time for a boot, and for each second of a scenario: on an idle machine 10 s and half a second.
const BOOT: Duration = Duration::from_secs(600);
const PACE: u32 = 30;

/// Where the guest's image is: the directory that `LOWTIDE_GUEST` names, else `guest` in the lab's usual cache.
///
/// # Errors
/// There is no usual cache.
pub fn image_directory() -> Result<PathBuf> {
    let named = env::var_os("LOWTIDE_GUEST").filter(|name| !name.is_empty());
    named.map_or_else(|| Ok(Cache::usual()?.directory().join("guest")), |name| Ok(name.into()))
}

/// Runs scenarios in guests.
#[derive(Debug)]
pub struct GuestTestbed {
    guest: Guest,
    environment: String,
    version: String,
}

impl GuestTestbed {
    /// With the image in this directory, and with lowtide's own program.
    ///
    /// # Errors
    /// QEMU, the image or a program is not there.
    pub fn new(image: &Path, program: &Path) -> Result<Self> {
        let image = Image::find(image)?;
        let ours = Program { name: LOWTIDE.to_owned(), path: program.to_owned() };
        let tools = TOOLS.iter().map(|name| Program::of_the_system(name)).collect::<Result<Vec<_>, _>>()?;
        let about = image.about().lines().next().unwrap_or_default();
        let environment = about.trim_start_matches("kernel ").to_owned();
        let guest = Guest::new(image, &[tools, vec![ours]].concat())?;
        let version = format!("{VERSION} {}", guest.qemu());
        Ok(Self { guest, environment, version })
    }
}

impl Testbed for GuestTestbed {
    fn place(&self) -> Place {
        Place::Guest
    }

    fn environment(&self) -> &str {
        &self.environment
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn at_once(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn refusal(&self, request: &Request) -> Option<String> {
        job(request).err()
    }

    fn run(&self, request: &Request) -> Result<Recording, LabError> {
        let job = job(request).map_err(LabError::new)?;
        let outcome = self.guest.run(&job).map_err(|error| LabError::new(error.to_string()))?;
        Recording::from_json(&outcome.result)
    }
}

/// The guest's whole task, or why it is none. Nothing of it comes from a network or a clock outside.
fn job(request: &Request) -> Result<Job, String> {
    let scenario = &request.scenario;
    let mut parameters: BTreeMap<String, String> = BTreeMap::new();
    for ((law, name), value) in run::parameters(request, Bottleneck::Tc, LAWS)? {
        let _ = write!(parameters.entry(law).or_default(), " {name}={value}");
    }
    let mut command =
        format!("exec {LOWTIDE} lab testbed scenario.toml -o result --bottleneck tc --plain-registration");
    for (flows, law) in &request.kernel_laws {
        let _ = write!(command, " --kernel-law '{flows}={law}'");
    }
    let modules = LAWS.split(' ').filter(|law| !["reno", "cubic"].contains(law));
    let line = |law: &str| format!("tcp_{law}{}", parameters.get(law).map_or("", String::as_str));
    Ok(Job {
        files: vec![("scenario.toml".to_owned(), scenario.to_toml().into_bytes())],
        modules: modules.map(line).collect(),
        seed: scenario.seed,
        timeout: BOOT + scenario.duration * PACE,
        ..Job::new(command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_sim::scenario::Scenario;

    #[test]
    fn a_job_has_all_that_runs() {
        let text = "seed = 7\nduration = \"9s\"\nbottleneck = { rate = \"10mbit\", rtt = \"20ms\" }\n\
                    [[flow]]\nname = \"bg\"\ncc = \"cdg:g=2,whole_segments=on\"\n";
        let scenario = Scenario::parse(text, Path::new("test"), &[]).unwrap();
        let request = Request { scenario: scenario.clone(), kernel_laws: [("b*".to_owned(), "cdg".to_owned())].into() };
        let job = job(&request).unwrap();
        assert!(job.command.ends_with(" --kernel-law 'b*=cdg'"), "{}", job.command);
        let cdg = job.modules.iter().find(|line| line.starts_with("tcp_cdg ")).unwrap();
        assert!(cdg.contains(" window=8") && cdg.contains(" backoff_factor=63"), "{cdg}");
        assert!(job.modules.contains(&"tcp_lp".to_owned()) && !job.modules.iter().any(|line| line.contains("reno")));
        assert_eq!((job.seed, job.files[0].0.as_str()), (7, "scenario.toml"));
        let read = Scenario::parse(std::str::from_utf8(&job.files[0].1).unwrap(), Path::new("test"), &[]);
        assert_eq!(read.unwrap(), scenario);
    }
}
