// SPDX-License-Identifier: MIT OR Apache-2.0
//! rsync: bytes sent so far, and what part of all files that is, in whole percent. From where one percent gives way to
//! the next the total follows.

use super::Progress;

/// Units of `--human-readable`, each 1000 times the one before.
const UNITS: [char; 5] = ['K', 'M', 'G', 'T', 'P'];

/// What the total can be, by the lines so far.
#[derive(Debug, Default)]
pub(super) struct Total {
    least: u64,
    most: Option<u64>,
}

impl Total {
    /// `9,000,000  66%  3.11MB/s  0:00:01 (xfr#2, to-chk=1/4)`; without what is in brackets in the middle of a file.
    pub(super) fn line(&mut self, line: &str) -> Option<Progress> {
        let mut words = line.split_whitespace();
        let done = bytes(words.next()?)?;
        let percent: u64 = words.next()?.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100)?;
        if !words.next()?.ends_with("B/s") || !words.next()?.contains(':') {
            return None;
        }
        if words.any(|word| word.starts_with("to-chk=0/")) {
            // nothing is left, whatever part of all files was there already
            return Some(Progress { done, total: done });
        }
        self.narrow(done, percent);
        self.most.map(|total| Progress { done, total: total.max(done) })
    }

    /// The percentage is cut off, not rounded: done/total lies between it and the next one.
    fn narrow(&mut self, done: u64, percent: u64) {
        let part = |percent: u64| u64::try_from(u128::from(done) * 100 / u128::from(percent)).unwrap_or(u64::MAX);
        let least = if percent == 100 { done } else { part(percent + 1) };
        let most = (percent > 0).then(|| part(percent));
        let other = least > self.most.unwrap_or(u64::MAX) || most.is_some_and(|most| most < self.least);
        if other {
            // more files have been found, or it is another run
            (self.least, self.most) = (least, most);
        } else {
            self.least = self.least.max(least);
            self.most = [self.most, most].into_iter().flatten().min();
        }
    }
}

/// With the separators of a locale; or with two decimals and a unit.
fn bytes(word: &str) -> Option<u64> {
    if !word.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let Some(power) = UNITS.iter().position(|unit| word.ends_with(*unit)) else {
        return word.replace([',', '.'], "").parse().ok();
    };
    let number = word[..word.len() - 1].replace(',', ".");
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    Some((number.parse::<f64>().ok()? * 1000u64.pow(power as u32 + 1) as f64) as u64)
}
