// SPDX-License-Identifier: MIT OR Apache-2.0
//! From progress to weight: the loop that a caller drives.

mod outlook;

use crate::{
    Basis, Calendar, Control, Forecast, Goal, GoalError, ModelBased, Observation, Outlook, PathState, Pid, Policy,
    PriceRatio, Signals, Step, Time, Weight, WeightControl, interval::wanted_interval, limit_increase, update_interval,
};
use outlook::Pace;
use std::time::Duration;

mod changes;
mod plan;

pub use changes::Rates;
pub use plan::{Hold, Turn};

/// The controller aims before the deadline by this part of the whole time ...
const AIM_MARGIN: f64 = 0.02;
/// ... or by so many update intervals, where that is more (5 % of a short transfer): ζ = remaining/(t_D − t)
/// diverges at t_D, so any lag ends as overdue, a climb limited to l_w lags by some intervals, and "done by"
/// is not "done at".
const AIM_INTERVALS: u32 = 3;
/// But by no more than this part of the whole time.
const AIM_MARGIN_MOST: f64 = 0.10;
/// The paper's l_w belongs to a transfer of 1300 s at T_w = 10 s (the framework, Table I and section III-C).
const INTERVALS_OF_L_W: f64 = 130.0;
/// However short the transfer, no update may grant more than this part of what was asked.
const INCREASE_LIMIT_MOST: f64 = 0.5;
/// Where floors make an interval longer than it was meant to be, so many times as much happens in it at the most.
const HASTE_MOST: u32 = 3;
/// A transfer that needs more than this part of what it would have at `w_max` has no time left for a climb.
const PRESSING: f64 = 0.85;
/// An interval without any progress is drawn out to so many T_w before it counts: a pause after a burst of
/// losses is no verdict on the weight.
const SILENT_INTERVALS: u32 = 3;
/// A gap between two ticks of so many T_w is not an interval: the machine slept or the clock jumped.
const GAP_INTERVALS: u32 = 10;
/// From this part of an interval without anything to send, the interval says nothing about the network.
const MOSTLY: f64 = 0.5;
/// An interval that carried less than this part of what is needed carried nothing: handshakes, requests, keep-alives.
const TRICKLE: f64 = 0.05;
/// Gain, per interval, of the estimate of how much of the time the program has something to send: slow, so that
/// one pause is not taken for a habit.
const AVAILABILITY_GAIN: f64 = 1.0 / 32.0;
/// The least that estimate may be.
const AVAILABILITY_LEAST: f64 = 0.25;
/// What the caller saw since the last tick.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// The present. An earlier one than before counts as the one before.
    pub now: Time,
    /// All bytes of the transfer acknowledged so far, a running total. A smaller one than before counts as
    /// the one before.
    pub acknowledged_bytes: u64,
    /// Something is being sent: a connection with data in flight or waiting.
    pub active: bool,
    /// Since the last tick the program, not the network, was what held sending back.
    pub app_limited: bool,
    /// The program has had a connection.
    pub connected: bool,
    /// With nothing to send, it waits for its peer or its network: a connection has just been made, or data came in.
    pub waiting: bool,
    /// Bytes sent and not yet acknowledged; 0 where unknown.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time, where known.
    pub rtt: Option<Duration>,
    /// The smallest round-trip time seen, where known: what Vegas' model measures its price from.
    pub min_rtt: Option<Duration>,
    /// Payload bytes of a full segment, where known.
    pub segment_bytes: Option<u32>,
    /// The congestion signals so far, real ones only, as running totals. A smaller number than before counts as the one
    /// before. All zero where they are not counted; model-based control then falls back to PID.
    pub signals: Signals,
    /// φ, finite and greater than 0, where the caller measures it itself and more often than once per update interval;
    /// [`Policy::ratio`] is then `None`. The control uses the harmonic mean over the interval.
    pub price_ratio: Option<f64>,
}

