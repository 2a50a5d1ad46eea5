// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several transfers that share one budget: who sends when, and how fast.
//!
//! F. Yao, A. Demers, S. Shenker, "A Scheduling Model for Reduced CPU Energy" (FOCS 1995), with bytes for cycles: the
//! speeds at which all deadlines are met and the greatest one is least (and the sum of any convex cost of speed, too).
//! The densest interval between a release and a deadline has to carry what has to go in it, and no plan can do that
//! more slowly; it gets that speed, is taken out, and so on with the rest. At any time the transfer sends that is due
//! first.
//!
//! What becomes known later, a transfer that begins, a size that grows, makes a new schedule from then on ("Optimal
//! Available", ibid.).

use crate::{Time, Turn};

/// What one transfer has to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// From when on it may.
    pub release: Time,
    /// By when it has to; later than `release`.
    pub due: Time,
    /// Bytes left; greater than 0.
    pub bytes: f64,
}

/// A time in which one transfer sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Its number among the jobs.
    pub job: usize,
    /// From when ...
    pub from: Time,
    /// ... to when.
    pub until: Time,
    /// Bytes per second.
    pub rate: f64,
}

/// The rate of each job while it sends, in bytes per second.
#[must_use]
pub fn rates(jobs: &[Job]) -> Vec<f64> {
    let mut rates = vec![0.0; jobs.len()];
    // with the densest intervals taken out of the time, in seconds
    let mut left: Vec<(usize, f64, f64)> =
        jobs.iter().enumerate().map(|(n, job)| (n, job.release.as_secs_f64(), job.due.as_secs_f64())).collect();
    while let Some((from, until, density)) = densest(jobs, &left) {
        let within = |(_, release, due): &(usize, f64, f64)| *release >= from && *due <= until;
        left.iter().filter(|job| within(job)).for_each(|(n, ..)| rates[*n] = density);
        left.retain(|job| !within(job));
        let without = |time: f64| if time <= from { time } else { (time - (until - from)).max(from) };
        for (_, release, due) in &mut left {
            (*release, *due) = (without(*release), without(*due));
        }
    }
    rates
}

/// The interval with the most bytes per second that have to go within it, and these.
fn densest(jobs: &[Job], left: &[(usize, f64, f64)]) -> Option<(f64, f64, f64)> {
    let mut found: Option<(f64, f64, f64)> = None;
    for &(_, from, _) in left {
        for &(_, _, until) in left.iter().filter(|(_, _, due)| *due > from) {
            let within = left.iter().filter(|(_, release, due)| *release >= from && *due <= until);
            let density = within.map(|(n, ..)| jobs[*n].bytes).sum::<f64>() / (until - from);
            if found.is_none_or(|(_, _, most)| density > most) {
                found = Some((from, until, density));
            }
        }
    }
    found
}

/// The whole plan from `now` on, in the order of time.
#[must_use]
pub fn plan(jobs: &[Job], now: Time) -> Vec<Slot> {
    let rates = rates(jobs);
    let mut seconds: Vec<f64> = jobs.iter().zip(&rates).map(|(job, rate)| job.bytes / rate).collect();
    let mut slots: Vec<Slot> = Vec::new();
    let mut time = now;
    loop {
        let waiting = || (0..jobs.len()).filter(|n| seconds[*n] > 1e-9);
        let ready = waiting().filter(|n| jobs[*n].release <= time);
        let next = waiting().map(|n| jobs[n].release).filter(|release| *release > time).min();
        let Some(job) = ready.min_by_key(|n| (jobs[*n].due, *n)) else {
            match next {
                Some(release) => time = release,
                None => return slots,
            }
            continue;
        };
        let done = time.plus_secs_f64(seconds[job]);
        let until = next.map_or(done, |release| release.min(done)).max(time + std::time::Duration::from_nanos(1));
        seconds[job] = if until >= done { 0.0 } else { seconds[job] - until.since(time).as_secs_f64() };
        match slots.last_mut() {
            Some(last) if last.job == job && last.until == time => last.until = until,
            _ => slots.push(Slot { job, from: time, until, rate: rates[job] }),
        }
        time = until;
    }
}

