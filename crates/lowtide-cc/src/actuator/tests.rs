// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::{Ack, Congestion, Prices, Reaction, Recovered, Restart, Signal, Time, Weighted, testing::any_events};
use proptest::prelude::*;

const MSS: u64 = 1000;
const FLOW: Flow = Flow { mss: 1000, initial_window: 20, seed: 7 };

fn build(law: &str, actuator: &str) -> Box<dyn CongestionControl> {
    let law: Law = law.parse().unwrap();
    law.build_weighted(&FLOW, &actuator.parse().unwrap()).unwrap()
}

fn set(law: &mut dyn CongestionControl, weight: f64) {
    law.weighted().unwrap().set_weight(weight);
}

fn congestion(law: &mut dyn CongestionControl, ms: u64, signal: Signal) {
    let at = Congestion { now: at(ms), signal, una: 0, nxt: 0, in_flight: 0 };
    law.on_congestion(&at);
    law.on_recovered(&Recovered { now: at.now, una: 0, nxt: 0 });
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn value(law: &dyn CongestionControl, name: &str) -> f64 {
    let mut found = f64::NAN;
    law.inspect(&mut |key, value| {
        if key == name {
            found = value;
        }
    });
    found
}

fn prices(law: &dyn CongestionControl) -> Prices {
    let mut prices = Prices::default();
    law.prices(&mut prices);
    prices
}

/// A law whose window never changes and that counts its calls.
#[derive(Default)]
struct Still {
    phantoms: u64,
    marked: u64,
}

impl CongestionControl for Still {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.marked += u64::from(ack.marked);
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.phantoms += u64::from(congestion.signal == Signal::Phantom);
    }

    fn on_restart(&mut self, _restart: &Restart) {}

    fn window(&self) -> u64 {
        20 * MSS
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(10 * MSS)
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("told", self.phantoms as f64);
        show("told_marks", self.marked as f64);
    }
}

fn still(accurate: bool) -> PhantomEcn {
    let parameters = Phantom::default().floor(Duration::ZERO).unwrap();
    PhantomEcn::new(Box::<Still>::default(), &parameters, accurate, &FLOW)
}

/// An ACK for two packets, a millisecond after the last.
fn ack(n: u64) -> Ack {
    let rtt = Duration::from_millis(100);
    let end = 2 * MSS * n;
    Ack {
        now: at(n),
        packets: 2,
        bytes: 2 * MSS,
        rtt: Some(rtt),
        srtt: rtt,
        una: end,
        nxt: end + 20 * MSS,
        in_flight: 20 * MSS,
        window_limited: true,
        ..Ack::default()
    }
}

/// Phantoms among so many ACKs, with a real signal after each 500 of them.
fn phantoms(weight: f64, acks: u64) -> u64 {
    let mut law = still(false);
    law.set_weight(weight);
    let mut count = 0;
    for n in 1..=acks {
        count += u64::from(law.on_ack(&ack(n)) == Reaction::Reduced);
        if n % 500 == 0 {
            congestion(&mut law, n, Signal::Ecn);
        }
    }
    assert_eq!(value(&law, "told"), count as f64);
    count
}

#[test]
fn texts_are_read_and_printed() {
    for text in ["native", "native:losses=few", "phantom", "phantom:v=5,floor=0s", "beta"] {
        assert_eq!(text.parse::<Actuator>().unwrap().to_string(), text);
    }
    let usual: Actuator = "phantom:v=3,tau_gain=0.125,floor=2ms".parse().unwrap();
    assert_eq!(usual.to_string(), "phantom");
    assert_eq!(usual.parameters().len(), 4);
    let error = |text: &str| text.parse::<Actuator>().unwrap_err().to_string();
    assert_eq!(
        error("fantom"),
        "unknown actuator `fantom`; did you mean `phantom`? There are native, phantom and beta"
    );
    assert_eq!(
        error("phantom:floors=3"),
        "`phantom` has no parameter `floors`; did you mean `floor`? It has v, tau_gain, loss_gain and floor"
    );
    assert_eq!(error("beta:w=3"), "`beta` has no parameters; write it alone");
}

