// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees: one line that changes in place on a terminal, sparse lines elsewhere, a summary at the end.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Control, Outlook, Time};
use lowtide_kernel::Status;

use super::{Ending, Plan, clock::Clock, control, goals::Counts, journal::Journal, words};
use crate::{size, when};

/// Away from a terminal the same kind of news is repeated at most this often.
const SPARSE: Duration = Duration::from_secs(600);

#[derive(Debug)]
enum Form {
    Quiet,
    Live(ProgressBar),
    Lines { last: Option<Time> },
}

#[derive(Debug)]
pub(super) struct Screen {
    form: Form,
    deadline: Option<Timestamp>,
    warned_download: bool,
    warned_silent: bool,
}

impl Screen {
    pub(super) fn new(quiet: bool, plan: &Plan) -> Screen {
        let form = if quiet {
            Form::Quiet
        } else if in_foreground() {
            let bar = ProgressBar::with_draw_target(plan.size, ProgressDrawTarget::stderr_with_hz(4));
            let template =
                if plan.size.is_some() { "{bar:20} {percent:>3} %  {msg}" } else { "{decimal_bytes}  {msg}" };
            bar.set_style(ProgressStyle::with_template(template).expect("a literal").progress_chars("━╸─"));
            Form::Live(bar)
        } else {
            Form::Lines { last: None }
        };
        Screen { form, deadline: plan.deadline, warned_download: false, warned_silent: false }
    }

    /// Shows the newest status; `news`: the outlook is of another kind than before.
    pub(super) fn show(&mut self, journal: &Journal, news: bool, clock: &Clock) {
        let Some(status) = &journal.latest else { return };
        let outlook = status.decision.outlook;
        if journal.is_download() && !self.warned_download {
            self.warned_download = true;
            self.say("more comes in than goes out: Lowtide governs what is sent, so this download is not governed, and there is no forecast");
        }
        if journal.is_silent() && !self.warned_silent {
            self.warned_silent = true;
            self.say("no bytes so far: a program that hands its work to a daemon (docker, say) is not governed");
        }
        let phrase = if self.warned_download {
            "not governed: a download".to_owned()
        } else {
            words::phrase(&outlook, self.deadline, clock, &Zoned::now())
        };
        match &mut self.form {
            Form::Quiet => {}
            Form::Live(bar) => {
                if news && alarming(&outlook) && !self.warned_download {
                    bar.suspend(|| eprintln!("lowtide: {phrase}"));
                }
                bar.set_position(status.snapshot.totals.acknowledged);
                bar.set_message(format!("{}  {phrase}", figures(status, journal)));
            }
            Form::Lines { last } => {
                let due = last.is_none_or(|last| status.now.since(last) >= SPARSE);
                let waiting = matches!(outlook, Outlook::Waiting { .. });
                let something = outlook != Outlook::TooEarly && (waiting || status.snapshot.totals.acknowledged > 0);
                if something && !self.warned_download && (news || due || last.is_none()) {
                    *last = Some(status.now);
                    eprintln!("lowtide: {phrase} ({})", figures(status, journal));
                }
            }
        }
    }

    /// The wall clock was set: the deadline is shown as this from now on.
    pub(super) fn deadline_shows(&mut self, deadline: Timestamp) {
        self.deadline = Some(deadline);
    }

    /// A sentence outside the live line.
    pub(super) fn say(&self, sentence: &str) {
        match &self.form {
            Form::Quiet => {}
            Form::Live(bar) => bar.suspend(|| eprintln!("lowtide: {sentence}")),
            Form::Lines { .. } => eprintln!("lowtide: {sentence}"),
        }
    }

    /// The last words.
    pub(super) fn summary(&mut self, lines: &[String]) {
        if let Form::Live(bar) = &self.form {
            bar.finish_and_clear();
        }
        if !matches!(self.form, Form::Quiet) {
            for line in lines {
                eprintln!("lowtide: {line}");
            }
        }
    }
}