/// What each of the jobs is to do at `now`, in their order.
#[must_use]
pub fn turns(jobs: &[Job], now: Time) -> Vec<Turn> {
    let plan = plan(jobs, now);
    let turn = |n: usize| {
        let own = plan.iter().filter(|slot| slot.job == n);
        let present = own.clone().find(|slot| slot.from <= now && now < slot.until);
        Turn { rate: present.map_or(0.0, |slot| slot.rate), done: own.map(|slot| slot.until).max().unwrap_or(now) }
    };
    (0..jobs.len()).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    const fn job(release: u64, due: u64, bytes: f64) -> Job {
        Job { release: at(release), due: at(due), bytes }
    }

    #[test]
    fn three_due_one_after_the_other() {
        let jobs = [job(0, 20, 20.0), job(0, 40, 20.0), job(0, 60, 20.0)];
        assert_eq!(rates(&jobs), [1.0, 1.0, 1.0]);
        let slot = |job, from, until| Slot { job, from: at(from), until: at(until), rate: 1.0 };
        assert_eq!(plan(&jobs, at(0)), [slot(0, 0, 20), slot(1, 20, 40), slot(2, 40, 60)]);
        let turn = |rate, done| Turn { rate, done: at(done) };
        assert_eq!(turns(&jobs, at(0)), [turn(1.0, 20), turn(0.0, 40), turn(0.0, 60)]);
        // three that know nothing of each other would begin with 1 + 1/2 + 1/3
    }

    #[test]
    fn what_is_due_late_but_large_is_begun_early() {
        let jobs = [job(0, 10, 10.0), job(0, 20, 50.0)];
        assert_eq!(rates(&jobs), [3.0, 3.0]);
        assert!((plan(&jobs, at(0))[0].until.as_secs_f64() - 10.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_dense_interval_in_the_middle_interrupts() {
        let jobs = [job(0, 100, 90.0), job(40, 50, 30.0)];
        assert_eq!(rates(&jobs), [1.0, 3.0]);
        let order: Vec<_> = plan(&jobs, at(0)).iter().map(|slot| slot.job).collect();
        assert_eq!(order, [0, 1, 0]);
    }

    fn jobs() -> impl Strategy<Value = Vec<Job>> {
        let one = (0u64..200, 1u64..200, 1.0..1e6f64)
            .prop_map(|(release, length, bytes)| job(release, release + length, bytes));
        prop::collection::vec(one, 1..8)
    }

    /// Bytes that have to go between two instants, per second.
    fn density(jobs: &[Job], from: Time, until: Time) -> f64 {
        let within = jobs.iter().filter(|job| job.release >= from && job.due <= until);
        within.map(|job| job.bytes).sum::<f64>() / until.since(from).as_secs_f64()
    }

    proptest! {
        #[test]
        fn every_deadline_is_met_and_no_plan_has_a_lower_peak(jobs in jobs()) {
            let plan = plan(&jobs, at(0));
            for (n, job) in jobs.iter().enumerate() {
                let own: Vec<_> = plan.iter().filter(|slot| slot.job == n).collect();
                let sent: f64 = own.iter().map(|slot| slot.rate * slot.until.since(slot.from).as_secs_f64()).sum();
                prop_assert!((sent / job.bytes - 1.0).abs() < 1e-6, "{n}: {sent} of {}", job.bytes);
                prop_assert!(own.iter().all(|slot| slot.from >= job.release), "{plan:?}");
                let late = own.last().unwrap().until.as_secs_f64() - job.due.as_secs_f64();
                prop_assert!(late < 1e-6, "{n} is {late} s late: {plan:?}");
            }
            prop_assert!(plan.windows(2).all(|two| two[0].until <= two[1].from), "one at a time");
            // the densest interval is a lower bound for every plan
            let bound = jobs.iter().flat_map(|a| jobs.iter().map(move |b| (a.release, b.due)))
                .filter(|(from, until)| until > from)
                .map(|(from, until)| density(&jobs, from, until)).fold(0.0, f64::max);
            let peak = plan.iter().map(|slot| slot.rate).fold(0.0, f64::max);
            prop_assert!((peak / bound - 1.0).abs() < 1e-9, "{peak} is not {bound}");
        }

        /// That each sends at the mean rate that it needs is a plan, too, and never a better one: neither in its peak
        /// nor in its work against a price that grows with the rate.
        #[test]
        fn it_is_never_worse_than_each_by_itself(jobs in jobs()) {
            let plan = plan(&jobs, at(0));
            let mut ends: Vec<_> = jobs.iter().flat_map(|job| [job.release, job.due]).collect();
            ends.sort_unstable();
            let (mut peak, mut cost) = (0.0f64, 0.0);
            for two in ends.windows(2) {
                let active = jobs.iter().filter(|job| job.release <= two[0] && job.due >= two[1] && two[1] > two[0]);
                let rate: f64 = active.map(|job| job.bytes / job.due.since(job.release).as_secs_f64()).sum();
                peak = peak.max(rate);
                cost += rate * rate * two[1].since(two[0]).as_secs_f64();
            }
            let planned = plan.iter().map(|slot| slot.rate).fold(0.0, f64::max);
            let planned_cost: f64 = plan.iter().map(|slot| slot.rate * slot.rate * slot.until.since(slot.from).as_secs_f64()).sum();
            prop_assert!(planned <= peak * (1.0 + 1e-9), "{planned} above {peak}");
            prop_assert!(planned_cost <= cost * (1.0 + 1e-6), "{planned_cost} above {cost}");
        }

        /// Half-way through its own plan the plan for what is left is the same. So one look ahead suffices for it to
        /// come true.
        #[test]
        fn a_plan_that_is_kept_stays_as_it_is(jobs in jobs(), part in 0.0..1.0f64) {
            let jobs: Vec<_> = jobs.into_iter().map(|job| Job { release: at(0), ..job }).collect();
            let plan = plan(&jobs, at(0));
            let now = at(0).plus_secs_f64(part * plan.last().unwrap().until.as_secs_f64());
            let sent = |n: usize| -> f64 {
                let own = plan.iter().filter(|slot| slot.job == n && slot.from < now);
                own.map(|slot| slot.rate * slot.until.min(now).since(slot.from).as_secs_f64()).sum()
            };
            let rest: Vec<_> = jobs.iter().enumerate()
                .map(|(n, job)| Job { release: now, bytes: job.bytes - sent(n), ..*job })
                .filter(|job| job.bytes > 1.0 && job.due > now).collect();
            let peak = super::plan(&rest, now).iter().map(|slot| slot.rate).fold(0.0, f64::max);
            let before = plan.iter().map(|slot| slot.rate).fold(0.0, f64::max);
            prop_assert!(peak <= before * (1.0 + 1e-6), "{peak} after {before}");
        }
    }
}
