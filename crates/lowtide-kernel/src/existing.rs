// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups that are there already, by what people call them: a unit, a process, a container, a path.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, Result, cgroup};

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

impl Target {
    /// As a person names it.
    pub fn name(&self) -> String {
        match self {
            Target::Unit(name) | Target::Container(name) => name.clone(),
            Target::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Target::Process(pid) => fs::read_to_string(format!("/proc/{pid}/comm"))
                .map_or_else(|_| format!("pid-{pid}"), |name| name.trim().to_owned()),
        }
    }

    /// Its group's directory, and what keeps the hierarchy mounted as long as that is used.
    pub(crate) fn find(&self) -> Result<(PathBuf, Option<std::os::fd::OwnedFd>)> {
        if let Target::Process(pid) = self {
            let group = cgroup::group_of(&pid.to_string()).ok_or(Error::NoProcess)?;
            return cgroup::showing(&group).map(|hierarchy| (hierarchy.own, hierarchy.mount));
        }
        let hierarchy = cgroup::hierarchy()?;
        let root = hierarchy.root.clone();
        let path = match self {
            Target::Path(path) => {
                fs::canonicalize(path).map_err(|error| Error::Group(format!("{}: {error}", path.display())))?
            }
            Target::Unit(name) => {
                let name = if name.contains('.') { name.clone() } else { format!("{name}.service") };
                only(groups_named(&root, &|group| group == name))?
            }
            Target::Container(name) => {
                let number = container(name).ok_or_else(|| Error::NoContainer { engines: ENGINES.join(", ") })?;
                only(groups_named(&root, &|group| is_of_container(group, &number)))?
            }
            Target::Process(_) => unreachable!("it was looked at first"),
        };
        Ok((path, hierarchy.mount))
    }
}

/// The one that was found.
fn only(mut found: Vec<PathBuf>) -> Result<PathBuf> {
    match (found.pop(), found.pop()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(Error::NoGroup),
        (Some(one), Some(other)) => Err(Error::SeveralGroups(one, other)),
    }
}

/// Directories of the hierarchy whose name is meant, the outermost ones.
fn groups_named(root: &Path, meant: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if meant(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        } else {
            found.extend(groups_named(&entry.path(), meant));
        }
    }
    found
}

/// `docker-NUMBER.scope`, `libpod-NUMBER.scope`, `cri-containerd-NUMBER.scope`, or NUMBER alone, with the whole number.
fn is_of_container(group: &str, number: &str) -> bool {
    let group = group.strip_suffix(".scope").unwrap_or(group);
    let end = group.rsplit('-').next().unwrap_or(group);
    is_number(end) && end.len() >= 32 && end.starts_with(number)
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
    fn units_are_found_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        for group in [
            "system.slice/a.service",
            "system.slice/system-b.slice/b@1.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/c.service",
            "system.slice/c.service",
            "system.slice/a.service/a.service",
        ] {
            fs::create_dir_all(root.path().join(group)).unwrap();
        }
        let find = |name: &str| only(groups_named(root.path(), &|group| group == name));
        assert_eq!(find("a.service").unwrap(), root.path().join("system.slice/a.service"), "the outermost one");
        assert!(find("b@1.service").unwrap().ends_with("system-b.slice/b@1.service"));
        assert!(find("c.service").unwrap_err().to_string().contains("there are several"));
        assert!(find("d.service").unwrap_err().to_string().contains("does not run"));
    }

    #[test]
    fn containers_are_known_by_their_numbers() {
        let number = "0123456789abcdef".repeat(4);
        for (group, is) in [
            (format!("docker-{number}.scope"), true),
            (format!("libpod-{number}.scope"), true),
            (format!("cri-containerd-{number}.scope"), true),
            (number.clone(), true),
            (format!("libpod-conmon-{}.scope", number.replace('0', "f")), false),
            ("docker-0123456789ab.scope".to_owned(), false),
            ("system.slice".to_owned(), false),
        ] {
            assert_eq!(is_of_container(&group, "0123456789ab"), is, "{group}");
        }
        assert_eq!(container("0123456789ab").as_deref(), Some("0123456789ab"));
        assert_eq!(container("--help"), None);
    }
}
