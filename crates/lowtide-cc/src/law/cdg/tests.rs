// SPDX-License-Identifier: MIT OR Apache-2.0
//! The law as a whole, and the differences of its versions.

mod driver;

use crate::{Ack, EcnUse, Law, Reaction, Signal};
use driver::Driver;
use std::time::Duration;

const VARIANTS: [&str; 3] = ["mainline", "thesis", "freebsd"];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.011
}

#[test]
fn texts_and_defaults() {
    for text in ["cdg", "cdg:g=2,increase=cubic", "cdg:variant=thesis", "cdg:variant=freebsd,g=2"] {
        assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
    }
    let get = |text: &str, key: &str| {
        let parameters = text.parse::<Law>().unwrap().parameters();
        parameters.into_iter().find(|(name, _)| *name == key).unwrap().1
    };
    let row = |key: &str| VARIANTS.map(|variant| get(&format!("cdg:variant={variant}"), key));
    // algorithms: the table of the three published versions; mainline as less than best effort.
    assert_eq!(row("g")[2], "3");
    assert!(row("g")[0].starts_with("2.976") && row("g")[1].starts_with("3.003"));
    assert_eq!(row("window"), ["8", "8", "8"]);
    assert_eq!(row("beta"), ["0.70703125", "0.69921875", "0.7"]);
    assert_eq!(row("beta_loss"), ["0.5", "0.5", "0.5"]);
    assert_eq!(row("increase"), ["reno", "round", "alpha_inc"]);
    assert_eq!(row("alpha_inc"), ["8", "8", "0"]);
    assert_eq!(row("hystart"), ["on", "off", "off"]);
    assert_eq!(row("shadow"), ["off", "on", "on"]);
    assert_eq!(row("ineff"), ["off", "5", "5"]);
    assert_eq!(row("hold"), ["0", "5", "5"]);
    assert_eq!(row("tolerance"), ["off", "off", "on"]);
    assert_eq!(row("clock"), ["us", "us", "ms"]);
    assert_eq!(row("extrapolate"), ["on", "off", "off"]);
    assert_eq!(row("unsmoothed"), ["off", "on", "on"]);
    assert_eq!(row("exp"), ["exact", "product", "table"]);
    assert_eq!(row("prr"), ["on", "on", "off"]);
    assert_eq!(row("floor"), ["0s", "0s", "0s"]);
    for wrong in ["g=0", "g=-1", "window=0", "window=257", "variant=linux", "beta=1.1", "floor=2s"] {
        assert!(format!("cdg:{wrong}").parse::<Law>().is_err(), "{wrong}");
    }
    assert_eq!("cdg".parse::<Law>().unwrap().ecn_use(), EcnUse::Off);
    assert_eq!("cdg:ecn=on".parse::<Law>().unwrap().ecn_use(), EcnUse::Classic);
}

#[test]
fn backs_off_with_the_probability_of_the_paper() {
    let share = |law: &str| {
        let one = |seed| {
            let mut driver = Driver::seeded(law, seed).in_avoidance();
            driver.rounds(&[20.0, 23.0]);
            driver.probe("backoffs")
        };
        (0..2000).map(one).sum::<f64>() / 2000.0
    };
    // Gradient 3 ms, G = 3 ms; a band of three standard deviations.
    assert!((share("cdg:g=3") - 0.632).abs() < 0.0325);
    assert_eq!(share("cdg:g=0.0001"), 1.0);
    assert_eq!(share("cdg:g=1000000000"), 0.0);
    // Padded with zeros it is 3/8 ms.
    assert!((share("cdg:g=3,extrapolate=off") - 0.1175).abs() < 0.022);
}

#[test]
fn the_probe_shows_gradient_and_probability() {
    let mut driver = Driver::new("cdg:g=3").in_avoidance();
    driver.rounds(&[20.0, 23.0]);
    assert_eq!(driver.probe("gradient"), 3.0);
    assert!((driver.probe("probability") - 0.632).abs() < 1e-3);
    driver.rounds(&[23.0]);
    assert_eq!(driver.probe("gradient"), 1.5);
    driver.rounds(&[10.0]);
    assert_eq!((driver.probe("probability"), driver.probe("gradient_min")), (0.0, -10.0 / 3.0));
}