/// What to do, and what to say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The weight to apply to the transfer as a whole; see [`socket_weight`](crate::socket_weight).
    pub weight: Weight,
    /// ζ in bytes per second, towards the controller's aim (a little before the deadline), within [`Rates`]. `None`
    /// without a deadline, past it, or when nothing is left, unless there is a least rate.
    pub target_rate: Option<f64>,
    /// x̄ in bytes per second: the mean over the last complete update interval; during the first one, over
    /// what there is of it.
    pub achieved_rate: f64,
    /// The control law ran in this tick.
    pub updated: bool,
    /// The law asked for more than the limit on increases granted; stays until the next update.
    pub limited: bool,
    /// T_w now in force.
    pub interval: Duration,
    /// What the weight rests on; a fallback shows here.
    pub basis: Basis,
    /// φ: see [`PriceRatio`](crate::PriceRatio); 1 without one.
    pub price_ratio: f64,
    /// What to tell the user.
    pub outlook: Outlook,
    /// Why the weight is the least one, whatever the goal.
    pub hold: Hold,
    /// The limit on the rate in force, bytes per second: the operator's, or the calendar's cap.
    pub most: Option<f64>,
}

impl Decision {
    /// μ = w·φ (the framework, eq. 26): what a law that reacts to another price than its neighbours applies in place of
    /// w. May exceed 1.
    #[must_use]
    pub fn effective_weight(&self) -> f64 {
        self.weight.get() * self.price_ratio
    }
}

/// Drives a [`WeightControl`] from a transfer's progress.
///
/// Call [`tick`](Governor::tick) several times per update interval (every 100 ms is fine); the governor
/// decides itself when an interval has passed. Rules, where the paper is silent:
///
/// * no deadline: `w_min` for ever;
/// * past the deadline with data left: weight 1, or `w_max` where that is less;
/// * past the aim with data left the weight does not fall: the transfer is later than it was meant to be, and what is
///   left is too short to make up for a weight that turns out too low;
/// * all announced bytes acknowledged: the weight stays as it is until the deadline, then 1. A transfer that
///   goes on after its announced size must still finish;
/// * an interval in which the program had mostly nothing to send says nothing about the network: the weight
///   may fall in it, never rise, and the controller's memory is left alone unless it falls. Where such intervals
///   are a habit, the target of the others is raised by the part of the time that they leave;
/// * an interval without any progress is drawn out to three T_w before it counts;
/// * a gap of ten T_w between two ticks (suspend, clock jump) starts the interval afresh;
/// * outside the windows of its [`Calendar`], and while another transfer of its group goes first, the weight is
///   `w_min`, past the deadline, too.
///   That time does not count: neither for the goal nor for what is known of the network.
#[derive(Debug)]
pub struct Governor {
    policy: Policy,
    control: Box<dyn WeightControl>,
    ratio: Option<PriceRatio>,
    forecast: Forecast,
    goal: Goal,
    /// When the present goal was set.
    goal_set: Time,
    interval: Duration,
    rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    segment_bytes: Option<u32>,
    weight: Weight,
    limited: bool,
    was_overdue: bool,
    last_tick: Time,
    acknowledged: u64,
    /// The last instant at which bytes came through or there was nothing to send.
    last_sign_of_life: Time,
    opened: Time,
    acknowledged_at_opening: u64,
    signals: Signals,
    signals_at_opening: Signals,
    /// Round-trip times reported in the present interval: their sum in seconds, and how many.
    rtts: (f64, u32),
    /// 1/φ as reported by the caller, likewise; and the latest φ.
    inverse_ratios: (f64, u32),
    told_ratio: Option<f64>,
    /// Time of the present interval in which the program had nothing to send.
    idle: Duration,
    pace: Pace,
    /// Intervals in a row that spoke for another pace.
    off_pace: u32,
    /// When the program last sent a relevant amount, made a connection or received from its peer.
    last_activity: Time,
    connected: bool,
    /// It has had nothing to send since the start.
    idle_so_far: bool,
    /// It was found too late at its own pace.
    program_late: bool,
    in_flight: u64,
    /// Part of the intervals, lately, in which the program had something to send; 1 at the start.
    availability: f64,
    achieved: Option<f64>,
    rates: Rates,
    calendar: Calendar,
    turn: Option<Turn>,
    /// Until then the law follows a weight that was handed over, and nothing that it does counts.
    settles: Time,
}

