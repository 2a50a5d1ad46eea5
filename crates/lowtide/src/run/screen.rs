// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees: one line that changes in place on a terminal, sparse lines elsewhere, a summary at the end.

use std::{
    io::{stderr, stdout},
    time::Duration,
};

use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Control, Hold, Outlook, Time};
use lowtide_kernel::{Direction, Status, controls_us};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::{
    clock::Clock,
    control,
    goals::Counts,
    job::{Job, is_pipe},
    phrases,
    plan::Plan,
    run_record::RunRecord,
    verdict::{Ending, Outcome},
};
use crate::{
    cli::{ProgressArgument, TellArguments},
    size, spans, terminal,
};

/// Away from a terminal the same kind of news is repeated at most this often.
const SPARSE: Duration = Duration::from_secs(600);
/// On a terminal of so few columns there is no room for a bar.
const NARROW: u16 = 70;

#[derive(Debug)]
enum Form {
    Quiet,
    Live,
    Lines { last: Option<Time> },
    Silent,
}

pub(super) struct Screen {
    pub(super) job: Job,
    form: Form,
    size: Option<u64>,
    deadline: Option<Timestamp>,
    verbose: bool,
    warned_download: bool,
    warned_silent: bool,
}

/// Whether a line changes in place. A job in the background has none, nor has a terminal that cannot move its cursor,
/// nor one on which the reader of our output may write what we do not see.
pub(super) fn has_line(arguments: &TellArguments) -> bool {
    let shown = !arguments.quiet && arguments.progress == ProgressArgument::Auto && !is_pipe(stdout());
    shown && terminal::moves() && controls_us(stderr()) && tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

impl Screen {
    pub(super) fn new(arguments: &TellArguments, plan: &Plan, job: Job) -> Screen {
        let form = match arguments.progress {
            _ if arguments.quiet => Form::Quiet,
            ProgressArgument::Never => Form::Silent,
            _ if has_line(arguments) && job.has_terminal() => Form::Live,
            _ => Form::Lines { last: None },
        };
        let (size, deadline, verbose) = (plan.size, plan.deadline, arguments.verbose);
        Screen { job, form, size, deadline, verbose, warned_download: false, warned_silent: false }
    }

    /// Shows the newest status; `news`: the outlook is of another kind than before.
    pub(super) fn show(&mut self, record: &RunRecord, news: bool, clock: &Clock, paused: bool) {
        let Some(status) = &record.latest else { return };
        let outlook = status.decision.outlook;
        if record.is_download() && !self.warned_download {
            self.warned_download = true;
            self.say(
                "more comes in than goes out: Lowtide governs what is sent, so this download is not governed, and there \
                 is no forecast; --direction both governs it",
            );
        }
        if record.is_silent() && !self.warned_silent {
            self.warned_silent = true;
            self.say("no bytes so far: a program that hands its work to a daemon (docker, say) is not governed");
        }
        let phrase = if self.warned_download {
            "not governed: a download".to_owned()
        } else if paused {
            phrases::PAUSED.to_owned()
        } else {
            phrases::phrase(&outlook, status.decision.hold, record.way(), self.deadline, clock, &Zoned::now())
        };
        let moved = record.moved();
        match &mut self.form {
            Form::Quiet | Form::Silent => {}
            Form::Live => {
                if news && status.decision.hold == Hold::None && alarming(&outlook) && !self.warned_download && !paused
                {
                    self.say(&phrase);
                }
                let wide = self.job.columns().is_none_or(|columns| columns >= NARROW);
                let progress = progress(moved, self.size, wide);
                self.job.set_line(format!("{progress}  {}  {phrase}", figures(status, record, self.verbose)));
            }
            Form::Lines { last } => {
                let due = last.is_none_or(|last| status.now.since(last) >= SPARSE);
                let waiting = matches!(outlook, Outlook::Waiting { .. });
                let held = status.decision.hold != Hold::None;
                let something = held || (outlook != Outlook::TooEarly && (waiting || moved > 0));
                if something && !self.warned_download && (news || due || last.is_none()) {
                    *last = Some(status.now);
                    self.say(&format!("{phrase} ({})", figures(status, record, self.verbose)));
                }
            }
        }
    }

    /// As much is expected now.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.size = Some(bytes);
    }

    /// The deadline, or the wall clock, was set: this is shown from now on.
    pub(super) fn deadline_shows(&mut self, deadline: Option<Timestamp>) {
        self.deadline = deadline;
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// A sentence outside the live line.
    pub(super) fn say(&mut self, sentence: &str) {
        if !matches!(self.form, Form::Quiet) {
            self.job.say(&format!("lowtide: {sentence}"));
        }
    }

    /// The last words.
    pub(super) fn summary(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.say(line));
    }
}