#[test]
fn what_a_backoff_leaves_and_how_it_is_made() {
    for (variant, left, reaction) in
        [("mainline", 0.707, Reaction::Reduced), ("thesis", 0.699, Reaction::Reduced), ("freebsd", 0.7, Reaction::None)]
    {
        let mut driver = Driver::of(variant, "g=0.0001");
        let _ = driver.round(20.0);
        let before = driver.cwnd();
        assert_eq!(driver.round(30.0), reaction, "{variant}");
        assert!(near(driver.cwnd() / before, left), "{variant}");
        assert_eq!(driver.cwnd(), driver.ssthresh()); // which ends slow start
    }
    let mut driver = Driver::of("freebsd", "g=0.0001,prr=on");
    driver.rounds(&[20.0]);
    assert_eq!(driver.round(30.0), Reaction::Reduced);
}

#[test]
fn whole_segments_are_rounded_down_twice() {
    let mut driver = Driver::new("cdg:g=0.0001,whole_segments=on").in_avoidance();
    for _ in 0..3 {
        driver.rounds(&[20.0]);
        let before = driver.cwnd();
        driver.rounds(&[30.0]);
        assert_eq!(driver.cwnd(), (before.floor() * 724.0 / 1024.0).floor());
        driver.recovered();
    }
    let before = driver.cwnd();
    driver.congestion(Signal::Loss);
    assert_eq!(driver.cwnd(), (before.floor() * 0.5).floor());
}

#[test]
fn growth_in_avoidance() {
    // Each ACK is a round here, so all grow by a segment a round; but only mainline where no round ends.
    for (variant, spread) in [("mainline", true), ("thesis", false), ("freebsd", false)] {
        let mut driver = Driver::of(variant, "shadow=off").in_avoidance();
        let _ = driver.round(20.0); // up to one above the threshold in the former two
        let before = driver.cwnd();
        let _ = driver.round(20.0);
        assert!(near(driver.cwnd(), before + 1.0), "{variant}");
        let before = driver.cwnd();
        let same_round = Ack { una: driver.una + 1, ..driver.ack(Duration::from_millis(20)) };
        let _ = driver.law.on_ack(&same_round);
        assert_eq!(driver.cwnd() > before, spread, "{variant}");
    }
}

#[test]
fn the_former_slow_start_ends_one_above_the_threshold() {
    for (variant, end) in [("mainline", 50.0), ("thesis", 51.0), ("freebsd", 51.0)] {
        let mut driver = Driver::of(variant, "shadow=off,increase=round");
        driver.congestion(Signal::Timeout);
        driver.recovered();
        for _ in 0..40 {
            if driver.cwnd() < 50.0 {
                let ack = Ack { una: driver.una, packets: 3, ..driver.ack(Duration::from_millis(20)) };
                let _ = driver.law.on_ack(&ack);
            }
        }
        assert_eq!(driver.cwnd(), end, "{variant}");
    }
}

#[test]
fn alpha_inc_steps_at_the_end_of_rounds() {
    let grown = |text: &str| {
        let mut driver = Driver::of("freebsd", &format!("shadow=off,alpha_inc=2,{text}")).in_avoidance();
        let _ = driver.round(20.0); // to 51
        driver.rounds(&[20.0; 6]);
        driver.cwnd() - 51.0
    };
    assert_eq!(grown("alpha_as_coded=on"), 0.0 + 1.0 + 1.0 + 2.0 + 2.0 + 3.0);
    assert_eq!(grown("alpha_as_coded=off"), 1.0 + 1.0 + 2.0 + 2.0 + 3.0 + 3.0);
}

#[test]
fn a_loss_inside_the_episode_reduces_nothing_more() {
    for variant in VARIANTS {
        let mut driver = Driver::of(variant, "g=0.0001,tolerance=off");
        driver.rounds(&[20.0, 30.0]);
        let left = driver.cwnd();
        driver.congestion(Signal::Loss);
        assert_eq!((driver.cwnd(), driver.ssthresh()), (left, left), "{variant}");
        driver.recovered();
        driver.congestion(Signal::Loss);
        assert!(driver.ssthresh() < left, "{variant}");
    }
}

#[test]
fn the_last_segment_sent_before_a_backoff_belongs_to_its_episode() {
    let mut driver = Driver::of("mainline", "g=0.0001");
    driver.rounds(&[20.0, 30.0]);
    let left = driver.cwnd();
    let end = driver.ack(Duration::from_millis(30)).nxt;
    for (una, ends) in [(end, false), (end + 1, true)] {
        let ack = Ack { una, nxt: end + 2000, reducing: true, ..driver.ack(Duration::from_millis(30)) };
        let _ = driver.law.on_ack(&ack);
        driver.una = una;
        driver.congestion(Signal::Loss);
        assert_eq!(driver.ssthresh() < left, ends);
    }
}

