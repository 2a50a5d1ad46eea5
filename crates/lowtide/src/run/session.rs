// SPDX-License-Identifier: MIT OR Apache-2.0
//! A governed run from PROGRAM's start to the verdict.

mod attached;
mod orders;
mod press;
mod told;

use std::time::{Duration, Instant};

use anyhow::Result;
use lowtide_deadline::Time;
use lowtide_kernel::{Cgroup, Controller, Direction, Exit, Program, Status};

use super::{
    budget::Peers,
    history,
    own_progress::Told,
    past::Past,
    plan::Plan,
    report::Report,
    report_file::ReportFile,
    run_record::RunRecord,
    screen::{self, Screen},
    signals::{Event, Signals, TICK},
    verdict::{Ending, Outcome, Seen, Verdict},
};
use crate::{
    operate::{directory::Claim, server::Server},
    when::When,
};

/// After PROGRAM's end, its last data may take so long to make any progress before they count as lost.
const DRAIN_PATIENCE: Duration = Duration::from_secs(20);

/// What PROGRAM had sent by its end, on its way.
struct Drain {
    exit: Exit,
    /// All of it has arrived when so many bytes are acknowledged. What processes left behind send from then on is
    /// theirs.
    until: u64,
    progress: (u64, Instant),
}

impl Drain {
    fn is_over(&mut self, acknowledged: u64, unfinished: u64) -> bool {
        if acknowledged > self.progress.0 {
            self.progress = (acknowledged, Instant::now());
        }
        unfinished == 0 || acknowledged >= self.until || self.progress.1.elapsed() >= DRAIN_PATIENCE
    }
}

pub(super) struct Session {
    plan: Plan,
    controller: Controller,
    cgroup: Cgroup,
    screen: Screen,
    record: RunRecord,
    inherited: usize,
    /// The last look at the sockets failed.
    blind: bool,
    /// What was said last of the group.
    told: Group,
    /// PROGRAM was not in it at the last look.
    outside: bool,
    /// Answers on the control socket.
    server: Option<Server>,
    /// `lowtide detach` was asked for, and has been done.
    detached: bool,
    /// Network namespaces of the group that are left out have been reported.
    left_out: bool,
    /// The others of its group.
    peers: Option<Peers>,
}

/// What others may do to PROGRAM's group while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Nothing.
    Untouched,
    Frozen,
    /// PROGRAM was moved to another one.
    Left,
}

impl Session {
    pub(super) fn new(screen: Screen, plan: Plan, controller: Controller, cgroup: Cgroup, inherited: usize) -> Session {
        // a guess is no size at which a transfer is complete
        let record = RunRecord::new(plan.setup.direction, plan.about, plan.size.filter(|_| !plan.guessed));
        Session {
            plan,
            controller,
            cgroup,
            screen,
            record,
            inherited,
            blind: false,
            told: Group::Untouched,
            outside: false,
            server: None,
            detached: false,
            left_out: false,
            peers: None,
        }
    }

    /// Answers on the control socket from now on.
    pub(super) fn answer(&mut self, claim: Claim) {
        self.tick_or_say(); // there is a status to tell then
        let common = self.common();
        match Server::start(claim, self.status(), common) {
            Ok(server) => {
                let own = server.name().to_owned();
                self.server = Some(server);
                self.join(own);
                self.publish(); // with its group, which the next one looks for
            }
            Err(error) => self.screen.say(&format!("{error:#}; lowtide status does not see this transfer")),
        }
    }

