// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that send: what each sends, how it is called, and how one sees that it arrived. Those that receive
//! are in pulls.rs.

use super::{
    Failure,
    axes::{Path, Way},
    calls::{
        borg, by_its_status, committed, connections, directory, files, git, nothing, parts, rclone, restic_backup,
        restic_init, restic_restored,
    },
    job::{DATA, Job},
    process::succeed,
    site::{Far, Site, beside, python},
    tree::{Shape, same},
};
use std::process::Command;

pub(crate) struct Program {
    /// By which it is chosen.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) way: Way,
    /// At one time.
    pub(crate) connections: u32,
    /// Seconds for which a foreground stays beside it: longer than a stall limit, where it has one.
    pub(crate) beside: f64,
    pub(crate) far: Far,
    pub(crate) shape: fn(&Path) -> Shape,
    /// Before the clock runs: a repository to send to, say.
    pub(super) prepare: fn(&Site, &Job) -> Result<(), Failure>,
    /// What is timed.
    pub(super) transfer: fn(&Site, &Job) -> Command,
    /// Whether what arrived is what was sent, after status 0.
    pub(super) arrived: fn(&Site, &Job) -> Result<bool, Failure>,
}

impl Program {
    pub(crate) fn prepare(&self, site: &Site, job: &Job) -> Result<(), Failure> {
        (self.prepare)(site, job)
    }

    pub(crate) fn transfer(&self, site: &Site, job: &Job) -> Command {
        (self.transfer)(site, job)
    }

    pub(crate) fn arrived(&self, site: &Site, job: &Job) -> Result<bool, Failure> {
        (self.arrived)(site, job)
    }
}

/// Long enough to be no longer in slow start, short enough for a battery of an hour.
pub(super) const BESIDE: f64 = 12.0;

