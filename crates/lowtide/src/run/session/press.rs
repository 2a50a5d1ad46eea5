// SPDX-License-Identifier: MIT OR Apache-2.0
//! While it runs: when the transfer may press, by its hours and by the schedule of its group.

use std::time::Duration;

use super::Session;
use crate::{
    operate::{protocol::Status, server::Common},
    run::{
        budget::{Peers, turn},
        flows,
        plan::Plan,
    },
};

/// A calendar reaches some days into the future, and is renewed this often.
const RENEW: Duration = Duration::from_secs(6 * 3600);

impl Session {
    /// After a change of rules, deadline or wall clock.
    pub(in crate::run) fn renew_calendar(&mut self) {
        let Plan { limits, clock, deadline, .. } = &mut self.plan;
        limits.renewed = clock.now();
        let calendar = limits.calendar(clock, *deadline);
        self.controller.governor().set_calendar(calendar);
    }

    /// Long transfers outlive their calendar.
    pub(in crate::run) fn keep_calendar(&mut self) {
        let limits = &self.plan.limits;
        if !limits.rules.is_empty() && self.plan.clock.now().since(limits.renewed) >= RENEW {
            self.renew_calendar();
        }
    }

    /// Takes part in its group's schedule. Without a thread for that it goes on by itself.
    pub(super) fn join(&mut self, own: String) {
        let Some(group) = self.plan.limits.group.clone() else { return };
        match Peers::ask(group, own) {
            Ok(peers) => self.peers = Some(peers),
            Err(error) => self.screen.say(&format!("no thread for --group, which is left out: {error}")),
        }
    }

    /// What it shares with the others of its group.
    pub(super) fn common(&mut self) -> Option<Common> {
        let share = flows::common(&self.plan)?;
        match self.controller.flows() {
            Ok(flows) => Some(Common { share, flows }),
            Err(error) => {
                self.screen.say(&format!(
                    "{error}; transfers of its group that begin later have a state per path of their own"
                ));
                None
            }
        }
    }

    /// What its group's schedule gives to it from now on.
    pub(in crate::run) fn take_turn(&mut self) {
        if self.peers.is_none() {
            return;
        }
        let own = self.status();
        let Some(peers) = &mut self.peers else { return };
        let others = peers.seen();
        let before = |it: &&Status| it.hold.is_none() && it.needed_bps.is_some() && it.deadline < own.deadline;
        peers.weight = others.iter().filter(before).map(|it| it.w).reduce(f64::max).or(peers.weight);
        let turn = turn(&own, &others, &self.plan.clock);
        self.controller.governor().set_turn(turn, peers.weight);
    }

    /// The group's name.
    pub(in crate::run) fn budget(&self) -> Option<String> {
        self.peers.as_ref().map(|peers| peers.group.clone())
    }
}
