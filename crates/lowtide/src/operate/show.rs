// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer's status for a person: short lines, which fit 80 columns, without colour.

use std::time::Duration;

use jiff::Zoned;

use super::protocol::Status;
use crate::{
    run::{HELD_BACK, manner, rates},
    size, spans, when,
};

/// Of a line, which every terminal has.
const COLUMNS: usize = 80;

/// Its lines; with `detailed` what hardly changes, too.
pub(super) fn transfer(status: &Status, detailed: bool, now: &Zoned) -> String {
    let mut lines = vec![format!("{}: {}, {}", status.name, progress(status), speed(status))];
    lines.extend(wrapped("  ", &state(status), COLUMNS));
    lines.extend(wrapped("  ", &plain(&status.sentence), COLUMNS));
    if detailed {
        let rows = details(status, now).into_iter();
        lines.extend(rows.flat_map(|(name, value)| wrapped(&format!("  {name:<10} "), &plain(&value), COLUMNS)));
    }
    lines.join("\n") + "\n"
}

/// In lines of so many columns, as far as its words allow, behind what begins the first one.
pub(super) fn wrapped(begin: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = " ".repeat(begin.len());
    let mut lines = vec![begin.to_owned()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        let begun = last.len() > begin.len();
        if begun && last.chars().count() + 1 + word.chars().count() > columns {
            lines.push(indent.clone() + word);
        } else {
            *last += if begun { " " } else { "" };
            *last += word;
        }
    }
    lines
}

/// So many of something.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn progress(status: &Status) -> String {
    let sent = size::show(status.acknowledged_bytes);
    match status.size_bytes {
        None => sent,
        Some(all) => {
            let part = 100.0 * status.acknowledged_bytes as f64 / all.max(1) as f64;
            format!("{sent} of {} ({:.0} %)", size::show(all), part.min(100.0).floor())
        }
    }
}

fn speed(status: &Status) -> String {
    rates(status.rate_bps / 8.0, status.needed_bps.map(|bps| bps / 8.0))
}

fn state(status: &Status) -> String {
    let mut words = Vec::new();
    words.push(if status.paused { "paused".to_owned() } else { manner(status.w) });
    words.extend(status.queueing_delay_s.map(|delay| format!("queue {:.0} ms", delay * 1e3)));
    words.extend(status.yields.then(|| HELD_BACK.to_owned()));
    words.push(count(status.connections.into(), "connection", "connections"));
    words.extend(status.limit_bps.map(|bps| format!("at most {}", size::show_rate(bps / 8.0))));
    words.extend(status.min_rate_bps.map(|bps| format!("at least {}", size::show_rate(bps / 8.0))));
    words.join(", ")
}

fn details(status: &Status, now: &Zoned) -> Vec<(&'static str, String)> {
    let age = Duration::try_from(status.now.duration_since(status.started)).unwrap_or_default();
    let mut rows = vec![(if status.kind == "attach" { "attached" } else { "program" }, status.program.clone())];
    rows.push(("since", format!("{} ({})", when::show(status.started, now), spans::show(age))));
    rows.extend(status.deadline.map(|deadline| ("deadline", when::show(deadline, now))));
    if status.direction != "up" {
        rows.push(("direction", status.direction.clone()));
    }
    rows.extend(status.budget.iter().map(|group| ("group", group.clone())));
    rows.extend(rules("window", &status.windows));
    rows.extend(rules("cap", &status.caps));
    rows.push(("law", format!("{}, w from {} to {}", status.law, status.w_min, status.w_max)));
    rows.extend(status.srtt_s.map(|srtt| ("round trip", format!("{:.1} ms", srtt * 1e3))));
    rows.push(("congestion", congestion(status)));
    if status.udp_sent_bytes > 0 {
        rows.push(("UDP", format!("{} sent, not governed", size::show(status.udp_sent_bytes))));
    }
    rows.push(("process", format!("{}, group {}", status.pid, status.group)));
    rows
}

fn rules(name: &'static str, all: &[String]) -> impl Iterator<Item = (&'static str, String)> {
    all.iter().map(move |text| (name, text.clone()))
}