fn alarming(outlook: &Outlook) -> bool {
    matches!(
        outlook,
        Outlook::CannotFinish { .. }
            | Outlook::Overdue { .. }
            | Outlook::ProgramLimited { .. }
            | Outlook::Stalled { .. }
    )
}

/// How much of the size, with a bar where there is room, or how much at all.
fn progress(acknowledged: u64, size: Option<u64>, wide: bool) -> String {
    const LENGTH: usize = 20;
    let Some(size) = size else { return size::show(acknowledged) };
    let part = (acknowledged as f64 / size.max(1) as f64).min(1.0);
    let percent = format!("{:>3.0} %", (100.0 * part).floor());
    if !wide {
        return percent;
    }
    let filled = (part * LENGTH as f64) as usize;
    let head = if filled < LENGTH { "╸" } else { "" };
    let rest = "─".repeat(LENGTH.saturating_sub(filled + 1));
    format!("{}{head}{rest} {percent}", "━".repeat(filled))
}

/// Rate, needed rate, weight, queueing delay, sockets with goals of their own; what the weight rests on if `verbose`.
fn figures(status: &Status, record: &RunRecord, verbose: bool) -> String {
    let way = record.way();
    let mut text = rates(record.rate(), status.decision.target_rate);
    text += &format!(" · {}", manner(status.decision.weight.get()));
    if verbose && status.decision.target_rate.is_some() {
        text += control::remark(status.decision.basis);
    }
    if let Some(delay) = status.snapshot.queue(way) {
        text += &format!(" · queue {} ms", delay.as_millis());
    }
    text += &status.decision.most.map(|most| format!(" · at most {}", size::show_rate(most))).unwrap_or_default();
    if way == Direction::Down && status.snapshot.download.yields {
        text += &format!(" · {HELD_BACK}");
    }
    text += &record.goals.phrase();
    text
}

/// `11.7 Mbit/s, 8.95 needed`; the unit once, where it is the same.
pub(crate) fn rates(achieved: f64, needed: Option<f64>) -> String {
    let achieved = size::show_rate(achieved);
    let Some(needed) = needed.map(size::show_rate) else { return achieved };
    let unit = achieved.split_once(' ').map_or("", |(_, unit)| unit);
    let needed = needed.strip_suffix(unit).unwrap_or(&needed).trim_end();
    format!("{achieved}, {needed} needed")
}

/// Why a download is slow that leaves the link to competing flows.
pub(crate) const HELD_BACK: &str = "held back, as the link is in use";

/// A weight as a person takes it, and as it is.
pub(crate) fn manner(w: f64) -> String {
    let word = match w {
        w if w < 0.1 => "gentle",
        w if w < 0.5 => "moderate",
        w if w < 1.0 => "firm",
        w if w > 1.0 => "more than its share",
        _ => "an ordinary flow",
    };
    let decimals = if w < 0.01 { 3 } else { 2 };
    let number = format!("{w:.decimals$}");
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{word} (w {number})")
}

