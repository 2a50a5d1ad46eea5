// SPDX-License-Identifier: MIT OR Apache-2.0
//! What comes in over the control socket while a transfer runs, and what it answers.

use anyhow::{Result, anyhow, bail};
use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Bounds, Hold, Rates, Time};

use lowtide_kernel::Direction;

use super::Session;
use crate::{
    hours::{self, Rules},
    operate::protocol::{Changes, Command, Due, Status},
    run::{control, limits::check_that_it_sends, own_progress::Told, phrases},
    size,
    when::{self, When},
};

impl Session {
    /// Does what clients have asked for since the last look.
    pub(super) fn obey(&mut self) {
        while let Some(order) = self.server.as_ref().and_then(|server| server.order()) {
            let done = match order.request.command {
                Command::Status | Command::Share => Ok(()),
                Command::Set => self.change(order.request.changes.as_ref().unwrap_or(&Changes::default())),
                Command::Pause => self.pause(true),
                Command::Resume => self.pause(false),
                Command::Detach => self.detach(),
            };
            if done.is_ok() {
                self.tick_or_say(); // the status has the change from now on
            }
            order.answer(done);
        }
    }

    /// A goal for a transfer that had none is about the way that it goes.
    fn settle(&mut self) {
        let way = self.record.way();
        self.plan.about = way;
        self.record.is_about(way);
        self.controller.is_about(way);
    }

    fn pause(&mut self, paused: bool) -> Result<()> {
        if self.controller.is_paused() != paused {
            self.controller.pause(paused);
            self.screen.say(if paused { phrases::PAUSED } else { "resumed" });
        }
        Ok(())
    }

    /// All of it, or nothing.
    fn change(&mut self, changes: &Changes) -> Result<()> {
        let now = self.plan.clock.now();
        let acknowledged = self.record.moved();
        let size = match (changes.size_bytes, changes.remaining_bytes) {
            (Some(size), _) if size <= acknowledged => {
                bail!("{} have arrived already; give a greater size, or --remaining", size::show(acknowledged))
            }
            (Some(size), _) => Some(size),
            (None, Some(remaining)) => Some(acknowledged.saturating_add(remaining)),
            (None, None) => None,
        };
        let due = match changes.deadline {
            None => self.plan.due,
            Some(Due::None) => None,
            Some(Due::InS(seconds)) => Some(When::Relative(now.plus_secs_f64(seconds).since(Time::ZERO))),
            Some(Due::At(instant)) if self.plan.clock.time_of(instant) <= now => {
                bail!("the deadline {} lies in the past", when::show(instant, &Zoned::now()))
            }
            Some(Due::At(instant)) => Some(When::Absolute(instant)),
        };
        if due.is_some() && size.or(self.plan.size).is_none() {
            bail!(
                "a deadline needs a size: how hard to press follows from how much is left; give --size or --remaining, too"
            );
        }
        let capped = changes.caps.as_ref().is_some_and(|caps| !caps.is_empty());
        for (what, given) in [("--max-rate", changes.max_rate_bps.is_some_and(|rate| rate > 0)), ("--cap", capped)] {
            if given {
                check_that_it_sends(what, self.plan.setup.direction)?;
            }
        }
        let goal = size.is_some() || changes.deadline.is_some();
        let rules = self.rules(changes)?;
        let bounds = changes.w_max.map(|w_max| self.bounds(w_max)).transpose()?;
        let rates = self.rates(changes)?;
        if goal || rates.least.is_some() {
            self.settle();
        }

        if let Some(bounds) = bounds {
            self.plan.policy.bounds = bounds;
            self.controller.governor().set_bounds(bounds);
        }
        if rates != self.controller.governor().rates() {
            self.controller.governor().set_rates(rates);
        }
        if let Some(size) = size {
            (self.plan.size, self.plan.guessed, self.plan.told) = (Some(size), false, None);
            self.record.expect(size);
            self.screen.expect(size);
        }
        if goal {
            self.plan.due = due;
            self.plan.deadline = due.map(|when| self.plan.clock.wall(self.plan.clock.due(when)));
        }
        if rules != self.plan.limits.rules || changes.deadline.is_some() {
            self.plan.limits.rules = rules;
            self.renew_calendar();
        }
        if goal {
            self.screen.deadline_shows(self.plan.deadline);
            self.set_goal();
        }
        let told = self.told_of(changes);
        self.record.change(now, told.clone());
        self.screen.say(&format!("changed while it runs: {told}"));
        Ok(())
    }

    fn bounds(&self, w_max: f64) -> Result<Bounds> {
        let bounds = Bounds::new(self.plan.policy.bounds.min().get(), w_max);
        let bounds = bounds.map_err(|error| anyhow!("--w-max: {error}"))?;
        control::check_w_max(w_max, &self.plan.setup.law, self.plan.setup.actuator)?;
        Ok(bounds)
    }

    /// What is not given stays.
    fn rules(&self, changes: &Changes) -> Result<Rules> {
        let Rules { windows, caps } = &self.plan.limits.rules;
        let (windows, caps) = (hours::texts(windows), hours::texts(caps));
        Rules::parse(changes.windows.as_ref().unwrap_or(&windows), changes.caps.as_ref().unwrap_or(&caps))
    }

    fn rates(&mut self, changes: &Changes) -> Result<Rates> {
        let Rates { least, most } = self.controller.governor().rates();
        let new = |now: Option<f64>, bps: Option<u64>| match bps {
            None => now,
            Some(0) => None,
            Some(bps) => Some(bps as f64 / 8.0),
        };
        let rates = Rates { least: new(least, changes.min_rate_bps), most: new(most, changes.max_rate_bps) };
        if let Rates { least: Some(least), most: Some(most) } = rates
            && least > most
        {
            let (least, most) = (size::show_rate(least), size::show_rate(most));
            bail!("the least rate, {least}, is above the limit, {most}");
        }
        Ok(rates)
    }

