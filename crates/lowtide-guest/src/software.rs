// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's programs, for the guest: with their shared libraries, without what only a debugger reads.

use crate::{
    archive::Archive,
    error::{Doing, Error},
};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::{
    collections::BTreeSet,
    ffi::CStr,
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where programs of the system are.
const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// Where they are in the guest.
const PLACE: &str = "/usr/sbin";

/// A program of this machine that a guest has.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is called there, in `/usr/sbin`.
    pub name: String,
    /// Where it is here.
    pub path: PathBuf,
}

impl Program {
    /// The first of this name where programs of the system are.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn of_the_system(name: &str) -> Result<Self, Error> {
        let places = DIRECTORIES.map(|directory| Path::new(directory).join(name));
        let path = places.into_iter().find(|path| path.exists()).ok_or_else(|| Error::NoProgram(name.into()))?;
        Ok(Self { name: name.to_owned(), path })
    }
}

/// An archive of the guest's first process, and of these programs with their libraries.
pub(crate) fn pack(programs: &[Program]) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::default();
    archive.file("/init", include_bytes!("init.sh"), true);
    let mut libraries = BTreeSet::new();
    for program in programs {
        let path = of_another(&program.path);
        archive.file(&format!("{PLACE}/{}", program.name), &stripped(&path)?, true);
        libraries.extend(libraries_of(&path)?);
    }
    for library in libraries {
        archive.file(&library.to_string_lossy(), &read(&library)?, true);
    }
    Ok(archive.finish())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).doing(|| format!("read {}", path.display()))
}

/// A file of this process that has no name and goes with it.
pub(crate) fn in_memory(name: &CStr) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?))
}

/// Where another process finds a file of ours.
pub(crate) fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// A path by which programs that we start find the same file.
fn of_another(path: &Path) -> PathBuf {
    match path.strip_prefix("/proc/self") {
        Ok(rest) => Path::new("/proc").join(std::process::id().to_string()).join(rest),
        Err(_) => path.to_owned(),
    }
}

/// A program under development is ten times as long as what it needs to run.
fn stripped(program: &Path) -> Result<Vec<u8>, Error> {
    let file = in_memory(c"stripped").doing(|| "make a file in memory".to_owned())?;
    let copy = PathBuf::from(path(&file));
    let strip = Command::new("strip").arg("-o").arg(&copy).arg(program).stderr(Stdio::null()).status();
    let done = strip.is_ok_and(|status| status.success());
    read(if done { &copy } else { program })
}

/// Their paths, that of the loader among them. None of a program that needs none.
fn libraries_of(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = Command::new("ldd").arg(program).output().doing(|| "run ldd".to_owned())?;
    Ok(paths(&String::from_utf8_lossy(&output.stdout)))
}

/// "libz.so.1 => /lib/libz.so.1 (0x0…)" or, of the loader, "/lib64/ld-linux-x86-64.so.2 (0x0…)".
fn paths(text: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let path = line.split("=>").last()?.trim();
        Some(path.split_once(" (")?.0).filter(|path| path.starts_with('/')).map(PathBuf::from)
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ldd_prints() {
        let text = "\tlinux-vdso.so.1 (0x00007f3fb5610000)\n\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f3f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f3f)\n";
        assert_eq!(paths(text), ["/lib/x86_64-linux-gnu/libz.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from));
        assert!(paths("\tnot a dynamic executable\n").is_empty());
    }
}