/// What was seen of bytes and sockets that are not governed.
fn ungoverned(record: &RunRecord, direction: Direction, inherited: usize) -> Vec<String> {
    let totals = record.totals();
    let bytes = |number: u64, way: &str| (number > 0).then(|| format!("{} {way}", size::show(number)));
    let sockets = |number: u64, kind: &str, which: &str| match number {
        0 => None,
        1 => Some(format!("a {kind} {which}")),
        _ => Some(format!("{number} {kind}s {which}")),
    };
    let received = if record.is_download() { totals.received } else { 0 };
    let udp_received = if direction.has_down() { totals.udp_received } else { 0 };
    let udp_sent = if direction.has_up() { totals.udp_sent } else { 0 };
    [
        bytes(udp_sent, "sent over UDP"),
        sockets(inherited as u64, "TCP socket", "opened before"),
        sockets(record.own_law_sockets.into(), "socket", "on a law of the program's own"),
        sockets(totals.law_refused, "socket", "that refused the law"),
        bytes(received, "received"),
        bytes(udp_received, "received over UDP"),
        sockets(totals.unstamped, "connection", "without timestamps, whose windows are left alone"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the law went by, on so many connections. One that was too short to know its receiver's clock had round trips,
/// and is not told of.
fn delays(one_way: u64, round_trips: u64) -> Option<String> {
    match (one_way, round_trips) {
        (0, 0) => None,
        (_, 0) => Some("used one-way delays".to_owned()),
        (0, _) => Some("used RTTs: the receiver's timestamps do not give one-way delays".to_owned()),
        (one_way, round_trips) => Some(format!(
            "used one-way delays on {one_way} connections, RTTs on {round_trips} without usable timestamps"
        )),
    }
}

/// Two significant digits.
pub(super) fn weight(w: f64) -> String {
    let decimals = if w >= 0.1 { 2 } else { 4 };
    format!("{w:.decimals$}")
}

/// The summary: what was moved, the deadline, and what was not governed; how the law did it if `verbose`.
pub(super) fn summarize(record: &RunRecord, plan: &Plan, ending: &Ending, verbose: bool) -> Vec<String> {
    let totals = record.totals();
    let Ending { finished, inherited, verdict, .. } = *ending;
    let took = finished.since(Time::ZERO);
    let moved = record.moved();
    let mean = moved as f64 / took.as_secs_f64().max(1e-3);
    let mut first = format!("{} in {}, {}", size::show(moved), spans::show(took), size::show_rate(mean));
    let ungoverned = ungoverned(record, plan.setup.direction, inherited);
    let told = verdict.outcome == Some(Outcome::NotGoverned);
    if let Some(phrase) = verdict.phrase(&ungoverned) {
        first += &format!("; {phrase}");
    }
    let mut lines = vec![first];
    if verbose && let Some((least, most)) = record.weights() {
        let sent_again = 100.0 * totals.retransmitted as f64 / totals.acknowledged.max(1) as f64;
        lines.push(format!(
            "weight {} to {}; {} delay back-offs, {} losses, {} phantom signals, {sent_again:.2} % sent again",
            weight(least),
            weight(most),
            totals.delay_backoffs,
            totals.losses,
            totals.phantoms
        ));
        if plan.policy.control != Control::Pid && plan.deadline.is_some() {
            let part = 100.0 * record.model_part();
            lines.push(format!("model-based control for {part:.0} % of the time, PID for the rest"));
        }
    }
    if verbose && plan.setup.direction.has_up() && plan.setup.law.takes_one_way_delay() {
        lines.extend(delays(totals.one_way, totals.round_trips));
    }
    let goals = record.goals.counts();
    if goals.number > 0 {
        let Counts { number, met, missed } = goals;
        lines.push(format!("goals that the program set on sockets: {number}; {met} met, {missed} missed"));
    }
    if totals.without_ecn > 0 {
        let number = totals.without_ecn;
        lines
            .push(format!("sockets whose peer does not echo every mark, which the law needs: {number}; they ran Reno"));
    }
    if !told && !ungoverned.is_empty() {
        lines.push(format!("not governed: {}", ungoverned.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_name_a_unit_once() {
        assert_eq!(rates(1_462_500.0, Some(1_118_750.0)), "11.7 Mbit/s, 8.95 needed");
        assert_eq!(rates(62_500.0, Some(1_118_750.0)), "500.0 kbit/s, 8.95 Mbit/s needed");
        assert_eq!(rates(62_500.0, None), "500.0 kbit/s");
    }

    #[test]
    fn weights_have_a_word() {
        for (w, text) in [
            (0.004, "gentle (w 0.004)"),
            (0.0317, "gentle (w 0.03)"),
            (0.1, "moderate (w 0.1)"),
            (0.72, "firm (w 0.72)"),
            (1.0, "an ordinary flow (w 1)"),
            (2.5, "more than its share (w 2.5)"),
        ] {
            assert_eq!(manner(w), text);
        }
    }

    #[test]
    fn the_bar_is_as_long_whatever_the_progress() {
        for (bytes, text) in [
            (0, "╸───────────────────   0 %"),
            (500, "━━━━━━━━━━╸─────────  50 %"),
            (999, "━━━━━━━━━━━━━━━━━━━╸  99 %"),
            (1_000, "━━━━━━━━━━━━━━━━━━━━ 100 %"),
            (2_000, "━━━━━━━━━━━━━━━━━━━━ 100 %"),
        ] {
            assert_eq!(progress(bytes, Some(1_000), true), text);
        }
        assert_eq!(progress(500, Some(1_000), false), " 50 %");
        assert_eq!(progress(4_200_000, None, true), "4.20 MB");
    }
}
