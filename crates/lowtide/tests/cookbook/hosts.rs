// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts at the ends of a link: each has its own network, and its own files where the page's commands have theirs.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use lowtide_emu::{Config, Emulator, Namespace};
use serde_json::Value;

use super::lifecycle::{Ended, Running, finish, inside, lowtide_environment, name, own_cgroup, until, within};

/// No command takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Directories of this machine that each host has of its own.
const OWN: [&str; 4] = ["/root", "/srv", "/run", "/var/lib"];

/// Where commands are found.
const PATH: &str = "/mnt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The commands say sudo, and are root's already.
const SUDO: &str = "#!/bin/sh\nif [ \"$1\" = -u ]; then user=$2; shift 2; exec setpriv --reuid \"$user\" --regid \"$user\" --init-groups -- \"$@\"; fi\nexec \"$@\"\n";

/// One of the two.
pub(crate) struct Host {
    // in the order in which they go
    holder: Running,
    directory: tempfile::TempDir,
    network: PathBuf,
}

impl Host {
    fn new(network: &Namespace, names: &str) -> Host {
        let directory = tempfile::Builder::new().prefix("cookbook-").tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for own in OWN {
            fs::create_dir_all(at(own.trim_start_matches('/'))).unwrap();
        }
        for (folder, mode) in [("root/.ssh", 0o700), ("run/sshd", 0o755), ("bin", 0o755)] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::set_permissions(at(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::write(at("hosts"), format!("127.0.0.1 localhost\n{names}")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_lowtide"), at("bin/lowtide")).unwrap();
        fs::write(at("bin/sudo"), SUDO).unwrap();
        fs::set_permissions(at("bin/sudo"), fs::Permissions::from_mode(0o755)).unwrap();
        let top = directory.path().display();
        let mut script = "set -e; ".to_owned();
        for own in OWN {
            script += &format!("mount --bind {top}{own} {own}; ");
        }
        // of files that are hidden now nothing is needed but the commands
        script += &format!(
            "mount --bind {top}/hosts /etc/hosts; mount -t tmpfs tmpfs /mnt; mkdir /mnt/bin; mount --bind {top}/bin /mnt/bin; \
             echo ready; exec sleep infinity"
        );
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "bash", "-c", &script]);
        let holder = Running::start(&mut inside(network, unshare));
        until("a host", || (holder.out() == "ready\n").then_some(()));
        Host { holder, directory, network: network.path() }
    }

    /// What this machine has at `path` of this host, one of its own.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        assert!(OWN.iter().any(|own| path.starts_with(own)), "{path} is every host's");
        self.directory.path().join(path.trim_start_matches('/'))
    }

    /// A script of bash's on this host.
    pub(crate) fn command(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.network.display()));
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.pid())).args(["bash", "-c", script]);
        lowtide_environment(&mut command);
        command.env_remove("LOWTIDE_HISTORY").env_remove("XDG_RUNTIME_DIR");
        command.env("PATH", PATH);
        command.env("HOME", "/root").env("LC_ALL", "C.UTF-8").current_dir("/");
        command
    }

    /// The same as a line for a shell.
    pub(crate) fn line(&self, script: &str) -> String {
        let command = self.command(script);
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")));
        format!("PATH={PATH} HOME=/root LC_ALL=C.UTF-8 {}", quoted.collect::<Vec<_>>().join(" "))
    }

    /// Runs it, and it has to succeed.
    pub(crate) fn run(&self, script: &str) -> Ended {
        let ended = Running::start(&mut self.command(script)).end_within(LIMIT);
        assert!(ended.status.success(), "{script}\n{}{}", ended.out, ended.err);
        ended
    }

    /// Starts it.
    pub(crate) fn start(&self, script: &str) -> Running {
        Running::start(&mut self.command(script))
    }

    /// The same in a group of this name, as systemd would start a unit.
    pub(crate) fn start_unit(&self, unit: &str, script: &str) -> Unit {
        let group = own_cgroup().join(unit);
        fs::create_dir(&group).unwrap();
        let entered = format!("echo 0 > {}/cgroup.procs; {script}", group.display());
        Unit { running: Some(self.start(&entered)), group }
    }

    /// The runs that Lowtide has on record here, the oldest first.
    pub(crate) fn history(&self) -> Vec<Value> {
        let history: Value = serde_json::from_str(&self.run("lowtide history --json").out).unwrap();
        history["runs"].as_array().unwrap().clone()
    }

    /// The last one moved so many bytes at least, and they were governed.
    pub(crate) fn has_governed(&self, least: u64) {
        let runs = self.history();
        let last = runs.last().expect("a run is on record");
        assert!(last["acknowledged_bytes"].as_u64().unwrap() >= least, "{last}");
        assert!(last["outcome"].is_null() || last["outcome"] == "met", "{last}");
        assert_eq!(last["outcome"].is_null(), last["deadline"].is_null(), "{last}");
    }

    /// Files of chance at a path of this host.
    pub(crate) fn fill(&self, path: &str, files: u32, bytes: usize) {
        self.run(&format!(
            "mkdir -p {path}; for n in $(seq {files}); do head -c {bytes} /dev/urandom > {path}/$n; done"
        ));
    }
}

