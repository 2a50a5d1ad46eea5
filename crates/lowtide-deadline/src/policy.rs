// SPDX-License-Identifier: MIT OR Apache-2.0
//! The task of a governor: how it may act, what has to be sent, and by when.

use crate::{Bounds, Control, DEFAULT_INCREASE_LIMIT, NOMINAL_INTERVAL, RatioPolicy, Time};
use std::{fmt, time::Duration};

/// How the governor may act.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// The range of weights.
    pub bounds: Bounds,
    /// l_w in (0, 1]: see [`limit_increase`](crate::limit_increase). It holds as it stands for transfers of 130 update
    /// intervals or more; see [`scale_increase_limit`](Policy::scale_increase_limit).
    pub increase_limit: f64,
    /// Scale l_w up for transfers of fewer than 130 update intervals, so that the climb from `w_min` to
    /// `w_max` takes the same part of the time as in the paper's experiments (1300 s at T_w = 10 s: at
    /// least 15 %); to 0.5 at most. At a sixtieth of the time per update the bare l_w spends more than a
    /// third of the time on the climb, misses deadlines that need three quarters of a fair share, and must
    /// then press harder at the end: a *higher* mean weight (measured in `tests/closed_loop.rs`). Our
    /// choice; `false` is the paper to the letter.
    pub scale_increase_limit: bool,
    /// T_w for long transfers: see [`update_interval`](crate::update_interval); greater than 0.
    pub nominal_interval: Duration,
    /// The law's exponent, finite and greater than 0: its rate goes with `w^(1/alpha)`. Only the forecast
    /// uses it.
    pub alpha: f64,
    /// Round trips that a flow takes to follow its weight, finite and not negative. Reno regains half a window of W in
    /// W/2 of them, CUBIC in its Reno-friendly region, at 0.53 segments each, in about W. Only the forecast uses it.
    pub response_round_trips: f64,
    /// Aim a little before the deadline, see [`Governor::aim`](crate::Governor::aim), and rise to `w_max` at once where
    /// no slack is left. Our choice; `false` is the paper to the letter.
    pub early_aim: bool,
    /// The law that moves the weight.
    pub control: Control,
    /// For a sender whose law reacts to another price than the ordinary flows beside it (Vegas beside CUBIC): how the
    /// ratio of the two is measured. `None`: they react to the same.
    pub ratio: Option<RatioPolicy>,
}

impl Default for Policy {
    /// The paper's values (l_w scaled for short transfers), PID, and Reno's exponent, 2.
    fn default() -> Policy {
        Policy {
            bounds: Bounds::default(),
            increase_limit: DEFAULT_INCREASE_LIMIT,
            scale_increase_limit: true,
            nominal_interval: NOMINAL_INTERVAL,
            alpha: 2.0,
            response_round_trips: 50.0,
            early_aim: true,
            control: Control::Pid,
            ratio: None,
        }
    }
}

impl Policy {
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        if !(self.increase_limit > 0.0 && self.increase_limit <= 1.0) {
            return Err(PolicyError::IncreaseLimit(self.increase_limit));
        }
        if self.nominal_interval.is_zero() {
            return Err(PolicyError::Interval);
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return Err(PolicyError::Alpha(self.alpha));
        }
        if !(self.response_round_trips.is_finite() && self.response_round_trips >= 0.0) {
            return Err(PolicyError::Response(self.response_round_trips));
        }
        if let Control::ModelBased(Some(model)) = self.control
            && !model.check()
        {
            return Err(PolicyError::Model);
        }
        if self.ratio.is_some_and(|ratio| !ratio.check()) {
            return Err(PolicyError::Ratio);
        }
        Ok(())
    }
}

/// Why a policy was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PolicyError {
    /// l_w outside (0, 1].
    IncreaseLimit(f64),
    /// A nominal interval of zero.
    Interval,
    /// An exponent that is not finite and greater than 0.
    Alpha(f64),
    /// A response time that is not finite or negative.
    Response(f64),
    /// A parameter of the control law's model that is out of range.
    Model,
    /// A parameter of the ratio of prices that is out of range.
    Ratio,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::IncreaseLimit(l) => {
                write!(f, "the limit on increases of the weight must lie above 0 and not above 1, not at {l}")
            }
            PolicyError::Interval => write!(f, "the update interval must be longer than zero"),
            PolicyError::Alpha(a) => write!(f, "the law's exponent must be a finite number greater than 0, not {a}"),
            PolicyError::Response(r) => {
                write!(f, "a flow's response to its weight takes a finite number of round trips, 0 or more, not {r}")
            }
            PolicyError::Model => write!(f, "the model of the control law has a parameter that is out of its range"),
            PolicyError::Ratio => write!(f, "the ratio of prices has a parameter that is out of its range"),
        }
    }
}

impl std::error::Error for PolicyError {}

/// What is to be moved, and by when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Goal {
    /// Bytes; greater than 0. `None`: unknown, which a deadline does not allow.
    pub size: Option<u64>,
    /// `None`: background for ever, the weight stays at `w_min`.
    pub deadline: Option<Time>,
}

impl Goal {
    /// For one to begin with, whose deadline has to be in the future.
    pub(crate) fn check(&self, now: Time) -> Result<(), GoalError> {
        self.check_size()?;
        if self.deadline.is_some_and(|deadline| deadline <= now) { Err(GoalError::DeadlinePast) } else { Ok(()) }
    }

    pub(crate) fn check_size(&self) -> Result<(), GoalError> {
        match (self.size, self.deadline) {
            (Some(0), _) => Err(GoalError::SizeZero),
            (None, Some(_)) => Err(GoalError::SizeUnknown),
            _ => Ok(()),
        }
    }
}

/// Why a goal, or a governor, was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GoalError {
    /// A deadline without a size.
    SizeUnknown,
    /// A size of 0.
    SizeZero,
    /// A deadline that is not in the future.
    DeadlinePast,
    /// The policy was refused.
    Policy(PolicyError),
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoalError::SizeUnknown => {
                write!(f, "a deadline needs a size: how hard to press follows from how much is left")
            }
            GoalError::SizeZero => write!(f, "a size of 0 leaves nothing to send"),
            GoalError::DeadlinePast => write!(f, "the deadline has already passed"),
            GoalError::Policy(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for GoalError {}

impl From<PolicyError> for GoalError {
    fn from(e: PolicyError) -> GoalError {
        GoalError::Policy(e)
    }
}