#[test]
fn a_timeout_inside_the_episode() {
    for (variant, keeps) in [("mainline", true), ("thesis", true), ("freebsd", false)] {
        let mut driver = Driver::of(variant, "g=0.0001");
        driver.rounds(&[20.0, 30.0]);
        let left = driver.cwnd();
        driver.congestion(Signal::Timeout);
        assert_eq!(driver.cwnd(), 1.0);
        assert_eq!(driver.ssthresh(), if keeps { left } else { left / 2.0 }, "{variant}");
    }
}

#[test]
fn backoffs_come_at_most_every_second_round() {
    // The delay rises by 10 ms a round, and every gradient is a back-off.
    let backoffs = |variant: &str| {
        let mut driver = Driver::of(variant, "g=0.0001,ineff=0");
        let mut times = Vec::new();
        for n in 0..12u32 {
            let before = driver.probe("backoffs");
            driver.live(20.0 + 10.0 * f64::from(n));
            if driver.probe("backoffs") > before {
                times.push(n);
            }
        }
        times
    };
    // Mainline: the round of the episode has samples, which its end makes the previous round.
    assert_eq!(backoffs("mainline"), [1, 3, 5, 7, 9, 11]);
    assert_eq!(backoffs("thesis"), [1, 3, 5, 7, 9, 11]);
    // With FreeBSD the transport has no episode; the law forgets the round before instead.
    assert_eq!(backoffs("freebsd"), [1, 3, 5, 7, 9, 11]);
}

#[test]
fn only_freebsd_measures_in_an_episode() {
    for (variant, measures) in [("mainline", false), ("thesis", false), ("freebsd", true)] {
        let mut driver = Driver::of(variant, "").in_avoidance();
        driver.rounds(&[20.0]);
        driver.reducing = true;
        driver.rounds(&[10.0]);
        assert_eq!(driver.probe("gradient_min") != 0.0, measures, "{variant}");
    }
}

#[test]
fn the_end_of_an_episode_begins_a_round_except_in_freebsd() {
    for (variant, gradient) in [("mainline", 2.0), ("thesis", 0.25), ("freebsd", -0.5)] {
        let mut driver = Driver::of(variant, "g=1000000000").in_avoidance();
        driver.rounds(&[20.0]);
        driver.reducing = true;
        driver.rounds(&[14.0]); // in the episode: the round before what follows
        driver.recovered();
        driver.rounds(&[16.0]);
        assert_eq!(driver.probe("gradient_min"), gradient, "{variant}");
    }
}

/// Ever-rising delay, so that every second round requires a back-off.
fn rising(driver: &mut Driver, rounds: u32) {
    for n in 0..=rounds {
        driver.live(20.0 + 2.0 * f64::from(n));
    }
}

#[test]
fn ineffectual_backoffs_are_held_back() {
    let mut driver = Driver::new("cdg:g=0.0001,ineff=5");
    rising(&mut driver, 100);
    assert_eq!(driver.probe("backoffs"), 5.0);
    driver.rounds(&[20.0]); // the delay falls
    assert_eq!(driver.probe("ineffectual"), 0.0);
    // Five in ten rounds, five held back in five more, and again.
    let mut driver = Driver::of("thesis", "g=0.0001");
    rising(&mut driver, 30);
    assert_eq!(driver.probe("backoffs"), 10.0);
    let mut driver = Driver::new("cdg:g=0.0001");
    rising(&mut driver, 30);
    assert_eq!(driver.probe("backoffs"), 15.0);
}

#[test]
fn a_backoff_that_is_held_back_stops_growth_only_in_freebsd() {
    for (variant, grows) in [("mainline", true), ("thesis", true), ("freebsd", false)] {
        let mut driver = Driver::of(variant, "g=0.0001,ineff=1,hold=9").in_avoidance();
        driver.rounds(&[20.0, 30.0]);
        driver.recovered();
        driver.rounds(&[40.0]);
        let (before, backoffs) = (driver.cwnd(), driver.probe("backoffs"));
        driver.rounds(&[50.0]);
        assert_eq!(driver.probe("backoffs"), backoffs);
        assert_eq!(driver.cwnd() > before, grows, "{variant}");
    }
}

