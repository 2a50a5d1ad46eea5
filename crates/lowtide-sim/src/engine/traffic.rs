// SPDX-License-Identifier: MIT OR Apache-2.0
//! What applications do: when they have how much to send.

mod series;

use crate::scenario::{Source, Web};
use lowtide_cc::Random;
use lowtide_net::Time;
use series::Series;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// What an application asks of its transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Demand {
    /// Send so many bytes more.
    Write(u64),
    /// Send without end.
    Unlimited,
    /// Forget what has not been sent yet.
    Withhold,
    /// That was all.
    Close,
    /// Open a connection for so many bytes.
    Open {
        bytes: u64,
        /// To be given back when all of them are acknowledged.
        task: Task,
    },
}

/// What a connection was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A page of a web session.
    Page(Session),
    /// One of a series of connections.
    Series,
}

/// A web session. It has a generator of its own, so that its pages are the same whatever else the network carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    seed: u64,
    /// Pages that it will still ask for.
    pages_left: u32,
}

/// An application at work.
pub(super) struct Application {
    random: Random,
    /// When the next demand is due, and what it is, for sources that do one thing after another.
    next: Option<(Time, Demand)>,
    kind: Kind,
}

enum Kind {
    /// These demands at once, then nothing.
    Once(Option<Demand>),
    Constant {
        bytes: u64,
        interval: Duration,
    },
    Poisson {
        bytes: u64,
        mean: Duration,
    },
    OnOff {
        on: Duration,
        off: Duration,
    },
    Web(Sessions),
    Series(Series),
    Trace {
        entries: std::sync::Arc<[(Duration, u64)]>,
        position: usize,
        start: Time,
    },
}

impl Application {
    /// An application that begins at `start`.
    pub(super) fn new(source: &Source, start: Time, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let at_once = |demand| Some((start, demand));
        let (next, kind) = match source {
            Source::Greedy => (at_once(Demand::Unlimited), Kind::Once(None)),
            Source::Sized(bytes) => (at_once(Demand::Write(*bytes)), Kind::Once(Some(Demand::Close))),
            Source::Constant { bytes, interval } => {
                (at_once(Demand::Write(*bytes)), Kind::Constant { bytes: *bytes, interval: *interval })
            }
            Source::Poisson { bytes, mean } => {
                let first = start + exponential(&mut random, *mean);
                (Some((first, Demand::Write(*bytes))), Kind::Poisson { bytes: *bytes, mean: *mean })
            }
            Source::OnOff { on, off } => (at_once(Demand::Unlimited), Kind::OnOff { on: *on, off: *off }),
            Source::Web(web) => (None, Kind::Web(Sessions::new(web, start, &mut random))),
            Source::Connections(connections) => (None, Kind::Series(Series::new(connections, start))),
            Source::Trace(entries) => {
                let next = entries.first().map(|(at, bytes)| (start + *at, Demand::Write(*bytes)));
                (next, Kind::Trace { entries: entries.clone(), position: 1, start })
            }
        };
        Self { random, next, kind }
    }

    /// When the next demand is due.
    pub(super) fn next(&self) -> Option<Time> {
        match &self.kind {
            Kind::Web(sessions) => sessions.next(),
            Kind::Series(series) => series.next(),
            _ => self.next.map(|next| next.0),
        }
    }

    /// The next demand that is due by `now`.
    pub(super) fn take(&mut self, now: Time) -> Option<Demand> {
        match &mut self.kind {
            Kind::Web(sessions) => return sessions.take(now, &mut self.random),
            Kind::Series(series) => return series.take(now),
            _ => {}
        }
        let (at, demand) = self.next.take_if(|next| next.0 <= now)?;
        let random = &mut self.random;
        self.next = match &mut self.kind {
            Kind::Once(then) => then.take().map(|demand| (at, demand)),
            Kind::Constant { bytes, interval } => Some((at + *interval, Demand::Write(*bytes))),
            Kind::Poisson { bytes, mean } => Some((at + exponential(random, *mean), Demand::Write(*bytes))),
            Kind::OnOff { on, .. } if demand == Demand::Unlimited => {
                Some((at + exponential(random, *on), Demand::Withhold))
            }
            Kind::OnOff { off, .. } => Some((at + exponential(random, *off), Demand::Unlimited)),
            Kind::Web(_) | Kind::Series(_) => unreachable!("it has a queue of its own"),
            Kind::Trace { entries, position, start } => {
                *position += 1;
                match entries.get(*position - 1) {
                    Some((at, bytes)) => Some((*start + *at, Demand::Write(*bytes))),
                    None if demand == Demand::Close => None,
                    None => Some((at, Demand::Close)),
                }
            }
        };
        Some(demand)
    }

    /// A connection is over. The session whose page it brought thinks, and asks for the next one; so does the worker of
    /// a series.
    pub(super) fn task_done(&mut self, now: Time, task: Task) {
        match (&mut self.kind, task) {
            (Kind::Web(sessions), Task::Page(session)) => sessions.think(now, session),
            (Kind::Series(series), Task::Series) => series.done(now),
            _ => {} // it was stopped
        }
    }

    /// Whether it has opened connections of its own, all of them are over, and no other will come. Web sessions come
    /// for ever.
    pub(super) fn is_over(&self) -> bool {
        matches!(&self.kind, Kind::Series(series) if series.is_over())
    }

    /// It asks for nothing more.
    pub(super) fn stop(&mut self) {
        match &mut self.kind {
            Kind::Series(series) => series.stop(),
            _ => (self.next, self.kind) = (None, Kind::Once(None)),
        }
    }
}

