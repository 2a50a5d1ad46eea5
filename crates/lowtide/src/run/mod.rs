// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run`: PROGRAM in a group of its own, governed until everything it sent has arrived.

mod attach;
mod budget;
mod canvas;
mod clock;
mod control;
mod flows;
mod goals;
pub(crate) mod history;
mod job;
mod limits;
mod own_progress;
pub(crate) mod past;
mod phrases;
mod place;
mod plan;
mod relay;
mod report;
mod report_file;
pub(crate) mod restrictions;
mod run_record;
mod screen;
mod session;
mod signals;
mod state_file;
mod verdict;

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow, bail};
use lowtide_deadline::{Goal, Governor};
use lowtide_kernel::{
    Caller, Cgroup, Controller, Error, Need, Program, Steering, Transfer, User, diagnose, inherited_tcp_sockets,
};

use crate::{
    cli::{CANNOT_EXECUTE, HISTORY, NOT_FOUND, NOT_GOVERNED, RUN_FAILED, RunArguments, SizeArgument},
    operate::directory::{Claim, Directory, slug},
    tree,
};
use clock::Clock;
use history::History;
use job::Job;
use limits::limits;
use own_progress::Told;
use past::PastRuns;
use plan::{Kind, Plan};
use report_file::ReportFile;
use screen::Screen;
use session::Session;
use signals::{Event, Signals, TICK};
use state_file::Damaged;
use verdict::Outcome;

pub use attach::attach;
pub(crate) use past::history as past_runs;
pub(crate) use screen::{HELD_BACK, manner, rates};

/// Runs PROGRAM and ends as it does; where that is not possible, with one sentence and a status of its own.
#[must_use]
pub fn run(arguments: &RunArguments) -> ExitCode {
    try_to_run(arguments).unwrap_or_else(|error| {
        eprintln!("lowtide: {error:#}");
        ExitCode::from(match error.downcast_ref() {
            Some(Error::NoProgram { .. }) => NOT_FOUND,
            Some(Error::Program { .. }) => CANNOT_EXECUTE,
            _ => RUN_FAILED,
        })
    })
}

fn try_to_run(arguments: &RunArguments) -> Result<ExitCode> {
    let caller = Caller::find()?;
    let named = arguments.user.as_deref().map(User::named).transpose().context("--user")?;
    restrictions::check(&caller, named.as_ref())?;
    let user = caller.program_user(named).context("--user")?;
    let mut plan = plan(arguments, &caller, user)?;
    let report = arguments.report.as_deref().map(|path| ReportFile::create(path, caller)).transpose()?;
    // blocked before anything else starts, so that nothing is missed
    let (line, talks) = (screen::has_line(&arguments.tell), !arguments.tell.quiet);
    let mut job = Job::new(plan.user.as_ref(), line, talks, plan.told.map(|told| told.source))?;
    let signals = Signals::block(job.has_terminal())?;
    let inherited = inherited_tcp_sockets();

    let entry = flows::enter(&mut plan);
    let (cgroup, transfer) = match govern(&plan) {
        Ok(governed) => governed,
        Err(error) if arguments.best_effort => {
            drop(entry);
            eprintln!("lowtide: not governed, as --best-effort allows: {error:#}");
            if report.is_some() {
                eprintln!("lowtide: without governing there is nothing to report: no --report is written");
            }
            return ungoverned(arguments, &plan, &signals, job);
        }
        Err(error) => return Err(error),
    };
    let governor = governor(&plan)?;
    let mut program = start(arguments, Some(&cgroup), &plan, &mut job, &signals)?;
    job.begin();
    let mut controller = Controller::new(transfer, governor, plan.policy, &plan.setup);
    controller.is_about(plan.about);
    let screen = Screen::new(&arguments.tell, &plan, job);
    let claim = claim(&plan.name);
    let mut session = Session::new(screen, plan, controller, cgroup, inherited);
    if let Some(claim) = claim {
        session.answer(claim);
    }
    drop(entry);
    let exit = session.follow(&mut program, &signals)?;
    let (outcome, reported) = session.finish(exit, Some(&program), report);
    drop(session); // group and programs go before we do, which may be by a signal
    let instead_of_success = match (reported, outcome) {
        (Err(error), _) => {
            eprintln!("lowtide: {error:#}");
            Some(RUN_FAILED)
        }
        (Ok(()), Some(Outcome::NotGoverned)) if arguments.require_governed => Some(NOT_GOVERNED),
        _ => None,
    };
    Ok(signals.end_like(exit, instead_of_success))
}

fn start(
    arguments: &RunArguments,
    cgroup: Option<&Cgroup>,
    plan: &Plan,
    job: &mut Job,
    signals: &Signals,
) -> Result<Program> {
    let output = job.output();
    let (command, user) = (&arguments.program, plan.user.as_ref());
    Ok(Program::start(command, cgroup, user, job.place(), signals.inherited(), output)?)
}

fn plan(arguments: &RunArguments, caller: &Caller, user: Option<User>) -> Result<Plan> {
    let clock = Clock::start();
    let due = arguments.deadline;
    let (history, past) = history(arguments, caller).unzip();
    let (size, guessed) = announced(arguments, history.as_ref(), caller)?;
    let told = arguments.progress_from.map(|program| Told::new(program.into()));
    if due.is_some() && size.is_none() && !guessed && arguments.size_of.is_empty() && told.is_none() {
        bail!(
            "--deadline needs --size, --size-of, --download-size or --progress-from: how hard to press follows from how much is left"
        );
    }
    let law = control::law(&arguments.law)?;
    let direction = control::direction(arguments, &law)?;
    let setup = control::setup(&arguments.law, law, direction)?;
    let about = control::about(arguments, direction);
    control::check_that_it_can_press(arguments, &setup.law, about)?;
    let policy = control::policy(&arguments.law, &setup, about)?;
    let limits = limits(&arguments.limits, direction)?;
    let program = arguments.program.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let name = arguments.name.clone().unwrap_or_else(|| program.to_string_lossy().into_owned());
    let shown = if arguments.report_arguments { usize::MAX } else { 1 };
    Ok(Plan {
        size,
        guessed,
        told,
        due,
        deadline: due.map(|when| clock.wall(clock.due(when))),
        clock,
        policy,
        about,
        setup,
        limits,
        user,
        history,
        past,
        wait_group: arguments.wait_group,
        kind: Kind::Run,
        name: slug(&name),
        program: arguments.program.iter().take(shown).map(|argument| argument.to_string_lossy().into_owned()).collect(),
    })
}

