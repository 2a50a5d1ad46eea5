// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flows send, as short texts: `greedy`, `cbr:bytes=20kB,interval=40ms`, `web:load=30mbit`.

use super::{
    BoundedPareto, trace,
    values::{SourceError, bytes, number, rate, time, time_or_none, whole},
};
use lowtide_net::{BufferSize, Rate, units::format_duration};
use std::{fmt, path::Path, str::FromStr, sync::Arc, time::Duration};

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `greedy`: as much as it can.
    Greedy,
    /// `sized:10MB`: so many bytes.
    Sized(u64),
    /// `cbr:bytes=20kB,interval=40ms` or `cbr:bytes=20kB,rate=4mbit`: frames at a constant rate, each sent as one burst
    /// of packets.
    Constant {
        /// Payload bytes of a frame.
        bytes: u64,
        /// Time between frames.
        interval: Duration,
    },
    /// `poisson:bytes=1450B,mean=23.2ms` or `poisson:rate=500kbit`: frames of `bytes` payload with exponentially
    /// distributed gaps.
    Poisson {
        /// Payload bytes.
        bytes: u64,
        /// Mean gap.
        mean: Duration,
    },
    /// `onoff:on=1s,off=2s`: greedy while on, with exponentially distributed times.
    OnOff {
        /// Mean time on.
        on: Duration,
        /// Mean time off.
        off: Duration,
    },
    /// `web:load=30mbit`: web-like sessions.
    Web(Web),
    /// `connections:size=60kB,count=9`: a connection for each of several parts.
    Connections(Connections),
    /// `trace:FILE` or `at:0s=1500B,2.5s=1MB`: so many bytes at such a time after the flow's start, in the order of
    /// time.
    Trace(Arc<[(Duration, u64)]>),
}

/// Web-like sessions. They begin as a Poisson process. Each asks for a geometrically distributed number of pages, one
/// after the other, each over a new connection, and thinks for an exponentially distributed time before each but the
/// first. Written `web:load=30mbit,mean=12.5kB,alpha=1.2,max=10MB,pages=3,think=1s`; all but the load may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Web {
    /// Mean offered load: payload of all pages.
    pub load: Rate,
    /// Sizes of pages in bytes; their mean, exponent and largest are `mean`, `alpha` and `max`.
    pub sizes: BoundedPareto,
    /// Mean number of pages in a session, at least 1.
    pub pages: f64,
    /// Mean time between the end of a page and the request for the next one.
    pub think: Duration,
}

impl Default for Web {
    /// 37.5 kB in a session: what the load and the sessions per second of the traces come to that the framework's
    /// authors replayed. The exponent is that which Crovella and Bestavros found for files on the web (1997: 1.0 to
    /// 1.3).
    fn default() -> Self {
        Self {
            load: Rate::from_bits_per_second(10_000_000).expect("above zero"),
            sizes: BoundedPareto::new(12_500.0, 1.2, 10e6).expect("a mean below the largest"),
            pages: 3.0,
            think: Duration::from_secs(1),
        }
    }
}

impl Web {
    /// How many sessions begin in a second, in the mean.
    pub fn sessions_per_second(&self) -> f64 {
        self.load.bits_per_second() as f64 / (8.0 * self.sizes.mean() * self.pages)
    }

    /// The size of a page in bytes, at least 1, for a uniform `u` from 0 to less than 1.
    pub fn size(&self, u: f64) -> u64 {
        (self.sizes.quantile(u).round() as u64).max(1)
    }
}

/// A transfer that a program makes over connections of one size, one for each part, as it does for many files. Written
/// `connections:size=60kB,count=9,parallel=3,think=200ms` or `connections:size=60kB,count=9,rate=200`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connections {
    /// Payload bytes of each; `size` times `count` is a number of 64 bits.
    pub size: u64,
    /// How many in all, above zero.
    pub count: u32,
    /// When they begin.
    pub arrivals: Arrivals,
}

/// When a program opens the connections of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many workers open one after the other.
    Workers {
        /// How many, above zero: so many connections are under way at the most.
        parallel: u32,
        /// From the end of a connection to the beginning of its worker's next one.
        think: Duration,
    },
    /// So many begin in a second, above zero, at equal distances, whether or not those before are over.
    Rate(f64),
}

const NAMES: [&str; 9] = ["greedy", "sized", "cbr", "poisson", "onoff", "web", "connections", "trace", "at"];

/// Each leaves a line in the results.
const MOST_CONNECTIONS: u32 = 1_000_000;

/// Payload of a frame that says nothing of it: a datagram that fits into one packet.
const FRAME: u64 = 1450;

impl Source {
    /// Whether it sends at times of its own, so that datagrams can carry it.
    pub const fn is_timed(&self) -> bool {
        matches!(self, Self::Constant { .. } | Self::Poisson { .. } | Self::Trace(_))
    }

