// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver that lies to its sender, and an honest CUBIC flow that shares the queue with it: what the lie gains.
//! docs/security.md has the numbers.

use super::{
    super::{Acknowledgement, Receiver, SackBlocks, Segment, Sender, law},
    path::{MSS, at, millis, settings},
};
use crate::scenario::Tcp;
use lowtide_cc::EcnUse;
use lowtide_net::{Ecn, Time};
use std::{collections::BTreeMap, time::Duration};

/// What a receiver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Acknowledges whatever was sent so long after it left, before it is there or in place of what is lost.
    Optimistic(Duration),
    /// Its clock runs at so many percent, in what it says and in what it echoes.
    Clock(u64),
    /// Says that every packet was marked.
    AllMarked,
    /// Says that none was.
    NoneMarked,
}

struct End {
    sender: Sender,
    receiver: Receiver,
    lie: Lie,
    /// Bytes that arrived, new ones and others.
    arrived: u64,
}

enum Event {
    Segment(usize, Segment, bool),
    Ack(usize, Acknowledgement),
}

/// Two connections over one queue of 1250 segments per second and a pipe's worth of buffer, with 40 ms without it.
struct Link {
    now: Time,
    ends: [End; 2],
    marks: bool,
    busy_until: Time,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
}

const SEGMENT: Duration = Duration::from_micros(800);
const HALF: Duration = Duration::from_millis(20);
const BUFFER: Duration = Duration::from_millis(40);
/// A queue that marks does so from here on.
const STEP: Duration = Duration::from_millis(10);
/// The second connection begins then, and ...
const BEGINS: u64 = 5_000;
/// ... what arrives counts between these.
const FROM: u64 = 15_000;
const TO: u64 = 55_000;
/// What the liar offers as its receive window: four pipes. Without one a lie about losses has no end.
const WINDOW: u64 = 200 * MSS;