/// A place among the control sockets. Without one the transfer goes on as well, unseen.
fn claim(name: &str) -> Option<Claim> {
    let claim = Directory::usual().and_then(|directory| directory.claim(name));
    claim.map_err(|error| eprintln!("lowtide: {error:#}; lowtide status does not see this transfer")).ok()
}

fn history(arguments: &RunArguments, caller: &Caller) -> Option<(History, PastRuns)> {
    let file = Some(&arguments.history).filter(|file| file.as_os_str() != "none")?;
    let whose = whose(file, caller);
    let history = History::new(file, whose.clone(), arguments.name.as_deref(), &arguments.program);
    Some((history, PastRuns::beside(file, whose)))
}

/// A file that the caller names is opened with the caller's rights; the usual one belongs to Lowtide.
fn whose(file: &Path, caller: &Caller) -> Caller {
    if file.as_os_str() == HISTORY { Caller::of_this_process() } else { caller.clone() }
}

/// How much there is to send, and whether that is a guess.
fn announced(arguments: &RunArguments, history: Option<&History>, caller: &Caller) -> Result<(Option<u64>, bool)> {
    // what the caller may not read it does not tell either
    let of_paths = || match arguments.size_of.as_slice() {
        [] => Ok(None),
        paths => caller.act(|| tree::announced(paths, arguments.one_file_system))?,
    };
    if arguments.download_size.is_some() {
        return Ok((arguments.download_size, false));
    }
    match arguments.size {
        None => Ok((of_paths()?, false)),
        Some(SizeArgument::Last) => {
            let Some(history) = history else { bail!("--size last needs the history; leave out --history none") };
            // a damaged history is no reason to leave a job undone
            let last = history.last().or_else(|error| match error.downcast_ref::<Damaged>() {
                Some(_) => {
                    eprintln!("lowtide: {error:#}");
                    Ok(None)
                }
                None => Err(error),
            })?;
            if let Some(bytes) = last {
                return Ok((Some(bytes), true));
            }
            let size = of_paths()?;
            if size.is_none() {
                eprintln!(
                    "lowtide: --size last: no run of this job is on record, so this one stays in the background whatever its \
                     deadline; --size-of PATH gives a first estimate"
                );
            }
            Ok((size, true))
        }
        Some(_) if !arguments.size_of.is_empty() => bail!("--size and --size-of are both given; give one of them"),
        Some(SizeArgument::Bytes(bytes)) => Ok((Some(bytes), false)),
    }
}

/// The goal may have come and gone while the programs were loaded: it is overdue then.
fn governor(plan: &Plan) -> Result<Governor> {
    let (now, sentence) = (plan.clock.now(), |error| anyhow!("{error}"));
    let mut governor = Governor::new(plan.policy, Goal::default(), now).map_err(sentence)?;
    governor.set_rates(plan.limits.rates());
    governor.set_calendar(plan.limits.calendar(&plan.clock, plan.deadline));
    governor.set_goal(plan.goal(), now).map_err(sentence)?;
    Ok(governor)
}

fn first_steering(plan: &Plan) -> Steering {
    Controller::first_steering(plan.policy.bounds.min().get(), &plan.setup.law, plan.setup.actuator)
}

/// Group and programs in place, or doctor's sentence.
fn govern(plan: &Plan) -> Result<(Cgroup, Transfer)> {
    let start = || -> lowtide_kernel::Result<_> {
        let cgroup = Cgroup::create()?;
        let transfer = Transfer::start(&plan.setup, &first_steering(plan), &cgroup)?;
        Ok((cgroup, transfer))
    };
    start().map_err(|error| explain(plan, error))
}

/// Why nothing can be governed: what is missing here, or the kernel's own words.
fn explain(plan: &Plan, error: Error) -> anyhow::Error {
    if !nix::unistd::geteuid().is_root() {
        let kind = plan.kind.name();
        return anyhow!("needs root: try `sudo lowtide {kind} …` (`lowtide doctor` has the details)");
    }
    let (setup, mut needs) = (&plan.setup, vec![Need::Run]);
    needs.extend((setup.law.is_ours() && setup.direction.has_up()).then_some(Need::OwnLaws));
    needs.extend(setup.direction.has_down().then_some(Need::Downloads));
    match diagnose().verdict(&needs) {
        Some(sentence) => anyhow!("cannot govern a program here: {sentence} (lowtide doctor tells more)"),
        None => anyhow!(error),
    }
}

fn ungoverned(arguments: &RunArguments, plan: &Plan, signals: &Signals, mut job: Job) -> Result<ExitCode> {
    let mut program = start(arguments, None, plan, &mut job, signals)?;
    job.begin();
    loop {
        if let Some(exit) = program.poll()? {
            drop(job.finish(&program));
            return Ok(signals.end_like(exit, None));
        }
        if let Event::Forward(signal) = job.wait(signals, &mut program, true, TICK)? {
            program.signal(signal);
        }
    }
}
