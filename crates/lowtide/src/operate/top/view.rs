// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide top` shows, without colour: a terminal of 80 columns and 24 lines has room for all of it.

use jiff::{Timestamp, Zoned};

use super::{
    super::{protocol::Status, show::plain},
    Order, Past, State,
    terminal::{Line, Look},
};
use crate::{run::manner, size, when};

/// Lines about the selected transfer: a rule, six at the most of words, a caption and a picture.
const WORDS: usize = 6;
const PICTURE: usize = 3;
const DETAILS: usize = 1 + WORDS + 1 + PICTURE;
const KEYS: &str = "up/down select   p pause or resume   s sort   q quit";
/// Columns of the table, and what is in them.
const WIDTHS: [usize; 8] = [14, 5, 12, 12, 5, 6, 6, 13];
const HEAD: [&str; 8] = ["NAME", "DONE", "RATE", "NEED", "W", "QUEUE", "DUE", "FORECAST"];
/// Eighths of a line, for a picture.
const BARS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// A lower rate is shown as none.
const SOME_BPS: f64 = 1_000.0;
/// A rate of this part of a limit is held back by it.
const HELD: f64 = 0.85;

/// The whole screen. The last line is at the bottom of the terminal, and the selected transfer is always in sight.
pub(super) fn lines(state: &State, now: &Zoned, columns: usize, rows: usize) -> Vec<Line> {
    let selected = state.place().map(|place| &state.transfers[place]);
    let mut below = selected.map_or(Vec::new(), |status| about(status, &state.past[&status.name], now, columns));
    let foot = state.notice.as_ref().map_or(KEYS.to_owned(), |notice| plain(notice));
    // heading, names of the columns, one transfer and the last line come first
    let room = rows.saturating_sub(3);
    if below.len() >= room {
        below.clear();
    }
    let room = room - below.len();
    let mut lines = vec![line(heading(state, now), Look::Bold)];
    lines.extend(table(state, now, room));
    let free = rows.saturating_sub(lines.len() + below.len() + 1);
    lines.extend(std::iter::repeat_n(line(String::new(), Look::Plain), free));
    lines.extend(below);
    lines.push(line(foot, Look::Plain));
    lines
}

fn line(text: String, look: Look) -> Line {
    Line { text, look }
}

fn heading(state: &State, now: &Zoned) -> String {
    let rate = size::show_rate(state.transfers.iter().map(|it| it.rate_bps).sum::<f64>() / 8.0);
    let order = match state.order {
        Order::Name => "name",
        Order::Rate => "rate",
        Order::Deadline => "deadline",
    };
    let number = match state.transfers.len() {
        1 => "1 transfer".to_owned(),
        number => format!("{number} transfers"),
    };
    format!("lowtide top   {}   {number}, {rate}   by {order}", now.strftime("%H:%M:%S"))
}

/// So many transfers at the most, the selected one among them.
fn table(state: &State, now: &Zoned, room: usize) -> Vec<Line> {
    let Some(place) = state.place() else {
        let text = if state.known { "no transfer is running" } else { "" };
        return vec![line(text.to_owned(), Look::Plain)];
    };
    let first = (place + 1).saturating_sub(room.max(1));
    let mut lines = vec![line(row(&HEAD.map(str::to_owned)), Look::Bold)];
    for (n, status) in state.transfers.iter().enumerate().skip(first).take(room.max(1)) {
        lines.push(line(row(&cells(status, now)), if n == place { Look::Reversed } else { Look::Plain }));
    }
    lines
}

fn row(cells: &[String; 8]) -> String {
    let cell = |(text, width): (&String, usize)| {
        let text: String = text.chars().take(width).collect();
        format!("{text:<width$}")
    };
    cells.iter().zip(WIDTHS).map(cell).collect::<Vec<_>>().join(" ")
}

fn cells(status: &Status, now: &Zoned) -> [String; 8] {
    let part = |size: u64| 100.0 * status.acknowledged_bytes as f64 / size.max(1) as f64;
    [
        plain(&status.name),
        status.size_bytes.map_or_else(String::new, |size| format!("{:.0} %", part(size).min(100.0).floor())),
        size::show_rate(status.rate_bps / 8.0),
        status.needed_bps.map_or_else(|| "-".to_owned(), |bps| size::show_rate(bps / 8.0)),
        if status.w < 0.01 { format!("{:.3}", status.w) } else { format!("{:.2}", status.w) },
        status.queueing_delay_s.map_or_else(String::new, |delay| format!("{:.0} ms", delay * 1e3)),
        status.deadline.map_or_else(String::new, |deadline| clock(deadline, now)),
        state_of(status),
    ]
}

