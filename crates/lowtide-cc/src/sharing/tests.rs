// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections that share a law whose window and stance are given, by random lives.

use super::*;
use crate::LinkRates;
use proptest::prelude::*;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(20);

/// What the law does, set from outside.
#[derive(Clone, Copy)]
struct Given {
    window: u64,
    stance: Stance,
    reductions: u32,
    restarts: u32,
    heard: u32,
}

struct GivenLaw(Arc<Mutex<Given>>);

impl CongestionControl for GivenLaw {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        assert!(ack.una <= ack.nxt + 1);
        self.0.lock().unwrap().heard += 1;
        Reaction::None
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {
        let mut given = self.0.lock().unwrap();
        given.reductions += 1;
        given.window = (given.window / 2).max(2 * MSS);
    }

    fn on_restart(&mut self, restart: &Restart) {
        let mut given = self.0.lock().unwrap();
        given.restarts += 1;
        given.window = given.window.min(restart.window.expect("a window"));
    }

    fn window(&self) -> u64 {
        self.0.lock().unwrap().window
    }

    fn stance(&self) -> Stance {
        self.0.lock().unwrap().stance
    }

    fn link_rates(&self) -> Option<LinkRates> {
        Some(LinkRates { known: 2_500_000, at_most: 2_500_000 })
    }

    fn pacing_rate(&self) -> Option<u64> {
        let given = self.0.lock().unwrap();
        (given.stance != Stance::Window).then(|| (11 * given.window) * 1000 / (10 * RTT.as_millis() as u64))
    }
}

/// A connection with its transport: a segment comes back a round trip after it left.
struct Sender {
    law: Box<dyn CongestionControl>,
    /// Segments that are left to send.
    left: u64,
    flying: std::collections::VecDeque<Time>,
    /// When the next segment may leave.
    release: Time,
    since: Time,
    /// The longest time that it had data and sent nothing.
    longest_pause: Duration,
}

/// Several of them under one law.
struct Life {
    given: Arc<Mutex<Given>>,
    shared: SharedLaw,
    senders: Vec<Sender>,
    now: Time,
    /// Newcomers' initial windows, segments, of those that came in the latest round trip.
    newcomers: Vec<Time>,
}

const STEP: Duration = Duration::from_millis(1);

impl Life {
    fn new(window: u64) -> Self {
        let given = Given { window: window * MSS, stance: Stance::Window, reductions: 0, restarts: 0, heard: 0 };
        let given = Arc::new(Mutex::new(given));
        let flow = Flow { mss: MSS as u32, initial_window: 10, seed: 1 };
        let shared = SharedLaw::new(Box::new(GivenLaw(given.clone())), &flow);
        Self { given, shared, senders: Vec::new(), now: Time::from_nanos(1_000_000_000), newcomers: Vec::new() }
    }

    fn open(&mut self, segments: u64) {
        let mut law = self.shared.connect();
        law.on_established(self.now);
        self.newcomers.push(self.now);
        self.senders.push(Sender {
            law,
            left: segments,
            flying: Default::default(),
            release: self.now,
            since: self.now,
            longest_pause: Duration::ZERO,
        });
    }

    fn set(&mut self, stance: Stance) {
        let mut given = self.given.lock().unwrap();
        given.stance = match stance {
            Stance::Probes { measures, .. } => Stance::Probes { since: self.now, measures },
            other => other,
        };
    }

