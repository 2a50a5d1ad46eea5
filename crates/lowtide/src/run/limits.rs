// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--window`, `--cap` and `--max-rate`: when a transfer may press, and how fast.

use anyhow::{Result, anyhow, bail};
use jiff::{Timestamp, tz::TimeZone};
use lowtide_deadline::{Calendar, Rates, Time};
use lowtide_kernel::Direction;

use super::clock::Clock;
use crate::{cli::LimitArguments, hours::Rules, operate::directory::slug};

/// When a transfer may press, and how fast.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) rules: Rules,
    /// Bytes per second, at any time.
    most: Option<f64>,
    /// `--group`.
    pub(super) group: Option<String>,
    /// When the rules last became a calendar.
    pub(super) renewed: Time,
}

/// As options say it.
pub(super) fn limits(arguments: &LimitArguments, direction: Direction) -> Result<Limits> {
    let rules = Rules::parse(&arguments.window, &arguments.cap)?;
    let rate = |text: &str| text.parse::<lowtide_net::Rate>().map_err(|error| anyhow!("--max-rate: {error}"));
    let most = arguments.max_rate.as_deref().map(rate).transpose()?;
    for (option, given) in [("--max-rate", most.is_some()), ("--cap", !rules.caps.is_empty())] {
        if given {
            check_that_it_sends(option, direction)?;
        }
    }
    let most = most.map(|rate| rate.bits_per_second() as f64 / 8.0);
    if most.is_some_and(|most| most < 1.0) {
        bail!("--max-rate leaves less than a byte per second; lowtide pause holds a transfer back");
    }
    Ok(Limits { rules, most, group: arguments.group.as_deref().map(slug), renewed: Time::ZERO })
}

/// Limits on the rate act on what is sent.
pub(super) fn check_that_it_sends(what: &str, direction: Direction) -> Result<()> {
    if direction == Direction::Down {
        bail!(
            "{what} holds back only what is sent, and this transfer is a download; a later --deadline makes it gentler"
        );
    }
    Ok(())
}

impl Limits {
    /// The rate that is aimed for at the most.
    pub(super) fn rates(&self) -> Rates {
        Rates { least: None, most: self.most }
    }

    /// The rules from the transfer's start on, by the wall clock as it is set now.
    pub(super) fn calendar(&self, clock: &Clock, deadline: Option<Timestamp>) -> Calendar {
        let (from, now) = (clock.wall(Time::ZERO), clock.wall(clock.now()));
        self.rules.calendar(from, now, deadline, &TimeZone::system(), |at| clock.time_of(at))
    }
}
