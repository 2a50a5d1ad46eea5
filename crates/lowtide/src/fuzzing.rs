// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every kind of text that Lowtide reads, as a function of any bytes. None may panic, and what is read and printed has
//! to read back as itself. The targets of fuzz/ drive them, and a test drives them with the texts of fuzz/corpus.

use std::{fmt::Display, path::Path, str::FromStr, time::Duration};

use clap::Parser;
use jiff::{Timestamp, Zoned};
use lowtide_kernel::KernelLaw;
use lowtide_lab::{Entry, Recording, experiment};
use lowtide_net::{
    BufferSize, DelaySchedule, Discipline, Jitter, LossModel, Police, Rate, Reordering, Schedule, Time,
    units::parse_duration,
};
use lowtide_sim::scenario::{ScenarioFile, Source};

use crate::{
    cli::Cli,
    hours::{Cap, Hours, Rules},
    operate::{protocol, read_frames},
    progress,
    run::{history, past, restrictions},
    size, trace, when,
};

/// Reads these bytes, and panics where it is wrong.
pub type Target = fn(&[u8]);

/// All of them, by the names of their targets.
pub const TARGETS: &[(&str, Target)] = &[
    ("when", when),
    ("size", size),
    ("law", law),
    ("scenario", scenario),
    ("overrides", overrides),
    ("trace", trace),
    ("schedule", schedule),
    ("mahimahi", mahimahi),
    ("recording", recording),
    ("discipline", discipline),
    ("chance", chance),
    ("experiment", experiment),
    ("traffic", traffic),
    ("control", control),
    ("progress", progress),
    ("state", state),
    ("hours", hours),
    ("options", options),
];

/// What is wrong is one sentence.
fn is_a_sentence(error: impl Display) {
    assert!(!format!("{error:#}").trim().is_empty());
}

/// What is read prints as a text that reads as the same.
fn reads_back<T: FromStr<Err: Display> + Display + PartialEq + std::fmt::Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse::<T>().ok().as_ref(), Some(&value), "{text:?} prints as {printed:?}");
        }
        Err(error) => is_a_sentence(error),
    }
}

/// Does something with the bytes if they are a text.
fn with_text(bytes: &[u8], what: impl FnOnce(&str)) {
    if let Ok(text) = str::from_utf8(bytes) {
        what(text);
    }
}

/// `--deadline`, in an hour that a clock change repeats.
///
/// # Panics
/// It is wrong.
pub fn when(bytes: &[u8]) {
    let now: Zoned = "2026-10-25T02:10:00+02:00[Europe/Berlin]".parse().expect("an hour of autumn");
    with_text(bytes, |text| match when::parse(text, &now) {
        Ok(when::When::Relative(length)) => assert!(!length.is_zero()),
        Ok(when::When::Absolute(instant)) => {
            assert!(instant > now.timestamp());
            when::show(instant, &now);
        }
        Err(error) => is_a_sentence(error),
    });
}

/// `--size`.
///
/// # Panics
/// It is wrong.
pub fn size(bytes: &[u8]) {
    with_text(bytes, |text| match size::parse(text) {
        Ok(bytes) => assert!(bytes > 0 && !size::show(bytes).is_empty()),
        Err(error) => is_a_sentence(error),
    });
}

/// `--cc`, and the laws of scenarios.
///
/// # Panics
/// It is wrong.
pub fn law(bytes: &[u8]) {
    with_text(bytes, |text| {
        reads_back::<lowtide_cc::Law>(text);
        reads_back::<lowtide_cc::Actuator>(text);
        for law in [KernelLaw::parse(text), KernelLaw::parse_published(text)] {
            law.map_or_else(is_a_sentence, |law| assert!(!law.name().is_empty()));
        }
    });
}

/// A scenario in TOML.
///
/// # Panics
/// It is wrong.
pub fn scenario(bytes: &[u8]) {
    let path = Path::new("/nowhere/a.toml");
    with_text(bytes, |text| match ScenarioFile::parse(text, path, &[]) {
        Ok(ScenarioFile::Packets(scenario)) => {
            let printed = scenario.to_toml();
            match ScenarioFile::parse(&printed, path, &[]) {
                Ok(ScenarioFile::Packets(again)) => assert_eq!(again, scenario, "{printed}"),
                other => panic!("{other:?} of {printed}"),
            }
        }
        Ok(ScenarioFile::Fluid(model)) => {
            let printed = model.to_toml();
            assert!(ScenarioFile::parse(&printed, path, &[]).is_ok(), "{printed}");
        }
        Err(error) => is_a_sentence(error),
    });
}