pub(crate) const PROGRAMS: [Program; 13] = [
    Program {
        name: "rclone-small",
        about: "rclone copy, 4 transfers, files of 50 kB",
        way: Way::Up,
        connections: 4,
        beside: BESIDE,
        far: Far::WebDav,
        shape: |path| Shape { count: (path.rate * 3).max(30), bytes: 50_000 },
        prepare: nothing,
        transfer: |site, job| rclone(site, DATA, &format!(":webdav:{}", job.name)),
        arrived: files,
    },
    Program {
        name: "rclone-large",
        about: "rclone copy, 4 transfers, 4 files",
        way: Way::Up,
        connections: 4,
        beside: BESIDE,
        far: Far::WebDav,
        shape: |path| parts(path, 4),
        prepare: nothing,
        transfer: |site, job| rclone(site, DATA, &format!(":webdav:{}", job.name)),
        arrived: files,
    },
    Program {
        name: "rsync",
        about: "rsync over ssh, 8 files",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("rsync");
            command.args(["-a", "-e", &site.ssh(), &format!("{DATA}/")]);
            command.arg(format!("life:{}", site.far(&job.name).display()));
            command
        },
        arrived: files,
    },
    Program {
        name: "scp",
        about: "scp, one file",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 1),
        prepare: nothing,
        transfer: |site, job| {
            let mut command = site.command("scp");
            command.arg("-F").arg(site.near("ssh_config")).args(["-q", "-r", DATA]);
            command.arg(format!("life:{}", site.far(&job.name).display()));
            command
        },
        arrived: files,
    },
    Program {
        name: "restic-rest",
        about: "restic backup by its REST protocol",
        way: Way::Up,
        connections: 5,
        beside: BESIDE,
        far: Far::Restic,
        shape: |path| parts(path, 8),
        prepare: restic_init,
        transfer: |site, job| restic_backup(site, &format!("rest:{}", site.url(&format!("{}/", job.name))), &[]),
        arrived: restic_restored,
    },
    Program {
        name: "restic-sftp",
        about: "restic backup over sftp",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: restic_init,
        transfer: |site, job| {
            let sftp = format!("sftp.command={} life -s sftp", site.ssh());
            restic_backup(site, &format!("sftp:life:{}", site.far(&job.name).display()), &["-o", &sftp])
        },
        arrived: restic_restored,
    },
    Program {
        name: "borg",
        about: "borg create over ssh",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: |site, job| succeed(borg(site).args(["init", "-e", "none"]).arg(site.far(&job.name))),
        transfer: |site, job| {
            let mut command = borg(site);
            command.args(["create", &format!("ssh://life{}::it", site.far(&job.name).display()), DATA]);
            command
        },
        arrived: |site, job| {
            let out = site.near(&format!("out-{}", job.name));
            std::fs::create_dir(&out)?;
            let archive = format!("{}::it", site.far(&job.name).display());
            succeed(borg(site).current_dir(&out).args(["extract", &archive]))?;
            same(&site.near(DATA), &out.join(DATA))
        },
    },
    Program {
        name: "curl",
        about: "16 curls at once, `-y 15 -Y 1024`",
        way: Way::Up,
        connections: 16,
        beside: 2.0 * BESIDE,
        far: Far::WebDav,
        shape: |path| parts(path, 16),
        prepare: directory,
        transfer: |site, job| {
            let mut command = site.command("sh");
            command.arg(beside("curls.sh")).args([DATA, &site.url(&job.name)]);
            command
        },
        arrived: files,
    },
    Program {
        name: "git",
        about: "git push over ssh",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Ssh,
        shape: |path| parts(path, 8),
        prepare: |site, job| {
            committed(|| git(site, job))?;
            succeed(site.command("git").args(["init", "-q", "--bare"]).arg(site.far(&job.name)))
        },
        transfer: |site, job| {
            let mut command = git(site, job);
            command.args(["push", "-q", &format!("ssh://life{}", site.far(&job.name).display()), "it"]);
            command.env("GIT_SSH_COMMAND", site.ssh());
            command
        },
        arrived: |site, job| {
            let mut clone = site.command("git");
            let out = site.near(&format!("out-{}", job.name));
            // a clone checks the hash of every object that it unpacks
            succeed(clone.args(["clone", "-q", "--no-local", "-b", "it"]).arg(site.far(&job.name)).arg(&out))?;
            std::fs::remove_dir_all(out.join(".git"))?;
            same(&site.near(DATA), &out)
        },
    },
    Program {
        name: "requests",
        about: "Python requests, one file after the other",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::WebDav,
        shape: |_| Shape { count: 30, bytes: 50_000 },
        prepare: directory,
        transfer: |site, job| {
            let mut command = python("requests_loop.py");
            command.current_dir(site.near(".")).args([DATA, &site.url(&job.name)]);
            command
        },
        arrived: files,
    },
    Program {
        name: "per-second",
        about: "200 connections a second for 5 s, 60 % of the link",
        way: Way::Up,
        connections: 200,
        beside: BESIDE,
        far: Far::Hash,
        shape: |path| Shape { count: 1000, bytes: path.bytes_in(3.0) / 1000 },
        prepare: nothing,
        transfer: |site, job| connections("200", site, job),
        arrived: by_its_status,
    },
    Program {
        name: "at-once",
        about: "1,000 connections at once",
        way: Way::Up,
        connections: 1000,
        beside: BESIDE,
        far: Far::Hash,
        // two segments each at 20 Mbit/s: with more, plain TCP takes a minute to get through its timeouts
        shape: |path| Shape { count: 1000, bytes: path.bytes_in(1.0) / 1000 },
        prepare: nothing,
        transfer: |site, job| connections("at-once", site, job),
        arrived: by_its_status,
    },
    Program {
        name: "in-turn",
        about: "20 connections of 20 kB, one after the other",
        way: Way::Up,
        connections: 1,
        beside: BESIDE,
        far: Far::Hash,
        shape: |_| Shape { count: 20, bytes: 20_000 },
        prepare: nothing,
        transfer: |site, job| connections("in-turn", site, job),
        arrived: by_its_status,
    },
];