#[test]
fn losses_of_a_rising_queue_are_tolerated() {
    for variant in VARIANTS {
        let after = |tolerance: &str, rtts: &[f64], signal| {
            let mut driver = Driver::of(variant, &format!("g=1000000000,shadow=off,{tolerance}")).in_avoidance();
            driver.rounds(rtts);
            let before = driver.cwnd();
            driver.congestion(signal);
            driver.ssthresh() / before
        };
        let rising = [20.0, 25.0, 30.0];
        assert_eq!(after("tolerance=on", &rising, Signal::Loss), 1.0, "{variant}");
        assert!(near(after("tolerance=off", &rising, Signal::Loss), 0.5));
        assert!(near(after("tolerance=on", &[20.0, 20.0], Signal::Loss), 0.5)); // nothing known
        // A mark is not noise of the path; mainline does not make that distinction.
        let mark = after("tolerance=on", &rising, Signal::Ecn);
        assert!(near(mark, if variant == "mainline" { 1.0 } else { 0.5 }), "{variant}: {mark}");
        // FreeBSD's timeouts follow NewReno.
        let timeout = after("tolerance=on", &rising, Signal::Timeout);
        assert!(near(timeout, if variant == "freebsd" { 0.5 } else { 1.0 }), "{variant}: {timeout}");
    }
}

#[test]
fn the_shadow_keeps_losses_from_counting_twice() {
    for variant in VARIANTS {
        let after = |shadow: &str, signal| {
            let mut driver = Driver::of(variant, &format!("g=0.0001,ineff=0,tolerance=off,{shadow}"));
            driver.rounds(&[20.0, 30.0]);
            driver.recovered();
            driver.rounds(&[40.0, 50.0]);
            driver.recovered();
            let before = driver.cwnd();
            driver.congestion(signal);
            (driver.cwnd() / before, driver.ssthresh() / before)
        };
        assert!(near(after("shadow=off", Signal::Loss).0, 0.5), "{variant}");
        // Two back-offs left about half, so half of the shadow is about the window.
        let (cwnd, ssthresh) = after("shadow=on", Signal::Loss);
        assert!(cwnd > 0.65 && ssthresh > 0.65, "{variant}: {cwnd} {ssthresh}");
        let mark = after("shadow=on", Signal::Ecn).0;
        assert_eq!(mark > 0.65, variant != "freebsd", "{variant}: {mark}");
    }
}

#[test]
fn an_idle_time_clears_what_linux_knows() {
    for (variant, clears) in [("mainline", true), ("thesis", true), ("freebsd", false)] {
        let mut driver = Driver::of(variant, "g=1000000000,ineff=5").in_avoidance();
        driver.rounds(&[20.0, 50.0]);
        driver.restart();
        driver.rounds(&[60.0]);
        let shown = driver.probe("gradient_max");
        driver.rounds(&[60.0]);
        // Cleared, the second round after it has the first gradient, of zero.
        assert_eq!(driver.probe("gradient_max") == 0.0, clears, "{variant}");
        assert_eq!(shown == driver.probe("gradient_max"), !clears, "{variant}");
    }
}

#[test]
fn an_empty_queue_has_no_price_with_a_floor() {
    let backoffs = |law: &str, rtts: &[f64]| {
        let mut driver = Driver::new(law).in_avoidance();
        driver.rounds(rtts);
        driver.probe("backoffs")
    };
    assert_eq!(backoffs("cdg:g=0.0001", &[20.0, 20.1]), 1.0);
    assert_eq!(backoffs("cdg:g=0.0001,floor=2ms", &[20.0, 20.1]), 0.0);
    assert_eq!(backoffs("cdg:g=0.0001,floor=2ms", &[20.0, 22.0]), 0.0);
    assert_eq!(backoffs("cdg:g=0.0001,floor=2ms", &[20.0, 22.1]), 1.0);
    assert_eq!(backoffs("cdg:g=0.0001,floor=2ms", &[64.0, 68.0]), 0.0); // a sixteenth
}

#[test]
fn one_way_delays_see_only_the_way_there() {
    let backoffs = |law: &str| {
        let mut driver = Driver::new(law).in_avoidance();
        for rtt in [20, 40] {
            driver.step();
            let ack = driver.ack(Duration::from_millis(rtt));
            let _ = driver.law.on_ack(&Ack { one_way_delay: Some(-77_000_000), ..ack });
        }
        driver.probe("backoffs")
    };
    assert_eq!((backoffs("cdg:g=0.0001"), backoffs("cdg:g=0.0001,delay=owd")), (1.0, 0.0));
}

