// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which connections are wanted: those of a process, or of a cgroup.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use lowtide_kernel::trace::Record;
use walkdir::WalkDir;

/// What is wanted, and what has been decided so far.
#[derive(Debug, Default)]
pub(super) struct Filter {
    process: Option<Process>,
    group: Option<Group>,
    /// By source and connection: a process that has closed its socket may still have data on the way.
    decided: HashMap<(usize, u32), bool>,
}

/// A process with those that it started.
#[derive(Debug)]
struct Process {
    pid: u32,
    sockets: HashSet<u64>,
}

/// A cgroup with those below it.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    ids: HashSet<u64>,
    strangers: HashSet<u64>,
}

impl Filter {
    pub(super) fn new(pid: Option<u32>, cgroup: Option<&Path>) -> Result<Filter> {
        if let Some(pid) = pid
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            bail!("--pid {pid}: there is no such process");
        }
        if let Some(path) = cgroup
            && !path.join("cgroup.procs").exists()
        {
            bail!("--cgroup {}: this is no cgroup; give its directory, as below /sys/fs/cgroup", path.display());
        }
        Ok(Filter {
            process: pid.map(|pid| Process { pid, sockets: HashSet::new() }),
            group: cgroup.map(|path| Group { path: path.to_owned(), ids: HashSet::new(), strangers: HashSet::new() }),
            decided: HashMap::new(),
        })
    }

    /// Whether the record's connection is wanted.
    pub(super) fn wants(&mut self, record: &Record) -> bool {
        if let Some(group) = &mut self.group
            && !group.has(record.cgroup)
        {
            return false;
        }
        let Some(process) = &mut self.process else { return true };
        let connection = (record.source, record.connection);
        let Some(inode) = record.inode else { return self.decided.get(&connection).is_some_and(|wanted| *wanted) };
        *self.decided.entry(connection).or_insert_with(|| process.has(inode))
    }
}

impl Process {
    fn has(&mut self, socket: u64) -> bool {
        if !self.sockets.contains(&socket) {
            self.sockets = family(self.pid).into_iter().flat_map(sockets_of).collect();
        }
        self.sockets.contains(&socket)
    }
}

impl Group {
    fn has(&mut self, id: u64) -> bool {
        if self.ids.contains(&id) || self.strangers.contains(&id) {
            return self.ids.contains(&id);
        }
        let directories = WalkDir::new(&self.path).into_iter().flatten().filter(|entry| entry.file_type().is_dir());
        // a cgroup's id is its directory's inode
        self.ids = directories.filter_map(|entry| Some(entry.metadata().ok()?.ino())).collect();
        self.strangers.extend((!self.ids.contains(&id)).then_some(id));
        self.ids.contains(&id)
    }
}

/// A process and all that descend from it.
fn family(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        // behind the name, which may hold anything: state, parent
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(process);
    }
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(parent) = all.get(next) {
        all.extend(children.remove(parent).unwrap_or_default());
        next += 1;
    }
    all
}

/// The inodes of the sockets that a process has open.
fn sockets_of(pid: u32) -> Vec<u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter_map(|path| path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::TcpListener,
        os::fd::{AsFd, AsRawFd},
        process,
    };

    fn inode(socket: &impl AsFd) -> u64 {
        let fd = socket.as_fd().as_raw_fd();
        let target = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        target.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    #[test]
    fn a_process_has_its_sockets_and_those_of_its_children() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = Process { pid: process::id(), sockets: HashSet::new() };
        assert!(ours.has(inode(&listener)) && !ours.has(1));
        let later = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(ours.has(inode(&later)));
        assert!(family(std::os::unix::process::parent_id()).contains(&process::id()));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let sentence = Filter::new(Some(u32::MAX), None).unwrap_err().to_string();
        assert!(sentence.contains("--pid 4294967295"), "{sentence}");
        let sentence = Filter::new(None, Some(Path::new("/proc"))).unwrap_err().to_string();
        assert!(sentence.contains("--cgroup /proc"), "{sentence}");
    }
}
