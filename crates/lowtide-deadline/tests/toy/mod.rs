// SPDX-License-Identifier: MIT OR Apache-2.0
//! A toy network to close the control loop over: one link, `n` ordinary flows and ours, all alpha-fair.
//!
//! An ordinary flow sends `F*q^(-1/2)` at price `q`, ours `F*(q/w)^(-1/alpha)`, with `F = C/(n+1)`, so that
//! at w = 1 every flow has its fair share whatever the exponent. The price is the one at which the link is
//! full. Ours follows its equilibrium with a first-order lag, swings in a sawtooth around
//! it and has seeded noise of ±20 %; it never exceeds the link. It has rates and no packets: the governor sees nothing
//! else, and its crate depends on no other.

use lowtide_deadline::{
    Basis, Control, Decision, Goal, GoalError, Governor, Model, Outlook, Policy, Progress, Signal, SignalKind, Signals,
    Time,
};
use std::time::Duration;

pub(crate) const CAPACITY: f64 = 2_500_000.0; // bytes per second: 20 Mbit/s

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Seconds until the deadline.
    pub(crate) deadline: f64,
    /// Size as a part of what the whole link carries until the deadline.
    pub(crate) demand: f64,
    /// From second .. on there are .. ordinary flows.
    pub(crate) flows: Vec<(f64, u32)>,
    /// The program has nothing to send between these seconds.
    pub(crate) pauses: Vec<(f64, f64)>,
    /// The network carries nothing between these seconds.
    pub(crate) outages: Vec<(f64, f64)>,
    /// At second ..: size and deadline times these.
    pub(crate) moves: Vec<(f64, f64, f64)>,
    /// Time constant of our flow, round trips.
    pub(crate) lag: f64,
    pub(crate) rtt: f64,
    /// The law gives us no more than this part of the link between these seconds, whatever the weight.
    pub(crate) held: Option<(f64, f64, f64)>,
    pub(crate) true_alpha: f64,
    pub(crate) assumed_alpha: f64,
    pub(crate) seed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Completion as a part of the time until the (last) deadline; infinite if not within four times that.
    pub(crate) finished: f64,
    /// First instant of a "cannot finish", as a part of the time until the first deadline.
    pub(crate) alarm: Option<f64>,
    /// First instant of an "on course", likewise.
    pub(crate) on_course: Option<f64>,
    /// Changes between "on course" and "cannot finish".
    pub(crate) flaps: u32,
    /// Changes of the outlook's kind after the first statement, of whatever kinds.
    pub(crate) changes: u32,
    /// Last instant of an "on course", as a part of the time until the (last) deadline.
    pub(crate) last_on_course: Option<f64>,
    /// "Cannot finish" was said of less than `w_max` in force.
    pub(crate) blamed_below_the_top: bool,
    /// "Cannot finish" was said last before the deadline or completion.
    pub(crate) alarm_at_end: bool,
    pub(crate) highest_weight: f64,
    /// Mean of w up to completion or the deadline.
    pub(crate) mean_weight: f64,
    /// Our mean rate as a part of the link, up to completion or the deadline.
    pub(crate) share: f64,
    /// Largest weight in force during, and within one interval after, a pause, less the one before it.
    pub(crate) rise_in_pause: f64,
    /// Part of the updates, up to completion or the deadline, that fell back from the model.
    pub(crate) fallbacks: f64,
    /// Largest error of an announced expected completion after half of the time, as a part of the whole time.
    pub(crate) eta_error: f64,
}

struct Chance(u64);

