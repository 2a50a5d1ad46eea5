// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limit on the rate of all sockets together, divided among them: each may send up to one level, at which those that
//! could send more use up what the other sockets leave.

use lowtide_deadline::Time;

/// What was sent above the limit is made up for within this.
const MEND_S: f64 = 1.0;
/// What was left below it is not saved up for longer than this ...
const SAVED_S: f64 = 0.25;
/// ... or than this, where there was more to send: a law that probes the path, or yields, sends hardly anything for a
/// second, and the limit is what goes over some seconds.
const SAVED_WANTING_S: f64 = 2.0;
/// What was saved goes at no more than so many times the limit.
const MEND_MOST: f64 = 1.25;
/// And the level follows no excess of more than this.
const EXCESS_S: f64 = 2.0;
/// While an excess is made up for, this part of the limit is left.
const LEAST_PART: f64 = 0.1;
/// How fast, per look, the level rises where those that it holds back do not use it up, as when a law sends a few
/// segments at a time; in parts of what is unused.
const RISE: f64 = 0.1;
/// But where more than this part is unused, the law yields or probes: it would use a higher level no more.
const YIELDS: f64 = 0.5;
/// By so much at the most.
const RISE_MOST: f64 = 8.0;
/// One connection has no more than so many times the limit: above it, as it may not use that up either.
const ONE_MOST: f64 = 1.5;
/// Gain, per look, of the mean rate by which that is judged.
const MEAN: f64 = 0.25;
/// How fast, per look, sockets are forgotten that the level no longer holds back.
const FORGET: f64 = 0.25;

/// What a paused socket may send, bytes per second. ssh's server says something after 128 kB at the latest: soon enough
/// for a client with ServerAliveInterval=15, which gives up after a minute of silence.
const TRICKLE_MOST: u32 = 8_000;
/// Many sockets have no more together than this, ...
const TRICKLE_TOGETHER: u32 = 64_000;
/// ... but each has this at the least: a segment now and then.
const TRICKLE_LEAST: u32 = 2_000;

/// What one socket may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketLimit {
    /// Bytes per second.
    pub each: u32,
    /// While so many are sending; where there are more, each has its part of that until the next look. 0: each has it,
    /// however many there are.
    pub sockets: u32,
}

impl SocketLimit {
    /// On each of however many sockets, of which so many are sending now: programs and the devices on the path give up
    /// connections that stand still.
    pub(crate) fn trickle(sending: u32) -> SocketLimit {
        SocketLimit { each: (TRICKLE_TOGETHER / sending.max(1)).clamp(TRICKLE_LEAST, TRICKLE_MOST), sockets: 0 }
    }
}

/// The sockets that are held to a limit, at a look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Bytes of all sockets so far, those sent again included.
    pub(crate) sent: u64,
    /// Sockets that are sending, ...
    pub(crate) sending: u32,
    /// ... of which the level holds so many back.
    pub(crate) held: u32,
    /// The program has more to send.
    pub(crate) wanting: bool,
}

/// A limit, and what has been made use of it.
#[derive(Debug)]
pub(crate) struct Ceiling {
    /// Bytes per second.
    most: f64,
    /// Bytes sent above it; below 0: left.
    excess: f64,
    /// Sockets that the level holds back: falls slowly, so that it does not follow each pause of a program.
    held: f64,
    /// Bytes per second, mean of the last looks.
    rate: f64,
    /// Factor on the level: 1 where they use it up.
    rise: f64,
    last: Option<(Time, u64)>,
}

impl Ceiling {
    /// So many bytes per second; greater than 0.
    pub(crate) fn new(most: f64) -> Ceiling {
        Ceiling { most, excess: 0.0, held: 0.0, rate: most, rise: 1.0, last: None }
    }

    pub(crate) fn most(&self) -> f64 {
        self.most
    }

