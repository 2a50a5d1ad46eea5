// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group that was there before: from its open connections, taken, to what they had before, given back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lowtide_kernel::Taken;
use nix::sys::signal::Signal;

use super::Session;
use crate::run::{
    plan::Kind,
    signals::{Event, Signals, TICK},
};

/// Between two looks for network namespaces that processes of the group have come to be in.
const LOOK: Duration = Duration::from_secs(2);

impl Session {
    /// Gives the law to connections that are open already.
    ///
    /// # Errors
    /// They cannot be looked at.
    pub(in crate::run) fn take_open_connections(&mut self) -> Result<()> {
        let taken = self.controller.take(&self.cgroup)?;
        let processes = number(self.cgroup.processes().len() as u32, "process", "processes");
        let connections = number(taken.taken, "open connection", "open connections");
        self.screen.say(&format!("attached to {}: {processes}, {connections}", self.plan.program[0]));
        self.tell_of_refused(&taken);
        Ok(())
    }

    /// Until the group is empty, or the transfer is ended.
    pub(in crate::run) fn follow_group(&mut self, signals: &Signals) -> Result<()> {
        let mut looked = Instant::now();
        loop {
            self.obey();
            self.tick_or_say();
            if self.detached {
                return Ok(());
            }
            if !self.cgroup.is_populated() {
                self.screen.say("the group's last process has ended");
                return self.give_back();
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                match self.controller.take(&self.cgroup) {
                    Ok(taken) => self.tell_of_refused(&taken),
                    Err(error) => self.screen.say(&format!("open connections are not taken: {error}")),
                }
            }
            match signals.wait_alone(TICK)? {
                Event::Interrupt(Signal::SIGWINCH | Signal::SIGCONT)
                | Event::Forward(Signal::SIGWINCH | Signal::SIGCONT | Signal::SIGUSR1 | Signal::SIGUSR2)
                | Event::Tick
                | Event::Child => {}
                Event::Interrupt(_) | Event::Forward(_) => return self.give_back(),
            }
        }
    }

    /// `lowtide detach`.
    pub(super) fn detach(&mut self) -> Result<()> {
        if self.plan.kind == Kind::Run {
            bail!("it was started by lowtide run and ends with its program; only what was attached to can be detached");
        }
        self.give_back()?;
        self.detached = true;
        Ok(())
    }

    /// The connections have what they had before.
    ///
    /// # Errors
    /// Some of them cannot be looked at.
    pub(in crate::run) fn give_back(&mut self) -> Result<()> {
        self.tick_or_say(); // the last word on what went under our law
        let back = self.controller.give_back(&self.cgroup).context("connections keep the law until they close")?;
        let connections = number(back.taken, "connection goes on", "connections go on");
        self.screen.say(&format!("detached: {connections} as before"));
        Ok(())
    }

    fn tell_of_refused(&mut self, taken: &Taken) {
        if taken.left_out > 0 && !std::mem::replace(&mut self.left_out, true) {
            self.screen.say(
                "the group is in more network namespaces than are looked at: \
                 open connections in the others go on as they are",
            );
        }
        if taken.refused == 0 {
            return;
        }
        let why = taken.errno.map(|errno| nix::errno::Errno::from_raw(errno).desc()).unwrap_or_default();
        let open = number(taken.refused, "open connection", "open connections");
        self.screen.say(&format!(
            "{open} cannot be given the law ({why}; kernels before 6.12 cannot follow them), and go on as they are; new ones are governed"
        ));
    }
}

fn number(number: u32, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}