/// The local clock; the day where it is not today.
fn clock(at: Timestamp, now: &Zoned) -> String {
    let local = at.to_zoned(now.time_zone().clone());
    let form = if local.date() == now.date() { "%H:%M" } else { "%d %b" };
    local.strftime(form).to_string()
}

/// In a word or two.
fn state_of(status: &Status) -> String {
    match (status.paused, status.hold.as_deref()) {
        (true, _) => "paused".to_owned(),
        (_, Some("window")) => "no window".to_owned(),
        (_, Some(_)) => "not its turn".to_owned(),
        _ if status.outlook == "program_limited" => "slow program".to_owned(),
        _ => status.outlook.replace('_', " "),
    }
}

fn about(status: &Status, past: &Past, now: &Zoned, columns: usize) -> Vec<Line> {
    let mut words = Vec::new();
    for (name, text) in
        [("why  ", reason(status, now)), ("then ", forecast(status, past, now)), ("path ", path(status))]
    {
        words.extend(wrapped(name, &plain(&text), columns));
    }
    words.truncate(WORDS);
    words.resize(WORDS, String::new());
    let most = past.rates.iter().copied().fold(0.0, f64::max);
    let caption = format!("rate, the last {} s, up to {}", past.rates.len(), size::show_rate(most / 8.0));
    let mut lines = vec!["\u{2500}".repeat(columns)];
    lines.extend(words);
    lines.push(caption);
    lines.extend(picture(&past.rates, most));
    debug_assert_eq!(lines.len(), DETAILS);
    lines.into_iter().map(|text| line(text, Look::Plain)).collect()
}

/// In lines of so many columns, behind a word that names it.
fn wrapped(name: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = " ".repeat(name.len());
    let mut lines = vec![name.to_owned()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        let begun = last.len() > name.len();
        if begun && last.chars().count() + 1 + word.chars().count() > columns {
            lines.push(indent.clone() + word);
        } else {
            *last += if begun { " " } else { "" };
            *last += word;
        }
    }
    lines
}

/// Bars over some lines, as high as the greatest rate.
fn picture(rates: &[f64], most: f64) -> Vec<String> {
    let eighths: Vec<usize> =
        rates.iter().map(|rate| (8.0 * PICTURE as f64 * rate / most.max(1.0)).round() as usize).collect();
    let bar = |eighths: usize, line: usize| BARS[eighths.saturating_sub(8 * line).min(8)];
    (0..PICTURE).rev().map(|line| eighths.iter().map(|it| bar(*it, line)).collect()).collect()
}

/// Why it sends as fast as it does.
fn reason(status: &Status, now: &Zoned) -> String {
    let manner = manner(status.w);
    let limit = status.limit_bps.filter(|limit| status.rate_bps >= HELD * limit);
    let need = status.needed_bps;
    match (status.hold.as_deref(), status.outlook.as_str()) {
        _ if status.paused => "paused: a trickle keeps the connections alive".to_owned(),
        _ if limit.is_some() => {
            let closes = status.closes.map(|at| format!(", window until {}", when::show(at, now))).unwrap_or_default();
            format!("held to its limit of {}{closes}", size::show_rate(limit.unwrap_or_default() / 8.0))
        }
        (Some("window"), _) => match status.opens {
            Some(opens) => format!("outside its window until {}: spare capacity alone", when::show(opens, now)),
            None => "outside its windows: spare capacity alone".to_owned(),
        },
        (Some(_), _) => "another transfer of its group goes first: spare capacity alone".to_owned(),
        (_, "waiting" | "program_limited") => "the program itself sends no more".to_owned(),
        (_, "stalled") => "nothing gets through".to_owned(),
        (_, "done" | "size_exceeded") => "all that was announced is sent".to_owned(),
        (_, "overdue") => format!("past its deadline: {manner}"),
        _ if status.w >= status.w_max && need.is_some() => format!("at its highest weight: {manner}"),
        _ if need.is_some() && status.w > status.w_min => format!("presses for its deadline: {manner}"),
        _ if need.is_some_and(|need| status.rate_bps >= need) => "spare capacity is more than it needs".to_owned(),
        _ if status.rate_bps < SOME_BPS => "gives way to competing flows".to_owned(),
        _ => "takes spare capacity".to_owned(),
    }
}

/// When it will be done, and how far what was expected in the last minute lies apart.
fn forecast(status: &Status, past: &Past, now: &Zoned) -> String {
    let deadline = status.deadline.map(|at| format!(", due {}", when::show(at, now))).unwrap_or_default();
    let band = past.expected.iter().min().zip(past.expected.iter().max());
    let Some((earliest, latest)) = band else { return format!("{}{deadline}", status.sentence) };
    let (earliest, latest) = (when::show(*earliest, now), when::show(*latest, now));
    let expected = if earliest == latest { latest } else { format!("between {earliest} and {latest}") };
    let outlook = status.outlook.replace('_', " ");
    format!("{outlook}: expected {expected}{deadline}")
}

