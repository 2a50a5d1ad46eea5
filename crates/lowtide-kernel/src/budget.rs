// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow's budget at one tick: sockets with goals of their own have their parts of it, all others together one more.

use std::collections::BTreeMap;

use lowtide_deadline::{Division, Weight, socket_weight};

use crate::SocketGoal;

/// Who takes which part. Only sockets that are sending count.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Its members: the others first where there are any, then the sockets with goals.
    division: Division,
    own: BTreeMap<u64, usize>,
    sending: u32,
    others: u32,
    /// How many flows the others are.
    flows: u32,
    alpha: f64,
}

impl Budget {
    /// `sending` sockets, of which those of `goals` that are sending and not over stand for themselves; the others
    /// share `weight`, as that many `flows` at the most.
    pub(crate) fn new(weight: Weight, sending: u32, flows: u32, goals: &[SocketGoal], alpha: f64) -> Budget {
        let active = |goal: &&SocketGoal| goal.sending && !goal.over && goal.decision.is_some();
        let own: Vec<&SocketGoal> = goals.iter().filter(active).collect();
        let others = sending.saturating_sub(own.len() as u32);
        let first = usize::from(others > 0 || own.is_empty());
        let mut weights = vec![weight; first];
        weights.extend(own.iter().filter_map(|goal| goal.decision).map(|decision| decision.weight));
        let own = own.iter().enumerate().map(|(i, goal)| (goal.id, first + i)).collect();
        Budget {
            division: Division::new(&weights, alpha),
            own,
            sending: sending.max(1),
            others,
            flows: flows.min(others),
            alpha,
        }
    }

    /// The weight of the one flow that all sockets together are.
    pub(crate) fn whole(&self) -> Weight {
        self.division.whole()
    }

    /// The weight of each socket without a goal where each stands for itself.
    pub(crate) fn each_of_the_others(&self) -> Weight {
        let together = if self.have_a_part() { self.division.weight(0) } else { self.whole() };
        socket_weight(together, self.flows.max(1), self.alpha)
    }

    /// The weight of a socket with a goal where each stands for itself.
    pub(crate) fn own(&self, goal: &SocketGoal) -> Weight {
        self.own.get(&goal.id).map_or_else(|| self.whole(), |member| self.division.weight(*member))
    }

    /// Growth of the others' windows, of what it would be if all sockets were equal.
    pub(crate) fn increase_of_the_others(&self) -> f64 {
        if self.have_a_part() {
            self.division.part(0) * f64::from(self.sending) / f64::from(self.others.max(1))
        } else {
            1.0 // for one that starts before the next tick
        }
    }

    /// The same of a socket with a goal.
    pub(crate) fn own_increase(&self, goal: &SocketGoal) -> f64 {
        self.own.get(&goal.id).map_or(1.0, |member| self.division.part(*member) * f64::from(self.sending))
    }

    fn have_a_part(&self) -> bool {
        self.others > 0 || self.own.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lowtide_deadline::{Basis, Bounds, Decision, Outlook, Time};

    use super::*;

    fn weight(w: f64) -> Weight {
        Weight::new(w).unwrap()
    }

    fn goal(id: u64, w: f64, sending: bool, over: bool) -> SocketGoal {
        let decision = Decision {
            weight: weight(w),
            target_rate: None,
            achieved_rate: 0.0,
            updated: false,
            limited: false,
            interval: Duration::from_secs(1),
            basis: Basis::Feedback,
            price_ratio: 1.0,
            outlook: Outlook::TooEarly,
            hold: lowtide_deadline::Hold::None,
            most: None,
        };
        let deadline = Time::from_nanos(1);
        SocketGoal {
            id,
            serial: 1,
            size: 1,
            acknowledged: 0,
            deadline,
            closed: false,
            decision: Some(decision),
            over,
            sending,
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn without_goals_nothing_is_new() {
        let w = Bounds::default().min();
        for sending in [0, 1, 8] {
            let budget = Budget::new(w, sending, sending, &[], 2.0);
            close(budget.whole().get(), w.get());
            close(budget.increase_of_the_others(), 1.0);
            close(budget.each_of_the_others().get(), socket_weight(w, sending, 2.0).get());
        }
    }

    #[test]
    fn windows_grow_as_the_parts_say_and_as_one_flow_in_all() {
        // parts of a flow: the three others 0.2 together, the sockets with goals 0.5 and 0.1
        let goals = [goal(7, 0.25, true, false), goal(9, 0.01, true, false)];
        let budget = Budget::new(weight(0.04), 5, 5, &goals, 2.0);
        close(budget.whole().get(), 0.64);
        let growth = 3.0 * budget.increase_of_the_others() + goals.iter().map(|g| budget.own_increase(g)).sum::<f64>();
        close(growth / 5.0, 1.0);
        close(budget.own_increase(&goals[0]) / budget.own_increase(&goals[1]), 5.0);
        close(budget.own_increase(&goals[0]) / (3.0 * budget.increase_of_the_others()), 2.5);
        close(budget.own(&goals[0]).get(), 0.25);
        close(budget.each_of_the_others().get(), 0.04 / 9.0);
    }

    #[test]
    fn many_goals_are_one_flow() {
        let goals: Vec<_> = (1..=16).map(|id| goal(id, 1.0, true, false)).collect();
        let budget = Budget::new(weight(0.004), 16, 16, &goals, 2.0);
        close(budget.whole().get(), 1.0);
        close(budget.own(&goals[3]).get(), 1.0 / 256.0);
        close(budget.own_increase(&goals[3]), 1.0);
        close(budget.increase_of_the_others(), 1.0);
    }

    #[test]
    fn idle_and_ended_goals_take_no_part() {
        let goals = [goal(1, 1.0, false, false), goal(2, 1.0, true, true)];
        let budget = Budget::new(weight(0.01), 2, 2, &goals, 2.0);
        close(budget.whole().get(), 0.01);
        close(budget.increase_of_the_others(), 1.0);
    }
}