    /// The level from now on.
    pub(crate) fn level(&mut self, now: Time, seen: &Seen) -> SocketLimit {
        let Seen { sent, sending, held, wanting } = *seen;
        match self.last.replace((now, sent)) {
            None => self.held = f64::from(sending), // who could send more is not known yet
            Some((then, before)) => {
                let (seconds, sent) = (now.since(then).as_secs_f64().max(1e-3), sent.saturating_sub(before) as f64);
                let excess = self.excess + sent - self.most * seconds;
                let saved = if wanting { SAVED_WANTING_S } else { SAVED_S };
                self.excess = excess.clamp(-saved * self.most, EXCESS_S * self.most);
                self.rate += MEAN * (sent / seconds - self.rate);
                let unused = match (self.most - self.rate) / self.most {
                    // none is held back, but while a law probes it is unknown whether one would be
                    _ if held == 0 && wanting => 0.0,
                    _ if held == 0 => 1.0 - self.rise,
                    unused if unused > YIELDS => 0.0,
                    unused => unused,
                };
                self.rise = (self.rise * (1.0 + RISE * unused.max(-1.0))).clamp(1.0, RISE_MOST);
                if held > 0 || !wanting {
                    self.held += FORGET * (f64::from(held) - self.held);
                }
                self.held = self.held.max(f64::from(held));
            }
        }
        let wanted = (self.most - self.excess / MEND_S).clamp(LEAST_PART * self.most, MEND_MOST * self.most);
        let each = self.rise * wanted / self.held.max(1.0);
        SocketLimit {
            each: each.min(ONE_MOST * wanted).clamp(1.0, f64::from(u32::MAX - 2)) as u32,
            sockets: sending.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MOST: f64 = 625_000.0;

    /// Sockets that would send so much each, bytes per second, and use such a part of the level, for a time; silent for
    /// so many looks of each twenty, as a law that probes is. The mean of all together over its second half, and the
    /// most of a second: of all but the first one, and of the second half.
    fn run(ceiling: &mut Ceiling, demands: &[f64], used: f64, silent: u32, seconds: u32) -> (f64, f64, f64) {
        let (mut sent, mut limit, mut late, mut rows) = (0.0, None::<SocketLimit>, 0.0, Vec::new());
        for look in 0..4 * seconds {
            let each = limit.map_or(f64::INFINITY, |limit| f64::from(limit.each));
            let silent = look % 20 < silent;
            let held = if silent { 0 } else { demands.iter().filter(|demand| **demand > each).count() as u32 };
            // what is acknowledged lags a quarter of a second behind
            sent += late / 4.0;
            late = if silent { 0.0 } else { demands.iter().map(|demand| demand.min(used * each)).sum() };
            rows.push(late);
            let now = Time::ZERO + Duration::from_millis(250) * (look + 1);
            let seen = Seen { sent: sent as u64, sending: demands.len() as u32, held, wanting: held > 0 || silent };
            limit = Some(ceiling.level(now, &seen));
        }
        let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
        let most = |rows: &[f64]| rows.windows(4).map(mean).fold(0.0, f64::max);
        let late = &rows[rows.len() / 2..];
        (mean(late), most(&rows[4..]), most(late))
    }

    #[test]
    fn together_they_have_the_limit_whatever_each_could_send() {
        for demands in [
            &[1e7][..],
            &[1e7; 8],
            &[3e5; 8],                                 // each below the limit, together above it
            &[1e7, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4], // one carries, the others are application-limited
            &[1e7, 1e7, 2e5, 5e4],
        ] {
            for used in [1.0, 0.6] {
                let (mean, most, _) = run(&mut Ceiling::new(MOST), demands, used, 0, 60);
                assert!((mean / MOST - 1.0).abs() < 0.02, "{demands:?} {used}: {mean}");
                assert!(most < 1.3 * MOST, "{demands:?} {used}: {most}");
            }
        }
        let (mean, ..) = run(&mut Ceiling::new(MOST), &[1e4; 4], 1.0, 0, 30);
        assert_eq!(mean, 4e4, "who sends less is not held back");
    }

    /// Half a second in five, and three quarters: Tide on a path whose round trips vary.
    #[test]
    fn what_a_law_leaves_while_it_probes_is_made_up_for() {
        for silent in [1, 2, 3] {
            for demands in [&[1e7][..], &[1e7; 8], &[1e7, 1e4, 1e4, 1e4]] {
                let (mean, _, most) = run(&mut Ceiling::new(MOST), demands, 1.0, silent, 200);
                assert!((mean / MOST - 1.0).abs() < 0.02, "{silent} {demands:?}: {mean}");
                assert!(most < 1.4 * MOST, "{silent} {demands:?}: {most}");
            }
        }
    }

    #[test]
    fn in_a_pause_many_have_little_together_and_each_has_something() {
        let each = |sending| SocketLimit::trickle(sending).each;
        assert_eq!([0, 1, 8, 16, 32, 1000].map(each), [8_000, 8_000, 8_000, 4_000, 2_000, 2_000]);
    }

    #[test]
    fn an_idle_time_is_not_saved_up() {
        let mut ceiling = Ceiling::new(MOST);
        run(&mut ceiling, &[1e7], 1.0, 0, 10);
        let mut seen = Seen { sent: 0, sending: 0, held: 0, wanting: false };
        for second in 11..100 {
            ceiling.level(Time::ZERO + Duration::from_secs(second), &seen);
        }
        seen = Seen { sending: 1, held: 1, ..seen };
        let level = ceiling.level(Time::ZERO + Duration::from_secs(100), &seen);
        assert!(f64::from(level.each) <= 1.26 * ONE_MOST * MOST, "{level:?}");
    }
}