    fn path(&self) -> MutexGuard<'_, Path> {
        lock(&self.shared.0)
    }

    /// A millisecond passes.
    fn step(&mut self) {
        self.now = self.now + STEP;
        let now = self.now;
        for sender in &mut self.senders {
            while sender.flying.front().is_some_and(|sent| now - *sent >= RTT) {
                let sent = sender.flying.pop_front().expect("it is there");
                let in_flight = (sender.flying.len() as u64 + 1) * MSS;
                let _ = sender.law.on_ack(&Ack {
                    now,
                    packets: 1,
                    bytes: MSS,
                    rtt: Some(now - sent),
                    srtt: RTT,
                    in_flight,
                    window_limited: sender.left > 0 && in_flight + MSS > sender.law.window(),
                    has_data: sender.left > 0,
                    nxt: 1,
                    ..Ack::default()
                });
            }
            while sender.left > 0
                && sender.release <= now
                && (sender.flying.len() as u64 + 1) * MSS <= sender.law.window().max(MSS)
            {
                sender.left -= 1;
                let in_flight = sender.flying.len() as u64 * MSS;
                let (bytes, has_data) = (MSS, sender.left > 0);
                let app_limited = !has_data;
                let sent = Sent { now, bytes, in_flight, nxt: 0, retransmission: false, app_limited, has_data };
                sender.law.on_sent(&sent);
                sender.flying.push_back(now);
                sender.longest_pause = sender.longest_pause.max(now - sender.since);
                sender.since = now;
                if let Some(rate) = sender.law.pacing_rate() {
                    sender.release = now + Duration::from_nanos(MSS * 1_000_000_000 / rate);
                }
            }
            if sender.left == 0 {
                sender.since = now;
            }
        }
        for sender in self.senders.iter_mut().filter(|it| it.left == 0 && it.flying.is_empty()) {
            sender.law.on_closed();
        }
        self.senders.retain(|it| it.left > 0 || !it.flying.is_empty());
        self.newcomers.retain(|at| now - *at <= 2 * RTT);
        self.check();
    }

    fn check(&self) {
        for sender in &self.senders {
            let starving = if sender.left > 0 { self.now - sender.since } else { Duration::ZERO };
            assert!(starving.max(sender.longest_pause) <= Duration::from_secs(4), "{starving:?}");
        }
        let path = self.path();
        assert!(path.waiting as usize <= self.senders.len());
        assert!(path.all.wanting() as usize <= self.senders.len());
        if let Some(token) = path.token {
            assert!(token <= path.connections);
        }
        assert!(path.all.granted() >= -1e-6);
        // who waits is in none of the sums
        if self.senders.is_empty() {
            assert!(path.all.granted().abs() < 1e-6 && path.waiting == 0 && path.token.is_none());
            assert_eq!(path.all.wanting(), 0);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Open(u64),
    Stance(u8),
    Loss(u8),
    Window(u64),
    Wait(u32),
    Abort(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => prop_oneof![1u64..60, 100u64..5000].prop_map(Event::Open),
        2 => (0u8..4).prop_map(Event::Stance),
        1 => any::<u8>().prop_map(Event::Loss),
        1 => (2u64..200).prop_map(Event::Window),
        6 => (1u32..1500).prop_map(Event::Wait),
        1 => any::<u8>().prop_map(Event::Abort),
    ];
    prop::collection::vec(event, 1..40)
}

const PROBES: Stance = Stance::Probes { since: Time::ZERO, measures: false };
const MEASURES: Stance = Stance::Probes { since: Time::ZERO, measures: true };

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn no_connection_starves_and_the_sums_are_those_of_the_living(window in 2u64..100, events in events()) {
        let mut life = Life::new(window);
        for event in events {
            match event {
                Event::Open(segments) if life.senders.len() < 24 => life.open(segments),
                Event::Open(_) => {}
                Event::Stance(which) => life.set([Stance::Window, Stance::Fills, PROBES, MEASURES][which as usize]),
                Event::Loss(which) if !life.senders.is_empty() => {
                    let which = which as usize % life.senders.len();
                    let (now, signal) = (life.now, Signal::Loss);
                    life.senders[which].law.on_congestion(&Congestion { now, signal, una: 0, nxt: 0, in_flight: MSS });
                }
                Event::Loss(_) => {}
                Event::Window(segments) => life.given.lock().unwrap().window = segments * MSS,
                Event::Wait(steps) => (0..steps).for_each(|_| life.step()),
                Event::Abort(which) if !life.senders.is_empty() => {
                    let which = which as usize % life.senders.len();
                    life.senders.remove(which).law.on_closed();
                }
                Event::Abort(_) => {}
            }
            life.check();
        }
    }

    /// With a window that stands and connections that come at any time. Each hears of the parts of others at its next
    /// ACK. Until then one that grows to its equal part has what another one had of it, and what all such have together
    /// is less than a window; and the last segments of one that has no more to send may be one more than were counted.
    #[test]
    fn all_together_have_the_window_and_what_newcomers_begin_with(
        window in 4u64..100, fills in any::<bool>(), opened in prop::collection::vec((0u32..400, 1u64..3000), 1..24),
    ) {
        let mut life = Life::new(window);
        life.set(if fills { Stance::Fills } else { Stance::Window });
        for (wait, segments) in opened {
            life.open(segments);
            for _ in 0..wait {
                life.step();
                let begins = life.newcomers.len() as f64 * Aggregate::INITIAL;
                let lag = life.senders.iter().filter(|it| it.left == 0).count() as f64;
                let granted = life.path().all.granted();
                prop_assert!(granted <= 2.0 * window as f64 + begins + lag + 1e-6, "{granted} of {window}, {begins} by newcomers");
            }
        }
        // what all have too much is over with the next ACKs of each: twenty round trips, as those with a small part are
        // paced
        life.senders.iter_mut().for_each(|it| it.left += 1_000_000);
        let mut over = 0;
        for _ in 0..2000 {
            life.step();
            let granted = life.path().all.granted();
            over = if granted > window as f64 + 1e-6 { over + 1 } else { 0 };
            prop_assert!(over <= 400, "{granted} of {window} for {} ms", over);
        }
    }
}

