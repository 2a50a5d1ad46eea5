// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's experiments on this machine's kernel: a process of its own for each run.

use crate::{Bottleneck, VERSION, hosts, laws, modules, run::parameters};
use anyhow::{Context, Result, bail};
use lowtide_kernel::{Need, diagnose};
use lowtide_lab::{
    LabError, Place, Recording,
    testbed::{Request, Testbed},
};
use nix::{
    errno::Errno,
    sys::{
        memfd::{MFdFlags, memfd_create},
        prctl::set_pdeathsig,
        signal::Signal,
    },
    unistd::getppid,
};
use std::{
    ffi::CStr,
    fs::File,
    io::{Read, Seek, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio, id},
};

/// Runs at a time. Eight links of 10 Mbit/s take one of two cores, but their lateness shows; docs/lab.md has what was
/// measured.
const AT_ONCE: usize = 4;

/// Runs scenarios on this kernel, through the emulator.
#[derive(Debug)]
pub struct KernelTestbed {
    release: String,
    program: PathBuf,
}

impl KernelTestbed {
    /// On this machine, with Lowtide's own program, which runs each scenario.
    ///
    /// # Errors
    /// What the machine lacks for that.
    pub fn new(program: &Path) -> Result<Self> {
        if let Some(sentence) = diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
            bail!("no scenario can run on this kernel: {sentence}");
        }
        Ok(Self { release: hosts::release()?, program: program.to_owned() })
    }

    /// In a process that ends in order when this one ends, however that is. Nothing is left on a disk.
    fn run_in_process(&self, request: &Request) -> Result<Recording> {
        let (mut scenario, mut recording) = (in_memory(c"scenario.toml")?, in_memory(c"recording.json")?);
        scenario.write_all(request.scenario.to_toml().as_bytes())?;
        let mut command = Command::new(&self.program);
        command.args(["lab", "testbed", &path(&scenario), "--output", &path(&recording)]);
        for (flows, law) in &request.kernel_laws {
            command.arg("--kernel-law").arg(format!("{flows}={law}"));
        }
        let parent = id() as i32;
        let end_with_us = move || {
            set_pdeathsig(Signal::SIGTERM)?;
            // it may have ended before
            if getppid().as_raw() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
        };
        // SAFETY: between fork and exec there are two system calls; they allocate nothing and take no lock.
        unsafe { command.pre_exec(end_with_us) };
        let output =
            command.stdin(Stdio::null()).stdout(Stdio::null()).output().context("starting lowtide lab testbed")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it said nothing");
            bail!("{}", last.strip_prefix("lowtide: ").unwrap_or(last));
        }
        let mut text = Vec::new();
        recording.rewind()?;
        recording.read_to_end(&mut text)?;
        Ok(Recording::from_json(&text)?)
    }
}

fn in_memory(name: &CStr) -> Result<File> {
    Ok(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC).context("making a file in memory")?))
}

/// Where another process finds a file of ours.
fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", id(), file.as_raw_fd())
}

impl Testbed for KernelTestbed {
    fn place(&self) -> Place {
        Place::Kernel
    }

    fn environment(&self) -> &str {
        &self.release
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn refusal(&self, request: &Request) -> Option<String> {
        parameters(request, Bottleneck::Emulator, &laws::available()).and_then(|wanted| modules::check(&wanted)).err()
    }

    fn run(&self, request: &Request) -> Result<Recording, LabError> {
        self.run_in_process(request).map_err(|error| LabError::new(format!("{error:#}")))
    }
}