fn congestion(status: &Status) -> String {
    let signals = [
        count(status.losses, "loss", "losses"),
        count(status.delay_backoffs, "delay back-off", "delay back-offs"),
        count(status.phantom_signals, "phantom signal", "phantom signals"),
    ];
    format!("{}; {} sent again", signals.join(", "), size::show(status.retransmitted_bytes))
}

/// Without what could move a terminal's cursor: names of programs and groups are others' choice.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A transfer in the middle of its life.
    pub(crate) fn example() -> Status {
        let started: jiff::Timestamp = "2026-11-21T21:00:00Z".parse().unwrap();
        Status {
            name: "nightly".into(),
            kind: "run".into(),
            direction: "up".into(),
            pid: 4711,
            program: "restic".into(),
            group: "/sys/fs/cgroup/lowtide-4711-0".into(),
            group_id: 77,
            law: "tide".into(),
            started,
            now: started + jiff::SignedDuration::from_mins(90),
            deadline: Some(started + jiff::SignedDuration::from_hours(8)),
            size_bytes: Some(80_000_000_000),
            acknowledged_bytes: 36_100_000_000,
            retransmitted_bytes: 1_000,
            rate_bps: 11.7e6,
            needed_bps: Some(8.95e6),
            w: 0.03,
            w_min: 0.004,
            w_max: 1.0,
            max_rate_bps: Some(20e6),
            min_rate_bps: None,
            paused: false,
            srtt_s: Some(0.0421),
            queueing_delay_s: Some(0.002),
            yields: false,
            connections: 4,
            sending: 3,
            losses: 7,
            phantom_signals: 0,
            delay_backoffs: 12,
            udp_sent_bytes: 0,
            progress: None,
            budget: None,
            windows: vec!["22:00-06:00".into()],
            caps: Vec::new(),
            limit_bps: Some(20e6),
            hold: None,
            opens: None,
            closes: Some(started + jiff::SignedDuration::from_hours(8)),
            aim: Some(started + jiff::SignedDuration::from_hours(7)),
            outlook: "on_course".into(),
            expected: Some(started + jiff::SignedDuration::from_hours(7)),
            sentence: "on course, expected 05:41".into(),
        }
    }

    #[test]
    fn it_fits_a_narrow_terminal() {
        let now: Zoned = "2026-11-21T23:30:00+01:00[Europe/Oslo]".parse().unwrap();
        let text = transfer(&example(), true, &now);
        let expected = "\
nightly: 36.10 GB of 80.00 GB (45 %), 11.7 Mbit/s, 8.95 needed
  gentle (w 0.03), queue 2 ms, 4 connections, at most 20.0 Mbit/s
  on course, expected 05:41
  program    restic
  since      22:00 (1 h 30 min)
  deadline   2026-11-22 06:00
  window     22:00-06:00
  law        tide, w from 0.004 to 1
  round trip 42.1 ms
  congestion 7 losses, 12 delay back-offs, 0 phantom signals; 1.00 kB sent again
  process    4711, group /sys/fs/cgroup/lowtide-4711-0
";
        assert_eq!(text, expected);
        let text = transfer(&Status { yields: true, ..example() }, false, &now);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("queue 2 ms, held back, as the link is in use, 4 connections"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let sentence = "behind: too slow so far to finish by 06:00, sending as an ordinary flow; expected 07:44";
        let group = format!("/sys/fs/cgroup/{}", "x".repeat(60));
        let text = transfer(&Status { sentence: sentence.into(), group: group.clone(), ..example() }, true, &now);
        assert!(text.contains("ordinary flow;\n  expected 07:44\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains(&group)), "{text}");
    }

    #[test]
    fn what_others_name_cannot_move_the_cursor() {
        let status = Status { program: "a\u{1b}[2J\nb".into(), ..example() };
        let text = transfer(&status, true, &Zoned::now());
        assert!(text.contains("a?[2J?b") && !text.contains('\u{1b}'));
    }
}
