// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every law, in many configurations, against random but legal lives of a transport. After each step: the window is at
//! least one byte and sane, grows no faster than it may and not in a reduction episode, is reduced once per episode,
//! and nothing was allocated. In the end it grows again; and the same life has the same windows.

mod allocations;
mod limits;
mod transport;

use lowtide_cc::{Actuator, Law, LawError};
use proptest::prelude::*;
use transport::{MSS, Operation, Transport};

/// Configurations that differ in more than a number.
const NOTABLE: &[&str] = &[
    "reno:ecn=on",
    "reno:hystart=plus",
    "cubic:ecn=on",
    "cubic:hystart=off",
    "cubic:hystart=plus",
    "cubic:variant=2008,ecn=on",
    "cubic:reno_friendly=off,fast_convergence=off",
    "cdg:ecn=on,shadow=on,ineff=5,tolerance=on",
    "cdg:variant=thesis,ecn=on",
    "cdg:variant=freebsd,ecn=on",
    "cdg:increase=cubic,delay=owd,floor=2ms",
    "cdg:increase=alpha_inc,alpha_inc=1,g=0.1",
    "eclipse:ecn=on,drain=2s,guard=on,delta_floor=1",
    "eclipse:mu=literal,slow_start=loss",
    "dctcp:overload=on",
    "dctcp:accel=on,overload=on,overload_rounds=every,cwr_increase=on",
    "prague:accel=on,overload=on",
    "prague:variant=v0.6,accel=on,overload=on,overload_rounds=every",
    "vegas:ecn=on",
    "nice:ecn=on",
    "proteus:d=0,pairs=5",
    "tide:ecn=on,drain=1s",
    "lp:variant=paper,ecn=on",
    "ledbat:ecn=on",
    "ledbatpp:ecn=on",
    "bbr2:ecn=on,ecn_max_rtt=0s",
    "bbr3:ecn=l4s,ecn_max_rtt=0s",
];

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (1usize..100).prop_map(Operation::Send),
        8 => (1usize..8).prop_map(Operation::Ack),
        2 => (1usize..100).prop_map(Operation::Ack),
        1 => (1usize..4, 1usize..8).prop_map(|(late, segments)| Operation::Sack { late, segments }),
        1 => (1usize..4, 1usize..8).prop_map(|(lost, segments)| Operation::Loss { lost, segments }),
        2 => (1usize..8, 1usize..8).prop_map(|(marked, segments)| Operation::Mark { marked, segments }),
        1 => Just(Operation::Phantom),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::Spurious),
        1 => (0u64..100_000, any::<bool>()).prop_map(|(ms, validate)| Operation::Idle { ms, validate }),
        1 => (0u64..100_000).prop_map(Operation::Wait),
        1 => (1u64..500).prop_map(Operation::RttChange),
    ]
}

/// A law by its name, a notable configuration, or one of these with some parameters changed at random; and whether it
/// is one of the latter.
fn law() -> impl Strategy<Value = (Law, bool)> {
    let change = || (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let names: Vec<&str> = Law::NAMES.iter().chain(NOTABLE).copied().collect();
    (prop::sample::select(names), prop::collection::vec(change(), 0..3)).prop_map(|(text, changes)| {
        let law: Law = text.parse().unwrap();
        let odd = !changes.is_empty();
        let law = changes.into_iter().fold(law, |law, (key, value)| {
            let keys = law.parameters();
            let key = keys[key.index(keys.len())].0;
            let values = possible_values(&law, key);
            match values.get(value.index(values.len().max(1))) {
                Some(changed) => changed.clone(),
                None => law,
            }
        });
        (law, odd)
    })
}

/// The law with this parameter at each of some values that it can have.
fn possible_values(law: &Law, key: &str) -> Vec<Law> {
    let mut words: Vec<String> =
        ["on", "off", "0", "0.01", "0.1", "0.5", "0.9", "1", "2", "5", "8", "30", "100", "1000"].map(Into::into).into();
    words.extend(["100us", "1ms", "5ms", "15ms", "60ms", "1s", "10s"].map(Into::into));
    // The words of an enumeration are in the error that a wrong one causes.
    if let Err(LawError::Value { expected, .. }) = format!("{}:{key}=?", law.name()).parse::<Law>() {
        let listed = expected.strip_prefix("one of ").unwrap_or("");
        words.extend(listed.split([',', ' ']).map(Into::into));
    }
    let others: Vec<String> = law
        .parameters()
        .into_iter()
        .filter(|(name, _)| *name != key)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let with = |word: &String| format!("{}:{key}={word},{}", law.name(), others.join(",")).parse().ok();
    words.iter().filter_map(with).collect()
}

/// An actuator with a weight, or none.
fn steering() -> impl Strategy<Value = Option<(Actuator, f64)>> {
    let actuators =
        ["native", "native:losses=few", "native:losses=off,floor=0s", "phantom", "phantom:floor=0s", "beta"];
    let weight = prop_oneof![Just(1e-6), Just(1.0), 0.001f64..1.0];
    let one = (prop::sample::select(actuators.to_vec()), weight);
    prop::option::of(one.prop_map(|(actuator, weight)| (actuator.parse().unwrap(), weight)))
}

fn run(law: &Law, steering: Option<&(Actuator, f64)>, seed: u64, operations: &[Operation]) -> Transport {
    let mut transport = Transport::new(law, steering, seed);
    for &operation in operations {
        transport.apply(operation);
    }
    transport
}

/// 3000 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_law_survives_every_life(
        (law, odd) in law(),
        steering in steering(),
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 0..150),
        timeout in any::<bool>(),
    ) {
        let mut transport = run(&law, steering.as_ref(), seed, &operations);
        prop_assert_eq!(&transport.windows, &run(&law, steering.as_ref(), seed, &operations).windows, "not the same again");
        // Whatever happened before, a small window grows again on a clean path.
        transport.apply(Operation::Idle { ms: 1000, validate: true });
        transport.apply(Operation::Send(20));
        if timeout {
            transport.apply(Operation::Timeout);
        }
        transport.apply(Operation::Idle { ms: 0, validate: false });
        let start = transport.window();
        // With odd parameters or little weight, a law may be as timid as it likes.
        let timid = odd || steering.is_some_and(|(_, weight)| weight < 1.0);
        prop_assert!(timid || start > 30 * MSS || transport.grows_above(start), "stuck at {start} bytes");
    }
}

#[test]
fn a_loss_is_reported_once_per_episode() {
    let law: Law = "reno".parse().unwrap();
    let loss = Operation::Loss { lost: 1, segments: 3 };
    // Ten segments, and three for the ACK that tells the loss; then half of it.
    let mut transport = run(&law, None, 1, &[Operation::Send(40), loss]);
    assert_eq!(transport.window(), 13 * MSS / 2);
    transport.apply(loss);
    assert_eq!(transport.window(), 13 * MSS / 2);
    // The retransmissions end the episode. Then a loss counts again.
    transport.apply(Operation::Idle { ms: 0, validate: false });
    let window = transport.window();
    transport.apply(Operation::Send(40));
    transport.apply(loss);
    assert!(transport.window() < window * 3 / 4);
}

#[test]
fn a_timeout_is_undone_if_it_was_none() {
    let law: Law = "cubic".parse().unwrap();
    let mut transport = run(&law, None, 1, &[Operation::Send(40), Operation::Timeout]);
    assert_eq!(transport.window(), MSS);
    transport.apply(Operation::Spurious);
    assert_eq!(transport.window(), 10 * MSS);
}