#[test]
fn only_losses_can_be_taken_back() {
    let mut driver = Driver::new("cdg:g=0.0001");
    driver.rounds(&[20.0, 30.0]);
    let left = driver.cwnd();
    driver.law.on_spurious();
    assert_eq!(driver.cwnd(), left);
    driver.recovered();
    driver.congestion(Signal::Timeout);
    assert_eq!(driver.cwnd(), 1.0);
    driver.law.on_spurious();
    assert_eq!(driver.cwnd(), left);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for variant in VARIANTS {
        let mut driver = Driver::of(variant, "").in_avoidance();
        for _ in 0..5 {
            driver.step();
            let ack = driver.ack(Duration::from_millis(20));
            let _ = driver.law.on_ack(&Ack { window_limited: false, ..ack });
        }
        assert_eq!(driver.cwnd(), 50.0, "{variant}");
        assert_eq!(driver.probe("shadow"), 50.0, "{variant}");
    }
}

#[test]
fn a_weight_takes_the_place_of_g() {
    // A gradient of 12.5 ms, a tenth of G0: h = (g/G0)(1/w - 1).
    let hazard = |weight: f64| {
        let mut driver = Driver::new("cdg:g=1000000000").in_avoidance();
        driver.law.weighted().unwrap().set_weight(weight);
        driver.rounds(&[20.0, 32.5]);
        -libm::log1p(-driver.probe("probability"))
    };
    assert_eq!(hazard(1.0), 0.0); // an ordinary flow: only losses count
    for (weight, expected) in [(0.5, 0.1), (0.2, 0.4), (0.1, 0.9), (0.04, 2.4)] {
        assert!((hazard(weight) - expected).abs() < 1e-9, "{weight}: {}", hazard(weight));
    }
    // For small weights about G = 125 w.
    for weight in [0.01, 0.02, 0.04] {
        let g = 12.5 / hazard(weight);
        assert!((g / (125.0 * weight / (1.0 - weight)) - 1.0).abs() < 1e-6, "{weight}: {g}");
        assert!((g / (125.0 * weight) - 1.0).abs() < 0.05, "{weight}: {g}");
    }
    // Continuous and falling, up to w = 1.
    let mut last = f64::INFINITY;
    for n in 20..=1000 {
        let now = hazard(f64::from(n) / 1000.0);
        assert!(now < last, "{n}");
        assert!(last.is_infinite() || last - now < 0.3, "{n}: {last} to {now}");
        last = now;
    }
    assert!(hazard(0.999) < 2e-4);
}

#[test]
fn a_weight_of_one_never_backs_off_by_delay_and_odd_ones_do_no_harm() {
    let backoffs = |weights: &[f64]| {
        let mut driver = Driver::new("cdg:g=0.0001").in_avoidance();
        for &weight in weights {
            driver.law.weighted().unwrap().set_weight(weight);
        }
        for n in 0..100u32 {
            driver.live(20.0 + f64::from(n));
        }
        assert!(driver.probe("probability").is_finite());
        driver.probe("backoffs")
    };
    assert_eq!(backoffs(&[1.0]), 0.0);
    assert_eq!(backoffs(&[7.0]), 0.0, "no more than an ordinary flow");
    let always = backoffs(&[]);
    for submissive in [0.0, -1.0, f64::MIN_POSITIVE, f64::NAN] {
        assert_eq!(backoffs(&[submissive]), always, "{submissive}");
    }
    assert_eq!(backoffs(&[1.0, 0.0]), always, "it can change at any time");
}

/// A FIFO link of one packet per millisecond, 20 ms long: the mean queue and the mean window of a single flow.
fn alone(law: &str) -> (f64, f64) {
    let mut driver = Driver::new(law).in_avoidance();
    let (mut queues, mut windows) = (0.0, 0.0);
    for _ in 0..4000 {
        let queue = (driver.cwnd() - 20.0).max(0.0);
        driver.live(20.0 + queue);
        queues += queue / 4000.0;
        windows += driver.cwnd() / 4000.0;
    }
    (queues, windows)
}

#[test]
fn alone_it_keeps_the_queue_short_and_the_shorter_the_smaller_g() {
    let (small, usual, large) = (alone("cdg:g=0.5"), alone("cdg:g=3"), alone("cdg:g=30"));
    assert!(small.0 < usual.0 && usual.0 < large.0, "{small:?} {usual:?} {large:?}");
    assert!(small.0 < 2.0 && usual.0 < 6.0, "{small:?} {usual:?}");
    assert!(small.1 > 12.0 && usual.1 > 18.0, "{small:?} {usual:?}");
}
