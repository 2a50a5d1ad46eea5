// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this machine and these privileges allow, found out by trying, with the consequence and the fix for what is
//! missing.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    path::Path,
    process::Command,
};

use libbpf_rs::{libbpf_sys, query::ProgInfoIter};

use crate::{
    Cgroup, Controller, Direction, Error, KernelLaw, Setup, Transfer, foreign,
    leftover::free_downloads,
    observer::walks_states,
    program::probe_options,
    release::{LINKS_SINCE, release, release_text, version},
};

const BTF: &str = "/sys/kernel/btf/vmlinux";
const TIMESTAMPS: &str = "/proc/sys/net/ipv4/tcp_timestamps";

/// What a feature is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Any `run`.
    Run,
    /// `run` with Lowtide's own laws, the default, for what is sent.
    OwnLaws,
    /// `run` for what is received.
    Downloads,
    /// Programs that set goals on sockets of their own.
    SocketGoals,
    /// `emulate` and `demo`.
    Emulate,
    /// Having connections to itself.
    Alone,
}

/// One feature.
#[derive(Debug, Clone)]
pub struct Feature {
    /// What it is.
    pub name: &'static str,
    /// What for.
    pub need: Need,
    /// What was found, or what is missing.
    pub state: Result<String, Missing>,
}

/// A missing feature.
#[derive(Debug, Clone)]
pub struct Missing {
    /// What the kernel said.
    pub why: String,
    /// What does not work without it.
    pub consequence: &'static str,
    /// What to do.
    pub fix: &'static str,
}

/// The whole diagnosis.
#[derive(Debug, Clone)]
pub struct Diagnosis {
    /// In the order in which they depend on each other.
    pub features: Vec<Feature>,
}

impl Diagnosis {
    /// One sentence on the first missing feature among `needs`.
    pub fn verdict(&self, needs: &[Need]) -> Option<String> {
        self.features.iter().filter(|feature| needs.contains(&feature.need)).find_map(|feature| {
            let missing = feature.state.as_ref().err()?;
            Some(format!("{}: {}; {}; {}", feature.name, missing.why, missing.consequence, missing.fix))
        })
    }
}

const RUN_AT_ALL: &str = "nothing can be governed";
const OWN_LAWS: &str = "Lowtide's own laws (tide, the default, is one) cannot be loaded";
const DOWNLOADS: &str = "what a program receives cannot be governed; what it sends is not affected";
const SOCKET_GOALS: &str =
    "programs cannot set size and deadline on a socket of their own; goals of whole runs are not affected";
const EMULATE: &str = "emulate and demo do not work; run does";

/// Tries everything out; leaves nothing behind.
pub fn diagnose() -> Diagnosis {
    let governing = [kernel(), btf(), cgroup(), phantom_signals(), own_laws(), downloads(), socket_goals(), rivals()];
    Diagnosis { features: governing.into_iter().chain([tun(), namespaces()]).collect() }
}

fn kernel() -> Feature {
    let release = release_text();
    let state = if version(&release) >= (6, 1) {
        Ok(release)
    } else {
        Err(Missing { why: format!("this is {release}"), consequence: RUN_AT_ALL, fix: "boot Linux 6.1 or newer" })
    };
    Feature { name: "kernel", need: Need::Run, state }
}

fn btf() -> Feature {
    let state = if Path::new(BTF).exists() {
        Ok(BTF.to_owned())
    } else {
        Err(Missing {
            why: format!("{BTF} does not exist"),
            consequence: RUN_AT_ALL,
            fix: "boot a kernel built with CONFIG_DEBUG_INFO_BTF, as distributions' are, and mount /sys",
        })
    };
    Feature { name: "kernel type information", need: Need::Run, state }
}

fn cgroup() -> Feature {
    let state = match Cgroup::create() {
        Ok(group) => Ok(group.path().parent().unwrap_or(group.path()).display().to_string()),
        Err(error) => Err(Missing {
            why: error.to_string(),
            consequence: RUN_AT_ALL,
            fix: fix(&error, "run as root; in a container mount cgroup2 writable"),
        }),
    };
    Feature { name: "cgroup v2", need: Need::Run, state }
}

fn phantom_signals() -> Feature {
    let found = || match walks_states() {
        true => "load and attach".to_owned(),
        false => "load and attach; this kernel refuses iterators over maps, so sockets are read per network namespace"
            .to_owned(),
    };
    let state = try_law(KernelLaw::Kernel("reno".to_owned())).map(|()| found()).map_err(|error| Missing {
        why: error.to_string(),
        consequence: RUN_AT_ALL,
        fix: fix(&error, "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; kernels need CONFIG_CGROUP_BPF"),
    });
    Feature { name: "cgroup BPF programs", need: Need::Run, state }
}

fn own_laws() -> Feature {
    let state = if release() < LINKS_SINCE {
        Err(Missing {
            why: format!("this is {}", release_text()),
            consequence: OWN_LAWS,
            fix: "boot Linux 6.4 or newer, or take the kernel's law cubic or reno",
        })
    } else {
        try_law(KernelLaw::parse("tide").expect("it is one of ours")).map(|()| "struct_ops by link".to_owned()).map_err(|error| Missing {
            why: error.to_string(),
            consequence: OWN_LAWS,
            fix: fix(
                &error,
                "run as root; kernels need CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF; or take the kernel's law cubic or reno",
            ),
        })
    };
    Feature { name: "control laws in BPF", need: Need::OwnLaws, state }
}