impl Governor {
    /// A governor with the policy's control law, starting at `start` with nothing acknowledged and weight `w_min`.
    ///
    /// # Errors
    /// [`GoalError`]: a deadline without a size, a size of 0, a deadline not after `start`, or a policy out
    /// of range.
    pub fn new(policy: Policy, goal: Goal, start: Time) -> Result<Governor, GoalError> {
        let control: Box<dyn WeightControl> = match policy.control {
            Control::Pid => Box::new(Pid::new(policy.bounds)),
            Control::ModelBased(model) => Box::new(ModelBased::new(policy.bounds, model)),
        };
        Governor::with_control(policy, goal, start, control)
    }

    /// The same with a control law of one's own instead of the policy's. What it asks for is clamped to the policy's
    /// bounds and limited in its increase here; it is reset to `w_min` first.
    ///
    /// # Errors
    /// As for [`new`](Governor::new).
    pub fn with_control(
        policy: Policy,
        goal: Goal,
        start: Time,
        mut control: Box<dyn WeightControl>,
    ) -> Result<Governor, GoalError> {
        policy.check()?;
        goal.check(start)?;
        let weight = policy.bounds.min();
        control.reset(weight.get());
        let mut governor = Governor {
            policy,
            control,
            ratio: policy.ratio.map(PriceRatio::new),
            forecast: Forecast::new(policy.alpha, policy.bounds.max().get()),
            goal,
            goal_set: start,
            interval: policy.nominal_interval,
            rtt: None,
            min_rtt: None,
            segment_bytes: None,
            weight,
            limited: false,
            was_overdue: false,
            last_tick: start,
            acknowledged: 0,
            last_sign_of_life: start,
            opened: start,
            acknowledged_at_opening: 0,
            signals: Signals::default(),
            signals_at_opening: Signals::default(),
            rtts: (0.0, 0),
            inverse_ratios: (0.0, 0),
            told_ratio: None,
            idle: Duration::ZERO,
            pace: Pace::Network,
            off_pace: 0,
            last_activity: start,
            connected: false,
            idle_so_far: true,
            program_late: false,
            in_flight: 0,
            availability: 1.0,
            achieved: None,
            rates: Rates::default(),
            calendar: Calendar::default(),
            turn: None,
            settles: start,
        };
        governor.set_interval();
        Ok(governor)
    }

    /// The weight in force.
    #[must_use]
    pub fn weight(&self) -> Weight {
        self.weight_at(self.last_tick)
    }

    /// What the forecast knows.
    #[must_use]
    pub fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// When the controller means to be done: the deadline less 2 % of the whole time (from when the goal was
    /// set), or less three update intervals where that is more, but at most 10 %, all in the time that counts; the
    /// deadline itself without [`Policy::early_aim`]. `None` without a deadline.
    #[must_use]
    pub fn aim(&self) -> Option<Time> {
        let deadline = self.goal.deadline?;
        if !self.policy.early_aim {
            return Some(deadline);
        }
        let whole = self.whole()?.as_secs_f64();
        let margin =
            (AIM_MARGIN * whole).max((self.interval * AIM_INTERVALS).as_secs_f64()).min(AIM_MARGIN_MOST * whole);
        Some(self.calendar.before(deadline, Duration::from_secs_f64(margin)))
    }

    /// Take in progress; decide. Cheap: a few comparisons, except once per update interval.
    pub fn tick(&mut self, progress: &Progress) -> Decision {
        let now = progress.now.max(self.last_tick);
        let gap = now.since(self.last_tick);
        let acknowledged = progress.acknowledged_bytes.max(self.acknowledged);
        let idle = !progress.active || progress.app_limited;
        let jumped = gap > self.interval.saturating_mul(GAP_INTERVALS);
        if idle {
            self.idle += gap;
        }
        if idle || jumped || acknowledged > self.acknowledged {
            self.last_sign_of_life = now;
        }
        if progress.waiting || !idle || (progress.connected && !self.connected) {
            self.last_activity = now;
        }
        self.connected |= progress.connected || acknowledged > 0;
        self.idle_so_far &= idle && acknowledged == 0;
        self.in_flight = progress.in_flight_bytes;
        self.last_tick = now;
        self.acknowledged = acknowledged;
        if progress.rtt.is_some() && progress.rtt != self.rtt {
            self.rtt = progress.rtt;
            self.set_interval();
        }
        self.look_at_the_path(progress);

        let hold = self.hold(now);
        if hold != Hold::None {
            (self.last_sign_of_life, self.last_activity) = (now, now);
        }
        let updated = if jumped || hold != Hold::None || now < self.settles {
            self.open_interval(now);
            false
        } else if now.since(self.opened) >= self.interval && !self.wait_for_progress(now) {
            self.close_interval(now)
        } else {
            false
        };

        if self.goal.deadline.is_some_and(|d| now >= d) && !self.was_overdue {
            self.was_overdue = true;
            self.weight = self.policy.bounds.overdue();
            self.limited = false;
        }
        Decision {
            weight: self.weight_at(now),
            target_rate: self.target_rate(now),
            achieved_rate: self.achieved.unwrap_or_else(|| self.rate_so_far(now)),
            updated,
            limited: self.limited,
            interval: self.interval,
            basis: self.control.basis(),
            price_ratio: self.price_ratio(),
            outlook: self.outlook(now),
            hold,
            most: self.rates_at(now).most,
        }
    }