/// What runs in a group as a unit does, with all its processes.
pub(crate) struct Unit {
    running: Option<Running>,
    group: PathBuf,
}

impl Drop for Unit {
    fn drop(&mut self) {
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
        drop(self.running.take());
        within(Duration::from_secs(10), "the end of a unit", || fs::remove_dir(&self.group).ok());
    }
}

/// `near` runs the page's commands; `far` is `backup`, and all other hosts that are named there.
pub(crate) struct Site {
    pub(crate) near: Host,
    pub(crate) far: Host,
    pub(crate) link: Emulator,
}

impl Site {
    pub(crate) fn new(test: &str) -> Site {
        let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
        let link = Emulator::start(Config::new(a, b, "50mbit".parse().unwrap(), Duration::from_millis(20))).unwrap();
        let near = Host::new(link.a(), &format!("{} backup primary registry\n", link.b4()));
        let far = Host::new(link.b(), &format!("{} near\n", link.a4()));
        Site { near, far, link }
    }

    /// The same, with an ssh server on `backup` whom root of `near` can reach.
    pub(crate) fn with_ssh(test: &str) -> (Site, Running) {
        let site = Site::new(test);
        site.near.run("ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519");
        site.far.run("ssh-keygen -q -t ed25519 -N '' -f /root/host_key");
        fs::copy(site.near.at("/root/.ssh/id_ed25519.pub"), site.far.at("/root/.ssh/authorized_keys")).unwrap();
        let key = fs::read_to_string(site.far.at("/root/host_key.pub")).unwrap();
        fs::write(site.near.at("/root/.ssh/known_hosts"), format!("backup {key}")).unwrap();
        fs::write(site.near.at("/root/.ssh/config"), "Host backup\nBatchMode yes\nCheckHostIP no\n").unwrap();
        let config = "HostKey /root/host_key\nUsePAM yes\nPermitRootLogin prohibit-password\nStrictModes no\nPidFile none\n\
                      Subsystem sftp internal-sftp\n";
        fs::write(site.far.at("/root/sshd_config"), config).unwrap();
        let server = site.far.start("exec /usr/sbin/sshd -D -e -f /root/sshd_config");
        site.listens(site.link.b4(), 22);
        (site, server)
    }

    /// Waits until a process listens there.
    pub(crate) fn listens(&self, address: Ipv4Addr, port: u16) {
        let connect = || std::net::TcpStream::connect((address, port));
        until("a server", || self.link.a().run(connect).unwrap().ok());
    }

    /// Whether both hosts have the same files there.
    pub(crate) fn same(&self, near: &str, far: &str) {
        let ended = self.diff(near, far);
        assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    }

    /// The same as an answer.
    pub(crate) fn has_same(&self, near: &str, far: &str) -> bool {
        self.diff(near, far).status.success()
    }

    fn diff(&self, near: &str, far: &str) -> Ended {
        finish(Command::new("diff").arg("-r").args([self.near.at(near), self.far.at(far)]))
    }
}

/// Whether these programs are there; without one of them there is nothing to try. Each with the package that it is in.
pub(crate) fn has(programs: &[(&str, &str)]) -> bool {
    let is_there = |program: &str| {
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
    };
    let missing = programs.iter().find(|(program, _)| !is_there(program));
    if let Some((program, package)) = missing {
        println!("skipped: there is no {program} here; apt-get install {package}");
    }
    missing.is_none()
}
