// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of the demo: none of them outlives it.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use nix::{
    sys::{
        signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::Pid,
};

/// A process that is asked to end has so long to do it.
const GRACE: Duration = Duration::from_secs(3);

/// A process in a process group of its own, ended with its group when this value goes.
#[derive(Debug)]
pub(super) struct Child {
    what: &'static str,
    child: process::Child,
    reaped: bool,
}

impl Child {
    /// Starts it with this signal mask, out of a terminal's reach. If the demo is killed, it is
    /// told to end.
    pub(super) fn start(what: &'static str, command: &mut Command, mask: SigSet) -> Result<Child> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let prepare = move || {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
            // SAFETY: a system call with integer arguments.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made.
        let child = unsafe { command.pre_exec(prepare) }.spawn().with_context(|| format!("cannot start {what}"))?;
        Ok(Child { what, child, reaped: false })
    }

    /// Whether it has ended. Until [`Child::end`] its process id remains its own.
    ///
    /// # Errors
    /// If it failed: what it said.
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        match self.look()? {
            WaitStatus::StillAlive => Ok(false),
            WaitStatus::Exited(_, 0) => Ok(true),
            WaitStatus::Signaled(_, signal, _) => {
                let what = self.what;
                Err(anyhow!("{what} was ended by {signal}; start the demo again"))
            }
            _ => {
                let words = self.last_words();
                Err(anyhow!("{} failed: {words}", self.what))
            }
        }
    }

    /// Ends it, and whatever is left of its group.
    pub(super) fn end(&mut self) {
        if self.reaped {
            return;
        }
        self.reaped = true;
        // `lowtide run` hands this on to its program and ends with it.
        let _gone = kill(self.pid(), Signal::SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < GRACE && matches!(self.look(), Ok(WaitStatus::StillAlive)) {
            thread::sleep(Duration::from_millis(20));
        }
        // Its leader is not yet reaped, so the group's number is still its own.
        let _empty = killpg(self.pid(), Signal::SIGKILL);
        let _status = self.child.wait();
    }

    fn look(&self) -> nix::Result<WaitStatus> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// What it printed; ends it first, so that the end of its output comes.
    fn last_words(&mut self) -> String {
        self.end();
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _incomplete = stderr.read_to_string(&mut text);
        }
        match text.trim().lines().last() {
            Some(line) => line.trim_start_matches("lowtide: ").to_owned(),
            None => "it said nothing".to_owned(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Child::start("the script", &mut command, SigSet::empty()).unwrap()
    }

    fn wait(child: &mut Child) -> Result<()> {
        while !child.has_ended()? {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    #[test]
    fn a_failure_is_told_in_the_child_s_own_words() {
        assert!(wait(&mut shell("exit 0")).is_ok());
        let error = wait(&mut shell("kill -9 $$")).unwrap_err();
        assert!(error.to_string().contains("ended by SIGKILL"), "{error}");
        let error = wait(&mut shell("echo lowtide: no such thing >&2; exit 2")).unwrap_err();
        assert_eq!(error.to_string(), "the script failed: no such thing");
    }

    #[test]
    fn nothing_of_its_group_is_left() {
        let mut child = shell("sleep 1000 & exec sleep 1000");
        let mut stderr = child.child.stderr.take().unwrap();
        drop(child);
        // it ends when the last process that has it open is gone
        assert_eq!(stderr.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