fn path(status: &Status) -> String {
    let mut words = vec![match status.connections {
        1 => "1 connection".to_owned(),
        number => format!("{number} connections"),
    }];
    words.extend(status.srtt_s.map(|srtt| format!("round trip {:.1} ms", srtt * 1e3)));
    words.extend(status.queueing_delay_s.map(|delay| format!("{:.1} ms of it queueing", delay * 1e3)));
    words.push(format!("{} losses", status.losses));
    words.push(format!("{}, {}", status.law, status.program));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::operate::example;

    fn now() -> Zoned {
        "2026-11-21T23:30:00+01:00[Europe/Oslo]".parse().unwrap()
    }

    fn screen(state: &State, columns: usize, rows: usize) -> Vec<String> {
        lines(state, &now(), columns, rows).into_iter().map(|line| line.text.trim_end().to_owned()).collect()
    }

    fn state(transfers: Vec<Status>) -> State {
        let mut state = State::new();
        state.take(Ok((transfers, Vec::new())));
        state
    }

    #[test]
    fn a_terminal_of_80_columns_shows_all_of_it() {
        let second = Status {
            name: "photos".into(),
            size_bytes: None,
            deadline: None,
            needed_bps: None,
            hold: Some("window".into()),
            ..example()
        };
        let mut state = state(vec![example(), second.clone()]);
        let later = Status { expected: example().expected.map(|at| at + SignedDuration::from_mins(9)), ..example() };
        state.take(Ok((vec![later, second], Vec::new())));
        let expected = "\
lowtide top   23:30:00   2 transfers, 23.4 Mbit/s   by name
NAME           DONE  RATE         NEED         W     QUEUE  DUE    FORECAST
nightly        45 %  11.7 Mbit/s  8.95 Mbit/s  0.03  2 ms   22 Nov on course
photos               11.7 Mbit/s  -            0.03  2 ms          no window








\u{2500}
why  presses for its deadline: gentle (w 0.03)
then on course: expected between 2026-11-22 05:00 and 2026-11-22 05:09, due
     2026-11-22 06:00
path 4 connections, round trip 42.1 ms, 2.0 ms of it queueing, 7 losses, tide,
     restic

rate, the last 2 s, up to 11.7 Mbit/s
\u{2588}\u{2588}
\u{2588}\u{2588}
\u{2588}\u{2588}
"
        .to_owned()
            + KEYS;
        let expected = expected.replacen('\u{2500}', &"\u{2500}".repeat(80), 1);
        let lines = screen(&state, 80, 24);
        assert_eq!(lines.join("\n"), expected);
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn where_there_is_little_room_the_selected_transfer_is_in_sight() {
        assert!(screen(&state(Vec::new()), 80, 24).join("\n").contains("no transfer is running"));
        let named = |n: usize| Status { name: format!("job-{n:02}"), ..example() };
        let mut many = state((0..40).map(named).collect());
        many.selected = Some("job-33".into());
        for (columns, rows) in [(1, 1), (10, 3), (40, 8), (80, 24), (200, 60)] {
            let shown = lines(&many, &now(), columns, rows);
            let selected: Vec<_> = shown.iter().filter(|line| line.look == Look::Reversed).collect();
            assert!(selected.len() == 1 && selected[0].text.starts_with("job-33"), "{columns} {rows}");
            assert!(rows < 4 || shown.len() == rows, "{columns} {rows}: {}", shown.len());
        }
        let hostile = Status { name: "a\u{1b}[2J".into(), sentence: "\u{7}".into(), ..example() };
        let text = screen(&state(vec![hostile]), 80, 24).join("\n");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    }

    #[test]
    fn the_reason_is_what_holds_the_rate() {
        let limited = Status { limit_bps: Some(12e6), closes: None, ..example() };
        for (status, part) in [
            (Status { paused: true, ..example() }, "paused"),
            (limited, "held to its limit of 12.0 Mbit/s"),
            (Status { hold: Some("turn".into()), ..example() }, "another transfer"),
            (Status { outlook: "waiting".into(), ..example() }, "the program itself"),
            (Status { w: 1.0, ..example() }, "at its highest weight"),
            (Status { w: 0.004, ..example() }, "more than it needs"),
            (Status { w: 0.004, needed_bps: None, ..example() }, "takes spare capacity"),
            (Status { w: 0.004, needed_bps: None, rate_bps: 0.0, ..example() }, "gives way"),
        ] {
            let reason = reason(&status, &now());
            assert!(reason.contains(part), "{reason}: {part}");
        }
    }
}