/// Web sessions: they begin as a Poisson process; each asks for a geometric number of pages of bounded-Pareto size, one
/// after the other, and thinks for an exponential time before each but the first.
struct Sessions {
    web: Web,
    next_session: Time,
    mean_gap: Duration,
    /// When sessions that think now ask for their next page; those of the same time in the order in which they began to
    /// think.
    thinking: BinaryHeap<Reverse<(Time, u64)>>,
    /// Those sessions, by the number in `thinking`.
    thinkers: BTreeMap<u64, Session>,
    thoughts: u64,
}

impl Sessions {
    fn new(web: &Web, start: Time, random: &mut Random) -> Self {
        let mean_gap = Duration::from_secs_f64(1.0 / web.sessions_per_second());
        let next_session = start + exponential(random, mean_gap);
        Self {
            web: web.clone(),
            next_session,
            mean_gap,
            thinking: BinaryHeap::new(),
            thinkers: BTreeMap::new(),
            thoughts: 0,
        }
    }

    fn next(&self) -> Option<Time> {
        let thought = self.thinking.peek().map_or(Time::NEVER, |next| next.0.0);
        Some(self.next_session.min(thought))
    }

    fn take(&mut self, now: Time, random: &mut Random) -> Option<Demand> {
        let session = if let Some(Reverse((at, number))) = self.thinking.peek().copied()
            && at <= now
        {
            self.thinking.pop();
            self.thinkers.remove(&number)?
        } else if self.next_session <= now {
            self.next_session = self.next_session + exponential(random, self.mean_gap);
            let mut own = Random::new(random.bits());
            let pages_left = geometric(&mut own, self.web.pages);
            Session { seed: own.bits(), pages_left }
        } else {
            return None;
        };
        let mut own = Random::new(session.seed);
        let bytes = self.web.size(own.uniform());
        let session = Session { seed: own.bits(), pages_left: session.pages_left - 1 };
        Some(Demand::Open { bytes, task: Task::Page(session) })
    }

    fn think(&mut self, now: Time, session: Session) {
        if session.pages_left > 0 {
            let mut own = Random::new(session.seed);
            let at = now + exponential(&mut own, self.web.think);
            self.thoughts += 1;
            self.thinking.push(Reverse((at, self.thoughts)));
            self.thinkers.insert(self.thoughts, Session { seed: own.bits(), ..session });
        }
    }
}

/// A time with an exponential distribution.
fn exponential(random: &mut Random, mean: Duration) -> Duration {
    Duration::from_nanos((-libm::log(1.0 - random.uniform()) * mean.as_nanos() as f64) as u64)
}

/// A number from 1 on with a geometric distribution.
fn geometric(random: &mut Random, mean: f64) -> u32 {
    if mean <= 1.0 {
        return 1;
    }
    (libm::log(1.0 - random.uniform()) / libm::log(1.0 - 1.0 / mean)) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Everything that it asks for until `end`.
    fn demands(source: &Source, end: Time) -> Vec<(u64, Demand)> {
        let mut application = Application::new(source, ms(10), 7);
        let mut all = Vec::new();
        while let Some(now) = application.next().filter(|next| *next <= end) {
            let demand = application.take(now).expect("it is due");
            all.push((now.as_nanos() / 1_000_000, demand));
        }
        all
    }

    #[test]
    fn each_source_asks_for_what_it_is() {
        assert_eq!(demands(&Source::Greedy, ms(99)), [(10, Demand::Unlimited)]);
        assert_eq!(demands(&Source::Sized(5), ms(99)), [(10, Demand::Write(5)), (10, Demand::Close)]);
        let frames = Source::Constant { bytes: 9, interval: Duration::from_millis(40) };
        assert_eq!(demands(&frames, ms(99)), [10, 50, 90].map(|at| (at, Demand::Write(9))));
        let trace = [(Duration::ZERO, 1), (Duration::from_millis(5), 2)];
        let expected = [(10, Demand::Write(1)), (15, Demand::Write(2)), (15, Demand::Close)];
        assert_eq!(demands(&Source::Trace(trace.into()), ms(99)), expected);
    }

    #[test]
    fn on_and_off_take_turns() {
        let source = Source::OnOff { on: Duration::from_millis(20), off: Duration::from_millis(60) };
        let all = demands(&source, ms(80_000));
        assert!(all.chunks_exact(2).all(|pair| pair[0].1 == Demand::Unlimited && pair[1].1 == Demand::Withhold));
        // 1000 periods of 80 ms; their standard deviation is sqrt(20² + 60²) ms, so five deviations are 12.5 %
        assert!((875..1125).contains(&(all.len() / 2)), "{}", all.len() / 2);
    }

    #[test]
    fn poisson_has_its_mean() {
        let source = Source::Poisson { bytes: 1, mean: Duration::from_millis(10) };
        let number = demands(&source, ms(100_010)).len();
        assert!((9500..10_500).contains(&number), "{number}"); // five deviations of 100
    }

    #[test]
    fn sessions_offer_their_load_and_go_on_when_a_page_has_come() {
        let web = Web::default();
        let mut application = Application::new(&Source::Web(web.clone()), Time::ZERO, 3);
        let (mut bytes, mut pages, end) = (0.0, 0, 4_000_000);
        while let Some(now) = application.next().filter(|next| *next <= ms(end)) {
            let Some(Demand::Open { bytes: size, task }) = application.take(now) else { panic!("a page") };
            (bytes, pages) = (bytes + size as f64, pages + 1);
            application.task_done(now, task);
        }
        assert!(pages > 10_000, "{pages}");
        let offered = bytes * 8.0 / (end as f64 / 1e3) / web.load.bits_per_second() as f64;
        assert!((0.8..1.2).contains(&offered), "{offered} of the load, {pages} pages");
    }
}
