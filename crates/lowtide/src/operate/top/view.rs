// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide top` shows: a terminal of 80 columns and 24 lines has room for all of it, a smaller one for what
//! matters most.

use jiff::{Timestamp, Zoned};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::Line,
    widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, TableState},
};

use super::{
    super::{
        protocol::Status,
        show::{count, plain, wrapped},
    },
    Order, Past, State,
};
use crate::{run::manner, size, when};

/// Lines about the selected transfer: a rule and so many of words ...
const WORDS: usize = 6;
/// ... and where there is room a caption and a picture of its rate, higher on a high terminal.
const PICTURE: u16 = 3;
const KEYS: &str = "up/down select   p pause or resume   s sort   q quit";
/// Columns of the table: their heads and widths. The name takes what it needs, and the last one what is left.
const COLUMNS: [(&str, u16); 8] =
    [("NAME", 14), ("DONE", 5), ("RATE", 12), ("NEED", 12), ("W", 5), ("QUEUE", 6), ("DUE", 6), ("FORECAST", 13)];
const LEAST_NAME: u16 = 8;
/// Those that a narrow terminal does without, the first one first.
const DISPENSABLE: [&str; 7] = ["QUEUE", "W", "NEED", "DONE", "DUE", "FORECAST", "RATE"];
/// A lower rate is shown as none.
const SOME_BPS: f64 = 1_000.0;
/// A rate of this part of a limit is held back by it.
const HELD: f64 = 0.85;

/// The whole screen. The last line is at the bottom of the terminal, and the selected transfer is always in sight.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, now: &Zoned, colour: bool) {
    let area = frame.area();
    let selected = state.place().map(|place| &state.transfers[place]);
    let picture = PICTURE.max(area.height / 8);
    // heading, names of the columns, one transfer and the last line come first
    let room = area.height.saturating_sub(3);
    let words = 1 + WORDS as u16;
    let below = [words + 1 + picture, words].into_iter().find(|below| selected.is_some() && *below < room);
    let parts =
        [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(below.unwrap_or(0)), Constraint::Length(1)];
    let [head, table, details, foot] = Layout::vertical(parts).areas(area);
    frame.render_widget(Line::from(heading(state, now)).bold(), head);
    draw_table(frame, table, state, now, colour);
    if let Some(status) = selected.filter(|_| below.is_some()) {
        about(frame, details, status, &state.past[&status.name], now);
    }
    let text = state.notice.as_ref().map_or(KEYS.to_owned(), |notice| plain(notice));
    frame.render_widget(text, foot);
}

fn heading(state: &State, now: &Zoned) -> String {
    // a sum of none would be -0.0
    let rate = size::show_rate(state.transfers.iter().fold(0.0, |sum, it| sum + it.rate_bps) / 8.0);
    let order = match state.order {
        Order::Name => "name",
        Order::Rate => "rate",
        Order::Deadline => "deadline",
    };
    let number = count(state.transfers.len() as u64, "transfer", "transfers");
    format!("lowtide top   {}   {number}, {rate}   by {order}", now.strftime("%H:%M:%S"))
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &State, now: &Zoned, colour: bool) {
    let Some(place) = state.place() else {
        frame.render_widget(if state.known { "no transfer is running" } else { "" }, area);
        return;
    };
    let shown = columns(area.width);
    let longest = state.transfers.iter().map(|it| it.name.chars().count() as u16).max().unwrap_or(0);
    let others: u16 = shown.iter().skip(1).map(|n| COLUMNS[*n].1 + 1).sum();
    let name = longest.max(COLUMNS[0].1).min(area.width.saturating_sub(others));
    let widths = shown.iter().map(|n| match n {
        0 => Constraint::Length(name),
        n if n + 1 == COLUMNS.len() => Constraint::Fill(1),
        n => Constraint::Length(COLUMNS[*n].1),
    });
    let rows = state.transfers.iter().map(|status| {
        let cells = cells(status, now);
        Row::new(shown.iter().map(|n| {
            let look = if colour && n + 1 == COLUMNS.len() { look_of(status) } else { Style::new() };
            Cell::from(cells[*n].clone()).style(look)
        }))
    });
    let head = Row::new(shown.iter().map(|n| COLUMNS[*n].0)).bold();
    let table = Table::new(rows, widths).row_highlight_style(Style::new().reversed());
    let table = if area.height > 1 { table.header(head) } else { table };
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(place));
}

/// The columns that there is room for.
fn columns(width: u16) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..COLUMNS.len()).collect();
    for name in DISPENSABLE {
        if LEAST_NAME + shown.iter().skip(1).map(|n| COLUMNS[*n].1 + 1).sum::<u16>() <= width {
            break;
        }
        shown.retain(|n| COLUMNS[*n].0 != name);
    }
    shown
}

