// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue disciplines by name.

use crate::queue::codel::{Codel, CodelQueue};
use crate::queue::drop_tail::DropTailQueue;
use crate::queue::dualpi2::{DualPi2, DualPi2Queue};
use crate::queue::fq_codel::{FqCodel, FqCodelQueue};
use crate::queue::pie::{Pie, PieQueue};
use crate::queue::priority::PriorityQueue;
use crate::queue::step::{Step, StepQueue};
use crate::text::{TextError, print, read, unknown};
use crate::{Limit, Queue};
use std::fmt;
use std::str::FromStr;

/// Which queue a link has. Written as a name, or as a name and the parameters that differ from their
/// defaults: `droptail`, `step:at=1ms`, `codel:target=5ms,interval=100ms,ecn=on`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Discipline {
    /// `droptail`: first in, first out; what does not fit is dropped.
    #[default]
    DropTail,
    /// `step`: marks above a threshold of waiting time.
    Step(Step),
    /// `codel`: RFC 8289.
    Codel(Codel),
    /// `pie`: RFC 8033.
    Pie(Pie),
    /// `dualpi2`: RFC 9332, or Linux's with `variant=linux`.
    DualPi2(DualPi2),
    /// `fq_codel`: RFC 8290.
    FqCodel(FqCodel),
    /// `priority`, `priority:codel:ecn=on`: strict priority over packets of the background ([`crate::Class`]), which
    /// are served only when the other queue is empty, and dropped first from a full buffer. The others have the queue
    /// that is named, `droptail` without.
    Priority(Box<Discipline>),
}

impl Discipline {
    /// The names of all disciplines.
    pub const NAMES: [&'static str; 7] = ["droptail", "step", "codel", "pie", "dualpi2", "fq_codel", "priority"];

    /// An empty queue of this kind that holds at most `limit`, the packet in service included. What
    /// is random in it comes from `seed`.
    pub fn queue<T: Send + 'static>(&self, limit: Limit, seed: u64) -> Box<dyn Queue<T>> {
        match *self {
            Self::DropTail => Box::new(DropTailQueue::new(limit)),
            Self::Step(parameters) => Box::new(StepQueue::new(parameters, limit)),
            Self::Codel(parameters) => Box::new(CodelQueue::new(parameters, limit)),
            Self::Pie(parameters) => Box::new(PieQueue::new(parameters, limit, seed)),
            Self::DualPi2(parameters) => Box::new(DualPi2Queue::new(parameters, limit, seed)),
            Self::FqCodel(parameters) => Box::new(FqCodelQueue::new(parameters, limit, seed)),
            Self::Priority(ref foreground) => Box::new(PriorityQueue::new(foreground.queue(limit, seed), limit)),
        }
    }
}

impl FromStr for Discipline {
    type Err = TextError;