    /// The bytes of the transfer that it makes; `None`: it makes none, and sends for as long as it is let, or at its
    /// times.
    pub const fn size(&self) -> Option<u64> {
        match self {
            Self::Sized(size) => Some(*size),
            Self::Connections(Connections { size, count, .. }) => Some(*size * *count as u64),
            _ => None,
        }
    }

    /// Whether it opens a connection for each part of what it sends, so that one flow has several.
    pub const fn opens_connections(&self) -> bool {
        matches!(self, Self::Web(_) | Self::Connections(_))
    }

    /// Reads the text of the file that `trace:FILE` names: CSV with the header `time_s,bytes`. `name` is the file's,
    /// for messages.
    ///
    /// # Errors
    /// Another header, a line that is no time and bytes, times that fall, no entry, or more than 1,000,000.
    pub fn from_csv(name: &str, text: &[u8]) -> Result<Self, SourceError> {
        trace::parse(name, text).map(Self::Trace)
    }

    /// Reads a source. The file of a trace is looked for in `folder`.
    ///
    /// # Errors
    /// An unknown name or parameter, a value that is not possible, or a trace that cannot be read.
    pub fn read(text: &str, folder: &Path) -> Result<Self, SourceError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "greedy" if rest.is_empty() => Ok(Self::Greedy),
            "greedy" => Err(SourceError("greedy has no parameters".into())),
            "sized" => Ok(Self::Sized(bytes(rest)?)),
            "trace" if rest.is_empty() => Err(SourceError("trace needs a file; write it like trace:FILE".into())),
            "trace" => trace::read(&folder.join(rest)).map(Self::Trace),
            "at" => trace::inline(rest).map(Self::Trace),
            "cbr" => {
                let mut given = Given::read(name, rest)?;
                let (bytes, interval) = given.frames("interval")?;
                given.finish().map(|()| Self::Constant { bytes, interval })
            }
            "poisson" => {
                let mut given = Given::read(name, rest)?;
                let (bytes, mean) = given.frames("mean")?;
                given.finish().map(|()| Self::Poisson { bytes, mean })
            }
            "onoff" => {
                let mut given = Given::read(name, rest)?;
                let on = given.take("on", time)?.unwrap_or(Duration::from_secs(1));
                let off = given.take("off", time)?.unwrap_or(Duration::from_secs(1));
                given.finish().map(|()| Self::OnOff { on, off })
            }
            "web" => {
                let mut given = Given::read(name, rest)?;
                let web = given.web()?;
                given.finish().map(|()| Self::Web(web))
            }
            "connections" => {
                let mut given = Given::read(name, rest)?;
                let connections = given.connections()?;
                given.finish().map(|()| Self::Connections(connections))
            }
            _ => Err(SourceError(super::tree::unknown("source", name, &NAMES))),
        }
    }
}

impl FromStr for Source {
    type Err = SourceError;

    /// [`Source::read`] from the current directory.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        Self::read(text, Path::new(""))
    }
}

impl fmt::Display for Source {
    /// All parameters with their values; a trace as `at:…`, so that no file is needed to read it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: &u64| BufferSize::Bytes(*bytes);
        let time = |time: &Duration| format_duration(*time);
        match self {
            Self::Greedy => f.write_str("greedy"),
            Self::Sized(size) => write!(f, "sized:{}", bytes(size)),
            Self::Constant { bytes: size, interval } => {
                write!(f, "cbr:bytes={},interval={}", bytes(size), time(interval))
            }
            Self::Poisson { bytes: size, mean } => write!(f, "poisson:bytes={},mean={}", bytes(size), time(mean)),
            Self::OnOff { on, off } => write!(f, "onoff:on={},off={}", time(on), time(off)),
            Self::Web(Web { load, sizes, pages, think }) => write!(
                f,
                "web:load={load},mean={},alpha={},max={},pages={pages},think={}",
                bytes(&(sizes.mean() as u64)),
                sizes.alpha(),
                bytes(&(sizes.largest() as u64)),
                time(think)
            ),
            Self::Connections(Connections { size, count, arrivals }) => {
                write!(f, "connections:size={},count={count}", bytes(size))?;
                match arrivals {
                    Arrivals::Workers { parallel, think } => write!(f, ",parallel={parallel},think={}", time(think)),
                    Arrivals::Rate(rate) => write!(f, ",rate={rate}"),
                }
            }
            Self::Trace(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(at, size)| format!("{}={}", time(at), bytes(size))).collect();
                write!(f, "at:{}", entries.join(","))
            }
        }
    }
}

/// What is written after a source's name.
struct Given<'a> {
    name: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
    asked: Vec<&'static str>,
}