/// Segments that each connection has got through in so many milliseconds.
fn carried(life: &mut Life, steps: u32) -> Vec<u64> {
    let before: Vec<_> = life.senders.iter().map(|it| it.left).collect();
    (0..steps).for_each(|_| life.step());
    before.iter().zip(&life.senders).map(|(before, it)| before - it.left).collect()
}

#[test]
fn while_the_law_probes_one_carries_and_the_others_send_now_and_then() {
    let mut life = Life::new(4);
    (0..4).for_each(|_| life.open(1_000_000));
    (0..100).for_each(|_| life.step());
    life.set(PROBES);
    let carried = carried(&mut life, 10_000);
    let most = *carried.iter().max().expect("four");
    assert_eq!(life.path().waiting, 3);
    assert!(carried.iter().filter(|segments| **segments < most / 20).count() == 3, "{carried:?}");
    // 4 kB/s each, by chance between a half and three halves of it; a fiftieth of the link is 16.7 kB/s for each
    assert!(carried.iter().all(|segments| *segments >= 10), "{carried:?}");
}

#[test]
fn where_the_window_is_small_the_token_goes_round() {
    let mut life = Life::new(8);
    life.set(Stance::Fills);
    (0..6).for_each(|_| life.open(1_000_000));
    (0..1000).for_each(|_| life.step());
    let mut holders = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        life.step();
        holders.extend(life.path().token);
    }
    assert_eq!(holders, (1..=6).collect());
}

#[test]
fn an_end_hands_nothing_over_and_the_next_one_fills_the_window_at_once() {
    let mut life = Life::new(40);
    life.set(Stance::Fills);
    (0..2).for_each(|_| life.open(1_000_000));
    (0..3000).for_each(|_| life.step());
    life.senders.remove(0).law.on_closed();
    let granted = life.path().all.granted();
    assert!(granted <= 40.0, "{granted}");
    // half of the window is a round trip's growth away from the whole, and it took the token with a segment
    (0..100).for_each(|_| life.step());
    let grants: Vec<_> = life.senders.iter().map(|it| it.law.window() / MSS).collect();
    assert_eq!(grants, [40]);
}

#[test]
fn short_connections_never_wait() {
    let mut life = Life::new(20);
    (0..9).for_each(|_| life.open(42));
    let mut steps = 0;
    while !life.senders.is_empty() {
        life.step();
        assert_eq!(life.path().waiting, 0);
        steps += 1;
        // 378 segments by a window of twenty take 19 round trips, 380 ms
        assert!(steps < 500, "{} left", life.senders.len());
    }
}

#[test]
fn only_a_path_where_nothing_was_sent_is_idle() {
    let mut life = Life::new(40);
    life.open(1_000_000);
    life.open(1);
    (0..100).for_each(|_| life.step());
    let mut idle = life.shared.connect();
    idle.on_established(life.now);
    let restart = |now, seconds| Restart { now, idle: Duration::from_secs(seconds), nxt: 0, window: None };
    idle.on_restart(&restart(life.now, 1));
    assert_eq!(life.given.lock().unwrap().restarts, 0, "another connection has sent meanwhile");
    life.senders.clear();
    life.now = life.now + Duration::from_secs(2);
    idle.on_restart(&restart(life.now, 2));
    let given = *life.given.lock().unwrap();
    assert_eq!((given.restarts, given.window), (1, 10 * MSS));
}

#[test]
fn a_timeout_of_one_is_a_loss_where_others_are_acknowledged() {
    let mut life = Life::new(40);
    (0..3).for_each(|_| life.open(1_000_000));
    (0..100).for_each(|_| life.step());
    let heard = life.given.lock().unwrap().heard;
    for sender in &mut life.senders {
        let (now, signal) = (life.now, Signal::Timeout);
        sender.law.on_congestion(&Congestion { now, signal, una: 0, nxt: 0, in_flight: MSS });
    }
    let given = *life.given.lock().unwrap();
    assert!(heard > 100);
    assert_eq!((given.reductions, given.window), (1, 20 * MSS), "and all of them are one");
}
