// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenario on this machine's kernel, through the emulator: the transfer governed as by `lowtide run`, but with the scenario's own policy.

use super::{
    Failure, Measured, Point,
    link::{configuration, prepare, tcp},
    punctual::{Watch, be_punctual},
    traffic::{Traffic, sink},
};
use lowtide_deadline::{Basis, Goal, Governor, Policy, Time};
use lowtide_emu::Emulator;
use lowtide_kernel::{Actuator, Cgroup, Controller, Dscp, Law, Program, Setup, Transfer};
use lowtide_sim::scenario::{Flow, Scenario, Source};
use nix::sys::signal::{SigSet, Signal};
use std::{
    ffi::OsString,
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Between two looks at the progress, as in the simulator.
const TICK: Duration = Duration::from_millis(100);
/// Plays it in real time until the transfer is done and all others have begun. `run` is part of the seed.
pub(crate) fn measure(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let play = || {
        be_punctual();
        play(scenario, run)
    };
    thread::scope(|scope| scope.spawn(play).join()).map_err(|_| "a run panicked")?
}

fn play(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let (transfer, others) = scenario.flows.split_first().ok_or("there is no transfer")?;
    let last = others.iter().map(|flow| flow.start).max().unwrap_or_default() + TICK;
    let emulator = Emulator::start(configuration(scenario, run)?)?;
    for namespace in [emulator.a(), emulator.b()] {
        prepare(namespace, scenario)?;
    }
    let begin = Instant::now();
    let flows = others.iter().zip(1..);
    let mut flows: Vec<Traffic> =
        flows.map(|(flow, index)| Traffic::start(&emulator, index, flow, begin)).collect::<Result<_, _>>()?;
    let competes: Vec<bool> = others.iter().map(|flow| tcp(flow).is_some()).collect();
    let mut governed = Governed::prepare(transfer)?;
    thread::sleep(transfer.start.saturating_sub(begin.elapsed()));
    let watch = Watch::start();
    let mut program = start(&emulator, transfer, &governed.group)?;
    while begin.elapsed() < scenario.duration && (governed.done.is_none() || begin.elapsed() < last) {
        thread::sleep(TICK);
        let received = flows.iter().zip(&competes).filter(|(_, competes)| **competes).map(|(flow, _)| flow.received());
        governed.tick(begin.elapsed(), received.sum())?;
    }
    let (stalled_ms, load) = (watch.stop().as_secs_f64() * 1e3, load()?);
    while program.poll()?.is_none() {
        program.signal(Signal::SIGTERM);
        thread::sleep(TICK);
    }
    flows.iter_mut().try_for_each(Traffic::finish)?;
    emulator.stop()?;
    let (all, model) = governed.time;
    Ok(Measured { course: governed.course, done: governed.done, model: model / all.max(1e-3), stalled_ms, load })
}

/// Has a program in this group send the flow's bytes.
fn start(emulator: &Emulator, flow: &Flow, group: &Cgroup) -> Result<Program, Failure> {
    let Source::Sized(size) = flow.source else { return Err("a transfer has a size".into()) };
    let address = emulator.far4(0).expect("there is one for each flow");
    let (to, _) = sink(emulator, address, &Arc::default())?;
    let words =
        [env!("CARGO_BIN_EXE_lowtide"), "traffic", "send", "--to", &to.to_string(), "--size", &size.to_string()];
    let command = words.map(OsString::from);
    Ok(emulator.a().run(|| Program::start(&command, Some(group), None, SigSet::empty()))??)
}

/// The transfer.
struct Governed {
    controller: Controller,
    group: Cgroup,
    size: u64,
    start: Duration,
    course: Vec<Point>,
    done: Option<f64>,
    /// Seconds under control, and of those under a model.
    time: (f64, f64),
}

impl Governed {
    fn prepare(flow: &Flow) -> Result<Self, Failure> {
        let (Some(tcp), Some(deadline), Source::Sized(size)) = (tcp(flow), &flow.deadline, &flow.source) else {
            return Err("a transfer has a law, a size and a deadline".into());
        };
        let steered_by = flow.steered_by().ok_or("a transfer is steered")?;
        let law = Law::parse(tcp.law.name())?;
        let policy = Policy {
            alpha: law.exponent(None, None),
            response_round_trips: law.response_round_trips(),
            ..deadline.policy(&tcp.law, &steered_by)
        };
        let actuator = match steered_by.name() {
            "native" => Actuator::Native,
            "phantom" => Actuator::Phantom,
            _ => Actuator::Beta,
        };
        let setup = Setup { law, actuator, dscp: Dscp::None, keep_law: true };
        let group = Cgroup::create()?;
        let first = Controller::first_steering(policy.bounds.min().get(), actuator);
        let transfer = Transfer::start(&setup, &first, &group)?;
        let goal = Goal { size: Some(*size), deadline: Some(Time::ZERO + deadline.after) };
        let controller = Controller::new(transfer, Governor::new(policy, goal, Time::ZERO)?, policy, &setup);
        let (size, start) = (*size, flow.start);
        Ok(Self { controller, group, size, start, course: Vec::new(), done: None, time: (0.0, 0.0) })
    }

    /// A look at the progress, `at` so long after the scenario's begin, when the others had received so much.
    fn tick(&mut self, at: Duration, others: u64) -> Result<(), Failure> {
        if self.done.is_some() {
            return Ok(());
        }
        let status = self.controller.tick(Time::ZERO + at.saturating_sub(self.start))?;
        let totals = status.snapshot.totals;
        let (t, bytes, signals) = (at.as_secs_f64(), totals.acknowledged, (totals.losses, totals.phantoms));
        let seconds = self.course.last().map_or(0.0, |last| t - last.t);
        self.time.0 += seconds;
        self.time.1 += if status.decision.basis == Basis::Model { seconds } else { 0.0 };
        self.course.push(Point { t, bytes, weight: status.decision.weight.get(), others, signals });
        self.done = (bytes >= self.size).then_some(t);
        Ok(())
    }
}

/// Tasks that want the processor, over the last minute.
fn load() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}
