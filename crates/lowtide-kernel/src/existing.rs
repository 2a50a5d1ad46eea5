// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups that are there already, by what people call them: a unit, a process, a container, a path.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error, Result,
    hierarchy::{Purpose, group_among, hierarchy, showing},
};

/// Hexadecimal digits of a container's number that tell it from others.
const SHORT_NUMBER: usize = 12;
/// What keeps containers here, and tells a container's number by its name.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// What to attach to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A unit of systemd's.
    Unit(String),
    /// A group's directory.
    Path(PathBuf),
    /// The group that a process is in.
    Process(i32),
    /// A container of Docker's, Podman's or containerd's, by its name or number.
    Container(String),
}

/// A target's group.
#[derive(Debug)]
pub struct Found {
    /// As a person names it.
    pub name: String,
    /// Its directory.
    pub(crate) path: PathBuf,
    /// Keeps the hierarchy mounted as long as that is used.
    pub(crate) mount: Option<OwnedFd>,
}

impl Target {
    /// Looks once: what a name means may change between two looks.
    ///
    /// # Errors
    /// There is none, or several, or it is a user's who may have chosen the name for this.
    pub fn find(&self) -> Result<Found> {
        if let Target::Process(pid) = self {
            let (name, group) = process(*pid).map_err(|_| Error::NoProcess)?;
            let hierarchy = showing(&group, Purpose::Attach)?;
            return Ok(Found { name, path: hierarchy.own, mount: hierarchy.mount });
        }
        let hierarchy = hierarchy(Purpose::Attach)?;
        let root = hierarchy.root.clone();
        let (name, path) = match self {
            Target::Path(path) => {
                let path =
                    fs::canonicalize(path).map_err(|reason| Error::NoGroupThere { path: path.clone(), reason })?;
                (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path)
            }
            Target::Unit(unit) => {
                let name = if unit.contains('.') { unit.clone() } else { format!("{unit}.service") };
                (unit.clone(), only(groups_named(&root, &|group| group == name))?)
            }
            Target::Container(name) => {
                let number = container(name).ok_or_else(|| Error::NoContainer { engines: ENGINES.join(", ") })?;
                (name.clone(), only(groups_named(&root, &|group| is_of_container(group, &number)))?)
            }
            Target::Process(_) => unreachable!("it was looked at first"),
        };
        Ok(Found { name, path, mount: hierarchy.mount })
    }
}

/// A process's name and group. Both are of the one that has this number now, even if that ends and another one gets
/// the number.
fn process(pid: i32) -> io::Result<(String, PathBuf)> {
    described_by(&File::open(format!("/proc/{pid}"))?)
}

fn described_by(directory: &File) -> io::Result<(String, PathBuf)> {
    let read = |file: &str| -> io::Result<String> {
        let mut text = Vec::new();
        File::open(format!("/proc/self/fd/{}/{file}", directory.as_raw_fd()))?.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let group = group_among(&read("cgroup")?).ok_or(io::ErrorKind::NotFound)?;
    Ok((read("comm")?.trim().to_owned(), group))
}

/// A group of the name, or number, that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    /// The user who made it, where that is not root: below a group that a user has been given, anything can have any
    /// name.
    by: Option<u32>,
}

/// The one that was found.
fn only(found: Vec<Named>) -> Result<PathBuf> {
    let (users, roots): (Vec<_>, Vec<_>) = found.into_iter().partition(|group| group.by.is_some());
    match (roots.as_slice(), users.as_slice()) {
        ([one], _) => Ok(one.path.clone()),
        ([one, other, ..], _) => Err(Error::SeveralGroups(one.path.clone(), other.path.clone())),
        ([], [Named { path, by: Some(user) }, ..]) => Err(Error::UsersGroup { path: path.clone(), user: *user }),
        ([], _) => Err(Error::NoGroup),
    }
}

