// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs at the same time, each on a link of its own.

use super::{Failure, Measured, Run, link};
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
    thread,
};

/// The runs that are left.
struct Queue {
    runs: VecDeque<Run>,
    /// Whether a heavy one goes on.
    heavy: bool,
    /// Why one failed. The others are not begun then.
    failure: Option<Failure>,
}

/// Does all runs, so many at a time and never two heavy ones, and gives each result to `done`, one after the other.
pub(crate) fn work(
    runs: Vec<Run>,
    parallel: usize,
    done: impl FnMut(&Run, Measured) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let queue = Mutex::new(Queue { runs: runs.into(), heavy: false, failure: None });
    let (changed, done) = (Condvar::new(), Mutex::new(done));
    let worker = || {
        while let Some(run) = take(&queue, &changed) {
            let result = link::measure(&run);
            let result = result.and_then(|it| (done.lock().unwrap_or_else(PoisonError::into_inner))(&run, it));
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.heavy &= !run.cell.heavy();
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
fn take(queue: &Mutex<Queue>, changed: &Condvar) -> Option<Run> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let may_begin = |run: &Run| !(queue.heavy && run.cell.heavy());
        if let Some(index) = queue.runs.iter().position(may_begin) {
            let run = queue.runs.remove(index)?;
            queue.heavy |= run.cell.heavy();
            return Some(run);
        }
        if queue.runs.is_empty() {
            return None;
        }
        queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}