#[test]
fn what_cannot_be_steered_is_refused_with_a_reason() {
    let refusal = |law: &str, actuator: &str| {
        let law: Law = law.parse().unwrap();
        law.build_weighted(&FLOW, &actuator.parse().unwrap()).err().unwrap().to_string()
    };
    assert_eq!(
        refusal("reno", "native"),
        "reno cannot be steered by `native`: it has no weight of its own; take `phantom` or `beta`"
    );
    for bbr in ["bbr1", "bbr2", "bbr3"] {
        for actuator in Actuator::NAMES {
            assert_eq!(
                refusal(bbr, actuator),
                format!(
                    "{bbr} cannot be steered by `{actuator}`: it follows a model of the path and ignores single signals; \
                     take a law without a model, like cdg or cubic"
                )
            );
        }
    }
    assert_eq!(
        refusal("proteus", "phantom"),
        "proteus cannot be steered by `phantom`: it goes by trials of rates and ignores single signals; take cdg or cubic"
    );
}

#[test]
fn every_other_law_has_a_usual_actuator_and_takes_both_wrappers() {
    for name in Law::NAMES {
        let law: Law = name.parse().unwrap();
        let Some(usual) = law.default_actuator() else {
            assert!((name.starts_with("bbr") || *name == "proteus") && !law.takes_weight());
            continue;
        };
        let native = ["cdg", "vegas", "eclipse", "prague", "tide"].contains(name);
        assert_eq!(usual.name(), if native { "native" } else { "phantom" }, "{name}");
        for actuator in [&usual.to_string(), "phantom", "beta"] {
            assert!(build(name, actuator).weighted().is_some());
        }
    }
}

#[test]
fn phantoms_are_as_many_as_the_weight_asks() {
    // One in a thousand packets is real, so 1/w - 1 are added to each.
    for (weight, each) in [(0.5, 1.0), (0.1, 9.0), (0.02, 49.0)] {
        let reals = 400.0;
        let count = phantoms(weight, 200_500) as f64;
        let expected = each * reals;
        assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{weight}: {count}, not {expected}");
    }
}

#[test]
fn none_in_an_episode_and_none_with_a_real_one() {
    let mut law = still(false);
    law.set_weight(1e-9);
    let _ = law.on_ack(&ack(1));
    congestion(&mut law, 2, Signal::Ecn);
    assert_eq!(law.on_ack(&Ack { reducing: true, ..ack(3) }), Reaction::None);
    assert_eq!(law.on_ack(&Ack { marked: 2, ..ack(4) }), Reaction::None);
    assert_eq!(law.on_ack(&Ack { lost: MSS, ..ack(5) }), Reaction::None);
    let loss = Congestion { now: at(6), signal: Signal::Timeout, una: 0, nxt: 0, in_flight: 0 };
    law.on_congestion(&loss);
    assert_eq!(law.on_ack(&ack(6)), Reaction::None, "not while a timeout is repaired");
    law.on_recovered(&Recovered { now: at(7), una: 0, nxt: 0 });
    assert_eq!(law.on_ack(&ack(7)), Reaction::Reduced);
    let seen = prices(&law);
    assert_eq!((seen.loss.indications, seen.mark.indications, seen.delay.indications), (1.0, 1.0, 0.0));
}

#[test]
fn exact_feedback_of_marks_is_inflated_packet_by_packet() {
    let mut law = still(true);
    law.set_weight(0.25);
    // Five in a hundred packets are marked, in an episode or not.
    let (mut real, mut packets) = (0, 0);
    for n in 1..=50_000 {
        let marked = u32::from(n % 10 == 0);
        let _ = law.on_ack(&Ack { marked, reducing: n % 3 == 0, ..ack(n) });
        (real, packets) = (real + marked, packets + 2);
        if n % 200 == 0 {
            congestion(&mut law, n, Signal::Ecn);
        }
    }
    let told = value(&law, "told_marks");
    assert_eq!(real, packets / 20);
    assert!((told / f64::from(packets) - 0.2).abs() < 0.005, "{told} of {packets}");
    assert_eq!(prices(&law).mark.indications, f64::from(real), "made-up ones are no price");
}

