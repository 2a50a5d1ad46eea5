// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named network namespaces, as `ip netns` has them.

use crate::Error;
use crate::error::Doing;
use crate::iproute;
use crate::ownership::{Record, Records, namespace_path};
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A network namespace of ours; dropping it deletes it.
///
/// Its loopback device is up, and TCP does not carry what it learnt on one connection over to the
/// next: `net.ipv4.tcp_no_metrics_save` is 1 in it, so that runs do not influence each other.
pub struct Namespace {
    name: String,
    handle: Arc<File>,
    record: Option<Record>,
}

impl Namespace {
    /// Makes the namespace, as `ip netns add NAME` does. First removes whatever crashed emulators
    /// left on this machine.
    ///
    /// # Errors
    /// [`Error::ForeignNamespace`] or [`Error::NamespaceInUse`] if the name is taken, and whatever
    /// the system refuses.
    pub fn create(name: &str) -> Result<Self, Error> {
        let records = Records::lock()?;
        records.sweep()?;
        let record = records.make_namespace(name)?;
        let opened = File::open(namespace_path(name)).doing(|| format!("open the network namespace {name}"));
        let handle = match opened {
            Ok(handle) => Arc::new(handle),
            Err(error) => {
                drop(records.delete_namespace(&record));
                return Err(error);
            }
        };
        drop(records);
        let name = name.to_owned();
        let record = Some(record);
        let namespace = Self { name, handle, record };
        namespace.set("net/ipv4/tcp_no_metrics_save", "1")?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that stands for it, for `nsenter --net=PATH`.
    pub fn path(&self) -> PathBuf {
        namespace_path(&self.name)
    }

    /// Makes the command start in this namespace. Everything else stays as it is; unlike under
    /// `ip netns exec`, so does `/sys`.
    pub fn enter_command<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let handle = Arc::clone(&self.handle);
        let enter = move || Ok(setns(&*handle, CloneFlags::CLONE_NEWNET)?);
        // SAFETY: between fork and exec, setns is one system call; it allocates nothing and takes
        // no lock.
        unsafe { command.pre_exec(enter) }
    }

    /// Runs a function on a thread in this namespace, and waits for it. Sockets that it opens stay
    /// in the namespace wherever they are used later.
    ///
    /// # Errors
    /// If the thread cannot enter the namespace.
    ///
    /// # Panics
    /// If the function does.
    pub fn run<T: Send>(&self, function: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let result = thread::scope(|scope| {
            let enter_and_run = || self.enter().map(|()| function());
            scope.spawn(enter_and_run).join()
        });
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a function on a thread of its own in this namespace.
    ///
    /// # Errors
    /// If the thread cannot be started. It yields an error if it cannot enter the namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T, Error>>, Error> {
        let handle = Arc::clone(&self.handle);
        let name = self.name.clone();
        let enter_and_run = move || enter(&handle, &name).map(|()| function());
        thread::Builder::new().name(self.name.clone()).spawn(enter_and_run).doing(|| "start a thread".to_owned())
    }

    /// Runs `ip` of iproute2 once in this namespace, for all these commands, one a line.
    ///
    /// # Errors
    /// [`Error::Iproute`] with what it printed, or it cannot be started.
    pub fn ip(&self, commands: &str) -> Result<(), Error> {
        iproute::batch("ip", &self.name, commands)
    }

    /// The same with `tc`.
    ///
    /// # Errors
    /// As of [`Namespace::ip`].
    pub fn tc(&self, commands: &str) -> Result<(), Error> {
        iproute::batch("tc", &self.name, commands)
    }

    /// Sets a sysctl of this namespace, given its path below `/proc/sys`.
    pub(crate) fn set(&self, sysctl: &str, value: &str) -> Result<(), Error> {
        self.run(|| fs::write(format!("/proc/sys/{sysctl}"), value))?
            .doing(|| format!("set {sysctl} in the network namespace {}", self.name))
    }

    /// Deletes the namespace. Processes in it keep it alive, without a name, until they end.
    pub(crate) fn delete(&mut self) -> Result<(), Error> {
        match self.record.take() {
            Some(record) => Records::lock()?.delete_namespace(&record),
            None => Ok(()),
        }
    }

    fn enter(&self) -> Result<(), Error> {
        enter(&self.handle, &self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = self.delete() {
            // standard error may be closed
            let _ = writeln!(io::stderr(), "lowtide: {error}");
        }
    }
}

/// Moves the calling thread into a namespace.
fn enter(handle: &File, name: &str) -> Result<(), Error> {
    setns(handle, CloneFlags::CLONE_NEWNET).doing(|| format!("enter the network namespace {name}"))
}