    /// Until PROGRAM has ended and what it sent has arrived; with `--wait-group` until its group is empty, too.
    pub(super) fn follow(&mut self, program: &mut Program, signals: &Signals) -> Result<Exit> {
        let mut drain: Option<Drain> = None;
        loop {
            self.obey();
            let mut unfinished = self.tick_or_say();
            if drain.is_none()
                && let Some(exit) = program.poll()?
            {
                unfinished = self.tick_or_say();
                let acknowledged = self.record.totals().acknowledged;
                let until = if self.plan.wait_group { u64::MAX } else { acknowledged + unfinished };
                drain = Some(Drain { exit, until, progress: (acknowledged, Instant::now()) });
                self.tell_of_those_left_behind();
            }
            if drain.is_none() {
                self.tell_of_its_group(program.pid());
            }
            if let Some(drain) = &mut drain
                && drain.is_over(self.record.totals().acknowledged, unfinished)
                && !(self.plan.wait_group && self.cgroup.is_populated())
            {
                self.tick_or_say();
                return Ok(drain.exit);
            }
            match (self.screen.job.wait(signals, program, drain.is_none(), TICK)?, &drain) {
                (Event::Forward(signal), None) => program.signal(signal),
                // PROGRAM is gone: an interrupt is for us
                (Event::Forward(_) | Event::Interrupt(_), Some(drain)) => return Ok(drain.exit),
                (Event::Interrupt(_) | Event::Child | Event::Tick, _) => {}
            }
        }
    }

    fn tell_of_its_group(&mut self, program: i32) {
        let was_outside = std::mem::replace(&mut self.outside, !self.cgroup.holds(program));
        let group = match (self.outside, was_outside) {
            (true, true) => Group::Left,
            // it may just have ended
            (true, false) => return,
            (false, _) if self.cgroup.is_frozen() => Group::Frozen,
            (false, _) => Group::Untouched,
        };
        if std::mem::replace(&mut self.told, group) == group {
            return;
        }
        self.screen.say(match group {
            Group::Left => "PROGRAM was moved out of its group: connections that it opens from now on are not governed",
            Group::Frozen => "PROGRAM's group is frozen: it sends nothing until the group is thawed",
            Group::Untouched => "PROGRAM runs in its group again",
        });
    }

    fn tell_of_those_left_behind(&mut self) {
        let number = self.cgroup.processes().len();
        let then = match (number, self.plan.wait_group) {
            (0, _) => return,
            (_, true) => "waiting until its group is empty",
            (1, false) => "it goes on as an ordinary program; --wait-group waits for it",
            (_, false) => "they go on as ordinary programs; --wait-group waits for them",
        };
        let left = if number == 1 { "a process".to_owned() } else { format!("{number} processes") };
        self.screen.say(&format!("PROGRAM has ended and left {left} behind: {then}"));
    }

    /// A look at the sockets; how many bytes are not acknowledged yet. A failure is reported once: PROGRAM goes on,
    /// and without a heartbeat its connections become plain TCP until a look succeeds again.
    fn tick_or_say(&mut self) -> u64 {
        match self.tick() {
            Ok(status) => status.snapshot.unfinished_bytes,
            Err(error) => {
                if !std::mem::replace(&mut self.blind, true) {
                    self.screen.say(&format!("not governing at the moment: {error:#}"));
                }
                0
            }
        }
    }

    fn tick(&mut self) -> Result<Status> {
        self.follow_the_wall_clock();
        self.keep_calendar();
        self.take_turn();
        let status = self.controller.tick(self.plan.clock.now())?;
        self.blind = false;
        let news = self.record.observe(&status);
        self.screen.show(&self.record, news, &self.plan.clock, self.controller.is_paused());
        self.listen(&status);
        self.publish();
        let down = self.plan.about == Direction::Down;
        let unfinished = if down { 0 } else { status.snapshot.unfinished_bytes };
        if let Some(guess) = self.plan.size.filter(|_| self.plan.guessed && !Told::counts(self.plan.told))
            && let Some(more) = history::again(guess, self.record.moved(), unfinished)
        {
            self.plan.size = Some(more);
            self.screen.expect(more);
            self.set_goal();
        }
        Ok(status)
    }

    /// A wall clock that is set moves a deadline that was given by it. One that was given from the start is shown as
    /// another time.
    fn follow_the_wall_clock(&mut self) {
        if (self.plan.due.is_none() && self.plan.limits.rules.is_empty()) || !self.plan.clock.wall_clock_was_set() {
            return;
        }
        self.renew_calendar();
        let Some(due) = self.plan.due else { return };
        match due {
            When::Absolute(_) => self.set_goal(),
            When::Relative(_) => {
                let deadline = self.plan.clock.wall(self.plan.clock.due(due));
                self.plan.deadline = Some(deadline);
                self.screen.deadline_shows(Some(deadline));
            }
        }
    }

