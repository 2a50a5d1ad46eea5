// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs side by side, one for each processor. Which one runs what has no influence on any result.

use crate::{Failure, journal::Journal};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// What `work` makes of each job, in the order of the jobs. After a failure nothing more is begun.
pub(crate) fn all<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let one = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return Ok(done) };
            match work(job) {
                Ok(result) => done.push((index, result)),
                Err(failure) => {
                    next.store(jobs.len(), Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut done = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        threads.into_iter().try_for_each(|thread| {
            done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            Ok::<_, Failure>(())
        })
    })?;
    done.sort_by_key(|it| it.0);
    Ok(done.into_iter().map(|it| it.1).collect())
}

/// What the journal has of a scenario; if it has nothing, `run` is run, and remembered.
pub(crate) fn once<T: Serialize + DeserializeOwned>(
    journal: &Mutex<Journal>,
    scenario: &str,
    name: &str,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(result) = lock().get(scenario) {
        return Ok(result);
    }
    let result = run()?;
    lock().put(scenario, name, &result)?;
    Ok(result)
}
