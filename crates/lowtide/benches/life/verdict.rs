// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a cell of the battery has to hold, without any measuring.

/// A program on an idle link may take so many times what it takes without Lowtide, …
const IDLE_FACTOR: f64 = 1.15;
/// … and so many seconds more.
const IDLE_EXTRA: f64 = 0.5;
/// The part of its solo rate that the foreground keeps beside a transfer with a far deadline.
const KEPT: f64 = 0.96;
/// A deadline is feasible where both yardsticks are done in this part of the time.
const FEASIBLE: f64 = 0.85;
/// No feasible deadline is missed by more than this part of the time given.
const LATE: f64 = 0.03;
/// Programs with more connections at one time promise nothing beside a foreground.
const MANY: u32 = 16;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With status 0, and what arrived is what was sent.
    Done,
    /// With another status.
    GaveUp,
    /// By the battery, at its limit of time.
    TooSlow,
    /// With status 0, and what arrived is not what was sent.
    WrongData,
}

/// A deadline and what became of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// Seconds from the start to the deadline.
    pub(crate) given: f64,
    /// Seconds from the start to the last acknowledged byte.
    pub(crate) took: f64,
    /// What Lowtide said; `None` if it had to be ended by force, and left no report.
    pub(crate) said: Option<Said>,
}

/// The forecasts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    /// Whether "on course" was the outlook at any time in the last tenth before the deadline.
    pub(crate) on_course_late: bool,
    /// How often the outlook changed its kind.
    pub(crate) outlooks: usize,
}

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) end: End,
    /// Seconds from its start to its end.
    pub(crate) seconds: f64,
    /// The foreground's rate meanwhile, as part of its solo rate.
    pub(crate) kept: Option<f64>,
    /// What its data took on the link without headers, bytes. Not known of a program that has a foreground beside it.
    pub(crate) carried: Option<u64>,
    /// Without Lowtide there is none.
    pub(crate) due: Option<Due>,
}

/// What a cell is measured by: runs without Lowtide, in the same condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Yardsticks<'a> {
    /// The same program.
    pub(crate) plain: &'a [Run],
    /// One connection that carries as many bytes as the program; for a program of one connection the program itself.
    pub(crate) one_flow: &'a [Run],
}

/// Link and deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No competing flows, and no deadline.
    Idle,
    /// Beside one CUBIC flow, due in eight hours.
    Far,
    /// Beside one CUBIC flow, with a deadline that needs a third of the link.
    Third,
}

/// The middle value; the mean of the two in the middle of an even number; NaN of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

/// Median seconds.
pub(crate) fn seconds(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.seconds))
}

/// Median part of its solo rate that the foreground kept, where it was measured.
pub(crate) fn kept(runs: &[Run]) -> Option<f64> {
    let kept: Vec<f64> = runs.iter().filter_map(|run| run.kept).collect();
    (!kept.is_empty()).then(|| median(kept))
}

/// Median bytes that the link carried for runs that did their work, where that is known.
pub(crate) fn carried(runs: &[Run]) -> Option<u64> {
    let done = runs.iter().filter(|run| run.end == End::Done);
    let carried: Vec<f64> = done.filter_map(|run| run.carried).map(|bytes| bytes as f64).collect();
    (!carried.is_empty()).then(|| median(carried) as u64)
}

/// Median number of outlooks, where there is a report of them.
pub(crate) fn outlooks(runs: &[Run]) -> Option<f64> {
    let said: Vec<Said> = runs.iter().filter_map(|run| run.due?.said).collect();
    (!said.is_empty()).then(|| median(said.iter().map(|said| said.outlooks as f64)))
}

/// Runs that did not do what the program is for.
pub(crate) fn failed(runs: &[Run]) -> usize {
    runs.iter().filter(|run| run.end != End::Done).count()
}

impl Due {
    /// By which part of the time given it was late; negative if it was early.
    pub(crate) fn late(&self) -> f64 {
        self.took / self.given - 1.0
    }
}

/// Whether there is a rule for programs of so many connections at one time.
pub(crate) fn has_rule(condition: Condition, connections: u32) -> bool {
    condition != Condition::Far || connections <= MANY
}

/// What a cell breaks of its rules: `None` if it holds them, or there are none for it.
pub(crate) fn fault(condition: Condition, connections: u32, runs: &[Run], by: Yardsticks<'_>) -> Option<String> {
    if !has_rule(condition, connections) {
        return None;
    }
    let faults = match condition {
        Condition::Idle => idle(runs, by.plain),
        Condition::Far => far(runs),
        Condition::Third => third(runs, by),
    };
    (!faults.is_empty()).then(|| faults.join(", "))
}

fn idle(runs: &[Run], plain: &[Run]) -> Vec<String> {
    let (took, most) = (seconds(runs), IDLE_FACTOR * seconds(plain) + IDLE_EXTRA);
    let mut faults = endings(runs);
    // written so that a median that is missing is a fault, too
    if !matches!(took.partial_cmp(&most), Some(order) if order.is_le()) {
        faults.push(format!("{took:.1} s, at most {most:.1}"));
    }
    faults
}

fn far(runs: &[Run]) -> Vec<String> {
    let mut faults = endings(runs);
    match kept(runs) {
        Some(kept) if kept >= KEPT => {}
        Some(kept) => faults.push(format!("kept {:.1} %", 100.0 * kept)),
        None => faults.push("the foreground was not measured".to_owned()),
    }
    faults
}

fn third(runs: &[Run], by: Yardsticks<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let dues: Vec<Due> = runs.iter().filter_map(|run| run.due).collect();
    if feasible(runs, by) {
        faults.extend(endings(runs));
        let late = median(dues.iter().map(Due::late));
        let latest = dues.iter().map(Due::late).fold(f64::NEG_INFINITY, f64::max);
        if late > 0.0 || latest > LATE {
            faults.push(format!("late by {:.1} %", 100.0 * latest.max(late)));
        }
    }
    let missed: Vec<&Due> = dues.iter().filter(|due| due.late() > 0.0).collect();
    let count = |is: fn(&Said) -> bool| missed.iter().filter(|due| due.said.as_ref().is_some_and(is)).count();
    match count(|said| said.on_course_late) {
        0 => {}
        wrong => faults.push(format!("\"on course\" near the end of {wrong} missed")),
    }
    match missed.len() - count(|_| true) {
        0 => {}
        silent => faults.push(format!("no report of {silent} missed")),
    }
    faults
}

/// Whether the deadline leaves both yardsticks room to spare. A transfer is at most one ordinary flow, over however
/// many connections; without Lowtide each connection is one. A yardstick that is missing is not in time.
pub(crate) fn feasible(runs: &[Run], by: Yardsticks<'_>) -> bool {
    let given = median(runs.iter().filter_map(|run| run.due).map(|due| due.given));
    let in_time = |runs: &[Run]| failed(runs) == 0 && seconds(runs) <= FEASIBLE * given;
    in_time(by.plain) && in_time(by.one_flow)
}

fn endings(runs: &[Run]) -> Vec<String> {
    let kinds = [(End::GaveUp, "gave up"), (End::TooSlow, "ended at its limit"), (End::WrongData, "data wrong")];
    let count = |end| runs.iter().filter(|run| run.end == end).count();
    kinds
        .into_iter()
        .filter(|(end, _)| count(*end) > 0)
        .map(|(end, words)| format!("{words} ({} of {})", count(end), runs.len()))
        .collect()
}
