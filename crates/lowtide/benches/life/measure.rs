// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of one program.

use super::{
    Failure,
    axes::{Law, Path, Way},
    foreground::Foreground,
    job::Job,
    one_flow::crossed,
    process::{self, Ended},
    programs::Program,
    site::{Site, link},
    verdict::{Condition, Due, End, Run, Said},
};
use serde_json::Value;
use std::{
    fs::{self, File},
    path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// For which the foreground's solo rate is measured.
const SOLO: Duration = Duration::from_secs(10);
/// No run without a deadline is longer alone on its link.
const LONGEST: f64 = 120.0;

/// What a run is given besides its program.
pub(crate) struct Terms {
    pub(crate) condition: Condition,
    /// Bytes per second that the foreground has alone.
    pub(crate) solo: f64,
    /// Seconds without Lowtide on an idle link; none yet when it is these that are measured.
    pub(crate) plain: Option<f64>,
}

impl Terms {
    /// Seconds from the start to a deadline that needs a third of the link, or of the rate at which the program can
    /// send alone.
    pub(crate) fn third(&self, path: &Path, bytes: u64) -> f64 {
        let alone = bytes as f64 / path.bytes_in(1.0) as f64;
        (3.0 * alone.max(self.plain.unwrap_or(0.0))).ceil()
    }

    /// Seconds after which a run is too slow: far beyond what any rule allows, short enough for many of them.
    pub(crate) fn limit(&self, path: &Path, program: &Program, bytes: u64) -> f64 {
        let alone = self.plain.map_or(LONGEST, |plain| (10.0 * plain + 10.0).min(LONGEST));
        match self.condition {
            Condition::Idle => alone,
            Condition::Far => program.beside + alone,
            // never so short that a run is ended near its deadline
            Condition::Third => 1.3 * self.third(path, bytes) + alone.min(20.0),
        }
    }
}

/// Bytes per second of the foreground alone.
pub(crate) fn solo(path: &Path) -> Result<f64, Failure> {
    let link = link(path)?;
    let foreground = Foreground::start(&link)?;
    thread::sleep(SOLO);
    Ok(foreground.rate())
}

/// Runs it, and compares what arrived. The second value is what it said in the end, if it failed.
pub(crate) fn run(
    site: &Site,
    path: &Path,
    program: &Program,
    law: &Law,
    job: &Job,
    terms: &Terms,
) -> Result<(Run, String), Failure> {
    program.prepare(site, job)?;
    site.choose_law(match site.way {
        Way::Up => law.options.is_none().then_some("cubic"),
        Way::Down => law.down,
    })?;
    let bytes = job.bytes;
    let deadline = match terms.condition {
        Condition::Idle => None,
        Condition::Far => Some(8.0 * 3600.0),
        Condition::Third => Some(terms.third(path, bytes)),
    };
    let (report, said) = (site.near(&format!("{}.json", job.name)), site.near(&format!("{}.log", job.name)));
    let mut command = program.transfer(site, job);
    if let Some(options) = law.options {
        command = under_lowtide(&command, site.way, options, deadline.map(|deadline| (bytes, deadline)), &report);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said)?);
    site.programs().enter_command(&mut command);

    let limit = terms.limit(path, program, bytes);
    let before = crossed(&site.link);
    let (ended, rate) = match terms.condition {
        Condition::Idle => (process::run(&mut command, limit, |_| {})?, None),
        // without Lowtide it stands for both conditions, beside a foreground that stays
        Condition::Far => beside(site, &mut command, limit, program.beside)?,
        Condition::Third => beside(site, &mut command, limit, f64::INFINITY)?,
    };
    let carried = (terms.condition == Condition::Idle).then(|| crossed(&site.link) - before);
    let end = match ended.status {
        None => End::TooSlow,
        Some(status) if !status.success() => End::GaveUp,
        Some(_) if program.arrived(site, job)? => End::Done,
        Some(_) => End::WrongData,
    };
    let due = match (law.options, terms.condition, deadline) {
        (Some(_), Condition::Third, Some(given)) => Some(due(&report, given, end, ended.seconds)?),
        _ => None,
    };
    let said = if end == End::Done { String::new() } else { last_line(&fs::read_to_string(&said)?) };
    Ok((Run { end, seconds: ended.seconds, kept: rate.map(|rate| rate / terms.solo), carried, due }, said))
}

/// Beside a foreground that stays so long; its rate while both were there, in bytes per second.
fn beside(site: &Site, command: &mut Command, limit: f64, stays: f64) -> Result<(Ended, Option<f64>), Failure> {
    let mut foreground = Some(Foreground::start(&site.link)?);
    let mut rate = None;
    let ended = process::run(command, limit, |seconds| {
        if seconds >= stays
            && let Some(foreground) = foreground.take()
        {
            rate = Some(foreground.rate());
        }
    })?;
    if let Some(foreground) = foreground {
        rate = Some(foreground.rate());
    }
    Ok((ended, rate))
}

fn under_lowtide(
    program: &Command,
    way: Way,
    options: &[&str],
    due: Option<(u64, f64)>,
    report: &path::Path,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    // as root also under sudo: the files of the site are root's
    command.args(["run", "--user", "root"]).args(options);
    if way == Way::Down {
        command.args(["--direction", "down"]);
    }
    if let Some((bytes, seconds)) = due {
        command.args(["--size", &bytes.to_string(), "--deadline", &format!("{seconds}s")]);
    }
    command.arg("--report").arg(report).arg("--").arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("LOWTIDE_HISTORY", "none"); // not this machine's
    if let Some(directory) = program.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// What became of the deadline. A run that was ended is as late as it lasted, one that did not do its work is never
/// done.
fn due(report: &path::Path, given: f64, end: End, lasted: f64) -> Result<Due, Failure> {
    // Lowtide waits for the last data of a program that has ended, and writes after that: not always before it is ended
    // by force
    if end == End::TooSlow && !report.exists() {
        return Ok(Due { given, took: lasted, said: None });
    }
    let text = fs::read_to_string(report).map_err(|error| format!("{}: {error}", report.display()))?;
    let report: Value = serde_json::from_str(&text)?;
    let time = |name: &str| -> Result<jiff::Timestamp, Failure> {
        Ok(report[name].as_str().ok_or(format!("the report has no {name}"))?.parse()?)
    };
    let took = match end {
        End::Done => time("finished")?.duration_since(time("started")?).as_secs_f64(),
        End::TooSlow => lasted,
        End::GaveUp | End::WrongData => f64::INFINITY,
    };
    let said = report["announcements"].as_array().ok_or("the report has no announcements")?;
    let said: Vec<(f64, &str)> =
        said.iter().filter_map(|said| Some((said["t"].as_f64()?, said["outlook"].as_str()?))).collect();
    // each stands until the next one
    let until = |at: usize| said.get(at + 1).map_or(f64::INFINITY, |next| next.0);
    let late = |at: usize, t: f64| t <= given && until(at) > 0.9 * given;
    let on_course_late = said.iter().enumerate().any(|(at, (t, kind))| *kind == "on_course" && late(at, *t));
    Ok(Due { given, took, said: Some(Said { on_course_late, outlooks: said.len() }) })
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.starts_with("lowtide:")).unwrap_or_default().to_owned()
}
