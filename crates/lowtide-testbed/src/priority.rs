// SPDX-License-Identifier: MIT OR Apache-2.0
//! Against, and about, a busy machine.

use nix::{libc, unistd::Pid};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Has the calling thread run before all ordinary ones, as the emulator's does. A sender that does not get its turn
/// leaves the window unfilled, and the law would be blamed for it.
pub(crate) fn raise_priority() {
    raise_priority_of(Pid::from_raw(0));
}

/// The same for the first thread of a process.
pub(crate) fn raise_priority_of(process: Pid) {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter lives until the call returns. 0 is the calling thread. Without the permission nothing
    // changes.
    unsafe {
        libc::sched_setscheduler(process.as_raw(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const lowest)
    };
}

/// Looks how late the machine wakes a thread that should run at once.
pub(crate) struct Lateness {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Duration>>,
}

impl Lateness {
    pub(crate) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = thread::spawn(move || {
            raise_priority();
            let nap = Duration::from_millis(1);
            let mut latest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(nap);
                latest = latest.max(begin.elapsed().saturating_sub(nap));
            }
            latest
        });
        Self { over, thread: Some(thread) }
    }

    /// The latest that it was.
    pub(crate) fn stop(mut self) -> Duration {
        self.end()
    }

    fn end(&mut self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Duration::ZERO, |thread| thread.join().expect("it does not panic"))
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.end();
    }
}
