// SPDX-License-Identifier: MIT OR Apache-2.0
//! As whom PROGRAM runs: under sudo as the one who called it, never as root by accident.

use std::{env, ffi::CString, path::PathBuf};

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

    fn find(text: &str) -> Option<User> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