    fn set_goal(&mut self) {
        let (goal, now) = (self.plan.goal(), self.plan.clock.now());
        let moved = self.controller.governor().set_goal(goal, now);
        moved.expect("a goal of this kind was taken before, and one that has passed is overdue");
    }

    /// Summary and report. A report that fails is one sentence, not a lost transfer.
    pub(super) fn finish(
        &mut self,
        exit: Exit,
        program: Option<&Program>,
        report: Option<ReportFile>,
    ) -> (Option<Outcome>, Result<()>) {
        if let Some(program) = program {
            let heard = self.screen.job.finish(program);
            self.listen_to_the_end(heard);
        }
        let finished = self.record.last_progress.unwrap_or_else(|| self.plan.clock.now());
        let verdict = self.verdict(exit, finished);
        let ending = Ending { exit, finished, inherited: self.inherited, verdict };
        self.screen.summary(&screen::summarize(&self.record, &self.plan, &ending, self.screen.is_verbose()));
        self.remember(&ending);
        let write = |file: ReportFile| {
            let report = Report::new(&self.record, &self.plan, &ending);
            file.write(&serde_json::to_vec_pretty(&report)?)
        };
        (verdict.outcome, report.map_or(Ok(()), write))
    }

    fn verdict(&self, exit: Exit, finished: Time) -> Verdict {
        let (totals, clock) = (self.record.totals(), &self.plan.clock);
        let sent = totals.acknowledged - totals.own_law_acknowledged.min(totals.acknowledged);
        let sent_ungoverned = totals.own_law_acknowledged + totals.udp_sent;
        let received = totals.received - totals.unmeasured.min(totals.received);
        let received_elsewhere = totals.unmeasured + totals.udp_received;
        let received_ungoverned = if self.record.is_download() { totals.received } else { 0 };
        let (governed, ungoverned) = match self.plan.about {
            Direction::Down => (received, received_elsewhere),
            Direction::Up => (sent, sent_ungoverned + received_ungoverned),
            Direction::Both => (sent + received, sent_ungoverned + received_elsewhere),
        };
        Verdict::new(Seen {
            size: self.plan.size,
            guessed: self.plan.guessed,
            governed,
            ungoverned,
            succeeded: exit == Exit::Code(0),
            completed: self.record.completed.map(|time| clock.wall(time)),
            finished: clock.wall(finished),
            deadline: self.plan.deadline,
        })
    }

    /// What the next run of the job may want to know.
    fn remember(&mut self, ending: &Ending) {
        let now = self.plan.clock.wall(self.plan.clock.now());
        let governed = ending.verdict.outcome != Some(Outcome::NotGoverned);
        if let Some(history) = self.plan.history.as_ref().filter(|_| governed && ending.exit == Exit::Code(0))
            && let Err(error) = history.keep(self.kept(), now)
        {
            self.screen.say(&format!("{error:#}"));
        }
        let past = self.past(ending);
        if let Some(Err(error)) = self.plan.past.as_ref().map(|runs| runs.keep(past)) {
            self.screen.say(&format!("{error:#}"));
        }
    }

    /// What `--size last` is to know, which is about what is sent where both ways are governed.
    fn kept(&self) -> u64 {
        match self.plan.about {
            Direction::Both => self.record.totals().acknowledged,
            _ => self.record.moved(),
        }
    }

    /// It is over: how it is on record.
    fn past(&self, ending: &Ending) -> Past {
        let (plan, clock) = (&self.plan, &self.plan.clock);
        let past = Past {
            name: self.server.as_ref().map_or(plan.name.as_str(), |server| server.name()).to_owned(),
            kind: plan.kind.name().to_owned(),
            program: plan.program.first().cloned().unwrap_or_default(),
            started: clock.wall(Time::ZERO),
            ended: clock.wall(ending.finished),
            deadline: plan.deadline,
            size_bytes: plan.size,
            acknowledged_bytes: self.record.moved(),
            outcome: ending.verdict.outcome.map(|outcome| outcome.name().to_owned()),
            exit_code: None,
            exit_signal: None,
        };
        past.exited(ending.exit)
    }
}
