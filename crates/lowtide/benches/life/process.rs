// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that end with the battery or at their limit.

use super::Failure;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// How often one looks whether a program has ended; what is measured takes seconds.
pub(crate) const LOOK: Duration = Duration::from_millis(5);
/// Between the request to end and the end by force. Lowtide writes its report once the last data of its program have
/// arrived.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server of the far end.
pub(crate) struct Server(Child);

impl Server {
    pub(crate) fn start(command: &mut Command) -> io::Result<Server> {
        Ok(Server(with_us(command).spawn()?))
    }
}

/// Makes the command's process end when the thread that started it does, however that comes.
fn with_us(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec, a system call with integer arguments.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a program ended.
pub(crate) struct Ended {
    /// `None`: at its limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) seconds: f64,
}

/// Runs a program, with whatever it starts, until it ends or for so many seconds. `look` is called with the seconds so
/// far.
pub(crate) fn run(command: &mut Command, limit: f64, mut look: impl FnMut(f64)) -> Result<Ended, Failure> {
    let start = Instant::now();
    let mut child = Group(with_us(command).process_group(0).spawn().map_err(|error| format!("{command:?}: {error}"))?);
    loop {
        let status = child.0.try_wait()?;
        let seconds = start.elapsed().as_secs_f64();
        if status.is_some() || seconds > limit {
            return Ok(Ended { status, seconds });
        }
        look(seconds);
        thread::sleep(LOOK);
    }
}

/// A process group, which ends with this value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.0.id() as i32);
        // signal 0: is a process of it left?
        let left = |child: &mut Child| matches!(child.try_wait(), Ok(None)) || killpg(group, None).is_ok();
        let _ = killpg(group, Signal::SIGTERM);
        let end = Instant::now() + PATIENCE;
        while left(&mut self.0) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        if left(&mut self.0) {
            let _ = killpg(group, Signal::SIGKILL);
            let _ = self.0.wait();
        }
    }
}

/// Runs a command that has to succeed: the battery's own doing, not what is measured.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}
