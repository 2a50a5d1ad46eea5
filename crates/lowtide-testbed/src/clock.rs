// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of a scenario that runs: all its threads wait for the same beginning.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a thread sleeps before it looks whether all is over.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// How long a process may take to end after the request.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// A clock that begins when all is ready.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    begin: Arc<OnceLock<Instant>>,
    over: Arc<AtomicBool>,
}

impl Clock {
    /// It is zero now, unless it was before.
    pub(crate) fn begin(&self) {
        self.begin.get_or_init(Instant::now);
    }

    /// Nothing more shall happen.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether nothing more shall happen.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Since the beginning; zero before it.
    pub(crate) fn now(&self) -> Duration {
        self.begin.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Sleeps until then; false if all was over before.
    pub(crate) fn sleep_until(&self, at: Duration) -> bool {
        while !self.is_over() {
            if self.begin.get().is_none() {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            match at.saturating_sub(self.now()) {
                Duration::ZERO => return true,
                left => thread::sleep(left.min(PATIENCE)),
            }
        }
        false
    }

    /// Whether a flow goes on that ends there, or never.
    pub(crate) fn goes_on(&self, stop: Option<Duration>) -> bool {
        !self.is_over() && stop.is_none_or(|stop| self.now() < stop)
    }
}
