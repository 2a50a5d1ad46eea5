// SPDX-License-Identifier: MIT OR Apache-2.0
//! `HOURS`: windows and caps by the local clock, as people write them, and what they come to on the days to come.

use std::{fmt, str::FromStr};

use anyhow::{Context, Error, Result, bail};
use jiff::{
    SignedDuration, Timestamp, ToSpan,
    civil::{Date, Time},
    tz::TimeZone,
};
use lowtide_deadline::{Allowance, Calendar};

use crate::when::time_of_day;

/// Windows, and caps, that a transfer has at the most.
const MOST: usize = 16;
/// Days that a calendar reaches beyond the deadline, so that what comes late has a time, too.
const BEYOND_DAYS: i64 = 15;
/// Days that it reaches from now at the most; from then on it stays as it is at its end.
const FARTHEST_DAYS: i64 = 400;
/// The days by their short names, in the order of `Weekday`.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Hours of the day, on some days of the week. Where they pass midnight they belong to the day on which they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours {
    days: [bool; 7],
    from: Time,
    /// On the next day where it is not after `from`.
    until: Time,
    /// As it was written.
    text: String,
}

impl FromStr for Hours {
    type Err = Error;

    /// Reads `22:00-06:00`, `mon-fri 8am-6pm`, `sat,sun 00:00-24:00`.
    fn from_str(text: &str) -> Result<Hours> {
        let text = text.trim().to_lowercase();
        let (days, hours) = text.rsplit_once(' ').map_or(("", text.as_str()), |(days, hours)| (days.trim_end(), hours));
        let how = "write 22:00-06:00, or mon-fri 08:00-18:00";
        let (from, until) = hours.split_once('-').with_context(|| format!("cannot read the hours '{text}'; {how}"))?;
        if from == until {
            bail!("the hours '{text}' begin and end at once; write 00:00-24:00 for the whole day");
        }
        let time = |text: &str| time_of_day(text).with_context(|| format!("cannot read the time '{text}'; {how}"));
        let until = if until == "24:00" { Time::midnight() } else { time(until)? };
        Ok(Hours { days: parse_days(days)?, from: time(from)?, until, text })
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_days(text: &str) -> Result<[bool; 7]> {
    let mut days = [text.is_empty(); 7];
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let day = |name: &str| {
            let found = DAYS.iter().position(|day| *day == name.trim());
            found.with_context(|| format!("cannot read the day '{name}'; the days are {}", DAYS.join(", ")))
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        (0..=(last + 7 - first) % 7).for_each(|n| days[(first + n) % 7] = true);
    }
    Ok(days)
}

impl Hours {
    /// When they begin and end, if they do on this day. Where clocks are put forward meanwhile, what is left out comes
    /// later by as much; of an hour that is repeated they begin with the first and end with the last.
    fn on(&self, day: Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
        let weekday = day.weekday().to_monday_zero_offset() as usize;
        let last = if self.until <= self.from { day.tomorrow().ok()? } else { day };
        let begin = zone.to_ambiguous_timestamp(day.to_datetime(self.from)).compatible().ok()?;
        let end = zone.to_ambiguous_timestamp(last.to_datetime(self.until)).later().ok()?;
        (self.days[weekday] && begin < end).then_some((begin, end))
    }

    /// All of them that end after one instant and begin before the other.
    fn between(&self, from: Timestamp, until: Timestamp, zone: &TimeZone) -> Vec<(Timestamp, Timestamp)> {
        let first = from.to_zoned(zone.clone()).date().saturating_sub(2.days());
        let last = until.to_zoned(zone.clone()).date();
        let days = first.series(1.day()).take_while(|day| *day <= last);
        days.filter_map(|day| self.on(day, zone)).filter(|(begin, end)| *end > from && *begin < until).collect()
    }
}

/// Hours with a cap: `08:00-18:00=5mbit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    hours: Hours,
    /// Bits per second.
    bps: u64,
    rate: String,
}

impl FromStr for Cap {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cap> {
        let how = "write 08:00-18:00=5mbit";
        let (hours, rate) = text.split_once('=').with_context(|| format!("the cap '{text}' has no rate; {how}"))?;
        let bps = rate.trim().parse::<lowtide_net::Rate>().map_err(|error| anyhow::anyhow!("{error}; {how}"))?;
        let bps = bps.bits_per_second();
        if bps < 8 {
            bail!("the cap '{text}' leaves less than a byte per second; give a --window in place of it");
        }
        Ok(Cap { hours: hours.parse()?, bps, rate: rate.trim().to_lowercase() })
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.hours, self.rate)
    }
}

/// When a transfer may press, and how fast it may be then. Without windows it always may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// It may press in any of them.
    pub windows: Vec<Hours>,
    /// Of several at a time the least holds.
    pub caps: Vec<Cap>,
}

impl Rules {
    /// Reads what options and requests say.
    ///
    /// # Errors
    /// One sentence: unreadable, or too many.
    pub fn parse(windows: &[String], caps: &[String]) -> Result<Rules> {
        if windows.len() > MOST || caps.len() > MOST {
            bail!("more than {MOST} windows or caps; join some of them");
        }
        Ok(Rules {
            windows: windows.iter().map(|text| text.parse().context("--window")).collect::<Result<_>>()?,
            caps: caps.iter().map(|text| text.parse().context("--cap")).collect::<Result<_>>()?,
        })
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        *self == Rules::default()
    }

    /// What they come to from an instant on, up to some days past the present and the deadline. `time_of`: the
    /// governor's clock.
    pub fn calendar(
        &self,
        from: Timestamp,
        now: Timestamp,
        deadline: Option<Timestamp>,
        zone: &TimeZone,
        time_of: impl Fn(Timestamp) -> lowtide_deadline::Time,
    ) -> Calendar {
        if self.is_empty() {
            return Calendar::default();
        }
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        let farthest = now.saturating_add(days(FARTHEST_DAYS)).unwrap_or(Timestamp::MAX);
        let until = deadline.unwrap_or(now).max(now).saturating_add(days(BEYOND_DAYS)).unwrap_or(Timestamp::MAX);
        let until = until.min(farthest);
        // how many windows, and each of the caps, are in force from an instant on
        let mut steps: Vec<(Timestamp, Option<usize>, i32)> = Vec::new();
        let rules = self.windows.iter().map(|hours| (hours, None));
        for (hours, cap) in rules.chain(self.caps.iter().enumerate().map(|(n, cap)| (&cap.hours, Some(n)))) {
            for (begin, end) in hours.between(from, until, zone) {
                steps.extend([(begin.max(from), cap, 1), (end, cap, -1)]);
            }
        }
        steps.push((from, None, 0));
        steps.sort_unstable();
        let (mut open, mut in_force) = (0, vec![0; self.caps.len()]);
        let mut entries = Vec::new();
        for same in steps.chunk_by(|a, b| a.0 == b.0) {
            for (_, cap, step) in same {
                *cap.map_or(&mut open, |n| &mut in_force[n]) += step;
            }
            let caps = self.caps.iter().zip(&in_force).filter(|(_, number)| **number > 0);
            let most = caps.map(|(cap, _)| cap.bps as f64 / 8.0).reduce(f64::min);
            entries.push((time_of(same[0].0), Allowance { open: open > 0 || self.windows.is_empty(), most }));
        }
        Calendar::new(entries)
    }
}

/// What is written as text, for a status and for the report.
pub fn texts<T: ToString>(rules: &[T]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
