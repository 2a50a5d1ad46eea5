// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer with a deadline: its weight follows from its progress.

use crate::{BasisTimes, DeadlineOutcome, observe::ControlSample, scenario::Deadline, scenario::Tcp, tcp::Sender};
use lowtide_cc::{Actuator, EcnUse, Price, Prices};
use lowtide_deadline::{
    Basis, FallbackReason, Goal, Governor, Progress, Signal, Signals, Time as Instant, Turn, group::Member,
};
use lowtide_net::Time;
use std::time::Duration;

/// Between two looks at the progress; the governor itself decides when to update the weight.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Steers a transfer towards its deadline.
pub(super) struct Control {
    governor: Governor,
    size: u64,
    start: Time,
    due: Time,
    /// Whether the law receives every mark, and reacts to their number.
    accurate: bool,
    segment_bytes: u32,
    /// The time of the latest look, and what it came to.
    looked: Time,
    /// Bytes acknowledged by then.
    acknowledged: u64,
    /// What connections that are over have come to.
    past: Tally,
    state: ControlSample,
    times: BasisTimes,
    /// In a group, the weight of whoever had its turn before this one.
    before: Option<f64>,
}

/// What connections of a transfer have come to, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    acknowledged_bytes: u64,
    segments: u64,
    loss: Signal,
    mark: Signal,
    delay: Signal,
    min_rtt: Option<Duration>,
    /// The round-trip times that are known, added up, and how many.
    rtts: (Duration, u32),
}

impl Tally {
    fn add(&mut self, sender: &Sender) {
        let mut prices = Prices::default();
        sender.law().prices(&mut prices);
        let add = |sum: &mut Signal, price: Price| {
            sum.indications += price.indications;
            sum.reduction += price.removed;
        };
        add(&mut self.loss, prices.loss);
        add(&mut self.mark, prices.mark);
        add(&mut self.delay, prices.delay);
        self.acknowledged_bytes += sender.acked_bytes();
        self.segments += sender.statistics().segments;
        self.min_rtt = self.min_rtt.into_iter().chain(sender.min_rtt()).min();
        if let Some(rtt) = sender.srtt() {
            self.rtts = (self.rtts.0 + rtt, self.rtts.1 + 1);
        }
    }

    /// The mean of the round-trip times.
    fn rtt(&self) -> Option<Duration> {
        self.rtts.0.checked_div(self.rtts.1)
    }
}

/// What control has added up to, over all transfers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steered {
    /// Seconds under control.
    pub(super) seconds: f64,
    /// The weight times seconds.
    pub(super) weight: f64,
    /// Bytes of the target rate.
    pub(super) target: f64,
}

impl Steered {
    /// What came after an earlier look.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            seconds: self.seconds - earlier.seconds,
            weight: self.weight - earlier.weight,
            target: self.target - earlier.target,
        }
    }
}

impl Control {
    /// A transfer of `size` bytes, above zero, that starts now.
    pub(super) fn new(size: u64, deadline: &Deadline, (tcp, actuator): (&Tcp, &Actuator), now: Time) -> Self {
        let policy = deadline.policy(&tcp.law, actuator);
        let goal = Goal { size: Some(size), deadline: Some(instant(now) + deadline.after) };
        let governor = Governor::new(policy, goal, instant(now)).expect("the scenario was checked");
        Self {
            size,
            start: now,
            due: now + deadline.after,
            accurate: matches!(tcp.law.ecn_use(), EcnUse::Accurate | EcnUse::L4s),
            segment_bytes: tcp.mss,
            looked: now,
            acknowledged: 0,
            past: Tally::default(),
            state: ControlSample {
                weight: governor.weight().get(),
                target_bps: None,
                achieved_bps: 0.0,
                price_ratio: 1.0,
                basis: Basis::Feedback,
            },
            times: BasisTimes::default(),
            before: None,
            governor,
        }
    }