/// `--set`: a line for each.
///
/// # Panics
/// It is wrong.
pub fn overrides(bytes: &[u8]) {
    const BASE: &str = "duration = \"9s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"20ms\"\n\
                        [[flow]]\nname = \"a\"\ncc = \"cubic\"\n[[flow]]\nname = \"b\"\ncc = \"vegas\"\n";
    with_text(bytes, |text| {
        let overrides: Vec<String> = text.lines().map(str::to_owned).collect();
        if let Err(error) = ScenarioFile::parse(BASE, Path::new("/nowhere/a.toml"), &overrides) {
            is_a_sentence(error);
        }
    });
}

/// A trace in JSON lines.
///
/// # Panics
/// It is wrong.
pub fn trace(bytes: &[u8]) {
    with_text(bytes, |text| match trace::picture_of(text, "a.jsonl") {
        Ok(svg) => assert!(svg.ends_with("</svg>\n")),
        Err(error) => is_a_sentence(error),
    });
}

/// `--schedule`, `--rtt-schedule`, rates, sizes of buffers and lengths of time.
///
/// # Panics
/// It is wrong.
pub fn schedule(bytes: &[u8]) {
    with_text(bytes, |text| {
        reads_back::<Schedule>(text);
        reads_back::<DelaySchedule>(text);
        reads_back::<Rate>(text);
        reads_back::<BufferSize>(text);
        if let Err(error) = parse_duration(text) {
            is_a_sentence(error);
        }
    });
}

/// A trace of capacity.
///
/// # Panics
/// It is wrong.
pub fn mahimahi(bytes: &[u8]) {
    with_text(bytes, |text| match Schedule::trace("a.up", text) {
        // it begins again after a year at the latest
        Ok(trace) => assert!(trace.bytes_between(Time::ZERO, Time::from_nanos(366 * 86_400_000_000_000)) >= 1500),
        Err(error) => is_a_sentence(error),
    });
}

/// What a guest or another process has recorded, and what `lowtide lab` keeps of a run.
///
/// # Panics
/// It is wrong.
pub fn recording(bytes: &[u8]) {
    match Recording::from_json(bytes) {
        Ok(recording) => {
            let text = recording.to_json();
            let again = Recording::from_json(text.as_bytes()).map(|recording| recording.to_json());
            assert_eq!(again.ok(), Some(text));
        }
        Err(error) => is_a_sentence(error),
    }
    match serde_json::from_slice::<Entry>(bytes) {
        Ok(entry) => {
            let printed = serde_json::to_vec(&entry).expect("it can be written");
            assert_eq!(serde_json::from_slice::<Entry>(&printed).ok(), Some(entry));
        }
        Err(error) => is_a_sentence(error),
    }
}

/// `--queue`.
///
/// # Panics
/// It is wrong.
pub fn discipline(bytes: &[u8]) {
    with_text(bytes, reads_back::<Discipline>);
}

/// `--loss`, `--jitter`, `--reorder` and `--police`.
///
/// # Panics
/// It is wrong.
pub fn chance(bytes: &[u8]) {
    with_text(bytes, |text| {
        reads_back::<LossModel>(text);
        reads_back::<Jitter>(text);
        reads_back::<Reordering>(text);
        reads_back::<Police>(text);
    });
}

/// An experiment of `lowtide lab`.
///
/// # Panics
/// It is wrong.
pub fn experiment(bytes: &[u8]) {
    with_text(bytes, |text| match experiment::Experiment::parse("000/a.toml", text) {
        Ok(experiment) => {
            // each place has what the experiment has, or less
            let least = |it: &experiment::Experiment| it.axes.iter().map(|axis| axis.values_of(true).len()).min();
            let on_testbeds = experiment.on_testbeds.iter().map(|place| &place.experiment);
            assert!(
                on_testbeds.chain([&experiment]).all(|it| least(it).is_none_or(|values| values > 0) && it.runs > 0)
            );
        }
        Err(error) => is_a_sentence(error),
    });
}

