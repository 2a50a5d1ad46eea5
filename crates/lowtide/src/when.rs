// SPDX-License-Identifier: MIT OR Apache-2.0
//! `WHEN`: points in time as people write them, and as they read them.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use jiff::{
    Span, SpanRelativeTo, Timestamp, Zoned, civil,
    tz::{AmbiguousOffset, TimeZone},
};

/// What `--deadline` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long from the start, by a clock that cannot be set and that goes on through a suspend.
    Relative(Duration),
    /// When the wall clock shows this. It moves with that clock.
    Absolute(Timestamp),
}

/// The forms of a time of day.
const TIMES: [&str; 7] = ["%H:%M", "%H:%M:%S", "%I:%M%p", "%I:%M %p", "%I:%M:%S%p", "%I%p", "%I %p"];

/// Reads a time of day (`06:00`, `6:00`, `6:30pm`, `6am`: the next one), `tomorrow 6am`, a local date and time, RFC
/// 3339, or `+2h30m` and `90s` from the start.
///
/// A local time that a clock change repeats is the earliest of its instants that is to come. One that a clock change
/// leaves out is later by what the clock is put forward (jiff's "compatible" rule): 02:30 is then 03:30. A day from now
/// is 24 hours.
///
/// # Errors
/// One sentence: unreadable, or not in the future.
pub fn parse(text: &str, now: &Zoned) -> Result<When> {
    if let Some(length) = length(text) {
        if length.is_zero() {
            bail!("that leaves no time; give a time to come");
        }
        return Ok(When::Relative(length));
    }
    let when = instant(text, now).ok_or_else(|| {
        anyhow!(
            "cannot read the deadline '{text}'; write 06:00, 6:30pm, tomorrow 6am, 2026-11-22T06:00:00Z, +2h30m or 90s"
        )
    })?;
    if when <= now.timestamp() {
        bail!("that lies in the past ({}); give a time to come", show(when, now));
    }
    Ok(When::Absolute(when))
}

/// A time from now.
fn length(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('+').unwrap_or(text);
    // with a colon it is a time of day, which a span may look like, too
    let looks_so = text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(':');
    let span: Span = looks_so.then(|| text.parse().ok())??;
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?.try_into().ok()
}

fn instant(text: &str, now: &Zoned) -> Option<Timestamp> {
    let (today, zone) = (now.date(), now.time_zone());
    if let Some(time) = time_of_day(text) {
        let days = [Some(today), today.tomorrow().ok()].into_iter().flatten();
        return days.filter_map(|day| soonest(day.to_datetime(time), zone, now)).find(|when| *when > now.timestamp());
    }
    if let Some((day, time)) = text.split_once(' ') {
        let day = match day {
            "today" => Some(today),
            "tomorrow" => today.tomorrow().ok(),
            date => date.parse::<civil::Date>().ok(),
        };
        if let (Some(day), Some(time)) = (day, time_of_day(time.trim_start())) {
            return soonest(day.to_datetime(time), zone, now);
        }
    }
    let with_offset = text.parse::<Timestamp>().ok();
    with_offset.or_else(|| soonest(text.parse().ok()?, zone, now))
}

pub(crate) fn time_of_day(text: &str) -> Option<civil::Time> {
    TIMES.iter().find_map(|form| civil::Time::strptime(form, text).ok())
}

/// The earliest instant at which a local clock shows this and that is to come; the last one where all have passed.
fn soonest(local: civil::DateTime, zone: &TimeZone, now: &Zoned) -> Option<Timestamp> {
    let when = zone.to_ambiguous_timestamp(local);
    let first = when.compatible().ok()?;
    let repeated = matches!(when.offset(), AmbiguousOffset::Fold { .. });
    if repeated && first <= now.timestamp() { when.later().ok() } else { Some(first) }
}

/// In seconds since the beginning of 1970 in UTC, for who computes with it.
#[must_use]
pub fn unix_seconds(when: Timestamp) -> f64 {
    when.as_nanosecond() as f64 / 1e9
}

