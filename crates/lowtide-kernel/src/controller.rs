// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress up, weight down: joins a [`Transfer`] to a [`Governor`]. Told the time like the governor itself.

use std::time::Duration;

use lowtide_deadline::{Decision, Governor, Policy, Progress, Signal, Signals, Time, Weight};

use crate::{
    Cgroup, Direction, Flows, KernelActuator, KernelLaw, Pressure, Result, Setup, Snapshot, SocketGoal, Steering,
    Taken, Transfer,
    budget::Budget,
    ceiling::{Ceiling, Seen, SocketLimit},
    goals::{Goals, SocketDecision},
    price::LossPrice,
};

/// The heartbeat is stale after this many update intervals.
const STALE_INTERVALS: u32 = 2;

/// What one tick saw and decided.
#[derive(Debug, Clone)]
pub struct Status {
    /// When.
    pub now: Time,
    /// The sockets.
    pub snapshot: Snapshot,
    /// Weight, rates, outlook.
    pub decision: Decision,
    /// p_loss: real congestion signals per segment.
    pub loss_price: Option<f64>,
    /// Sockets with goals of their own.
    pub goals: Vec<SocketGoal>,
}

/// Governs one transfer.
#[derive(Debug)]
pub struct Controller {
    transfer: Transfer,
    governor: Governor,
    goals: Goals,
    about: Direction,
    law: KernelLaw,
    actuator: KernelActuator,
    w_min: Weight,
    price: LossPrice,
    priced: Option<Time>,
    peer: Peer,
    ceiling: Option<Ceiling>,
    paused: bool,
    /// What was decided last.
    decision: Option<Decision>,
}

impl Controller {
    /// As [`Transfer::flows`].
    ///
    /// # Errors
    /// See there.
    pub fn flows(&self) -> Result<Flows> {
        self.transfer.flows()
    }

    /// As [`Transfer::receivers_law`].
    pub fn receivers_law(&self) -> Option<String> {
        self.transfer.receivers_law()
    }

    /// Joins the two; `setup` is that of `transfer`. Sockets with goals of their own are governed under `policy`.
    pub fn new(transfer: Transfer, governor: Governor, policy: Policy, setup: &Setup) -> Controller {
        let (law, actuator) = (setup.law.clone(), setup.actuator);
        let goals = Goals::new(policy);
        Controller {
            transfer,
            governor,
            goals,
            about: setup.direction,
            law,
            actuator,
            w_min: policy.bounds.min(),
            price: LossPrice::default(),
            priced: None,
            peer: Peer::default(),
            ceiling: None,
            paused: false,
            decision: None,
        }
    }

    /// Goal and progress are about what goes this way from now on, `Both`: about what moves more; the other way has
    /// all the time in the world. Before it is said they are about the direction of the setup.
    pub fn is_about(&mut self, direction: Direction) {
        self.about = direction;
    }

    /// Bytes per second that all sockets together may send from now on.
    fn set_ceiling(&mut self, most: Option<f64>) {
        if self.ceiling.as_ref().map(Ceiling::most) != most {
            self.ceiling = most.map(Ceiling::new);
        }
    }

    /// Holds all sockets to a trickle that keeps their connections alive, or no longer. What happens meanwhile says
    /// nothing about the network.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The steering for a weight before anything is known of the network.
    pub fn first_steering(w_min: f64, law: &KernelLaw, actuator: KernelActuator) -> Steering {
        Steering {
            pressure: actuator.pressure(law, w_min, 1.0, 0.0),
            weight: w_min,
            download_weight: w_min,
            stale: STALE_INTERVALS * lowtide_deadline::NOMINAL_INTERVAL,
            ..Steering::default()
        }
    }

    /// Reads the sockets, lets the governor decide, and steers. Call it several times per update interval.
    ///
    /// # Errors
    /// [`Error::Observe`](crate::Error::Observe).
    pub fn tick(&mut self, now: Time) -> Result<Status> {
        let snapshot = self.transfer.observe()?;
        let seen = self.progress(now, &snapshot);
        let decision = self.decide(&seen);
        if self.priced.is_none_or(|last| now >= last + decision.interval) {
            self.priced = Some(now);
            self.price.update(snapshot.totals.losses, snapshot.totals.segments);
        }
        let (goals, gone) = self.goals.tick(self.transfer.goals(), &seen);
        let alpha = self.law.exponent(self.price.get(), snapshot.srtt.map(|rtt| rtt.as_secs_f64()));
        let flows = flows(&self.law, &snapshot);
        let budget = Budget::new(self.upload_weight(&decision), snapshot.sending, flows, &goals, alpha);
        let limit = self.limit(now, &snapshot);
        let steering = Steering { limit, ..self.steering(&snapshot, &decision, &budget) };
        self.transfer.steer(&steering);
        self.transfer.steer_sockets(&self.decisions(now, &goals, &budget), &gone)?;
        Ok(Status { now, snapshot, decision, loss_price: self.price.get(), goals })
    }