/// Directories of the hierarchy whose name is meant, the outermost ones.
fn groups_named(root: &Path, meant: &dyn Fn(&str) -> bool) -> Vec<Named> {
    fn look(above: &Path, by: Option<u32>, meant: &dyn Fn(&str) -> bool, found: &mut Vec<Named>) {
        let by = by.or_else(|| fs::metadata(above).ok().map(|about| about.uid()).filter(|user| *user != 0));
        let entries = fs::read_dir(above).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if meant(&entry.file_name().to_string_lossy()) {
                found.push(Named { path: entry.path(), by });
            } else {
                look(&entry.path(), by, meant, found);
            }
        }
    }
    let mut found = Vec::new();
    look(root, None, meant, &mut found);
    found
}

/// `docker-NUMBER.scope`, `libpod-NUMBER.scope`, `cri-containerd-NUMBER.scope`, or NUMBER alone, with the whole number.
/// `libpod-conmon-NUMBER.scope` and `crio-conmon-NUMBER.scope` have the program that watches the container.
fn is_of_container(group: &str, number: &str) -> bool {
    let group = group.strip_suffix(".scope").unwrap_or(group);
    let (engine, end) = group.rsplit_once('-').unwrap_or(("", group));
    is_number(end) && end.len() >= 32 && end.starts_with(number) && !engine.ends_with("-conmon")
}

fn is_number(text: &str) -> bool {
    text.len() >= SHORT_NUMBER && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A container's number: it is given itself, or one of those who keep containers knows it by its name.
fn container(name: &str) -> Option<String> {
    if is_number(name) {
        return Some(name.to_owned());
    }
    // what begins with a - would be an option to them
    let known = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    ENGINES.iter().filter(|_| known).find_map(|engine| {
        let output = Command::new(engine).args(["inspect", "--format", "{{.Id}}", name]).output().ok()?;
        let number = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && is_number(&number)).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn units_are_found_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        for group in [
            "system.slice/a.service",
            "system.slice/system-b.slice/b@1.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/a.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/e.service",
            "system.slice/c.service",
            "machine.slice/c.service",
            "system.slice/a.service/a.service",
        ] {
            fs::create_dir_all(root.path().join(group)).unwrap();
        }
        // systemd gives a user's manager its group, and the user makes what is below
        let theirs = root.path().join("user.slice/user-1000.slice/user@1000.service");
        std::os::unix::fs::chown(&theirs, Some(1000), Some(1000)).unwrap();
        let find = |name: &str| only(groups_named(root.path(), &|group| group == name));
        assert_eq!(
            find("a.service").unwrap(),
            root.path().join("system.slice/a.service"),
            "the system's, and the outermost one"
        );
        assert!(find("b@1.service").unwrap().ends_with("system-b.slice/b@1.service"));
        assert!(find("user@1000.service").unwrap().ends_with("user@1000.service"), "root made it");
        assert!(find("c.service").unwrap_err().to_string().contains("there are several"));
        assert!(find("d.service").unwrap_err().to_string().contains("does not run"));
        let users = find("e.service").unwrap_err().to_string();
        assert!(users.contains("made by user 1000") && users.contains("app.slice/e.service"), "{users}");
    }

    #[test]
    fn a_process_is_looked_at_once() {
        let (name, group) = process(std::process::id() as i32).unwrap();
        assert_eq!(name, fs::read_to_string("/proc/self/comm").unwrap().trim());
        assert_eq!(Some(group), crate::hierarchy::group_of("self"));
        assert!(process(i32::MAX).is_err());
        // the number may be another one's by now: its directory is not
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let directory = File::open(format!("/proc/{}", child.id())).unwrap();
        assert_eq!(described_by(&directory).unwrap().0, "sleep");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(described_by(&directory).is_err());
    }

    #[test]
    fn containers_are_known_by_their_numbers() {
        let number = "0123456789abcdef".repeat(4);
        for (group, is) in [
            (format!("docker-{number}.scope"), true),
            (format!("libpod-{number}.scope"), true),
            (format!("cri-containerd-{number}.scope"), true),
            (number.clone(), true),
            (format!("libpod-conmon-{number}.scope"), false),
            ("docker-0123456789ab.scope".to_owned(), false),
            ("system.slice".to_owned(), false),
        ] {
            assert_eq!(is_of_container(&group, "0123456789ab"), is, "{group}");
        }
        assert_eq!(container("0123456789ab").as_deref(), Some("0123456789ab"));
        assert_eq!(container("--help"), None);
    }
}
