// SPDX-License-Identifier: MIT OR Apache-2.0
//! Against, and about, a busy machine.

use nix::libc;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Has the calling thread run before all ordinary ones, as the emulator's does. A sender that does not get its turn leaves the
/// window unfilled, and the law would be blamed for it.
pub(crate) fn be_punctual() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread, and the parameter lives until the call returns. Without the permission nothing changes.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const lowest) };
}

/// Watches how late the machine wakes a thread that should run at once.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = thread::spawn(move || {
            be_punctual();
            let nap = Duration::from_millis(1);
            let mut latest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(nap);
                latest = latest.max(begin.elapsed().saturating_sub(nap));
            }
            latest
        });
        Self { over, thread }
    }

    /// The latest that it was.
    pub(crate) fn stop(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}
