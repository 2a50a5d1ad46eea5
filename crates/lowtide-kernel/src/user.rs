// SPDX-License-Identifier: MIT OR Apache-2.0
//! As whom PROGRAM runs: under sudo as the one who called it, never as root by accident.

use std::{env, ffi::CString, io, path::PathBuf, thread};

use nix::unistd::{self, Gid, Uid};

use crate::{Error, Result};

/// A user to become, with everything that a login would set.
#[derive(Debug, Clone)]
pub struct User {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    pub(crate) groups: Vec<Gid>,
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) shell: PathBuf,
}

impl User {
    /// The user that `--user` names (a name or a number), else the one who called sudo, else `None`: no change.
    ///
    /// # Errors
    /// [`Error::User`]: an unknown user, or no right to become another one.
    pub fn choose(name: Option<&str>) -> Result<Option<User>> {
        let (found, origin) = match name {
            Some(name) => (name.to_owned(), "--user"),
            None => match env::var("SUDO_UID") {
                Ok(uid) if unistd::geteuid().is_root() => (uid, "SUDO_UID"),
                _ => return Ok(None),
            },
        };
        let user = User::find(&found)
            .ok_or_else(|| Error::User(format!("{origin} names '{found}', which is no user of this system")))?;
        if user.uid == unistd::geteuid() {
            return Ok(None);
        }
        if !unistd::geteuid().is_root() {
            return Err(Error::User(format!(
                "only root can run a program as another user; leave out --user {found}, or use sudo"
            )));
        }
        Ok(Some(user))
    }

    /// By name or number; `None` if there is no such user.
    pub fn find(text: &str) -> Option<User> {
        let entry = match text.parse() {
            Ok(uid) => unistd::User::from_uid(Uid::from_raw(uid)),
            Err(_) => unistd::User::from_name(text),
        }
        .ok()??;
        let groups = CString::new(entry.name.as_str())
            .ok()
            .and_then(|name| unistd::getgrouplist(&name, entry.gid).ok())
            .unwrap_or_else(|| vec![entry.gid]);
        Some(User { uid: entry.uid, gid: entry.gid, groups, name: entry.name, home: entry.dir, shell: entry.shell })
    }

    /// The user's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Who called Lowtide: under sudo that user, else the one that it runs as. Files that the caller names are opened with the caller's rights.
#[derive(Debug, Clone)]
pub struct Caller(Option<User>);

impl Caller {
    /// # Errors
    /// [`Error::User`]: `SUDO_UID` names nobody.
    pub fn find() -> Result<Caller> {
        User::choose(None).map(Caller)
    }

    /// This process itself, with all the rights that it has.
    pub fn of_this_process() -> Caller {
        Caller(None)
    }

    /// The name of the user who called, if that is not who this process runs as.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(User::name)
    }

    /// Runs `action` with the caller's rights on files, whatever else this process may do.
    ///
    /// # Errors
    /// [`Error::System`]: the kernel does not let this process become the caller.
    pub fn act<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T> {
        let Some(user) = &self.0 else { return Ok(action()) };
        // rights on files are a thread's own, as the kernel has it, and go with it
        let act = || become_on_files(user).map(|()| action());
        let result = thread::scope(|scope| scope.spawn(act).join());
        result
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(Error::system("taking on the caller's rights"))
    }
}

/// This thread alone; without these identities the capabilities that override rights on files are not in force either.
fn become_on_files(user: &User) -> io::Result<()> {
    let groups: Vec<_> = user.groups.iter().map(|group| group.as_raw()).collect();
    // SAFETY: system calls, the first with a list as long as is said.
    let now = unsafe {
        if libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(libc::SYS_setfsgid, user.gid.as_raw());
        libc::syscall(libc::SYS_setfsuid, user.uid.as_raw());
        // these two give what was in force before; asked for an impossible one they change nothing
        (libc::syscall(libc::SYS_setfsgid, -1), libc::syscall(libc::SYS_setfsuid, -1))
    };
    let is = |now: libc::c_long, wanted: u32| u32::try_from(now).is_ok_and(|now| now == wanted);
    match is(now.0, user.gid.as_raw()) && is(now.1, user.uid.as_raw()) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_caller_acts_with_rights_of_its_own_and_this_process_keeps_its_rights() {
        if !unistd::geteuid().is_root() {
            println!("skipped: only root can act as somebody else");
            return;
        }
        let directory = tempfile::tempdir().unwrap(); // for its owner alone
        let write = |name: &str| fs::write(directory.path().join(name), "");
        let nobody = Caller(User::find("nobody"));
        let refused = nobody.act(|| write("theirs")).unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        write("ours").unwrap();
        Caller::of_this_process().act(|| write("ours, too")).unwrap().unwrap();
    }

    #[test]
    fn an_unknown_user_is_named() {
        let error = User::choose(Some("no-such-user")).unwrap_err().to_string();
        assert!(error.contains("--user") && error.contains("no-such-user"), "{error}");
    }

    #[test]
    fn a_number_is_a_user_too() {
        assert_eq!(User::find("0").unwrap().name(), "root");
    }
}