    fn look_at_the_path(&mut self, progress: &Progress) {
        self.signals = progress.signals.not_below(self.signals);
        self.min_rtt = progress.min_rtt.or(self.min_rtt);
        self.segment_bytes = progress.segment_bytes.or(self.segment_bytes);
        if let Some(rtt) = progress.rtt {
            self.rtts.0 += rtt.as_secs_f64();
            self.rtts.1 = self.rtts.1.saturating_add(1);
        }
        if let Some(ratio) = progress.price_ratio.filter(|phi| phi.is_finite() && *phi > 0.0) {
            self.told_ratio = Some(ratio);
            self.inverse_ratios.0 += 1.0 / ratio;
            self.inverse_ratios.1 = self.inverse_ratios.1.saturating_add(1);
        }
    }

    /// As seen in the present interval.
    fn path(&self) -> PathState {
        let (sum, number) = self.rtts;
        let mean = (number > 0).then(|| Duration::try_from_secs_f64(sum / f64::from(number)).unwrap_or(Duration::MAX));
        PathState {
            rtt: mean.or(self.rtt),
            min_rtt: self.min_rtt,
            segment_bytes: self.segment_bytes.map_or(0.0, f64::from),
        }
    }

    /// φ in force.
    fn price_ratio(&self) -> f64 {
        self.told_ratio.unwrap_or_else(|| self.ratio.as_ref().map_or(1.0, PriceRatio::get))
    }

    /// φ of the present interval: the harmonic mean, since prices are divided by it.
    fn mean_price_ratio(&self) -> f64 {
        let (sum, number) = self.inverse_ratios;
        let mean = f64::from(number) / sum;
        if mean.is_finite() && mean > 0.0 { mean } else { self.price_ratio() }
    }

    fn set_interval(&mut self) {
        self.interval = update_interval(self.policy.nominal_interval, self.whole(), self.rtt);
    }

    /// l_w for this goal; see [`Policy::scale_increase_limit`].
    #[must_use]
    pub fn increase_limit(&self) -> f64 {
        let l_w = self.policy.increase_limit;
        let Some(whole) = self.whole().filter(|_| self.policy.scale_increase_limit) else {
            return l_w;
        };
        let scaled = l_w * INTERVALS_OF_L_W * self.interval.as_secs_f64() / whole.as_secs_f64();
        scaled.min(INCREASE_LIMIT_MOST).max(l_w)
    }

    fn restart_control(&mut self, weight: Weight) {
        self.weight = weight;
        self.limited = false;
        self.control.reset(weight.get());
    }

    fn open_interval(&mut self, now: Time) {
        self.opened = now;
        self.acknowledged_at_opening = self.acknowledged;
        self.signals_at_opening = self.signals;
        self.rtts = (0.0, 0);
        self.inverse_ratios = (0.0, 0);
        self.idle = Duration::ZERO;
    }

    fn mostly_idle(&self, elapsed: Duration) -> bool {
        self.idle.as_secs_f64() >= MOSTLY * elapsed.as_secs_f64()
    }

    fn wait_for_progress(&self, now: Time) -> bool {
        let elapsed = now.since(self.opened);
        self.acknowledged == self.acknowledged_at_opening
            && elapsed < self.interval * SILENT_INTERVALS
            && !self.mostly_idle(elapsed)
    }

