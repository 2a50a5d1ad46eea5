// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may change while the transfer runs: its goal, the range of its weight, the limits on its rate.

use super::{Governor, Progress};
use crate::{Bounds, Goal, GoalError, Time};

/// Limits that an operator sets on the rate that is aimed for, whatever the goal: bytes per second, greater than 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// At least this much is aimed for, without a deadline, too.
    pub least: Option<f64>,
    /// No more than this is aimed for: the transfer is held to it by other means, and pressing harder would not help.
    pub most: Option<f64>,
}

impl Rates {
    /// The rate to aim for where the goal needs `needed`.
    pub(super) fn limit(&self, needed: Option<f64>) -> Option<f64> {
        let needed = self.least.map_or(needed, |least| Some(needed.unwrap_or(0.0).max(least)))?;
        Some(self.most.map_or(needed, |most| needed.min(most)))
    }
}

impl Governor {
    /// Change size, deadline or both while the transfer runs. What was seen of the network and the weight
    /// stay; update interval, aim and outlook follow the new goal. Without a deadline the weight falls to
    /// `w_min` at once. A deadline that has passed, as after a step of the caller's clock, is overdue at the next tick.
    ///
    /// # Errors
    /// [`GoalError`]: a deadline without a size, or a size of 0. The old goal then stays.
    pub fn set_goal(&mut self, goal: Goal, now: Time) -> Result<(), GoalError> {
        let now = now.max(self.last_tick);
        goal.check_size()?;
        self.goal = goal;
        self.goal_set = now;
        self.forecast.goal_moved();
        self.set_interval();
        if goal.deadline.is_none() {
            self.restart_control(self.policy.bounds.min());
        } else if self.was_overdue {
            self.restart_control(self.weight);
        }
        self.was_overdue = false;
        Ok(())
    }

    /// A better estimate of the size of the same goal, at least 1: interval, aim, and all that was concluded so far,
    /// stay. No effect without a size.
    pub fn set_size(&mut self, bytes: u64) {
        if let Some(size) = &mut self.goal.size {
            *size = bytes.max(1);
        }
    }

    /// The goal in force.
    #[must_use]
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// Change the range of weights while the transfer runs. A weight outside it is brought into it at once.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.policy.bounds = bounds;
        self.control.set_bounds(bounds);
        self.forecast.set_w_max(bounds.max().get());
        self.weight = bounds.clamp(self.weight.get());
        if self.was_overdue {
            self.weight = bounds.overdue();
        }
    }

    /// Change the limits on the rate that is aimed for. Without a deadline and a least rate the weight falls to `w_min`
    /// at once.
    pub fn set_rates(&mut self, rates: Rates) {
        self.rates = rates;
        if self.goal.deadline.is_none() && rates.least.is_none() {
            self.restart_control(self.policy.bounds.min());
        }
    }

    /// The limits in force.
    #[must_use]
    pub fn rates(&self) -> Rates {
        self.rates
    }

    /// Take in progress that says nothing about the network or the program, because the transfer was held back on
    /// purpose: the interval begins anew with it, and the forecast does not count it.
    pub fn skip(&mut self, progress: &Progress) {
        let now = progress.now.max(self.last_tick);
        self.last_tick = now;
        self.last_sign_of_life = now;
        self.last_activity = now;
        self.acknowledged = self.acknowledged.max(progress.acknowledged_bytes);
        self.look_at_the_path(progress);
        self.open_interval(now);
    }
}
