// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver that lies to its sender, or a server that lies to a receiver whose law governs the download, and an
//! honest CUBIC flow that shares the queue with them: what the lie gains. docs/security.md has the numbers.

use super::{
    super::{Acknowledgement, Receiver, SackBlocks, Segment, Sender, law},
    path::{MSS, at, millis, settings},
};
use crate::scenario::Tcp;
use lowtide_cc::EcnUse;
use lowtide_net::{Ecn, Time};
use lowtide_port::{Downloads, Ported};
use std::{collections::BTreeMap, time::Duration};

/// What a receiver does, or a server.
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
    /// The clock of the server runs at so many percent.
    ServerClock(u64),
    /// The server knows how long each segment is going to wait, and says that it was sent later by that.
    NoQueue,
    /// And it echoes a later time of the receiver's clock by that.
    NoQueueNorEcho,
}

struct End {
    sender: Sender,
    receiver: Receiver,
    lie: Lie,
    /// Bytes that arrived, new ones and others.
    arrived: u64,
    /// When the segments were sent of which a server says something else, by what it says.
    said: BTreeMap<Time, Time>,
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

impl End {
    /// What the receiver gets to see of a segment that waits so long.
    fn shown(&mut self, segment: Segment, queue: Duration) -> Segment {
        let (sent, echo) = match self.lie {
            Lie::ServerClock(percent) => (Time::from_nanos(segment.sent.as_nanos() / 100 * percent), segment.echo),
            Lie::NoQueue => (segment.sent + queue, segment.echo),
            Lie::NoQueueNorEcho => (segment.sent + queue, segment.echo + queue),
            _ => return segment,
        };
        self.said.insert(sent, segment.sent);
        Segment { sent, echo, ..segment }
    }
}

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
            End { sender: Sender::new(&tcp, law), receiver, lie, arrived: 0, said: BTreeMap::new() }
        };
        Link::of([end("cubic", None, Lie::None), end(text, weight, lie)], ecn != EcnUse::Off)
    }

    /// The second connection is a download from a server with CUBIC. At its receiver is Tide with this weight; without
    /// one it is an ordinary download.
    fn download(weight: Option<f64>, lie: Lie) -> Link {
        let end = |governed: Option<f64>, lie| {
            let cubic = "cubic".parse().expect("it exists");
            let tcp = Tcp { law: cubic, mss: 1448, ack_every: 2, receive_window: 6 << 20, ..settings() };
            let receiver = Receiver::new(&tcp, EcnUse::Off).governed(governed.map(|weight| {
                let ported = Ported::new(&"tide".parse().expect("it exists")).expect("it is ported");
                Downloads::new(&ported, Some(weight), 1).connect()
            }));
            End { sender: Sender::new(&tcp, law(&tcp, None, 1)), receiver, lie, arrived: 0, said: BTreeMap::new() }
        };
        Link::of([end(None, Lie::None), end(weight, lie)], false)
    }

    fn of(ends: [End; 2], marks: bool) -> Link {
        Link { now: Time::ZERO, ends, marks, busy_until: Time::ZERO, events: BTreeMap::new(), sequence: 0 }
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
            Event::Ack(which, mut ack) => {
                let end = &mut self.ends[which];
                if let Some(sent) = end.said.get(&ack.echo) {
                    ack.echo = *sent;
                }
                end.sender.on_acknowledgement(self.now, &ack);
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
                self.busy_until = self.now + queue + SEGMENT.mul_f64(f64::from(segment.bytes) / MSS as f64);
                let ce = self.marks && queue > STEP && ecn != Ecn::NotEct;
                let shown = self.ends[which].shown(segment, queue);
                self.schedule(self.busy_until + HALF, Event::Segment(which, shown, ce));
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

fn download(weight: Option<f64>, lie: Lie) -> (f64, f64) {
    let found = Link::download(weight, lie).shares();
    println!("download {weight:?} {lie:?}: {:.3}, the other {:.3}", found.0, found.1);
    found
}

const SERVER_LIES: [Lie; 4] = [Lie::ServerClock(200), Lie::ServerClock(50), Lie::NoQueue, Lie::NoQueueNorEcho];
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

/// A window can only make a server slower than it would be without Lowtide.
#[test]
fn a_server_that_lies_gains_at_most_what_an_ordinary_download_has() {
    let ordinary = download(None, Lie::None);
    for lie in SERVER_LIES {
        let (part, other) = download(Some(0.004), lie);
        assert!(part < ordinary.0 + 0.02 && other > ordinary.1 - 0.02, "{lie:?}: {part}, {other}; {ordinary:?}");
    }
}

/// The tables of docs/security.md, row by row.
#[test]
fn the_page_on_security_has_these_numbers() {
    let rows = [
        ("is honest", Lie::None, EcnUse::Off),
        ("acknowledges each segment 40 ms after it was sent, arrived or not", Lie::Optimistic(millis(40)), EcnUse::Off),
        ("… 10 ms after", Lie::Optimistic(millis(10)), EcnUse::Off),
        ("has a clock that runs, and echoes, twice as fast", Lie::Clock(200), EcnUse::Off),
        ("… half as fast", Lie::Clock(50), EcnUse::Off),
        ("is honest; the queue marks from 10 ms on, and both flows use ECN", Lie::None, EcnUse::Classic),
        ("… and reports every packet as marked", Lie::AllMarked, EcnUse::Classic),
        ("… and reports none as marked", Lie::NoneMarked, EcnUse::Classic),
    ];
    let servers = [
        ("is honest", Lie::None),
        ("has a clock that runs twice as fast", Lie::ServerClock(200)),
        ("… half as fast", Lie::ServerClock(50)),
        ("hides each wait in its own times", Lie::NoQueue),
        ("… and in those that it echoes", Lie::NoQueueNorEcho),
    ];
    let mut table: Vec<String> = rows
        .iter()
        .map(|(receiver, lie, ecn)| {
            let cells = [CUBIC, FAR, DUE].map(|sender| {
                let (part, other) = shares(sender, *lie, *ecn);
                format!("{part:.2}, {other:.2}")
            });
            format!("| {receiver} | {} |", cells.join(" | "))
        })
        .collect();
    table.extend(servers.map(|(server, lie)| {
        let cells = [None, Some(0.004), Some(1.0)].map(|weight| {
            let (part, other) = download(weight, lie);
            format!("{part:.2}, {other:.2}")
        });
        format!("| {server} | {} |", cells.join(" | "))
    }));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let missing = table.iter().any(|row| !page.contains(row));
    assert!(!missing, "docs/security.md is to say:\n{}", table.join("\n"));
}