impl<'a> Given<'a> {
    fn read(name: &'a str, text: &'a str) -> Result<Self, SourceError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` of {name} has no value; write it like key=value"))?;
            if pairs.iter().any(|pair| pair.0 == key) {
                return Err(SourceError(format!("{key} of {name} is given twice")));
            }
            pairs.push((key, value));
        }
        Ok(Self { name, pairs, asked: Vec::new() })
    }

    fn take<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, SourceError>,
    ) -> Result<Option<T>, SourceError> {
        self.asked.push(key);
        let Some(at) = self.pairs.iter().position(|pair| pair.0 == key) else { return Ok(None) };
        let value = self.pairs.remove(at).1;
        read(value).map(Some).map_err(|error| SourceError(format!("{key} of {}: {error}", self.name)))
    }

    /// Bytes of a frame, and the time between two, which may be given as a rate.
    fn frames(&mut self, gap: &'static str) -> Result<(u64, Duration), SourceError> {
        let size = self.take("bytes", bytes)?.unwrap_or(FRAME);
        let (between, rate) = (self.take(gap, time)?, self.take("rate", rate)?);
        let between = match (between, rate) {
            (Some(between), None) => between,
            (None, Some(rate)) => {
                let nanos = u128::from(size) * 8_000_000_000 / u128::from(rate.bits_per_second());
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            _ => return Err(SourceError(format!("{} needs either {gap}=… or rate=…", self.name))),
        };
        if between.is_zero() {
            return Err(SourceError(format!("{}: this is more than a frame in a nanosecond", self.name)));
        }
        Ok((size, between))
    }

    fn web(&mut self) -> Result<Web, SourceError> {
        let usual = Web::default();
        let load = self.take("load", rate)?.ok_or_else(|| "web needs a load, like web:load=30mbit".to_owned())?;
        let mean = self.take("mean", bytes)?.map_or(usual.sizes.mean(), |mean| mean as f64);
        let alpha = self.take("alpha", |text| number(text, 0.1, 10.0))?.unwrap_or(usual.sizes.alpha());
        let largest = self.take("max", bytes)?.map_or(usual.sizes.largest(), |largest| largest as f64);
        let sizes = BoundedPareto::new(mean, alpha, largest)
            .ok_or_else(|| "mean of web has to be less than its max, which is 10MB unless given".to_owned())?;
        let pages = self.take("pages", |text| number(text, 1.0, 1e6))?.unwrap_or(usual.pages);
        let think = self.take("think", time_or_none)?.unwrap_or(usual.think);
        Ok(Web { load, sizes, pages, think })
    }

    fn connections(&mut self) -> Result<Connections, SourceError> {
        let needs = |what: &str| format!("connections needs a {what}, like connections:size=60kB,count=9");
        let size = self.take("size", bytes)?.ok_or_else(|| needs("size"))?;
        let count = self.take("count", |text| whole(text, MOST_CONNECTIONS))?.ok_or_else(|| needs("count"))?;
        if size.checked_mul(count.into()).is_none() {
            return Err(SourceError("connections: size times count is more than 18 EB".into()));
        }
        let parallel = self.take("parallel", |text| whole(text, MOST_CONNECTIONS))?;
        let think = self.take("think", time_or_none)?;
        let rate = self.take("rate", |text| number(text, 0.001, 1e6))?;
        let arrivals = match (rate, parallel, think) {
            (None, parallel, think) => {
                Arrivals::Workers { parallel: parallel.unwrap_or(1), think: think.unwrap_or_default() }
            }
            (Some(rate), None, None) => Arrivals::Rate(rate),
            _ => return Err(SourceError("connections: with a rate nobody waits; leave out parallel and think".into())),
        };
        Ok(Connections { size, count, arrivals })
    }

    /// Nothing may be left over.
    fn finish(self) -> Result<(), SourceError> {
        match self.pairs.first() {
            Some((key, _)) => {
                Err(SourceError(super::tree::unknown(&format!("{} parameter", self.name), key, &self.asked)))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn connections(arrivals: Arrivals) -> Source {
        Source::Connections(Connections { size: 60_000, count: 9, arrivals })
    }

    #[test]
    fn sources_are_read() {
        let table = [
            ("greedy", Source::Greedy),
            ("sized:10MB", Source::Sized(10_000_000)),
            ("cbr:bytes=20kB,interval=40ms", Source::Constant { bytes: 20_000, interval: ms(40) }),
            ("cbr:rate=4mbit,bytes=20kB", Source::Constant { bytes: 20_000, interval: ms(40) }),
            ("poisson:mean=23.2ms", Source::Poisson { bytes: 1450, mean: Duration::from_micros(23_200) }),
            ("onoff:off=3s", Source::OnOff { on: ms(1000), off: ms(3000) }),
            ("at:0s=1500B,2.5s=1MB", Source::Trace([(ms(0), 1500), (ms(2500), 1_000_000)].into())),
            ("web:load=10mbit", Source::Web(Web::default())),
            ("connections:size=60kB,count=9", connections(Arrivals::Workers { parallel: 1, think: ms(0) })),
            (
                "connections:size=60kB,parallel=3,count=9,think=200ms",
                connections(Arrivals::Workers { parallel: 3, think: ms(200) }),
            ),
            ("connections:rate=0.3,size=60kB,count=9", connections(Arrivals::Rate(0.3))),
        ];
        for (text, source) in table {
            assert_eq!(text.parse(), Ok(source.clone()), "{text}");
            assert_eq!(source.to_string().parse(), Ok(source), "{text}");
        }
        assert_eq!(
            Source::Web(Web::default()).to_string(),
            "web:load=10mbit,mean=12.5kB,alpha=1.2,max=10MB,pages=3,think=1s"
        );
    }

    #[test]
    fn others_are_refused_in_a_sentence() {
        for (text, sentence) in [
            (
                "gready",
                "unknown source `gready`; did you mean `greedy`? There are greedy, sized, cbr, poisson, onoff, web, connections, trace and at",
            ),
            ("greedy:x", "greedy has no parameters"),
            ("sized:10", "\"10\" is not an amount of data; write it like 10MB, 64KiB or 1500B"),
            ("sized:0B", "\"0B\" is not an amount of data; write it like 10MB, 64KiB or 1500B"),
            ("cbr:bytes=1kB", "cbr needs either interval=… or rate=…"),
            ("cbr:rate=1mbit,interval=1ms", "cbr needs either interval=… or rate=…"),
            ("cbr:rate=1000gbit,bytes=1B", "cbr: this is more than a frame in a nanosecond"),
            ("cbr:rat=1mbit", "cbr needs either interval=… or rate=…"),
            (
                "cbr:rate=1mbit,byte=1B",
                "unknown cbr parameter `byte`; did you mean `bytes`? There are bytes, interval and rate",
            ),
            ("cbr:rate=1mbit,rate=2mbit", "rate of cbr is given twice"),
            ("cbr:4mbit", "`4mbit` of cbr has no value; write it like key=value"),
            ("poisson:mean=0s", "mean of poisson: it has to be above zero"),
            ("onoff:on=5", "on of onoff: \"5\" is not a length of time; write it like 40ms or 250us"),
            ("web", "web needs a load, like web:load=30mbit"),
            ("web:load=1mbit,alpha=0", "alpha of web: \"0\" is not a number from 0.1 to 10"),
            ("web:load=1mbit,mean=20MB", "mean of web has to be less than its max, which is 10MB unless given"),
            ("connections:count=9", "connections needs a size, like connections:size=60kB,count=9"),
            ("connections:size=60kB", "connections needs a count, like connections:size=60kB,count=9"),
            ("connections:size=60kB,count=0", "count of connections: \"0\" is not a whole number from 1 to 1000000"),
            (
                "connections:size=60kB,count=9,parallel=1.5",
                "parallel of connections: \"1.5\" is not a whole number from 1 to 1000000",
            ),
            (
                "connections:size=60kB,count=9,rate=0",
                "rate of connections: \"0\" is not a number from 0.001 to 1000000",
            ),
            (
                "connections:size=60kB,count=9,rate=1,think=1s",
                "connections: with a rate nobody waits; leave out parallel and think",
            ),
            ("connections:size=10000000000GB,count=9", "connections: size times count is more than 18 EB"),
            (
                "connections:size=1kB,count=9,paralel=2",
                "unknown connections parameter `paralel`; did you mean `parallel`? There are size, count, parallel, think and rate",
            ),
            ("trace", "trace needs a file; write it like trace:FILE"),
            ("at:1s=1kB,0s=1kB", "at: 0s comes before the entry ahead of it"),
            ("at:", "at needs entries; write them like at:0s=1500B,2.5s=1MB"),
        ] {
            assert_eq!(text.parse::<Source>().unwrap_err().to_string(), sentence, "{text}");
        }
    }

    #[test]
    fn sessions_come_as_often_as_the_load_asks() {
        // 30 Mbit/s in sessions of 37.5 kB
        let Ok(Source::Web(web)) = "web:load=30mbit".parse() else { panic!("it is a web source") };
        assert!((web.sessions_per_second() - 100.0).abs() < 1e-9);
        assert!(web.size(0.0) >= 1 && web.size(0.999_999_9) <= 10_000_000);
    }

    proptest! {
        #[test]
        fn any_text_is_a_source_or_an_error(text in "(greedy|sized|cbr|poisson|onoff|web|connections|at|\\PC*):?[\\PC]*") {
            let _ = text.parse::<Source>();
        }
    }
}