    fn rate_so_far(&self, now: Time) -> f64 {
        let elapsed = now.since(self.opened).as_secs_f64();
        let bytes = (self.acknowledged - self.acknowledged_at_opening) as f64;
        if elapsed > 0.0 { bytes / elapsed } else { 0.0 }
    }

    fn remaining(&self) -> Option<u64> {
        self.goal.size.map(|s| s.saturating_sub(self.acknowledged))
    }

    /// End the interval, run the control law if the interval allows it; true if it ran.
    fn close_interval(&mut self, now: Time) -> bool {
        let elapsed = now.since(self.opened);
        let achieved = self.rate_so_far(now);
        let mostly_idle = self.mostly_idle(elapsed);
        let busy = elapsed.saturating_sub(self.idle).as_secs_f64();
        let (signals, path) = (self.signals.since(self.signals_at_opening), self.path());
        self.achieved = Some(achieved);
        if let Some(ratio) = &mut self.ratio {
            ratio.observe(signals, path, elapsed.as_secs_f64());
        }

        let needed = self.target_rate(now).unwrap_or(0.0);
        self.keep_pace(match (mostly_idle, achieved > TRICKLE * needed) {
            (false, _) => Pace::Network,
            (true, true) => Pace::Program,
            (true, false) => Pace::Nobody,
        });
        if mostly_idle {
            self.forecast.observe_unrepresentative(achieved);
        } else if self.acknowledged == self.acknowledged_at_opening {
            // An outage: true for now, no measure of what a weight is worth.
            self.forecast.observe_unrepresentative(0.0);
        } else {
            let observation = Observation {
                weight: self.weight.get(),
                network_rate: achieved * elapsed.as_secs_f64() / busy,
                overall_rate: achieved,
                backlogged: busy / elapsed.as_secs_f64(),
            };
            self.forecast.observe(&observation, self.question(now).as_ref());
        }

        let available = if mostly_idle { 0.0 } else { 1.0 };
        self.availability += AVAILABILITY_GAIN * (available - self.availability);

        // What must go in all of the time must go in the part of it that the program makes use of.
        let usable = self.availability.max(AVAILABILITY_LEAST);
        let target = self.target_rate(now).map(|rate| rate / usable);
        let ran = match target {
            Some(target_rate) if !mostly_idle || achieved > target_rate => {
                let step = Step {
                    target_rate,
                    achieved_rate: achieved,
                    weight: self.weight.get(),
                    elapsed,
                    interval: self.meant_interval(),
                    path,
                    signals,
                    price_ratio: self.mean_price_ratio(),
                };
                self.run_control(&step, mostly_idle, self.aim().is_some_and(|aim| now >= aim));
                true
            }
            _ => false,
        };
        self.open_interval(now);
        ran
    }

    /// T_w as the control law counts time.
    fn meant_interval(&self) -> Duration {
        wanted_interval(self.policy.nominal_interval, self.whole()).clamp(self.interval / HASTE_MOST, self.interval)
    }

    /// Whether only an ordinary flow, or what `w_max` allows, can still be in time.
    fn has_no_slack(&self, weight: f64, target_rate: f64) -> bool {
        let ceiling = self.forecast.trusted_ceiling(weight);
        self.policy.early_aim && ceiling.is_some_and(|ceiling| target_rate > PRESSING * ceiling)
    }

    fn run_control(&mut self, step: &Step, only_down: bool, past_aim: bool) {
        let before = self.weight.get();
        let wanted = self.policy.bounds.clamp(self.control.update(step)).get();
        let allowed = match (only_down, past_aim) {
            (true, _) => wanted.min(before),
            (false, true) => wanted.max(before),
            (false, false) => wanted,
        };
        let granted = limit_increase(before, allowed, self.increase_limit());
        self.weight = self.policy.bounds.clamp(granted.weight);
        self.limited = granted.limited;
        self.control.applied(self.weight.get(), self.weight.get() < wanted);
        if !only_down && self.has_no_slack(before, step.target_rate) {
            (self.weight, self.limited) = (self.policy.bounds.max(), false);
            self.control.raised(self.weight.get());
        }
    }
}
