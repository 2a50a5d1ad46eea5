// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs at the same time, each on a link of its own.

use std::{
    collections::VecDeque,
    error::Error,
    fmt::Display,
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

type Failure = Box<dyn Error + Send + Sync>;

/// A measurement.
pub(crate) trait Work: Display + Send {
    /// What it gives.
    type Measured;

    /// Whether its link takes so much of the machine that two of them would disturb each other.
    fn is_heavy(&self) -> bool;

    /// How long it takes.
    fn time(&self) -> Duration;

    /// Makes it.
    fn measure(&self) -> Result<Self::Measured, Failure>;
}

/// How long these runs take, minutes, if none has to wait for another one.
pub(crate) fn minutes<R: Work>(runs: &[R], parallel: usize) -> u64 {
    let heavy: Duration = runs.iter().filter(|run| run.is_heavy()).map(Work::time).sum();
    let all: Duration = runs.iter().map(Work::time).sum();
    (all / parallel as u32).max(heavy).as_secs().div_ceil(60)
}

/// The runs that are left.
struct Queue<R> {
    runs: VecDeque<R>,
    /// Whether a heavy one goes on.
    heavy: bool,
    /// Why one failed. The others are not begun then.
    failure: Option<Failure>,
}

/// Makes all runs, so many at a time and never two heavy ones, and gives each result to `done`, one after the other.
pub(crate) fn work<R: Work>(
    runs: Vec<R>,
    parallel: usize,
    done: impl FnMut(&R, R::Measured) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let queue = Mutex::new(Queue { runs: runs.into(), heavy: false, failure: None });
    let (changed, done) = (Condvar::new(), Mutex::new(done));
    let worker = || {
        while let Some(run) = take(&queue, &changed) {
            let result = run.measure();
            let result = result.and_then(|it| (done.lock().unwrap_or_else(PoisonError::into_inner))(&run, it));
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.heavy &= !run.is_heavy();
            if let Err(error) = result {
                queue.failure.get_or_insert_with(|| format!("{run}: {error}").into());
                queue.runs.clear();
            }
            changed.notify_all();
        }
    };
    thread::scope(|scope| (0..parallel).for_each(|_| drop(scope.spawn(worker))));
    queue.into_inner().unwrap_or_else(PoisonError::into_inner).failure.map_or(Ok(()), Err)
}

/// The next run that may begin; `None` if there is none left.
fn take<R: Work>(queue: &Mutex<Queue<R>>, changed: &Condvar) -> Option<R> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let may_begin = |run: &R| !(queue.heavy && run.is_heavy());
        if let Some(index) = queue.runs.iter().position(may_begin) {
            let run = queue.runs.remove(index)?;
            queue.heavy |= run.is_heavy();
            return Some(run);
        }
        if queue.runs.is_empty() {
            return None;
        }
        queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}
