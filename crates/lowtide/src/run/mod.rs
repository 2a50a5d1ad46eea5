// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run`: PROGRAM in a group of its own, governed until everything it sent has arrived.

mod clock;
mod control;
mod goals;
mod journal;
pub(crate) mod memory;
mod report;
mod screen;
mod signals;
mod words;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Goal, Governor, Policy, Time};
use lowtide_kernel::{
    Cgroup, Controller, Dscp, Exit, Law, Need, Program, Registration, Setup, Status, Transfer, User, diagnose,
    inherited_tcp_sockets,
};

use crate::{
    cli::{DscpArgument, RunArguments},
    size,
    when::{self, When},
};
use clock::Clock;
use journal::Journal;
use memory::Memory;
use report::{Report, ReportFile};
use screen::Screen;
use signals::{Event, Signals};

/// Between two looks at the sockets.
const TICK: Duration = Duration::from_millis(250);
/// After PROGRAM's end, its last data may take so long to make any progress before they count as lost.
const DRAIN_PATIENCE: Duration = Duration::from_secs(20);

/// What the command line asks for, checked.
struct Plan {
    size: Option<u64>,
    due: Option<When>,
    /// When that is by the wall clock as it is set now.
    deadline: Option<Timestamp>,
    clock: Clock,
    policy: Policy,
    setup: Setup,
    user: Option<User>,
    memory: Option<Memory>,
    program: Vec<String>,
}

impl Plan {
    /// Without a size no deadline can press.
    fn goal(&self) -> Goal {
        Goal { size: self.size, deadline: self.size.and(self.due).map(|when| self.clock.due(when)) }
    }
}

/// Runs PROGRAM; gives its exit status.
///
/// # Errors
/// One sentence on what kept PROGRAM from starting.
pub fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let plan = plan(arguments)?;
    let report = arguments.report.as_deref().map(ReportFile::create).transpose()?;
    // blocked before anything else starts, so that nothing is missed
    let signals = Signals::block()?;
    let inherited = inherited_tcp_sockets();

    let (cgroup, mut transfer) = match govern(&plan) {
        Ok(governed) => governed,
        Err(error) if arguments.best_effort => {
            eprintln!("lowtide: not governed, as --best-effort allows: {error:#}");
            if report.is_some() {
                eprintln!("lowtide: without governing there is nothing to report: no --report is written");
            }
            return ungoverned(arguments, &plan, &signals);
        }
        Err(error) => return Err(error),
    };
    recall(&plan, &mut transfer);
    let governor = Governor::new(plan.policy, plan.goal(), plan.clock.now()).map_err(|error| anyhow!("{error}"))?;
    let program = Program::start(&arguments.program, Some(&cgroup), plan.user.as_ref(), signals.inherited())?;
    let controller = Controller::new(transfer, governor, plan.policy, &plan.setup);
    let mut session = Session {
        screen: Screen::new(arguments.quiet, &plan),
        journal: Journal::new(plan.size),
        plan,
        controller,
        cgroup,
        inherited,
        blind: false,
    };
    let exit = session.follow(program, &signals)?;
    let reported = session.finish(exit, report);
    drop(session); // group and programs go before we do, which may be by a signal
    signals.end_like(exit, reported)
}

fn plan(arguments: &RunArguments) -> Result<Plan> {
    let clock = Clock::start();
    let due = arguments.deadline.as_deref().map(|text| when::parse(text, &Zoned::now())).transpose()?;
    let size = match (&arguments.size, arguments.size_of.as_slice()) {
        (Some(text), _) => Some(size::parse(text)?),
        (None, []) => None,
        (None, paths) => size::announced(paths, arguments.one_file_system)?,
    };
    if due.is_some() && size.is_none() && arguments.size_of.is_empty() {
        bail!("--deadline needs --size or --size-of: how hard to press follows from how much is left");
    }
    let law = Law::parse(&arguments.cc)?;
    let actuator = control::actuator(arguments, &law)?;
    let policy = control::policy(arguments, &law, actuator)?;
    if arguments.w_max > 1.0 {
        eprintln!(
            "lowtide: --w-max {}: pressed by its deadline this transfer takes more than one ordinary flow, at the expense of everybody on its path",
            arguments.w_max
        );
    }
    let memory = Some(&arguments.path_memory)
        .filter(|file| law.goes_by_base_rtt() && file.as_os_str() != "none")
        .map(|file| Memory::new(file));
    let dscp = match arguments.dscp {
        DscpArgument::Le => Dscp::Le,
        DscpArgument::Cs1 => Dscp::Cs1,
        DscpArgument::None => Dscp::None,
    };
    Ok(Plan {
        size,
        due,
        deadline: due.map(|when| clock.wall(clock.due(when))),
        clock,
        policy,
        setup: Setup { law, actuator, dscp, keep_law: !arguments.allow_own_cc, registration: Registration::Link },
        user: User::choose(arguments.user.as_deref())?,
        memory,
        program: arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
    })
}

/// Group and programs in place, or doctor's sentence.
fn govern(plan: &Plan) -> Result<(Cgroup, Transfer)> {
    let first = Controller::first_steering(plan.policy.bounds.min().get(), &plan.setup.law, plan.setup.actuator);
    let start = || -> lowtide_kernel::Result<_> {
        let cgroup = Cgroup::create()?;
        let transfer = Transfer::start(&plan.setup, &first, &cgroup)?;
        Ok((cgroup, transfer))
    };
    start().map_err(|error| {
        let needs: &[Need] = if plan.setup.law.is_ours() { &[Need::Run, Need::OwnLaws] } else { &[Need::Run] };
        match diagnose().verdict(needs) {
            Some(sentence) => anyhow!("cannot govern a program here: {sentence} (lowtide doctor tells more)"),
            None => anyhow!(error),
        }
    })
}