#[test]
fn the_average_of_dctcp_sees_phantoms() {
    let mut law = build("dctcp", "phantom:floor=0s");
    set(&mut *law, 0.1);
    for n in 1..=20_000 {
        let _ = law.on_ack(&Ack { marked: u32::from(n % 50 == 0), ..ack(n) });
        if n % 50 == 0 {
            congestion(&mut *law, n, Signal::Ecn);
        }
    }
    // One percent, ten times.
    let alpha = value(&*law, "alpha");
    assert!((0.06..0.14).contains(&alpha), "{alpha}");
}

#[test]
fn beta_scales_what_a_reduction_leaves() {
    for (weight, after) in [(1.0, 10.0), (0.5, 5.0), (0.3, 3.0), (0.2, 2.0), (0.001, 2.0)] {
        let mut law = build("reno", "beta");
        set(&mut *law, weight);
        congestion(&mut *law, 1, Signal::Loss);
        assert!((law.window() as f64 - 1e3 * after).abs() <= 1.0, "{weight}: {}", law.window());
        assert_eq!(law.ssthresh(), Some(law.window()));
        let seen = prices(&*law);
        assert_eq!((seen.loss.indications, seen.loss.removed), (1.0, 0.5), "the price is that at a weight of 1");
        law.on_spurious();
        assert_eq!(law.window(), 20_000, "all of it is taken back");
    }
    let mut law = build("reno", "beta");
    set(&mut *law, 0.5);
    congestion(&mut *law, 1, Signal::Timeout);
    assert_eq!((law.window(), law.ssthresh()), (1000, Some(5000)));
    assert_eq!(prices(&*law).loss.removed, 0.5, "to where slow start leads back");
    congestion(&mut *law, 2, Signal::Phantom);
    assert_eq!(prices(&*law).loss.indications, 1.0);
}

#[test]
fn vegas_follows_alpha() {
    let mut law = build("vegas", "native");
    let alpha = |law: &mut dyn CongestionControl, weight: f64, ratio: f64| {
        law.weighted().unwrap().set_weight_and_ratio(weight, ratio);
        value(law, "alpha")
    };
    assert_eq!(value(&*law, "alpha"), 2.0, "as published until a weight is set");
    for (weight, ratio, expected) in
        [(1.0, 1.0, 15.0), (0.2, 1.0, 3.0), (0.001, 1.0, 1.0), (0.5, 3.0, 22.5), (1.0, 50.0, 100.0), (0.0, -1.0, 1.0)]
    {
        assert_eq!(alpha(&mut *law, weight, ratio), expected, "{weight} {ratio}");
    }
    set(&mut *law, 2.0);
    assert_eq!(value(&*law, "alpha"), 30.0, "above 1 it is the ratio");
}

#[test]
fn vegas_skips_losses_only_at_full_weight() {
    // µ = 4: three of four losses are not answered.
    let skipped = |weight: f64, ratio: f64| {
        (0..4000)
            .filter(|seed| {
                let law: Law = "vegas".parse().unwrap();
                let mut law = law.build(&Flow { seed: *seed, ..FLOW });
                law.weighted().unwrap().set_weight_and_ratio(weight, ratio);
                congestion(&mut *law, 1, Signal::Loss);
                law.window() == 20_000
            })
            .count()
    };
    assert!((2860..3140).contains(&skipped(1.0, 4.0)), "five standard deviations");
    assert_eq!((skipped(0.99, 4.0), skipped(1.0, 1.0), skipped(1.0, 0.5)), (0, 0, 0));
}

#[test]
fn few_inflates_losses_only_once_delay_explains_few_reductions() {
    let mut law = build("cdg", "native:losses=few,floor=0s");
    set(&mut *law, 1e-6);
    let flat = |law: &mut dyn CongestionControl, n: u64| (1..100).any(|k| law.on_ack(&ack(n + k)) == Reaction::Reduced);
    for n in 1..=8 {
        assert!(!flat(&mut *law, 1000 * n));
        congestion(&mut *law, 1000 * n + 200, Signal::Loss);
    }
    assert!(!flat(&mut *law, 9000), "half of sixteen");
    congestion(&mut *law, 9200, Signal::Loss);
    assert!(flat(&mut *law, 10_000));
    let mut law = build("cdg", "native:losses=off");
    set(&mut *law, 1e-6);
    for n in 1..=20 {
        assert!(!flat(&mut *law, 1000 * n));
        congestion(&mut *law, 1000 * n + 200, Signal::Loss);
    }
}