    /// A pause needs one decision before it, to hold on to.
    fn decide(&mut self, seen: &Progress) -> Decision {
        let decision = match self.decision {
            Some(decision) if self.paused => {
                self.governor.skip(seen);
                Decision { updated: false, weight: self.governor.weight(), ..decision }
            }
            _ => self.governor.tick(seen),
        };
        self.decision = Some(decision);
        decision
    }

    /// What each socket may send until the next tick.
    fn limit(&mut self, now: Time, snapshot: &Snapshot) -> Option<SocketLimit> {
        self.set_ceiling(self.governor.rates_at(now).most);
        let seen = Seen {
            sent: snapshot.totals.acknowledged + snapshot.totals.retransmitted,
            sending: snapshot.sending,
            held: snapshot.held,
            wanting: snapshot.backlogged,
        };
        let level = self.ceiling.as_mut().map(|ceiling| ceiling.level(now, &seen));
        if self.paused { Some(SocketLimit::trickle(snapshot.sending)) } else { level }
    }

    /// The progress that the governor receives of the transfer, in its direction.
    fn progress(&mut self, now: Time, snapshot: &Snapshot) -> Progress {
        let way = snapshot.totals.way(self.about);
        let sent = Progress {
            now,
            acknowledged_bytes: snapshot.totals.acknowledged,
            active: snapshot.unfinished_bytes > 0,
            app_limited: !snapshot.backlogged,
            rtt: snapshot.srtt,
            min_rtt: snapshot.min_rtt,
            segment_bytes: snapshot.segment_bytes,
            signals: signals(snapshot),
            connected: snapshot.totals.sockets_opened > 0,
            waiting: self.peer.is_awaited(now, snapshot, way),
            in_flight_bytes: snapshot.in_flight_bytes,
            price_ratio: None,
        };
        if way != Direction::Down {
            return sent;
        }
        let download = &snapshot.download;
        Progress {
            acknowledged_bytes: snapshot.totals.received,
            active: download.receiving > 0,
            // whether a sender has more than its own window lets it send is not known here
            app_limited: !download.limited && !download.free,
            rtt: download.srtt,
            min_rtt: None,
            segment_bytes: download.segment_bytes,
            signals: Signals::default(),
            in_flight_bytes: 0,
            ..sent
        }
    }

    /// w of what is sent: without a goal of its own it has all the time in the world.
    fn upload_weight(&self, decision: &Decision) -> Weight {
        if self.about == Direction::Down { self.w_min } else { decision.weight }
    }

    /// The same of what is received.
    fn download_weight(&self, decision: &Decision) -> Weight {
        if self.about == Direction::Down { decision.weight } else { self.w_min }
    }

    /// A law of ours shares the budget itself; sockets of a kernel's law each apply a weight for themselves.
    fn steering(&self, snapshot: &Snapshot, decision: &Decision, budget: &Budget) -> Steering {
        Steering {
            pressure: self.pressure(
                budget,
                (budget.each_of_the_others(), decision.price_ratio),
                budget.increase_of_the_others(),
            ),
            weight: self.upload_weight(decision).get(),
            download_weight: self.download_weight(decision).get(),
            download_held: self.paused,
            sockets: snapshot.sending,
            window: snapshot.window,
            stale: STALE_INTERVALS * decision.interval.max(Duration::from_millis(500)),
            limit: None,
        }
    }

    /// On a socket of the weight `own` and of this φ where each stands for itself, whose window grows by `part` of what
    /// it would be if all were equal.
    fn pressure(&self, budget: &Budget, (own, ratio): (Weight, f64), part: f64) -> Pressure {
        let w = if self.law.has_one_window() { budget.whole() } else { own };
        let pressure = self.actuator.pressure(&self.law, w.get(), ratio, self.price.get().unwrap_or(0.0));
        Pressure { increase: pressure.increase * part, ..pressure }
    }

    /// The same for sockets with a goal: what is theirs in place of the others'.
    fn decisions(&self, now: Time, goals: &[SocketGoal], budget: &Budget) -> Vec<SocketDecision> {
        let decide = |goal: &SocketGoal| {
            let decision = goal.decision.filter(|_| !goal.closed)?;
            Some(SocketDecision {
                id: goal.id,
                serial: goal.serial,
                pressure: self.pressure(budget, (budget.own(goal), decision.price_ratio), budget.own_increase(goal)),
                over: goal.over,
                now,
                decision,
            })
        };
        goals.iter().filter_map(decide).collect()
    }

    /// As [`Transfer::take`].
    ///
    /// # Errors
    /// See there.
    pub fn take(&mut self, cgroup: &Cgroup) -> Result<Taken> {
        self.transfer.take(cgroup)
    }