/// Tells the transfer what earlier ones have measured of paths. Without that it begins as if there had been none.
fn recall(plan: &Plan, transfer: &mut Transfer) {
    let Some(memory) = &plan.memory else { return };
    let told = memory
        .recall(plan.clock.wall(plan.clock.now()))
        .and_then(|known| known.into_iter().try_for_each(|(path, base)| Ok(transfer.recall(path, base)?)));
    if let Err(error) = told {
        eprintln!("lowtide: {error:#}");
    }
}

fn ungoverned(arguments: &RunArguments, plan: &Plan, signals: &Signals) -> Result<ExitCode> {
    let mut program = Program::start(&arguments.program, None, plan.user.as_ref(), signals.inherited())?;
    loop {
        if let Some(exit) = program.poll()? {
            return signals.end_like(exit, Ok(()));
        }
        if let Event::Forward(signal) = signals.wait(TICK)? {
            program.signal(signal);
        }
    }
}

/// How it all ended.
struct Ending {
    exit: Exit,
    /// When the last byte was acknowledged; the end itself if there was none.
    finished: Time,
    /// TCP sockets that PROGRAM inherited, opened outside its group.
    inherited: usize,
}

impl Ending {
    /// When what was announced had arrived. A program that ended well with less is done too; one that failed says nothing.
    fn done(&self, journal: &Journal) -> Option<Time> {
        journal.completed.or_else(|| (self.exit == Exit::Code(0)).then_some(self.finished))
    }
}

struct Session {
    plan: Plan,
    controller: Controller,
    cgroup: Cgroup,
    screen: Screen,
    journal: Journal,
    inherited: usize,
    /// The last look at the sockets failed.
    blind: bool,
}

impl Session {
    /// Until PROGRAM has ended, its group is empty and its last data have arrived.
    fn follow(&mut self, mut program: Program, signals: &Signals) -> Result<Exit> {
        let mut ended: Option<Exit> = None;
        let mut progress = (0, Instant::now());
        loop {
            let unfinished = self.tick_or_say();
            let acknowledged = self.journal.totals().acknowledged;
            if acknowledged > progress.0 || ended.is_none() {
                progress = (acknowledged, Instant::now());
            }
            if ended.is_none() {
                ended = program.poll()?;
                let left = self.cgroup.processes().len();
                if ended.is_some() && left > 0 {
                    let what = if left == 1 {
                        "a process that it left behind goes"
                    } else {
                        "processes that it left behind go"
                    };
                    self.screen.say(&format!("PROGRAM has ended, {what} on in its group; waiting until that is empty"));
                }
            }
            if let Some(exit) = ended {
                let draining = unfinished && progress.1.elapsed() < DRAIN_PATIENCE;
                if !self.cgroup.is_populated() && !draining {
                    self.tick_or_say();
                    return Ok(exit);
                }
            }
            match (signals.wait(TICK)?, ended) {
                (Event::Forward(signal), None) => program.signal(signal),
                // PROGRAM is gone: whoever interrupts means us
                (Event::Forward(_) | Event::Interrupt, Some(exit)) => return Ok(exit),
                (Event::Interrupt | Event::Child | Event::Tick, _) => {}
            }
        }
    }

    /// A look at the sockets; whether any has something left to send. One that fails is told once: PROGRAM goes on, and without a heartbeat its
    /// connections become plain TCP until a look succeeds again.
    fn tick_or_say(&mut self) -> bool {
        match self.tick() {
            Ok(status) => status.snapshot.unfinished,
            Err(error) => {
                if !std::mem::replace(&mut self.blind, true) {
                    self.screen.say(&format!("not governing at the moment: {error:#}"));
                }
                false
            }
        }
    }

    fn tick(&mut self) -> Result<Status> {
        self.follow_the_wall_clock();
        let status = self.controller.tick(self.plan.clock.now())?;
        self.blind = false;
        let news = self.journal.record(&status);
        self.screen.show(&self.journal, news, &self.plan.clock);
        Ok(status)
    }

    /// A wall clock that is set moves a deadline that was given by it. One that was given from the start is shown as
    /// another time.
    fn follow_the_wall_clock(&mut self) {
        let Some(due) = self.plan.due else { return };
        if !self.plan.clock.wall_clock_was_set() {
            return;
        }
        let now = self.plan.clock.now();
        match due {
            When::Absolute(_) => {
                let moved = self.controller.governor().set_goal(self.plan.goal(), now);
                moved.expect("the goal was taken before, and one that has passed is overdue");
            }
            When::Relative(_) => {
                let deadline = self.plan.clock.wall(self.plan.clock.due(due));
                self.plan.deadline = Some(deadline);
                self.screen.deadline_shows(deadline);
            }
        }
    }

    /// Summary and report. A report that fails is one sentence, not a lost transfer.
    fn finish(&mut self, exit: Exit, report: Option<ReportFile>) -> Result<()> {
        let finished = self.journal.last_progress.unwrap_or_else(|| self.plan.clock.now());
        let ending = Ending { exit, finished, inherited: self.inherited };
        self.screen.summary(&screen::summarize(&self.journal, &self.plan, &ending));
        if let Some(memory) = &self.plan.memory {
            let seen: Vec<_> = self.controller.seen_paths().collect();
            if let Err(error) = memory.keep(&seen, self.plan.clock.wall(self.plan.clock.now())) {
                self.screen.say(&format!("{error:#}"));
            }
        }
        let Some(file) = report else { return Ok(()) };
        file.write(&Report::new(&self.journal, &self.plan, &ending))
    }
}
