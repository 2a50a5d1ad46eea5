// SPDX-License-Identifier: MIT OR Apache-2.0
//! `WHEN`: points in time as people write them, and as they read them.

use anyhow::{Result, bail};
use jiff::{Span, Timestamp, Zoned, civil};

/// Reads `06:00` (the next time that a local clock shows it), RFC 3339, a local date and time, or `+2h30m` and `90s` from `now`.
///
/// # Errors
/// One sentence: unreadable, or not in the future.
pub fn parse(text: &str, now: &Zoned) -> Result<Timestamp> {
    let when = instant(text, now)?;
    if when <= now.timestamp() {
        bail!("--deadline {text} lies in the past ({}); give a time to come", show(when, now));
    }
    Ok(when)
}

fn instant(text: &str, now: &Zoned) -> Result<Timestamp> {
    if let Ok(time) = text.parse::<civil::Time>()
        && text.contains(':')
    {
        let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone())?;
        if &today > now {
            return Ok(today.timestamp());
        }
        return Ok(now.date().tomorrow()?.to_datetime(time).to_zoned(now.time_zone().clone())?.timestamp());
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp);
    }
    if let Ok(local) = text.parse::<civil::DateTime>() {
        return Ok(local.to_zoned(now.time_zone().clone())?.timestamp());
    }
    let from_now = text.strip_prefix('+').unwrap_or(text);
    if from_now.starts_with(|c: char| c.is_ascii_digit())
        && let Ok(span) = from_now.parse::<Span>()
        && let Ok(then) = now.checked_add(span)
    {
        return Ok(then.timestamp());
    }
    bail!("cannot read the deadline '{text}'; write 06:00, 2026-11-22T06:00:00Z, +2h30m or 90s")
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

    #[test]
    fn every_way_to_say_it() {
        for (text, expected) in [
            ("06:00", "2026-11-22T05:00:00Z"),
            ("23:15", "2026-11-21T22:15:00Z"),
            ("22:30", "2026-11-22T21:30:00Z"),
            ("06:00:30", "2026-11-22T05:00:30Z"),
            ("2026-11-22T06:00:00+01:00", "2026-11-22T05:00:00Z"),
            ("2026-11-22T05:00:00Z", "2026-11-22T05:00:00Z"),
            ("2026-11-22 06:00", "2026-11-22T05:00:00Z"),
            ("+2h30m", "2026-11-22T00:00:00Z"),
            ("90s", "2026-11-21T21:31:30Z"),
            ("+1d", "2026-11-22T21:30:00Z"),
        ] {
            assert_eq!(parse(text, &now()).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn the_past_and_nonsense_are_refused() {
        for (text, part) in [
            ("2020-01-01T00:00:00Z", "in the past"),
            ("+0s", "in the past"),
            ("soon", "cannot read the deadline 'soon'"),
            ("", "cannot read"),
            ("25:00", "cannot read"),
            ("-5m", "cannot read"),
            ("12", "cannot read"),
        ] {
            let error = parse(text, &now()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
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
