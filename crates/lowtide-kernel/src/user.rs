// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user that PROGRAM runs as: under sudo the caller, never root by accident.

use std::{env, ffi::CString, io, path::PathBuf, thread};

use nix::unistd::{self, Gid, Uid};

use crate::{Error, Result, capabilities};

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
    /// The user of this name or number.
    ///
    /// # Errors
    /// [`Error::NoUser`].
    pub fn named(text: &str) -> Result<User> {
        User::look_up(text).ok_or_else(|| Error::NoUser { user: text.to_owned() })
    }

    fn look_up(text: &str) -> Option<User> {
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

    fn is_this_process(&self) -> bool {
        self.uid == unistd::geteuid()
    }

    /// The user's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Who called Lowtide: under sudo that user, else the one that it runs as. Files that the caller names are opened with
/// the caller's rights.
#[derive(Debug, Clone)]
pub struct Caller(Option<User>);

impl Caller {
    /// # Errors
    /// [`Error::NoCaller`]: `SUDO_UID` names no user.
    pub fn find() -> Result<Caller> {
        let uid = env::var("SUDO_UID").ok().filter(|_| unistd::geteuid().is_root());
        let user = uid.map(|uid| User::look_up(&uid).ok_or(Error::NoCaller { uid })).transpose()?;
        Ok(Caller(user.filter(|user| !user.is_this_process())))
    }

    /// This process itself, with all the rights that it has.
    pub fn of_this_process() -> Caller {
        Caller(None)
    }

    /// The name of the user who called, if that is not who this process runs as.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(User::name)
    }

    /// The user that PROGRAM runs as: the one that is named, else the caller; `None`: that of this process.
    ///
    /// # Errors
    /// [`Error::OtherUser`]: no right to become that user.
    pub fn program_user(&self, named: Option<User>) -> Result<Option<User>> {
        match named.or_else(|| self.0.clone()).filter(|user| !user.is_this_process()) {
            Some(User { name, .. }) if !capabilities::may_become_others() => Err(Error::OtherUser { user: name }),
            user => Ok(user),
        }
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

/// This thread alone. The identities take the capabilities on files from it. The others go too: CAP_SYS_PTRACE opens
/// the working directories of other users' processes, and CAP_SYS_RESOURCE exceeds quotas.
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
        true => capabilities::drop_of_this_thread(),
        false => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn a_caller_acts_with_rights_of_its_own_and_this_process_keeps_its_rights() {
        let directory = tempfile::tempdir().unwrap(); // for its owner alone
        let write = |name: &str| fs::write(directory.path().join(name), "");
        let nobody = Caller(User::look_up("nobody"));
        let refused = nobody.act(|| write("theirs")).unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        write("ours").unwrap();
        Caller::of_this_process().act(|| write("ours, too")).unwrap().unwrap();
    }

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn a_caller_has_no_way_through_the_processes_of_others() {
        // everybody may write in it, but only its owner gets there: by the path, or where a process of root's is
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let open = closed.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let mut process = Command::new("sleep").arg("60").current_dir(&open).spawn().unwrap();
        let path = format!("/proc/{}/cwd/theirs", process.id());
        let refused = Caller(User::look_up("nobody")).act(|| fs::write(&path, ""));
        let allowed = Caller::of_this_process().act(|| fs::write(&path, ""));
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(refused.unwrap().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        allowed.unwrap().unwrap();
    }

    #[test]
    fn an_unknown_user_is_named() {
        let error = User::named("no-such-user").unwrap_err().to_string();
        assert!(error.contains("'no-such-user' is no user"), "{error}");
    }

    #[test]
    fn a_number_is_a_user_too() {
        assert_eq!(User::named("0").unwrap().name(), "root");
    }

    #[test]
    fn the_program_is_the_callers_unless_somebody_is_named() {
        let of = |caller: Option<&str>, named: Option<&str>| {
            let named = named.and_then(User::look_up);
            Caller(caller.and_then(User::look_up)).program_user(named).map(|user| user.map(|user| user.name))
        };
        let ours = unistd::geteuid().to_string();
        assert_eq!(of(None, None).unwrap(), None);
        assert_eq!(of(Some("nobody"), None).unwrap().as_deref(), Some("nobody"));
        assert_eq!(of(Some("nobody"), Some(&ours)).unwrap(), None);
        match of(Some("nobody"), Some("daemon")) {
            Ok(user) => assert!(unistd::geteuid().is_root() && user.as_deref() == Some("daemon")),
            Err(error) => assert!(!unistd::geteuid().is_root() && error.to_string().contains("another user, daemon")),
        }
    }
}
