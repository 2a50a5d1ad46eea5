// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the acts run: the emulated link, a receiver for each flow, and the senders.

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::PathBuf,
    process::{self, Command},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use jiff::{SignedDuration, Timestamp};
use lowtide_emu::{Config, Emulator};
use lowtide_net::Rate;
use nix::sys::signal::Signal;

use super::{child::Child, sink::Sink};
use crate::demo::{
    acts::{Act, Bulk, LINK_MBPS, RTT_MS, SAMPLE},
    live::Live,
    recording::{Flow, Recording, Sample},
};
use crate::interruption::Interruption;

/// Between two looks at everything.
const TICK: Duration = Duration::from_millis(100);
/// After an act, for the queue to empty.
const PAUSE: Duration = Duration::from_secs(1);

/// How an act went.
#[derive(Debug)]
pub(super) enum Ended {
    /// To its end.
    Through(Recording),
    /// Until this signal came.
    Interrupted(Signal),
}

/// The link and its receivers. Senders exist only within an act.
pub(super) struct Stage<'a> {
    emulator: Emulator,
    /// When the emulator's first second began.
    origin: Instant,
    foreground: Sink,
    bulk: Sink,
    program: PathBuf,
    interrupt: &'a Interruption,
}

impl<'a> Stage<'a> {
    /// Makes the namespaces and the link, and has the receivers listen.
    pub(super) fn set(interrupt: &'a Interruption) -> Result<Stage<'a>> {
        let name = |end| format!("lowtide-demo-{}-{end}", process::id());
        let rate = Rate::from_bits_per_second(LINK_MBPS * 1_000_000).expect("not zero");
        let config =
            Config { realtime: true, ..Config::new(name("a"), name("b"), rate, Duration::from_millis(RTT_MS)) };
        let emulator = Emulator::start(config)?;
        let origin = Instant::now();
        let any_port = SocketAddr::from((emulator.b4(), 0));
        Ok(Stage {
            foreground: Sink::listen(emulator.b(), any_port)?,
            bulk: Sink::listen(emulator.b(), any_port)?,
            emulator,
            origin,
            program: env::current_exe().context("cannot find Lowtide's own program file")?,
            interrupt,
        })
    }

    /// Plays one act and shows it.
    pub(super) fn perform(&mut self, act: &Act, law: &str, live: &mut Live) -> Result<Ended> {
        // Acts begin with a second of the emulator, so that its counts per second are the act's.
        let first = self.origin.elapsed().as_secs() + 1;
        let start = self.origin + Duration::from_secs(first);
        if let Some(signal) = self.wait_until(start)? {
            return Ok(Ended::Interrupted(signal));
        }
        self.foreground.reset();
        self.bulk.reset();
        let mut recording = Recording::new(act);
        live.begin(act)?;
        let mut cast = Cast {
            foreground: self.start("the foreground", self.sender(&self.foreground, "cubic"))?,
            bulk: self.bulk(act, law)?,
        };
        let mut look = start;
        loop {
            look += TICK;
            if let Some(signal) = self.wait_until(look)? {
                return Ok(Ended::Interrupted(signal));
            }
            cast.check(act, &self.bulk)?;
            self.emulator.check()?;
            let ends = self.record(&mut recording, start);
            recording.queue = self.queue(first, recording.length());
            live.update(&recording)?;
            if ends {
                break;
            }
        }
        self.foreground.disconnect();
        self.bulk.disconnect();
        drop(cast);
        if let Some(signal) = self.wait_until(Instant::now() + PAUSE)? {
            return Ok(Ended::Interrupted(signal));
        }
        recording.queue = self.queue(first, recording.length());
        if recording.mean(Flow::Foreground) == 0.0 {
            bail!("nothing of the foreground arrived in act {}; is this machine overloaded?", act.number);
        }
        live.finish(&recording)?;
        Ok(Ended::Through(recording))
    }

    /// Takes the link and the namespaces down.
    pub(super) fn strike(self) -> Result<()> {
        self.emulator.stop().map(drop).map_err(|error| anyhow!(error))
    }

    /// Adds a sample if it is time for one; whether the act is over.
    fn record(&self, recording: &mut Recording, start: Instant) -> bool {
        let act = &recording.act;
        let sample = Sample {
            t: start.elapsed().as_secs_f64(),
            foreground: self.foreground.received(),
            bulk: self.bulk.received(),
        };
        if act.bulk == Bulk::NearDeadline && sample.bulk >= act.due_bytes() {
            let since_start = |ended: Instant| ended.duration_since(start).as_secs_f64();
            recording.finished = self.bulk.ended().map(since_start);
        }
        let late = act.bulk == Bulk::NearDeadline && recording.finished.is_none();
        let end = if late { act.latest_end() } else { act.seconds as f64 };
        let over = sample.t >= end;
        if over || sample.t >= recording.length() + SAMPLE - TICK.as_secs_f64() / 2.0 {
            recording.samples.push(sample);
        }
        over
    }

    /// Mean queueing delay of each whole second of an act that began with this one, in ms.
    fn queue(&self, first: u64, length: f64) -> Vec<f64> {
        let seconds = self.emulator.seconds_from(first).into_iter();
        seconds
            .take(length.round() as usize)
            .map(|second| second.forward.queueing_delay_mean().as_secs_f64() * 1e3)
            .collect()
    }

    /// Waits; gives the signal that came before.
    fn wait_until(&self, then: Instant) -> Result<Option<Signal>> {
        loop {
            let left = then.saturating_duration_since(Instant::now());
            // rounded up to what poll() can tell apart
            let signal = self.interrupt.wait(left + Duration::from_micros(999))?;
            if signal.is_some() || Instant::now() >= then {
                return Ok(signal);
            }
        }
    }

    fn bulk(&self, act: &Act, law: &str) -> Result<Option<Child>> {
        let command = match act.bulk {
            Bulk::Absent => return Ok(None),
            Bulk::Ordinary => self.sender(&self.bulk, "cubic"),
            Bulk::FarDeadline => {
                let mut run = self.run(law, "+8h", act.far_bytes());
                run.args(self.send(&self.bulk));
                run
            }
            Bulk::NearDeadline => {
                let due = Timestamp::now() + SignedDuration::from_secs(act.seconds as i64);
                let mut run = self.run(law, &due.to_string(), act.due_bytes());
                run.args(self.send(&self.bulk));
                run.args(["--size", &act.due_bytes().to_string()]);
                run
            }
        };
        self.start("the bulk transfer", command).map(Some)
    }

    /// Lowtide's own sender, as an ordinary program with this law.
    fn sender(&self, sink: &Sink, law: &str) -> Command {
        let words = self.send(sink);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--cc", law]);
        command
    }

    fn send(&self, sink: &Sink) -> Vec<OsString> {
        let to = sink.address().to_string();
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend(["traffic", "send", "--to", &to].map(Into::into));
        words
    }

    /// `lowtide run`, up to the program.
    fn run(&self, law: &str, deadline: &str, size: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "--quiet", "--cc", law, "--deadline", deadline]);
        command.args(["--size", &size.to_string(), "--"]);
        // The user who called sudo may not be able to read our program file.
        command.env_remove("SUDO_UID");
        command
    }

    /// Starts a command on the side of the senders.
    fn start(&self, what: &'static str, mut command: Command) -> Result<Child> {
        self.emulator.a().enter_command(&mut command);
        Child::start(what, &mut command, self.interrupt.inherited())
    }
}

/// The senders of an act.
struct Cast {
    foreground: Child,
    bulk: Option<Child>,
}

impl Cast {
    /// That no process has ended early.
    fn check(&mut self, act: &Act, sink: &Sink) -> Result<()> {
        if self.foreground.has_ended()? {
            bail!("the foreground ended in the middle of act {}", act.number);
        }
        if let Some(bulk) = &mut self.bulk
            && bulk.has_ended()?
            && (act.bulk != Bulk::NearDeadline || sink.received() < act.due_bytes())
        {
            bail!("the bulk transfer ended in the middle of act {}", act.number);
        }
        Ok(())
    }
}