/// Stderr is a terminal, and ours to write to: a background job leaves it alone.
fn in_foreground() -> bool {
    let stderr = std::io::stderr();
    stderr.is_terminal() && nix::unistd::tcgetpgrp(&stderr).is_ok_and(|group| group == nix::unistd::getpgrp())
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

/// Rate, needed rate, weight and what it rests on, queueing delay, sockets with goals of their own.
fn figures(status: &Status, journal: &Journal) -> String {
    let mut text = size::show_rate(journal.rate());
    if let Some(target) = status.decision.target_rate {
        text += &format!(" (needs {})", size::show_rate(target));
    }
    text += &format!("  w {}", weight(status.decision.weight.get()));
    if status.decision.target_rate.is_some() {
        text += control::remark(status.decision.basis);
    }
    if let Some(delay) = status.snapshot.queueing_delay() {
        text += &format!("  queue {} ms", delay.as_millis());
    }
    text += &journal.goals.phrase();
    text
}

/// What the law went by, on so many connections. One that was too short to know its receiver's clock had round trips, and is not told of.
fn delays(one_way: u64, round_trips: u64) -> Option<String> {
    match (one_way, round_trips) {
        (0, 0) => None,
        (_, 0) => Some("went by one-way delays".to_owned()),
        (0, _) => Some("went by round trips: no timestamps of the receiver that tell one-way delays".to_owned()),
        (one_way, round_trips) => Some(format!(
            "went by one-way delays on {one_way} connections, by round trips on {round_trips} without usable timestamps"
        )),
    }
}

/// Two significant digits.
pub(super) fn weight(w: f64) -> String {
    let decimals = if w >= 0.1 { 2 } else { 4 };
    format!("{w:.decimals$}")
}

/// The summary: what was moved, the deadline, how it was done, and what was not governed.
pub(super) fn summarize(journal: &Journal, plan: &Plan, ending: &Ending) -> Vec<String> {
    let totals = journal.totals();
    let Ending { finished, inherited, .. } = *ending;
    let took = finished.since(Time::ZERO);
    let mean = totals.acknowledged as f64 / took.as_secs_f64().max(1e-3);
    let mut first =
        format!("{} in {:.1} s, {}", size::show(totals.acknowledged), took.as_secs_f64(), size::show_rate(mean));
    if let Some(deadline) = plan.deadline {
        let by = when::show(deadline, &Zoned::now());
        let spare = |done| deadline.duration_since(plan.clock.wall(done)).as_secs_f64();
        first += &match ending.done(journal).map(spare) {
            Some(spare) if spare >= 0.0 => format!("; deadline {by} met with {spare:.1} s to spare"),
            Some(spare) => format!("; deadline {by} missed by {:.1} s", -spare),
            None => format!("; ended before it was all sent, deadline {by}"),
        };
    }
    let mut lines = vec![first];
    if let Some((least, most)) = journal.weights() {
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
            let part = 100.0 * journal.model_part();
            lines.push(format!("the model ruled for {part:.0} % of the time, feedback for the rest"));
        }
    }
    if plan.setup.law.takes_one_way_delay() {
        lines.extend(delays(totals.one_way, totals.round_trips));
    }
    let goals = journal.goals.counts();
    if goals.number > 0 {
        let Counts { number, met, missed } = goals;
        lines.push(format!("goals that the program set on sockets: {number}; {met} met, {missed} missed"));
    }
    if totals.without_ecn > 0 {
        let number = totals.without_ecn;
        lines
            .push(format!("sockets whose peer does not echo every mark, which the law needs: {number}; they ran Reno"));
    }
    let mut ungoverned = Vec::new();
    let mut mention = |number: u64, text: String| {
        if number > 0 {
            ungoverned.push(text);
        }
    };
    mention(totals.udp_sent, format!("{} sent over UDP", size::show(totals.udp_sent)));
    mention(inherited as u64, format!("{inherited} TCP sockets opened before"));
    mention(
        journal.own_law_sockets.into(),
        format!("{} sockets on a law of the program's own", journal.own_law_sockets),
    );
    mention(totals.law_refused, format!("{} sockets that refused the law", totals.law_refused));
    if journal.is_silent() {
        ungoverned.push("whatever was sent: no bytes passed through the program's group".to_owned());
    }
    if journal.is_download() {
        ungoverned.push(format!("{} received", size::show(totals.received)));
    }
    if !ungoverned.is_empty() {
        lines.push(format!("not governed: {}", ungoverned.join(", ")));
    }
    lines
}