/// Traffic of a scenario as a CSV file.
///
/// # Panics
/// It is wrong.
pub fn traffic(bytes: &[u8]) {
    match Source::from_csv("a.csv", bytes) {
        Ok(source) => {
            let printed = source.to_string();
            assert_eq!(printed.parse::<Source>().ok().as_ref(), Some(&source), "it prints as {printed:?}");
        }
        Err(error) => is_a_sentence(error),
    }
}

/// What comes over a control socket.
///
/// # Panics
/// It is wrong.
pub fn control(bytes: &[u8]) {
    for frame in read_frames(bytes) {
        assert!(frame.len() <= protocol::LONGEST_REQUEST);
        match protocol::Request::parse(&frame) {
            Ok(request) => {
                let printed = serde_json::to_vec(&request).expect("it can be written");
                assert_eq!(protocol::Request::parse(&printed).ok().as_ref(), Some(&request));
            }
            Err(error) => is_a_sentence(error),
        }
        if let Err(error) = protocol::Reply::parse(&frame) {
            is_a_sentence(error);
        }
    }
}

/// What programs say of their progress, in one piece and byte by byte.
///
/// # Panics
/// It is wrong.
pub fn progress(bytes: &[u8]) {
    for source in [progress::Source::Rsync, progress::Source::Restic, progress::Source::Rclone] {
        let (mut whole, mut parts) = (progress::Reader::new(source), progress::Reader::new(source));
        whole.read(bytes);
        bytes.iter().for_each(|byte| parts.read(&[*byte]));
        assert_eq!(whole.latest(), parts.latest());
        assert_eq!(whole.news(), whole.latest());
        assert_eq!(whole.news(), None);
        if let Some(progress) = whole.latest() {
            assert!(progress.remaining() <= progress.total);
        }
    }
}

/// The files that `run` keeps for the next one, and the one that restricts its callers.
///
/// # Panics
/// It is wrong.
pub fn state(bytes: &[u8]) {
    for again in [history::kept_again, past::runs_again] {
        match again(bytes) {
            Ok(text) => assert_eq!(again(&text).ok(), Some(text)),
            Err(error) => is_a_sentence(error),
        }
    }
    with_text(bytes, |text| {
        if let Err(error) = restrictions::accept(text) {
            let said = error.to_string();
            assert!(!said.contains('\n'), "{said:?}");
            is_a_sentence(said);
        }
    });
}

/// `--window` and `--cap`, a line for each, and what they come to around a clock change.
///
/// # Panics
/// It is wrong.
pub fn hours(bytes: &[u8]) {
    let now: Zoned = "2026-10-24T12:00:00+02:00[Europe/Berlin]".parse().expect("the day before the change");
    let time_of = |at: Timestamp| {
        let seconds = at.duration_since(now.timestamp()).as_secs_f64();
        lowtide_deadline::Time::ZERO + Duration::from_secs_f64(seconds.max(0.0))
    };
    with_text(bytes, |text| {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.iter().for_each(|line| reads_back::<Hours>(line));
        lines.iter().for_each(|line| reads_back::<Cap>(line));
        let (caps, windows): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.contains('='));
        match Rules::parse(&windows, &caps) {
            Ok(rules) => {
                let calendar = rules.calendar(now.timestamp(), now.timestamp(), None, now.time_zone(), time_of);
                let week = Duration::from_secs(7 * 86_400);
                let open = calendar.open_time(time_of(now.timestamp()), time_of(now.timestamp()) + week);
                assert!(open <= week && (!windows.is_empty() || open == week), "{open:?}");
            }
            Err(error) => is_a_sentence(error),
        }
    });
}

/// A command line, a word in each line.
///
/// # Panics
/// It is wrong.
pub fn options(bytes: &[u8]) {
    with_text(bytes, |text| {
        if let Err(error) = Cli::try_parse_from(["lowtide"].into_iter().chain(text.lines())) {
            is_a_sentence(error);
        }
    });
}