/// Windows are set from sockops programs, and given back by an iterator over sockets: no law has to be registered in
/// the kernel. Each is tried.
fn downloads() -> Feature {
    let try_all = || {
        let (_transfer, group) = govern(Direction::Down, KernelLaw::parse("tide").expect("it is one of ours"))?;
        free_downloads(group.path())
    };
    let unstamped = fs::read_to_string(TIMESTAMPS).is_ok_and(|value| value.trim() == "0");
    let missing = |why, fix| Missing { why, consequence: DOWNLOADS, fix };
    let state = match try_all() {
        Err(error) => {
            Err(missing(error.to_string(), fix(&error, "what the lines above say; else boot Linux 6.1 or newer")))
        }
        Ok(()) if unstamped => Err(missing(
            format!("{TIMESTAMPS} is 0, so connections have no timestamps"),
            "sysctl net.ipv4.tcp_timestamps=1",
        )),
        Ok(()) => Ok("windows by sockops, for --direction down".to_owned()),
    };
    Feature { name: "downloads", need: Need::Downloads, state }
}

/// What to do about this error; `usual`, unless it says more of its cause.
fn fix(error: &Error, usual: &'static str) -> &'static str {
    match error {
        Error::GroupOutOfSight { .. } => "start Lowtide from a process of this container, or mount the whole hierarchy",
        Error::Threaded { .. } => "start Lowtide in a cgroup that is not threaded, for example by systemd-run --scope",
        Error::ForbiddenByAnother { .. } => {
            "start Lowtide in another cgroup, for example by systemd-run --scope --slice=NAME, or have that program \
             attached with BPF_F_ALLOW_MULTI"
        }
        Error::Load { reason } | Error::Attach { reason, .. } if reason.contains("Too many open files") => {
            "raise the limit of open files, for example by ulimit -n 1024"
        }
        _ => usual,
    }
}

fn try_law(law: KernelLaw) -> Result<(), Error> {
    govern(Direction::Up, law).map(drop)
}

fn govern(direction: Direction, law: KernelLaw) -> Result<(Transfer, Cgroup), Error> {
    let group = Cgroup::create()?;
    let setup = Setup::new(direction, law);
    let first = Controller::first_steering(1.0, &setup.law, setup.actuator);
    Ok((Transfer::start(&setup, &first, &group)?, group))
}

fn socket_goals() -> Feature {
    let state = govern(Direction::Up, KernelLaw::Kernel("reno".to_owned()))
        .map_err(|error| error.to_string())
        .and_then(|(_transfer, group)| probe_options(&group).map_err(|error| error.to_string()))
        .map(|()| "setsockopt of level 0x4c54".to_owned())
        .map_err(|why| Missing {
            why,
            consequence: SOCKET_GOALS,
            fix: "what the lines above say; else boot a newer kernel",
        });
    Feature { name: "goals on sockets", need: Need::SocketGoals, state }
}

/// Programs that see the connections of this group, and may set another law on them.
fn rivals() -> Feature {
    let group = Cgroup::create().ok();
    let above = group.as_ref().and_then(|group| group.path().parent());
    let sockops = above.map(|above| foreign::seeing(above, libbpf_sys::BPF_CGROUP_SOCK_OPS)).unwrap_or_default();
    let names: BTreeMap<u32, String> =
        ProgInfoIter::default().map(|program| (program.id, program.name.to_string_lossy().into_owned())).collect();
    let name = |id: &u32| names.get(id).cloned().unwrap_or_default();
    // an outer run sees the connections of an inner one, and leaves them to it
    let others = sockops.iter().filter(|other| name(&other.id) != "lt_sockops");
    let mut found: Vec<String> = others
        .map(|other| format!("the sock_ops program {} (id {}) on {}", name(&other.id), other.id, other.group.display()))
        .collect();
    found.extend(is_running("bpftune").then(|| "bpftune, whose tcp_conn tuner sets the law of connections".to_owned()));
    let state = match found.is_empty() {
        true => Ok("none sees the connections of this group".to_owned()),
        false => Err(Missing {
            why: found.join("; "),
            consequence: "it may set another law on governed connections; lowtide trace and ss -i show which they have",
            fix: "stop it, or keep it away from congestion control (bpftune: disable its tcp_conn tuner)",
        }),
    };
    Feature { name: "other programs on connections", need: Need::Alone, state }
}

fn is_running(name: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .into_iter()
        .any(|entry| fs::read_to_string(entry.path().join("comm")).is_ok_and(|found| found.trim_end() == name))
}

fn tun() -> Feature {
    let state = match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Ok("/dev/net/tun".to_owned()),
        Err(error) => Err(Missing {
            why: format!("opening /dev/net/tun: {error}"),
            consequence: EMULATE,
            fix: "run as root, modprobe tun, or give the container the device",
        }),
    };
    Feature { name: "TUN devices", need: Need::Emulate, state }
}

fn namespaces() -> Feature {
    let missing = |why| Err(Missing { why, consequence: EMULATE, fix: "run as root and install iproute2" });
    let state = match Command::new("ip").args(["-V"]).output() {
        Err(error) => missing(format!("running ip: {error}")),
        Ok(_) if !nix::unistd::geteuid().is_root() => missing("only root can make them".to_owned()),
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
    };
    Feature { name: "network namespaces", need: Need::Emulate, state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_first_thing_missing() {
        let feature = |name, need, state| Feature { name, need, state };
        let missing = Missing { why: "no".into(), consequence: "nothing works", fix: "do it" };
        let diagnosis = Diagnosis {
            features: vec![
                feature("a", Need::Run, Ok("fine".into())),
                feature("b", Need::OwnLaws, Err(missing.clone())),
                feature("c", Need::Emulate, Err(missing)),
            ],
        };
        assert_eq!(diagnosis.verdict(&[Need::Run]), None);
        assert_eq!(diagnosis.verdict(&[Need::Run, Need::OwnLaws]).unwrap(), "b: no; nothing works; do it");
    }
}