    /// As [`Transfer::give_back`].
    ///
    /// # Errors
    /// See there.
    pub fn give_back(&mut self, cgroup: &Cgroup) -> Result<Taken> {
        self.transfer.give_back(cgroup)
    }

    /// The governor, to move the goal.
    pub fn governor(&mut self) -> &mut Governor {
        &mut self.governor
    }
}

/// A sign of the peer counts for so many round trips ...
const SIGN_ROUND_TRIPS: u32 = 4;
/// ... and for this at the least: a server that checks a key or reads a disk takes longer than the path.
const SIGN_LEAST: Duration = Duration::from_secs(1);

/// Whether a transfer that has nothing to send waits for its peer: it has just connected, or data came in lately; and
/// one that receives nothing, as it has sent a request.
#[derive(Debug, Default)]
struct Peer {
    heard: u64,
    opened: u64,
    last_sign: Option<Time>,
}

impl Peer {
    fn is_awaited(&mut self, now: Time, snapshot: &Snapshot, direction: Direction) -> bool {
        let totals = &snapshot.totals;
        let (heard, srtt, idle) = match direction {
            Direction::Up | Direction::Both => {
                (totals.received, snapshot.srtt, !snapshot.backlogged && snapshot.unfinished_bytes == 0)
            }
            Direction::Down => (totals.acknowledged, snapshot.download.srtt, snapshot.download.receiving == 0),
        };
        if heard > self.heard || totals.sockets_opened > self.opened {
            self.last_sign = Some(now);
        }
        (self.heard, self.opened) = (heard, totals.sockets_opened);
        let counts = SIGN_LEAST.max(srtt.unwrap_or_default() * SIGN_ROUND_TRIPS);
        idle && self.last_sign.is_some_and(|sign| now.since(sign) <= counts)
    }
}

/// Flows that share the weight: under Tide one for each path, however many connections it has, else each connection.
fn flows(law: &KernelLaw, snapshot: &Snapshot) -> u32 {
    if law.shares_a_flow() { snapshot.paths } else { snapshot.sending }
}

/// The real congestion signals so far, for the price that the governor's model goes by.
fn signals(snapshot: &Snapshot) -> Signals {
    let counted = |indications| Signal { indications, reduction: 0.0 };
    Signals {
        packets: snapshot.totals.segments as f64,
        loss: counted(snapshot.totals.losses as f64),
        delay: counted(snapshot.totals.delay_price),
        ..Signals::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Totals;

    #[test]
    fn a_transfer_over_many_paths_has_one_share() {
        let snapshot = Snapshot { sending: 40, paths: 8, ..Snapshot::default() };
        let weight = Weight::new(0.2).unwrap();
        for (name, flows) in [("tide", 8), ("cubic", 40)] {
            let law = KernelLaw::parse(name).unwrap();
            let alpha = law.exponent(None, None);
            let budget = Budget::new(weight, snapshot.sending, super::flows(&law, &snapshot), &[], alpha);
            let share = lowtide_deadline::socket_weight(weight, flows, alpha);
            assert!(share < weight && budget.each_of_the_others() == share, "{name}: {share:?}");
        }
    }

    #[test]
    fn an_idle_transfer_waits_for_its_peer_while_there_are_signs_of_it() {
        let mut peer = Peer::default();
        let mut look = |ms: u64, sockets_opened: u64, received: u64, unfinished_bytes: u64| {
            let totals = Totals { sockets_opened, received, ..Totals::default() };
            let snapshot = Snapshot { totals, unfinished_bytes, ..Snapshot::default() };
            peer.is_awaited(Time::ZERO + Duration::from_millis(ms), &snapshot, Direction::Up)
        };
        assert!(!look(0, 0, 0, 0), "no connection yet");
        assert!(look(100, 1, 0, 0), "a new one");
        assert!(!look(500, 1, 0, 1), "something is on its way");
        assert!(look(1_000, 1, 0, 0));
        assert!(!look(1_200, 1, 0, 0), "no sign for a second");
        assert!(look(5_000, 1, 90, 0) && look(5_900, 1, 90, 0), "an answer came in");
        assert!(!look(6_100, 1, 90, 0));
        assert!(look(7_000, 2, 90, 0), "another connection");
    }

    #[test]
    fn on_a_long_path_signs_count_for_longer() {
        let mut peer = Peer::default();
        let mut look = |ms: u64| {
            let totals = Totals { sockets_opened: 1, ..Totals::default() };
            let snapshot = Snapshot { totals, srtt: Some(Duration::from_millis(600)), ..Snapshot::default() };
            peer.is_awaited(Time::ZERO + Duration::from_millis(ms), &snapshot, Direction::Up)
        };
        assert!(look(0) && look(2_400) && !look(2_500));
    }
}