#[test]
fn cdg_reports_what_delay_costs_whatever_the_weight() {
    let price = |weight: f64| {
        let mut law = build("cdg", "native:losses=off,floor=0s");
        set(&mut *law, weight);
        for n in 1..=40 {
            let rtt = Some(Duration::from_millis(100 + n));
            let _ = law.on_ack(&Ack { rtt, una: 20 * MSS * n, nxt: 20 * MSS * (n + 1) - 1, ..ack(n) });
        }
        prices(&*law).delay
    };
    let flat = price(1.0);
    assert!(flat.indications > 0.0);
    assert!((flat.weight() - (1.0 - 724.0 / 1024.0)).abs() < 1e-9);
    // Less is seen where back-offs hide rounds, but what is seen is not inflated.
    assert!(price(0.001).indications <= flat.indications);
}

#[test]
fn eclipse_is_reno_at_full_weight() {
    let mut law = build("eclipse", "native");
    let mut reno = build("reno", "phantom");
    set(&mut *law, 1.0);
    set(&mut *reno, 1.0);
    for law in [&mut law, &mut reno] {
        for n in 1..=300 {
            let delay = 1_000_000 * (n % 50) as i64;
            let _ = law.on_ack(&Ack { one_way_delay: Some(delay), ..ack(n) });
            if n == 100 {
                congestion(&mut **law, n, Signal::Loss);
            }
        }
    }
    assert_eq!(law.window(), reno.window());
}

/// Laws and actuators that are not refused.
fn steered() -> impl Strategy<Value = (Law, Actuator)> {
    let actuators = ["native", "native:losses=few", "phantom", "phantom:floor=0s,v=1000", "beta"];
    let one = (prop::sample::select(Law::NAMES), prop::sample::select(actuators.to_vec()));
    one.prop_map(|(law, actuator)| (law.parse::<Law>().unwrap(), actuator.parse::<Actuator>().unwrap()))
        .prop_filter("refused", |(law, actuator)| law.build_weighted(&FLOW, actuator).is_ok())
}

proptest! {
    #[test]
    fn a_weight_of_one_adds_nothing(
        (law, actuator) in steered().prop_filter("native", |(_, actuator)| actuator.name() != "native"),
        signals in prop::collection::vec((1u64..60, any::<bool>()), 0..30),
    ) {
        let mut wrapped = law.build_weighted(&FLOW, &actuator).unwrap();
        let mut plain = law.build(&FLOW);
        set(&mut *wrapped, 1.0);
        let mut n = 0;
        for (acks, loss) in signals {
            for _ in 0..acks {
                n += 1;
                let (a, b) = (wrapped.on_ack(&ack(n)), plain.on_ack(&ack(n)));
                prop_assert_eq!(a, b);
                prop_assert_eq!(wrapped.window(), plain.window());
            }
            let signal = if loss { Signal::Loss } else { Signal::Timeout };
            congestion(&mut *wrapped, n, signal);
            congestion(&mut *plain, n, signal);
            prop_assert_eq!(wrapped.window(), plain.window());
        }
    }

    #[test]
    fn less_weight_means_more_phantoms(a in 0.01f64..1.0, b in 0.01f64..1.0) {
        let (less, more) = (a.min(b), a.max(b));
        // The same chances are drawn for both, so that this holds for each of them.
        prop_assert!(phantoms(less, 5000) >= phantoms(more, 5000));
        prop_assert_eq!(phantoms(1.0, 2000), 0);
    }

    #[test]
    fn steered_laws_survive_anything(
        (law, actuator) in steered(),
        weight in prop_oneof![Just(1e-300), Just(1.0), Just(7.0), 0.0001f64..1.0],
        events in any_events::events(),
    ) {
        let mut control = law.build_weighted(&FLOW, &actuator).unwrap();
        control.weighted().unwrap().set_weight(weight);
        for event in &events {
            let before = control.window();
            any_events::apply(&mut *control, event);
            prop_assert!(control.window() >= 1 && control.window() < before.max(64 * MSS) * 1000);
            let mut number = true;
            control.inspect(&mut |_, value| number &= !value.is_nan());
            let seen = prices(&*control);
            prop_assert!(number && seen.total().is_finite() && seen.total() >= 0.0);
        }
    }
}