/// The local clock's reading; with seconds if it is within ten minutes, with the date if it is not today.
pub fn show(when: Timestamp, now: &Zoned) -> String {
    let local = when.to_zoned(now.time_zone().clone());
    let near = (when.as_second() - now.timestamp().as_second()).abs() < 600;
    match (local.date() == now.date(), near) {
        (true, true) => local.strftime("%H:%M:%S").to_string(),
        (true, false) => local.strftime("%H:%M").to_string(),
        (false, _) => local.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-21T22:30:00+01:00[Europe/Oslo]".parse().unwrap()
    }

    fn in_berlin(clock: &str) -> Zoned {
        format!("{clock}[Europe/Berlin]").parse().unwrap()
    }

    #[test]
    fn every_way_to_say_an_instant() {
        for (text, expected) in [
            ("06:00", "2026-11-22T05:00:00Z"),
            ("6:00", "2026-11-22T05:00:00Z"),
            ("6am", "2026-11-22T05:00:00Z"),
            ("6 AM", "2026-11-22T05:00:00Z"),
            ("12am", "2026-11-21T23:00:00Z"),
            ("6:30pm", "2026-11-22T17:30:00Z"),
            ("11:15 pm", "2026-11-21T22:15:00Z"),
            ("23:15", "2026-11-21T22:15:00Z"),
            ("22:30", "2026-11-22T21:30:00Z"),
            ("06:00:30", "2026-11-22T05:00:30Z"),
            ("today 23:15", "2026-11-21T22:15:00Z"),
            ("tomorrow 06:00", "2026-11-22T05:00:00Z"),
            ("tomorrow 6am", "2026-11-22T05:00:00Z"),
            ("tomorrow 11pm", "2026-11-22T22:00:00Z"),
            ("2026-11-22T06:00:00+01:00", "2026-11-22T05:00:00Z"),
            ("2026-11-22T05:00:00Z", "2026-11-22T05:00:00Z"),
            ("2026-11-22T06:00", "2026-11-22T05:00:00Z"),
            ("2026-11-22 06:00", "2026-11-22T05:00:00Z"),
            ("2026-11-22 6:30pm", "2026-11-22T17:30:00Z"),
        ] {
            assert_eq!(parse(text, &now()).unwrap(), When::Absolute(expected.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn every_way_to_say_how_long() {
        for (text, seconds) in
            [("+60s", 60), ("90s", 90), ("2h", 7200), ("+2h", 7200), ("2h30m", 9000), ("+2h30m", 9000), ("+1d", 86_400)]
        {
            assert_eq!(parse(text, &now()).unwrap(), When::Relative(Duration::from_secs(seconds)), "{text}");
        }
        // a day that a clock change makes longer is 24 hours all the same
        let before_the_change = in_berlin("2026-10-24T12:00:00+02:00");
        assert_eq!(parse("1d", &before_the_change).unwrap(), When::Relative(Duration::from_secs(86_400)));
    }

    #[test]
    fn an_hour_that_is_repeated_is_the_earliest_to_come() {
        for (now, text, expected) in [
            ("2026-10-25T02:10:00+01:00", "02:30", "2026-10-25T02:30:00+01:00"), // the second 02:10
            ("2026-10-25T02:10:00+02:00", "02:30", "2026-10-25T02:30:00+02:00"), // the first
            ("2026-10-25T02:45:00+02:00", "2:30am", "2026-10-25T02:30:00+01:00"),
            ("2026-10-25T02:45:00+02:00", "2026-10-25 02:30", "2026-10-25T02:30:00+01:00"),
            ("2026-10-25T02:45:00+01:00", "02:30", "2026-10-26T02:30:00+01:00"),
            ("2026-10-24T12:00:00+02:00", "tomorrow 02:30", "2026-10-25T02:30:00+02:00"),
            ("2026-10-24T12:00:00+02:00", "2026-10-25T02:30", "2026-10-25T02:30:00+02:00"),
        ] {
            let when = parse(text, &in_berlin(now)).unwrap();
            assert_eq!(when, When::Absolute(expected.parse().unwrap()), "{text} at {now}");
        }
    }

    #[test]
    fn an_hour_that_is_left_out_is_later_by_as_much() {
        let expected = When::Absolute("2026-03-29T03:30:00+02:00".parse().unwrap());
        for text in ["02:30", "2:30am", "today 02:30", "2026-03-29 02:30", "2026-03-29T02:30:00"] {
            assert_eq!(parse(text, &in_berlin("2026-03-29T01:50:00+01:00")).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn the_past_and_nonsense_are_refused() {
        for (text, part) in [
            ("2020-01-01T00:00:00Z", "in the past (2020-01-01 01:00)"),
            ("today 6am", "in the past (06:00)"),
            ("+0s", "leaves no time"),
            ("soon", "cannot read the deadline 'soon'"),
            ("", "cannot read"),
            ("25:00", "cannot read"),
            ("13pm", "cannot read"),
            ("6:60", "cannot read"),
            ("tomorrow", "cannot read"),
            ("yesterday 06:00", "cannot read"),
            ("-5m", "cannot read"),
            ("5m ago", "cannot read"),
            ("1mo", "cannot read"),
            ("12", "cannot read"),
        ] {
            let error = parse(text, &now()).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn clocks_are_shown_as_short_as_they_may_be() {
        let show = |text: &str| show(text.parse().unwrap(), &now());
        assert_eq!(show("2026-11-21T21:31:00Z"), "22:31:00");
        assert_eq!(show("2026-11-21T22:45:00Z"), "23:45");
        assert_eq!(show("2026-11-22T05:00:00Z"), "2026-11-22 06:00");
    }
}