impl Chance {
    /// Uniform in [-1, 1); splitmix64.
    fn symmetric(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Our equilibrium rate beside `n` ordinary flows at weight `w`.
pub(crate) fn equilibrium(n: u32, w: f64, alpha: f64) -> f64 {
    equilibrium_and_price(n, w, alpha).0
}

/// The same, and the price per packet; 0 alone on the link.
fn equilibrium_and_price(n: u32, w: f64, alpha: f64) -> (f64, f64) {
    let fair = CAPACITY / f64::from(n + 1);
    if n == 0 {
        return (CAPACITY, 0.0);
    }
    let ours = |q: f64| fair * libm::pow(w / q, 1.0 / alpha);
    let total = |q: f64| ours(q) + f64::from(n) * fair / q.sqrt();
    let (mut low, mut high) = (1e-9_f64, 1e9_f64); // total falls with q
    for _ in 0..80 {
        let mid = (low * high).sqrt();
        if total(mid) > CAPACITY {
            low = mid;
        } else {
            high = mid;
        }
    }
    (ours(low), low)
}

/// Loss events per packet at price 1, the price of a full link at w = 1.
const EVENTS: f64 = 2e-3;

/// Model-based control with the law's assumed exponent. The model knows the rate that one ordinary flow leaves us at
/// price 1; beside more flows, or with another exponent than assumed, it is wrong.
pub(crate) fn with_model(s: &Scenario) -> Policy {
    let alpha = s.assumed_alpha;
    let unit_rate = 0.5 * CAPACITY * libm::pow(EVENTS, 1.0 / alpha);
    let model = Model::AlphaFair { alpha, unit_rate, signal: SignalKind::Loss };
    Policy { control: Control::ModelBased(Some(model)), ..Policy::default() }
}

const PACKET: f64 = 1500.0;

fn within(spans: &[(f64, f64)], t: f64) -> bool {
    spans.iter().any(|&(from, to)| from <= t && t < to)
}

pub(crate) fn run(s: &Scenario) -> Outcome {
    run_with(Policy::default(), s, |_, _| {})
}

/// With a policy of one's own (its alpha is the scenario's) and a look at every tick.
pub(crate) fn run_with(policy: Policy, s: &Scenario, trace: impl FnMut(f64, &Decision)) -> Outcome {
    drive(s, |goal| Governor::new(with_alpha(policy, s), goal, Time::ZERO), trace)
}

/// With a governor of one's own.
pub(crate) fn run_governor(
    s: &Scenario,
    governor: impl FnOnce(Policy, Goal, Time) -> Result<Governor, GoalError>,
) -> Outcome {
    let policy = with_alpha(Policy::default(), s);
    drive(s, |goal| governor(policy, goal, Time::ZERO), |_, _| {})
}

fn with_alpha(policy: Policy, s: &Scenario) -> Policy {
    Policy { alpha: s.assumed_alpha, ..policy }
}

fn drive(
    s: &Scenario,
    governor: impl FnOnce(Goal) -> Result<Governor, GoalError>,
    mut trace: impl FnMut(f64, &Decision),
) -> Outcome {
    let mut size = s.demand * CAPACITY * s.deadline;
    let mut deadline = s.deadline;
    let goal =
        |size: f64, deadline: f64| Goal { size: Some(size as u64), deadline: Some(Time::ZERO.plus_secs_f64(deadline)) };
    let mut governor = governor(goal(size, deadline)).unwrap();
    let mut chance = Chance(s.seed);
    let mut moves = s.moves.iter().peekable();
    let dt = if s.deadline > 3600.0 { 1.0 } else { 0.1 };
    let (sawtooth, noise_span) = (3.3_f64.max(dt), 1.0_f64.max(dt));

    let (mut t, mut rate, mut sent, mut noise, mut noise_until) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut w, mut weight_time, mut counted) = (governor.weight().get(), 0.0, 0.0);
    let (mut before_pause, mut pause_end) = (w, f64::NEG_INFINITY);
    let mut said: Option<bool> = None; // Some(true): on course; Some(false): cannot finish
    let mut kind = None;
    let (mut known_for, mut target, mut price) = (None, 0.0, 0.0);
    let (mut events, mut updates, mut fallbacks) = (0.0, 0, 0);
    let mut expectations = Vec::new();
    let mut out = Outcome { finished: f64::INFINITY, ..Outcome::default() };
    while t < 4.0 * deadline {
        if let Some(&&(at, by_size, by_deadline)) = moves.peek()
            && t >= at
        {
            size *= by_size;
            deadline *= by_deadline;
            let now = Time::ZERO.plus_secs_f64(t);
            governor.set_goal(goal(size, deadline), now).unwrap();
            said = None;
            moves.next();
        }
        let n = s.flows.iter().rev().find(|f| f.0 <= t).map_or(0, |f| f.1);
        let paused = within(&s.pauses, t);
        if t >= noise_until {
            noise = chance.symmetric();
            noise_until = t + noise_span;
        }
        let lag = 1.0 - libm::exp(-dt / (s.lag * s.rtt));
        if known_for != Some((n, w)) {
            known_for = Some((n, w));
            (target, price) = equilibrium_and_price(n, w, s.true_alpha);
        }
        rate += lag * (target - rate);
        if within(&s.outages, t) {
            rate = 0.0;
        }
        let most = s.held.filter(|&(_, from, to)| from <= t && t < to).map_or(CAPACITY, |(part, ..)| part * CAPACITY);
        let tooth = 0.8 + 0.4 * (t / sawtooth).fract(); // mean 1
        let now_rate = if paused { 0.0 } else { (rate * tooth * (1.0 + 0.2 * noise)).min(most) };
        sent += now_rate * dt;
        events += now_rate * dt / PACKET * price * EVENTS;
        t += dt;

        let d = governor.tick(&Progress {
            now: Time::ZERO.plus_secs_f64(t),
            acknowledged_bytes: sent as u64,
            active: true,
            app_limited: paused,
            rtt: Some(Duration::from_secs_f64(s.rtt)),
            signals: Signals {
                packets: sent / PACKET,
                loss: Signal { indications: events.floor(), reduction: 0.0 },
                ..Signals::default()
            },
            ..Progress::default()
        });
        trace(t, &d);
        w = d.weight.get();
        if paused {
            pause_end = t + d.interval.as_secs_f64();
        }
        if paused || t < pause_end {
            out.rise_in_pause = out.rise_in_pause.max(w - before_pause);
        } else {
            before_pause = w;
        }
        if d.updated && t <= deadline {
            updates += 1;
            fallbacks += u32::from(matches!(d.basis, Basis::Fallback(_)));
        }
        if t <= deadline {
            out.highest_weight = out.highest_weight.max(w);
            weight_time += w * dt;
            counted += dt;
            out.share = sent / counted / CAPACITY;
            let now_said = match d.outlook {
                Outlook::OnCourse { .. } => Some(true),
                Outlook::CannotFinish { .. } => Some(false),
                _ => said,
            };
            let new_kind = std::mem::discriminant(&d.outlook);
            if d.outlook != Outlook::TooEarly && kind.replace(new_kind).is_some_and(|before| before != new_kind) {
                out.changes += 1;
            }
            if matches!(d.outlook, Outlook::OnCourse { .. }) {
                out.last_on_course = Some(t / deadline);
            }
            if matches!(d.outlook, Outlook::CannotFinish { .. }) && now_said != said {
                out.blamed_below_the_top |= w < 0.999;
            }
            if said.is_some() && now_said != said {
                out.flaps += 1;
            }
            if now_said == Some(false) && out.alarm.is_none() {
                out.alarm = Some(t / s.deadline);
            }
            if now_said == Some(true) && out.on_course.is_none() {
                out.on_course = Some(t / s.deadline);
            }
            said = now_said;
            if let Some(e) = d.outlook.expected()
                && t > 0.5 * deadline
            {
                expectations.push(e.as_secs_f64());
            }
        }
        if d.outlook.is_complete() {
            out.finished = t / deadline;
            break;
        }
    }
    out.alarm_at_end = said == Some(false);
    out.fallbacks = f64::from(fallbacks) / f64::from(updates.max(1));
    out.mean_weight = weight_time / counted;
    out.eta_error = expectations.iter().map(|e| (e - out.finished * deadline).abs() / deadline).fold(0.0, f64::max);
    out
}
