// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide attach`: as `run`, for a group that is there already. Its processes stay where they are.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lowtide_kernel::{Caller, Cgroup, Controller, Direction, Exit, Selection, Target, Transfer};

use super::{
    claim,
    clock::Clock,
    control, explain, first_steering, flows, governor,
    job::Job,
    limits::limits,
    past::PastRuns,
    plan::{Kind, Plan},
    report_file::ReportFile,
    screen::Screen,
    session::Session,
    signals::Signals,
    whose,
};
use crate::{
    cli::{AttachArguments, RUN_FAILED},
    operate::{
        client::everybody,
        directory::{Directory, slug},
    },
};

/// Governs until the group is empty, or the transfer is ended.
#[must_use]
pub fn attach(arguments: &AttachArguments) -> ExitCode {
    try_to_attach(arguments).unwrap_or_else(|error| {
        eprintln!("lowtide: {error:#}");
        ExitCode::from(RUN_FAILED)
    })
}

fn try_to_attach(arguments: &AttachArguments) -> Result<ExitCode> {
    let caller = Caller::find()?;
    let target = target(arguments)?;
    let found = target.find().with_context(|| option(&target))?;
    let selection = Selection {
        port: arguments.port.unwrap_or(0),
        peer: arguments.to.as_deref().map(Selection::network).transpose().context("--to")?,
    };
    let mut plan = plan(arguments, &caller, &found.name)?;
    let report = arguments.report.as_deref().map(|path| ReportFile::create(path, caller)).transpose()?;
    let signals = Signals::block(false)?;
    let cgroup = Cgroup::existing(found).with_context(|| option(&target))?;
    refuse_what_others_govern(&cgroup)?;
    if !cgroup.is_populated() {
        bail!("{}: no process is in it", cgroup.path().display());
    }
    let entry = flows::enter(&mut plan);
    let transfer = Transfer::attach(&plan.setup, &first_steering(&plan), &cgroup, &selection);
    let transfer = transfer.map_err(|error| explain(&plan, error))?;
    let governor = governor(&plan)?;
    let controller = Controller::new(transfer, governor, plan.policy, &plan.setup);
    let screen = Screen::new(&arguments.tell, &plan, Job::new(None, false, !arguments.tell.quiet, None)?);
    let claim = claim(&plan.name);
    let mut session = Session::new(screen, plan, controller, cgroup, 0);
    if let Err(error) = session.take_open_connections() {
        let _ = session.give_back(); // the first reason is the one to tell
        return Err(error);
    }
    if let Some(claim) = claim {
        session.answer(claim);
    }
    drop(entry);
    session.follow_group(&signals)?;
    let (_, reported) = session.finish(Exit::Code(0), None, report);
    reported.map(|()| ExitCode::SUCCESS)
}

fn target(arguments: &AttachArguments) -> Result<Target> {
    let AttachArguments { unit, cgroup, pid, container, .. } = arguments;
    Ok(match (unit, cgroup, pid, container) {
        (Some(unit), ..) => Target::Unit(unit.clone()),
        (_, Some(path), ..) => Target::Path(path.clone()),
        (_, _, Some(pid), _) => Target::Process(*pid),
        (_, _, _, Some(container)) => Target::Container(container.clone()),
        _ => bail!("give one of --unit, --cgroup, --pid and --container"),
    })
}

/// The option that names it.
fn option(target: &Target) -> String {
    match target {
        Target::Unit(unit) => format!("--unit {unit}"),
        Target::Path(path) => format!("--cgroup {}", path.display()),
        Target::Process(pid) => format!("--pid {pid}"),
        Target::Container(container) => format!("--container {container}"),
    }
}

/// `what`: the name of what is governed.
fn plan(arguments: &AttachArguments, caller: &Caller, what: &str) -> Result<Plan> {
    let clock = Clock::start();
    let setup = control::setup(&arguments.law, control::law(&arguments.law)?, Direction::Up)?;
    if setup.law.needs_ecn() {
        bail!(
            "--cc {} needs ECN from a connection's begin; take tide, cubic or another law that does not",
            setup.law.name()
        );
    }
    let policy = control::policy(&arguments.law, &setup, Direction::Up)?;
    let limits = limits(&arguments.limits, Direction::Up)?;
    let kept = Some(&arguments.history).filter(|file| file.as_os_str() != "none");
    Ok(Plan {
        size: arguments.size,
        guessed: false,
        told: None,
        due: arguments.deadline,
        deadline: arguments.deadline.map(|when| clock.wall(clock.due(when))),
        clock,
        policy,
        about: setup.direction,
        setup,
        limits,
        user: None,
        history: None,
        past: kept.map(|file| PastRuns::beside(file, whose(file, caller))),
        wait_group: false,
        kind: Kind::Attach,
        name: slug(arguments.name.as_deref().unwrap_or(what)),
        program: vec![what.to_owned()],
    })
}

/// Two of them would take the same connections from each other.
fn refuse_what_others_govern(cgroup: &Cgroup) -> Result<()> {
    let kin = cgroup.kin();
    let (others, _silent) = everybody(&Directory::usual()?)?;
    if let Some(other) = others.iter().find(|other| kin.contains(&other.group_id)) {
        bail!(
            "{} (process {}, {} of {}) governs this group, or one above or below it; lowtide set changes what it does",
            other.name,
            other.pid,
            other.kind,
            other.program
        );
    }
    Ok(())
}
