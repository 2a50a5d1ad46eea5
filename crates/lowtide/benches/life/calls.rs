// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the programs are called, where more than one of them is called so.

use super::{
    Failure,
    axes::Path,
    job::{DATA, Job},
    process::succeed,
    site::{Site, python},
    tree::{Shape, same},
};
use std::{path::Path as FilePath, process::Command};

/// What the link carries in five seconds, in equal parts.
pub(super) fn parts(path: &Path, count: u64) -> Shape {
    Shape { count, bytes: path.bytes_in(5.0) / count }
}

pub(super) fn nothing(_: &Site, _: &Job) -> Result<(), Failure> {
    Ok(())
}

pub(super) fn directory(site: &Site, job: &Job) -> Result<(), Failure> {
    Ok(std::fs::create_dir(site.far(&job.name))?)
}

pub(super) fn files(site: &Site, job: &Job) -> Result<bool, Failure> {
    same(&site.sent(DATA), &site.arrived(&job.name))
}

/// The sender compared the digests that its receiver gave back.
pub(super) fn by_its_status(_: &Site, _: &Job) -> Result<bool, Failure> {
    Ok(true)
}

/// Copies from one of the site's places to another.
pub(super) fn rclone(site: &Site, from: &str, to: &str) -> Command {
    let mut command = site.command("rclone");
    command.args(["copy", "--transfers", "4", from, to]);
    command.env("RCLONE_CONFIG", "").env("RCLONE_WEBDAV_URL", site.url("")).env("RCLONE_WEBDAV_VENDOR", "other");
    command
}

pub(super) fn restic(site: &Site, repository: &str) -> Command {
    let mut command = site.command("restic");
    command.args(["-q", "--no-cache", "-r", repository]).env("RESTIC_PASSWORD", "it");
    command
}

pub(super) fn restic_init(site: &Site, job: &Job) -> Result<(), Failure> {
    succeed(restic(site, &site.far(&job.name).display().to_string()).arg("init"))
}

pub(super) fn restic_backup(site: &Site, repository: &str, options: &[&str]) -> Command {
    let mut command = restic(site, repository);
    // the least that it takes, MiB: so that there are several packs, and connections, in little data
    command.args(options).args(["backup", "--pack-size", "4", DATA]);
    command
}

pub(super) fn restic_restored(site: &Site, job: &Job) -> Result<bool, Failure> {
    let out = site.near(&format!("out-{}", job.name));
    let mut restore = restic(site, &site.far(&job.name).display().to_string());
    succeed(restore.args(["restore", "latest", "--target"]).arg(&out))?;
    same(&site.near(DATA), &out.join(DATA))
}

pub(super) fn borg(site: &Site) -> Command {
    let mut command = site.command("borg");
    command.env("BORG_BASE_DIR", site.near("borg")).env("BORG_RSH", site.ssh());
    // made by its path, used by its address: the same repository
    command.env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes").env("BORG_RELOCATED_REPO_ACCESS_IS_OK", "yes");
    command
}

/// Not to be compressed: it is of chance anyway, and the clock is for the network.
pub(super) fn git(site: &Site, job: &Job) -> Command {
    git_in(site, &site.near(&format!("git-{}", job.name)), &site.near(DATA))
}

/// The same in a repository of these files.
pub(super) fn git_in(site: &Site, repository: &FilePath, files: &FilePath) -> Command {
    let mut command = site.command("git");
    command.arg("--git-dir").arg(repository).arg("--work-tree").arg(files).current_dir(files);
    command.args(["-c", "core.compression=0", "-c", "pack.window=0"]).env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Commits all files to a new repository, with the branch `it`.
pub(super) fn committed(git: impl Fn() -> Command) -> Result<(), Failure> {
    succeed(git().args(["init", "-q", "--initial-branch=it"]))?;
    succeed(git().args(["add", "."]))?;
    succeed(git().args(["-c", "user.name=it", "-c", "user.email=it@it", "commit", "-q", "-m", "it"]))
}

pub(super) fn connections(how: &str, site: &Site, job: &Job) -> Command {
    let (address, port) = site.address();
    let mut command = python("connections.py");
    command.args([how, &address, &port, &job.shape.count.to_string(), &job.shape.bytes.to_string()]);
    command
}