    /// Reads `NAME` or `NAME:KEY=VALUE,KEY=VALUE`, and behind `priority:` another one.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of its range.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "droptail" if parameters.is_empty() => Ok(Self::DropTail),
            "droptail" => Err(TextError::new("droptail has no parameters")),
            "step" => read(Step::default(), parameters).map(Self::Step),
            "codel" => read(Codel::default(), parameters).map(Self::Codel),
            "pie" => read(Pie::default(), parameters).map(Self::Pie),
            "dualpi2" => read(DualPi2::default(), parameters).map(Self::DualPi2),
            "fq_codel" => read(FqCodel::default(), parameters).map(Self::FqCodel),
            "priority" if parameters.is_empty() => Ok(Self::Priority(Box::default())),
            "priority" => match parameters.parse()? {
                Self::Priority(_) => Err(TextError::new("there are two classes, so priority stands only once")),
                foreground => Ok(Self::Priority(Box::new(foreground))),
            },
            _ => Err(unknown(name, "a queue discipline", &Self::NAMES)),
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail => f.pad("droptail"),
            Self::Step(parameters) => print(parameters, f),
            Self::Codel(parameters) => print(parameters, f),
            Self::Pie(parameters) => print(parameters, f),
            Self::DualPi2(parameters) => print(parameters, f),
            Self::FqCodel(parameters) => print(parameters, f),
            Self::Priority(foreground) if **foreground == Self::DropTail => f.pad("priority"),
            Self::Priority(foreground) => f.pad(&format!("priority:{foreground}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for text in [
            "droptail",
            "step",
            "step:at=250us",
            "codel",
            "codel:target=10ms,interval=50ms,ecn=on",
            "pie",
            "pie:target=20ms,update=30ms,alpha=0.25,beta=2.5,burst=0s,ecn=on,mark=0.2,derandomise=on",
            "dualpi2",
            "dualpi2:variant=linux",
            "dualpi2:variant=linux,target=20ms,ramp=400us",
            "dualpi2:update=16ms,alpha=0.16,beta=3.2,coupling=3,threshold=1ms,ramp=0s,classic=0.1",
            "fq_codel",
            "fq_codel:flows=64,quantum=300,limit=1000,target=1ms,interval=20ms,ecn=off",
            "priority",
            "priority:codel:target=10ms,ecn=on",
        ] {
            assert_eq!(text.parse::<Discipline>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn defaults_are_those_of_the_documents_and_are_not_printed() {
        for (text, name) in [
            ("step:at=3ms", "step"),
            ("codel:target=5ms,interval=100ms,ecn=off", "codel"),
            ("pie:target=15ms,update=15ms,alpha=0.125,beta=1.25,burst=150ms,ecn=off,mark=10%,derandomise=off", "pie"),
            (
                "dualpi2:variant=rfc,target=15ms,update=15ms,alpha=0.15,beta=3,coupling=2,threshold=800us,ramp=400us,classic=6.25%",
                "dualpi2",
            ),
            (
                "dualpi2:target=15ms,update=16ms,alpha=0.16015625,beta=3.19921875,threshold=1ms,ramp=0s,classic=10%,variant=linux",
                "dualpi2:variant=linux",
            ),
            ("fq_codel:flows=1024,quantum=1514,limit=10240,target=5ms,interval=100ms,ecn=on", "fq_codel"),
            ("priority:droptail", "priority"),
            ("priority:codel:ecn=off", "priority:codel"),
        ] {
            assert_eq!(text.parse::<Discipline>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn a_mistake_is_one_sentence_that_helps() {
        for (text, sentence) in [
            (
                "codle",
                "\"codle\" is not a queue discipline; did you mean codel? There are droptail, step, codel, pie, dualpi2, \
                 fq_codel and priority",
            ),
            (
                "priority:red",
                "\"red\" is not a queue discipline; there are droptail, step, codel, pie, dualpi2, fq_codel and priority",
            ),
            ("priority:priority", "there are two classes, so priority stands only once"),
            (
                "codel:tarket=5ms",
                "\"tarket\" is not a parameter of codel; did you mean target? There are target, interval and ecn",
            ),
            ("step:1ms", "\"1ms\" of step has no value; write it like KEY=VALUE, where KEY is at"),
            (
                "codel:target",
                "\"target\" of codel has no value; write it like KEY=VALUE, where KEY is target, interval or ecn",
            ),
            ("codel:target=5", "target of codel: \"5\" is not a length of time; write it like 40ms or 250us"),
            ("codel:target=0ms", "target of codel: 0s is out of range; it must be from 1us to 10s"),
            ("codel:ecn=yes", "ecn of codel: \"yes\" is neither on nor off"),
            ("codel:ecn=on,ecn=off", "ecn of codel is given twice"),
            ("pie:alpha=NaN", "alpha of pie: NaN is out of range; it must be from 0 to 1000"),
            ("fq_codel:flows=0", "flows of fq_codel: \"0\" is not a whole number from 1 to 65536"),
            ("dualpi2:variant=bsd", "variant of dualpi2: \"bsd\" is neither rfc nor linux"),
            ("droptail:limit=3", "droptail has no parameters"),
        ] {
            assert_eq!(text.parse::<Discipline>().unwrap_err().to_string(), sentence);
        }
        for text in ["", ":", "codel:,", "step:at=", "codel:target=5ms,,ecn=on", "codel:target=11s", "Codel"] {
            assert!(text.parse::<Discipline>().is_err(), "{text}");
        }
    }
}