    /// In words, as the report has it.
    fn told_of(&self, changes: &Changes) -> String {
        let rate = |name: &str, bps: Option<u64>| {
            bps.map(|bps| match bps {
                0 => format!("no {name} rate"),
                bps => format!("{name} rate {}", size::show_rate(bps as f64 / 8.0)),
            })
        };
        let deadline = changes.deadline.map(|_| match self.plan.deadline {
            None => "no deadline".to_owned(),
            Some(deadline) => format!("deadline {}", when::show(deadline, &Zoned::now())),
        });
        let size = changes.size_bytes.or(changes.remaining_bytes).and(self.plan.size);
        [
            deadline,
            size.map(|size| format!("size {}", size::show(size))),
            rate("greatest", changes.max_rate_bps),
            rate("least", changes.min_rate_bps),
            changes.w_max.map(|w_max| format!("greatest weight {w_max}")),
            changes.windows.as_ref().map(|all| told_of_rules("window", "windows", all)),
            changes.caps.as_ref().map(|all| told_of_rules("cap", "caps", all)),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
    }

    /// Clients get this from now on.
    pub(super) fn publish(&mut self) {
        if self.server.is_some() {
            let status = self.status();
            self.server.iter().for_each(|server| server.publish(status.clone()));
        }
    }

    /// How it is; before the first look at the sockets as if nothing had been sent.
    pub(super) fn status(&mut self) -> Status {
        let present = self.plan.clock.now();
        let governor = self.controller.governor();
        let (rates, in_force, w) = (governor.rates(), governor.rates_at(present), governor.weight().get());
        let (hold, aim) = (governor.hold(present), governor.aim());
        let (opens, closes) = (governor.calendar().opens(present), governor.calendar().closes(present));
        let (plan, record) = (&self.plan, &self.record);
        let (snapshot, decision) = match &record.latest {
            Some(status) => (status.snapshot, Some(status.decision)),
            None => Default::default(),
        };
        let totals = snapshot.totals;
        let way = record.way();
        let (srtt, busy) = match way {
            Direction::Down => (snapshot.download.srtt, snapshot.download.receiving),
            Direction::Up | Direction::Both => (snapshot.srtt, snapshot.sending),
        };
        let outlook = decision.map(|decision| decision.outlook);
        let paused = self.controller.is_paused();
        let now = Zoned::now();
        let sentence = outlook.map(|outlook| match paused {
            true => phrases::PAUSED.to_owned(),
            false => phrases::phrase(&outlook, hold, way, plan.deadline, &plan.clock, &now),
        });
        let wall = |time: Time| -> Timestamp { plan.clock.wall(time) };
        let group = self.cgroup.path();
        Status {
            name: self.server.as_ref().map_or_else(|| plan.name.clone(), |server| server.name().to_owned()),
            kind: plan.kind.name().to_owned(),
            direction: plan.setup.direction.name().to_owned(),
            pid: std::process::id(),
            program: plan.program.first().cloned().unwrap_or_default(),
            group: group.display().to_string(),
            group_id: self.cgroup.id(),
            law: plan.setup.law.name().to_owned(),
            started: wall(Time::ZERO),
            now: wall(plan.clock.now()),
            deadline: plan.deadline,
            size_bytes: plan.size,
            acknowledged_bytes: self.record.moved(),
            retransmitted_bytes: totals.retransmitted,
            rate_bps: 8.0 * record.rate(),
            needed_bps: decision.and_then(|decision| decision.target_rate).map(|rate| 8.0 * rate),
            w,
            w_min: plan.policy.bounds.min().get(),
            w_max: plan.policy.bounds.max().get(),
            max_rate_bps: rates.most.map(|rate| 8.0 * rate),
            min_rate_bps: rates.least.map(|rate| 8.0 * rate),
            paused,
            srtt_s: srtt.map(|srtt| srtt.as_secs_f64()),
            queueing_delay_s: snapshot.queue(way).map(|delay| delay.as_secs_f64()),
            yields: way == Direction::Down && snapshot.download.yields,
            connections: snapshot.sockets,
            sending: busy,
            losses: totals.losses,
            phantom_signals: totals.phantoms,
            delay_backoffs: totals.delay_backoffs,
            udp_sent_bytes: totals.udp_sent,
            progress: plan.told.map(Told::shown),
            budget: self.budget(),
            windows: hours::texts(&plan.limits.rules.windows),
            caps: hours::texts(&plan.limits.rules.caps),
            limit_bps: in_force.most.map(|rate| 8.0 * rate),
            hold: phrases::held(hold).map(str::to_owned),
            opens: opens.filter(|_| matches!(hold, Hold::Closed { .. })).map(wall),
            closes: closes.map(wall),
            aim: aim.map(wall),
            outlook: outlook.map_or("too_early", |outlook| phrases::kind(&outlook)).to_owned(),
            expected: outlook.and_then(|outlook| outlook.expected()).filter(|_| !paused).map(wall),
            sentence: sentence.unwrap_or_default(),
        }
    }
}

fn told_of_rules(one: &str, many: &str, all: &[String]) -> String {
    match all {
        [] => format!("no {many}"),
        [only] => format!("{one} {only}"),
        all => format!("{many} {}", all.join(" and ")),
    }
}
