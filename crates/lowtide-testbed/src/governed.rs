// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows under Lowtide's programs in the kernel: our own law as published, or a transfer that its deadline steers as in
//! `lowtide run`.

use crate::{
    board::{Board, Control, Ends, Work},
    clock::{Clock, FAREWELL},
    hosts::tcp,
    laws::Host,
    priority::{raise_priority, raise_priority_of},
    sink::{address, listen, sink},
    socket::State,
};
use anyhow::{Context, Result, anyhow, bail};
use lowtide_deadline::{Basis, Goal, Governor, Policy, Time};
use lowtide_emu::Namespace;
use lowtide_kernel::{
    Cgroup, Controller, Direction, Dscp, Place, Pressure, Program, Registration, Setup, Snapshot, Status, Steering,
    Transfer,
};
use lowtide_net::Class;
use lowtide_sim::scenario::{Flow, Source};
use nix::{
    sched::{CloneFlags, setns},
    sys::signal::{SigSet, Signal},
    unistd::Pid,
};
use std::{
    ffi::OsString,
    fs::File,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Between two looks at the progress, as in the simulator.
const TICK: Duration = Duration::from_millis(100);

/// For so long after its last heartbeat a law whose parameters stay the same goes on.
pub(crate) const ALIVE: Duration = Duration::from_secs(3600);

/// Who looks after the sockets. BPF objects stay on the thread that loaded them.
enum Care {
    /// None is needed.
    Published(Box<Transfer>),
    /// A governor.
    Steered(Box<Controller>),
}

impl Care {
    fn receivers_law(&self) -> Option<String> {
        match self {
            Self::Published(transfer) => transfer.receivers_law(),
            Self::Steered(controller) => controller.receivers_law(),
        }
    }
}

/// What the thread of a flow needs to know.
struct Task {
    host: Host,
    flow: Flow,
    /// The sender's host.
    namespace: File,
    /// The program that sends, with its arguments.
    command: Vec<OsString>,
}

/// Sender and receiver. It returns when the programs are in the kernel.
pub(crate) fn start(
    ends: &Ends<'_>,
    flow: &Flow,
    host: &Host,
    priority: Option<u32>,
    program: &Path,
    clock: Clock,
    board: &Board,
) -> Result<Vec<Work>> {
    let listener = listen(ends)?;
    let to = address(&listener)?;
    let mut command: Vec<OsString> =
        [program.into(), "traffic".into(), "send".into(), "--to".into(), to.to_string().into()].into();
    command.extend(["--from".into(), ends.from.to_string().into(), "--abort".into()]);
    // not even where we are killed does it stay behind
    command.extend(["--parent".into(), std::process::id().to_string().into()]);
    if let Source::Sized(size) = flow.source {
        command.extend(["--size".into(), size.to_string().into()]);
    }
    if let Some(priority) = priority {
        command.extend(["--priority".into(), priority.to_string().into()]);
    }
    let task = Task { host: host.clone(), flow: flow.clone(), namespace: open(ends.sender)?, command };
    let (ready, wait) = mpsc::channel();
    let (receiver_clock, receiver_board) = (clock.clone(), board.clone());
    let board = board.clone();
    let source = thread::spawn(move || {
        raise_priority();
        let prepared = task.prepare();
        let _nobody_waits =
            ready.send(prepared.as_ref().map(|(_, care)| care.receivers_law()).map_err(|error| anyhow!("{error:#}")));
        task.run(prepared?, &clock, &board).with_context(|| format!("the sender of {}", task.flow.name))
    });
    match wait.recv() {
        Ok(Ok(law)) => Ok(vec![sink(listener, law.as_deref(), receiver_clock, &receiver_board)?, source]),
        Ok(Err(error)) => Err(error),
        Err(_) => bail!("its thread panicked"),
    }
}

fn open(namespace: &Namespace) -> Result<File> {
    let path = namespace.path();
    File::open(&path).with_context(|| format!("opening {}", path.display()))
}

impl Task {
    /// Loads the programs.
    fn prepare(&self) -> Result<(Cgroup, Care)> {
        let group = Cgroup::create()?;
        let registration = Registration::of_this_kernel();
        let dscp = if self.flow.class == Class::Background { Dscp::Le } else { Dscp::None };
        let care = match &self.host {
            Host::Own(law) => {
                let setup = Setup { dscp, registration, ..Setup::new(Direction::Up, law.clone()) };
                Care::Published(Box::new(Transfer::start(&setup, &as_published(&Snapshot::default()), &group)?))
            }
            Host::Governed(law, actuator) => {
                let actuator = *actuator;
                let setup = Setup { actuator, dscp, registration, ..Setup::new(Direction::Up, law.clone()) };
                Care::Steered(Box::new(self.controller(&setup, &group)?))
            }
            Host::Nobody | Host::Kernel(..) => bail!("nothing of ours governs it"),
        };
        Ok((group, care))
    }

    fn controller(&self, setup: &Setup, group: &Cgroup) -> Result<Controller> {
        let flow = &self.flow;
        let (Some(tcp), Some(deadline), Source::Sized(size)) = (tcp(flow), &flow.deadline, &flow.source) else {
            bail!("a deadline needs TCP and a size");
        };
        let steered_by = flow.steered_by().ok_or_else(|| anyhow!("its law takes no weight"))?;
        let policy = Policy {
            alpha: setup.law.exponent(None, None),
            response_round_trips: setup.law.response_round_trips(),
            ..deadline.policy(&tcp.law, &steered_by)
        };
        let first = Controller::first_steering(policy.bounds.min().get(), &setup.law, setup.actuator);
        let transfer = Transfer::start(setup, &first, group)?;
        let goal = Goal { size: Some(*size), deadline: Some(Time::ZERO + deadline.after) };
        Ok(Controller::new(transfer, Governor::new(policy, goal, Time::ZERO)?, policy, setup))
    }

    /// Has the program send, and looks after it until the flow ends.
    fn run(&self, (group, mut care): (Cgroup, Care), clock: &Clock, board: &Board) -> Result<()> {
        if !clock.sleep_until(self.flow.start) {
            return Ok(());
        }
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).context("entering the sender's host")?;
        let mut program = Program::start(&self.command, Some(&group), None, Place::Ours, SigSet::empty(), None)?;
        raise_priority_of(Pid::from_raw(program.pid()));
        let outcome = self.look_after(&mut care, &mut program, clock, board);
        board.shown().state = None;
        let ended = end(&mut program);
        outcome.and(ended)
    }

    fn look_after(&self, care: &mut Care, program: &mut Program, clock: &Clock, board: &Board) -> Result<()> {
        let size = match self.flow.source {
            Source::Sized(size) => Some(size),
            _ => None,
        };
        let mut at = self.flow.start;
        while clock.goes_on(self.flow.stop) {
            at += TICK;
            clock.sleep_until(self.flow.stop.map_or(at, |stop| stop.min(at)));
            let now = clock.now();
            // before the counters are read: where the program has ended by now, they are final
            let ended = program.poll()?;
            let (snapshot, control) = match care {
                Care::Published(transfer) => {
                    let snapshot = transfer.observe()?;
                    transfer.steer(&as_published(&snapshot));
                    (snapshot, None)
                }
                Care::Steered(controller) => {
                    let status = controller.tick(Time::ZERO + now.saturating_sub(self.flow.start))?;
                    let control = control(&status);
                    (status.snapshot, Some(control))
                }
            };
            let done = size.is_some_and(|size| snapshot.totals.acknowledged >= size);
            show(board, &snapshot, control, done.then_some(now));
            if done {
                return Ok(());
            }
            // at the end the receiver may have gone before it
            match ended {
                Some(exit) if !clock.is_over() => bail!("the program that sends has ended: {exit:?}"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The steering under which our law is the one of its G, whatever happens.
fn as_published(snapshot: &Snapshot) -> Steering {
    Steering {
        pressure: Pressure::default(),
        download_weight: 1.0,
        download_held: false,
        weight: 1.0,
        sockets: snapshot.sending,
        window: snapshot.window,
        stale: ALIVE,
        limit: None,
    }
}

fn control(status: &Status) -> Control {
    let decision = &status.decision;
    Control {
        weight: decision.weight.get(),
        target_bps: decision.target_rate.map(|rate| 8.0 * rate),
        achieved_bps: 8.0 * decision.achieved_rate,
        price_ratio: decision.price_ratio,
        by_model: decision.basis == Basis::Model,
    }
}

fn show(board: &Board, snapshot: &Snapshot, control: Option<Control>, done: Option<Duration>) {
    let totals = &snapshot.totals;
    let segment = u64::from(snapshot.segment_bytes.unwrap_or(1448));
    let mut shown = board.shown();
    shown.state = (snapshot.sockets > 0).then(|| State {
        cwnd: snapshot.window,
        ssthresh: None,
        rtt_ms: snapshot.srtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        in_flight: None,
        retransmits: totals.retransmitted / segment,
    });
    shown.reductions = Some(totals.losses + totals.phantoms + totals.delay_backoffs);
    shown.inner = vec![("backoffs", totals.delay_backoffs as f64), ("phantoms", totals.phantoms as f64)];
    shown.inner.extend(control.map(|it| ("by_model", f64::from(u8::from(it.by_model)))));
    shown.control = control.filter(|_| done.is_none());
    shown.finished = shown.finished.or(done);
}

/// Ends the program. How it ends does not matter any more: its receiver may have gone before.
fn end(program: &mut Program) -> Result<()> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        program.signal(signal);
        let since = Instant::now();
        while since.elapsed() < FAREWELL {
            if program.poll()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    bail!("the program that sends does not end")
}