impl Link {
    fn new(text: &str, weight: Option<f64>, lie: Lie, ecn: EcnUse) -> Link {
        let end = |text: &str, weight: Option<f64>, lie| {
            let ecn_too = if ecn == EcnUse::Off { "" } else { ":ecn=on" };
            let tcp = Tcp { law: format!("{text}{ecn_too}").parse().expect("it exists"), ..settings() };
            let mut law = law(&tcp, None, 1);
            if let Some(weight) = weight {
                law.weighted().expect("it takes a weight").set_weight(weight);
            }
            let receiver = Receiver::new(&tcp, ecn);
            End { sender: Sender::new(&tcp, law), receiver, lie, arrived: 0 }
        };
        Link {
            now: Time::ZERO,
            ends: [end("cubic", None, Lie::None), end(text, weight, lie)],
            marks: ecn != EcnUse::Off,
            busy_until: Time::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// What the second connection's receiver got between [`FROM`] and [`TO`], and the honest first one's, of what the
    /// link carries.
    fn shares(mut self) -> (f64, f64) {
        self.ends.iter_mut().for_each(|end| end.sender.write(1 << 40));
        self.run(at(FROM));
        let before = [self.ends[0].arrived, self.ends[1].arrived];
        self.run(at(TO));
        let all = (TO - FROM) as f64 / 1e3 / SEGMENT.as_secs_f64() * MSS as f64;
        let part = |which: usize| (self.ends[which].arrived - before[which]) as f64 / all;
        (part(1), part(0))
    }

    fn run(&mut self, until: Time) {
        loop {
            self.transmit();
            let packet = self.events.keys().next().map(|key| key.0);
            let timers = self.ends.iter().enumerate().filter(|(which, _)| self.is_open(*which));
            let timers = timers.flat_map(|(_, end)| [end.sender.next_timer(), end.receiver.next_timer()]);
            let Some(next) = timers.chain([packet]).flatten().min().filter(|next| *next <= until) else { break };
            self.now = next;
            if packet == Some(next) {
                let (_, event) = self.events.pop_first().expect("there is one");
                self.happen(event);
                continue;
            }
            for which in 0..2 {
                let end = &mut self.ends[which];
                if end.receiver.next_timer() == Some(next) {
                    let ack = end.receiver.on_timer(next);
                    self.answer(which, ack);
                } else if end.sender.next_timer() == Some(next) {
                    end.sender.on_timer(next);
                }
            }
        }
        if self.now < at(BEGINS) && until >= at(BEGINS) {
            self.now = at(BEGINS);
        }
    }

    fn is_open(&self, which: usize) -> bool {
        which == 0 || self.now >= at(BEGINS)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Segment(which, segment, ce) => {
                let end = &mut self.ends[which];
                end.arrived += u64::from(segment.bytes);
                let ack = end.receiver.on_segment(self.now, &segment, ce && end.lie != Lie::NoneMarked);
                self.answer(which, ack);
            }
            Event::Ack(which, ack) => {
                self.ends[which].sender.on_acknowledgement(self.now, &ack);
            }
        }
    }

    fn answer(&mut self, which: usize, ack: Option<Acknowledgement>) {
        let Some(mut ack) = ack else { return };
        match self.ends[which].lie {
            Lie::Optimistic(_) if !ack.syn => return,
            Lie::Clock(percent) => {
                let skewed = |time: Time| Time::from_nanos(time.as_nanos() / 100 * percent);
                (ack.sent, ack.echo) = (skewed(ack.sent), skewed(ack.echo));
            }
            Lie::AllMarked => {
                ack.ece = true;
            }
            _ => {}
        }
        self.schedule(self.now + HALF, Event::Ack(which, ack));
    }

    fn transmit(&mut self) {
        for which in 0..2 {
            while self.is_open(which) {
                let Some((segment, ecn)) = self.ends[which].sender.transmit(self.now) else { break };
                if let (Lie::Optimistic(after), false) = (self.ends[which].lie, segment.syn) {
                    let ack = Acknowledgement {
                        ack: segment.end(),
                        window: WINDOW,
                        sack: SackBlocks::default(),
                        echo: segment.sent,
                        sent: self.now + after,
                        syn: false,
                        ece: false,
                        ce_packets: 0,
                        ce_bytes: 0,
                    };
                    self.schedule(self.now + after, Event::Ack(which, ack));
                }
                let queue = self.busy_until.max(self.now) - self.now;
                if queue > BUFFER {
                    continue;
                }
                self.busy_until = self.now + queue + SEGMENT;
                let ce = self.marks && queue > STEP && ecn != Ecn::NotEct;
                self.schedule(self.busy_until + HALF, Event::Segment(which, segment, ce));
            }
        }
    }

    fn schedule(&mut self, when: Time, event: Event) {
        self.events.insert((when, self.sequence), event);
        self.sequence += 1;
    }
}

fn shares((law, weight): (&str, Option<f64>), lie: Lie, ecn: EcnUse) -> (f64, f64) {
    let found = Link::new(law, weight, lie, ecn).shares();
    println!("{law} {weight:?} {lie:?} {ecn:?}: {:.3}, the other {:.3}", found.0, found.1);
    found
}

const CUBIC: (&str, Option<f64>) = ("cubic", None);
const FAR: (&str, Option<f64>) = ("tide", Some(0.004));
const DUE: (&str, Option<f64>) = ("tide", Some(1.0));

#[test]
fn false_clocks_gain_nothing_where_the_deadline_is_far() {
    for lie in [Lie::None, Lie::Clock(200), Lie::Clock(50)] {
        let (part, other) = shares(FAR, lie, EcnUse::Off);
        assert!(part < 0.02 && other > 0.97, "{lie:?}: {part}, {other}");
    }
}

/// An echo of half the time makes an ordinary sender take its reductions back as needless.
#[test]
fn false_echoes_gain_less_than_from_cubic() {
    let (cubic, tide) = (shares(CUBIC, Lie::Clock(50), EcnUse::Off), shares(DUE, Lie::Clock(50), EcnUse::Off));
    assert!(cubic.0 > 0.9 && tide.0 < 0.6, "{cubic:?}, {tide:?}");
}

#[test]
fn false_marks_gain_nothing_where_the_deadline_is_far_and_no_more_than_from_cubic() {
    let honest = shares(FAR, Lie::None, EcnUse::Classic).0;
    for lie in [Lie::AllMarked, Lie::NoneMarked] {
        let far = shares(FAR, lie, EcnUse::Classic).0;
        assert!(far < honest + 0.02, "{lie:?}: {far}, {honest} without a lie");
    }
    for lie in [Lie::AllMarked, Lie::NoneMarked] {
        let (cubic, due) = (shares(CUBIC, lie, EcnUse::Classic).0, shares(DUE, lie, EcnUse::Classic).0);
        assert!(due < cubic + 0.03, "{lie:?}: {due}, {cubic} under CUBIC");
    }
}

/// Who acknowledges what has not come hides queues and losses, and the weight acts on nothing else.
#[test]
fn acknowledgements_of_what_has_not_come_take_the_weight_away_but_no_more() {
    let ordinary = shares(CUBIC, Lie::None, EcnUse::Off);
    let lie = Lie::Optimistic(millis(10));
    let (cubic, far) = (shares(CUBIC, lie, EcnUse::Off), shares(FAR, lie, EcnUse::Off));
    assert!(far.0 > 0.1, "the weight acts against it: say so in docs/security.md: {far:?}");
    assert!(far.0 < ordinary.0 && far.1 > ordinary.1, "no more than an ordinary flow: {far:?}, {ordinary:?}");
    assert!(far.1 > cubic.1 - 0.1, "nor much more than from CUBIC: {far:?}, {cubic:?}");
}