    /// A look at the progress, with all connections of the transfer that are open: moves the weight to what it calls
    /// for, and adds the time since the last look to `steered`.
    pub(super) fn tick<'s>(&mut self, now: Time, open: impl Iterator<Item = &'s Sender>, steered: &mut Steered) {
        // the round-trip time is that of the open ones, or of the one that was the last
        let before = self.past.rtts;
        let mut tally = Tally { rtts: Default::default(), ..self.past };
        let mut connections = 0;
        for sender in open {
            tally.add(sender);
            connections += 1;
        }
        if tally.rtts.1 == 0 {
            tally.rtts = before;
        }
        self.acknowledged = tally.acknowledged_bytes;
        let decision = self.governor.tick(&Progress {
            now: instant(now),
            acknowledged_bytes: tally.acknowledged_bytes,
            // without a connection the program thinks
            active: connections > 0,
            app_limited: false,
            rtt: tally.rtt(),
            min_rtt: tally.min_rtt,
            segment_bytes: Some(self.segment_bytes),
            signals: self.signals(&tally),
            connected: true,
            waiting: false,
            in_flight_bytes: 0,
            price_ratio: None,
        });
        let seconds = (now - self.looked).as_secs_f64();
        steered.seconds += seconds;
        steered.weight += seconds * self.state.weight;
        steered.target += seconds * decision.target_rate.unwrap_or(0.0);
        if now <= self.due {
            *self.times.of(decision.basis) += seconds;
        }
        self.looked = now;
        self.state = ControlSample {
            weight: decision.weight.get(),
            target_bps: decision.target_rate.map(|rate| 8.0 * rate),
            achieved_bps: 8.0 * decision.achieved_rate,
            price_ratio: decision.price_ratio,
            basis: decision.basis,
        };
    }

    /// As its group sees it.
    pub(super) fn member(&self) -> Member {
        Member {
            deadline: instant(self.due),
            aim: self.governor.aim().unwrap_or(instant(self.due)),
            left: self.size - self.acknowledged,
            from: Some(instant(self.looked)),
        }
    }

    /// The weight at which it presses for its deadline, if it is due before another one.
    pub(super) fn weight_before(&self, other: &Control) -> Option<f64> {
        (self.due < other.due && self.state.target_bps.is_some()).then_some(self.state.weight)
    }

    /// What the schedule of its group gives to it; `before`: the weight of those that are due before it.
    pub(super) fn take_turn(&mut self, turn: Option<Turn>, before: Option<f64>) {
        self.before = before.or(self.before);
        self.governor.set_turn(turn, self.before);
    }

    /// Gives a connection of the transfer the weight that it has now.
    pub(super) fn steer(&self, sender: &mut Sender) {
        sender.set_weight_and_ratio(self.state.weight, self.state.price_ratio);
    }

    /// A connection is over.
    pub(super) fn leave(&mut self, sender: &Sender) {
        self.past.rtts = sender.srtt().map_or(self.past.rtts, |_| Default::default());
        self.past.add(sender);
    }

    /// Whether all bytes have been acknowledged, on connections that are over.
    pub(super) const fn is_complete(&self) -> bool {
        self.past.acknowledged_bytes == self.size
    }

    /// What the network has said so far.
    fn signals(&self, tally: &Tally) -> Signals {
        let &Tally { mut loss, mut mark, delay, segments, .. } = tally;
        if !self.accurate {
            loss.indications += mark.indications;
            loss.reduction += mark.reduction;
            mark = Signal::default();
        }
        Signals { packets: segments as f64, loss, mark, delay }
    }

    /// The state after the latest look.
    pub(super) const fn state(&self) -> &ControlSample {
        &self.state
    }

    /// What became of it: it was completed `now`, or it was not by `now`, when all ends.
    pub(super) fn outcome(&self, complete: bool, now: Time) -> DeadlineOutcome {
        let seconds = |time: Time| (time - Time::ZERO).as_secs_f64();
        let late = seconds(now) - seconds(self.due);
        let settled = complete || now >= self.due;
        DeadlineOutcome {
            bytes: self.size,
            start_s: seconds(self.start),
            due_s: seconds(self.due),
            finished_s: complete.then(|| seconds(now)),
            met: settled.then_some(complete && now <= self.due),
            late_s: settled.then_some(late),
            basis_s: self.times,
        }
    }
}

impl BasisTimes {
    fn of(&mut self, basis: Basis) -> &mut f64 {
        match basis {
            Basis::Feedback => &mut self.feedback,
            Basis::Model => &mut self.model,
            Basis::Fallback(FallbackReason::NoModel) => &mut self.no_model,
            Basis::Fallback(FallbackReason::NoPrice) => &mut self.no_price,
            Basis::Fallback(FallbackReason::NoRoundTripTime) => &mut self.no_rtt,
        }
    }
}

pub(super) fn instant(now: Time) -> Instant {
    Instant::ZERO + Duration::from_nanos(now.as_nanos())
}