/// Green where the deadline will be met, yellow where that is open, red where it will not.
fn look_of(status: &Status) -> Style {
    match status.outlook.as_str() {
        _ if status.paused => Style::new(),
        "on_course" | "done" => Style::new().fg(Color::Green),
        "behind" | "size_exceeded" | "program_limited" | "stalled" => Style::new().fg(Color::Yellow),
        "cannot_finish" | "overdue" => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
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

fn about(frame: &mut Frame<'_>, area: Rect, status: &Status, past: &Past, now: &Zoned) {
    let rule = Block::new().borders(Borders::TOP).title(format!(" {} ", plain(&status.name)));
    let inner = rule.inner(area);
    frame.render_widget(rule, area);
    // without room for the picture there is no caption either
    let caption = u16::from(inner.height > WORDS as u16);
    let parts = [Constraint::Length(WORDS as u16), Constraint::Length(caption), Constraint::Fill(1)];
    let [words, caption, picture] = Layout::vertical(parts).areas(inner);
    let mut text = Vec::new();
    for (name, what) in
        [("why  ", reason(status, now)), ("then ", forecast(status, past, now)), ("path ", path(status))]
    {
        text.extend(wrapped(name, &plain(&what), usize::from(words.width)).into_iter().map(Line::from));
    }
    frame.render_widget(Paragraph::new(text), words);
    let seen = &past.rates[past.rates.len().saturating_sub(usize::from(picture.width))..];
    let most = seen.iter().copied().fold(0.0, f64::max);
    frame.render_widget(format!("rate, the last {} s, up to {}", seen.len(), size::show_rate(most / 8.0)), caption);
    let bars = seen.iter().map(|rate| *rate as u64);
    frame.render_widget(Sparkline::default().data(bars).max((most as u64).max(1)), picture);
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
    if status.paused {
        return format!("goes on when it is resumed{deadline}");
    }
    let band = past.expected.iter().min().zip(past.expected.iter().max());
    let Some((earliest, latest)) = band else { return format!("{}{deadline}", status.sentence) };
    let (earliest, latest) = (when::show(*earliest, now), when::show(*latest, now));
    let expected = if earliest == latest { latest } else { format!("between {earliest} and {latest}") };
    let outlook = status.outlook.replace('_', " ");
    format!("{outlook}: expected {expected}{deadline}")
}

fn path(status: &Status) -> String {
    let mut words = vec![count(status.connections.into(), "connection", "connections")];
    words.extend(status.srtt_s.map(|srtt| format!("round trip {:.1} ms", srtt * 1e3)));
    words.extend(status.queueing_delay_s.map(|delay| format!("{:.1} ms of it queueing", delay * 1e3)));
    words.push(count(status.losses, "loss", "losses"));
    words.push(format!("{}, {}", status.law, status.program));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Modifier};

    use super::*;
    use crate::operate::example;

    fn now() -> Zoned {
        "2026-11-21T23:30:00+01:00[Europe/Oslo]".parse().unwrap()
    }

    fn drawn(state: &State, columns: u16, rows: u16, colour: bool) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(frame, state, &now(), colour)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn text(buffer: &Buffer) -> Vec<String> {
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        buffer.content.chunks(buffer.area.width.into()).map(|cells| line(cells).trim_end().to_owned()).collect()
    }

    fn screen(state: &State, columns: u16, rows: u16) -> Vec<String> {
        text(&drawn(state, columns, rows, false))
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








 nightly \u{2500}
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
        let expected = expected.replacen('\u{2500}', &"\u{2500}".repeat(71), 1);
        assert_eq!(screen(&state, 80, 24).join("\n"), expected);
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        let shown = screen(&state(vec![example()]), 40, 12);
        let expected = "\
lowtide top   23:30:00   1 transfer, 11.
NAME          RATE         FORECAST
nightly       11.7 Mbit/s  on course

 nightly \u{2500}
why  presses for its deadline: gentle (w
     0.03)
then on course: expected 2026-11-22
     05:00, due 2026-11-22 06:00
path 4 connections, round trip 42.1 ms,
     2.0 ms of it queueing, 7 losses,
up/down select   p pause or resume   s s";
        assert_eq!(shown.join("\n"), expected.replacen('\u{2500}', &"\u{2500}".repeat(31), 1));
    }

    #[test]
    fn where_there_is_little_room_the_selected_transfer_is_in_sight() {
        let none = screen(&state(Vec::new()), 80, 24).join("\n");
        assert!(none.contains("0 transfers, 0.00 kbit/s") && none.contains("no transfer is running"), "{none}");
        let named = |n: usize| Status { name: format!("job-{n:02}"), ..example() };
        let mut many = state((0..40).map(named).collect());
        many.selected = Some("job-33".into());
        for (columns, rows) in [(8, 3), (10, 4), (40, 8), (80, 24), (200, 60)] {
            let buffer = drawn(&many, columns, rows, true);
            let reversed = |row: &u16| buffer[(0, *row)].modifier.contains(Modifier::REVERSED);
            let selected: Vec<u16> = (0..rows).filter(reversed).collect();
            let rows = text(&buffer);
            assert!(
                matches!(selected[..], [row] if rows[usize::from(row)].starts_with("job-33")),
                "{columns} {selected:?} {rows:?}"
            );
        }
        drawn(&many, 1, 1, true);
        let hostile = Status { name: "a\u{1b}[2J".into(), sentence: "\u{7}".into(), ..example() };
        let text = screen(&state(vec![hostile]), 80, 24).join("\n");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
    }

    #[test]
    fn colour_only_repeats_what_words_say() {
        let late = Status { name: "late".into(), outlook: "overdue".into(), ..example() };
        let all = state(vec![example(), late]);
        let (plain, coloured) = (drawn(&all, 80, 24, false), drawn(&all, 80, 24, true));
        assert_eq!(text(&plain), text(&coloured));
        let colours = |buffer: &Buffer| -> Vec<Color> {
            buffer.content.iter().map(|cell| cell.fg).filter(|colour| *colour != Color::Reset).collect()
        };
        assert!(colours(&plain).is_empty());
        assert!([Color::Green, Color::Red].iter().all(|colour| colours(&coloured).contains(colour)));
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
        let paused = Status { paused: true, ..example() };
        assert!(forecast(&paused, &Past::default(), &now()).starts_with("goes on when it is resumed, due "));
    }
}
