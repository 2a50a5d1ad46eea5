// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlines in scenarios: what control sees, what it does, and what results say of it.

use crate::support::{Samples, Table, outcome, scenario, scenario_file, within};
use lowtide_deadline::Basis;
use lowtide_sim::{observe::FlowSample, run, scenario::Scenario};

/// A transfer beside one flow at 20 Mbit/s, with more keys.
fn beside_one(law: &str, other: &str, more: &str) -> String {
    format!(
        "duration = \"60s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\n{more}\n\
         [[flow]]\nname = \"fg\"\ncc = \"{other}\"\n\
         [[flow]]\nname = \"bg\"\ncc = \"{law}\"\nsize = \"25MB\"\nstart = \"2s\"\ndeadline = \"50s\"\ncontrol = \"mbc\"\n"
    )
}

#[test]
fn repeated_transfers_start_afresh_after_the_gap_until_the_stop() {
    let text = "duration = \"60s\"\nsample = \"100ms\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"fg\"\ncc = \"cubic\"\n\
                [[flow]]\nname = \"bg\"\ncc = \"cdg\"\nsize = \"10MB\"\nstart = \"1s\"\nstop = \"50s\"\ndeadline = \"10s\"\n\
                gap = \"1.5s\"\npolicy = { w_min = 0.01 }\n";
    let mut firsts = Vec::new();
    let mut under_way = false;
    let mut highest = 0.0_f64;
    let mut watch = Samples(|sample: &FlowSample<'_>| {
        if sample.flow == 1 {
            if let Some(control) = sample.control.filter(|_| !under_way) {
                firsts.push(control.weight);
            }
            under_way = sample.control.is_some();
            highest = sample.control.map_or(highest, |control| control.weight.max(highest));
        }
    });
    let outcome = run(&scenario(text), &mut watch);
    let flow = &outcome.flows[1];
    assert!(flow.deadlines.len() >= 4, "{:?}", flow.deadlines);
    for (n, it) in flow.deadlines.iter().enumerate() {
        assert!((it.due_s - it.start_s - 10.0).abs() < 1e-9 && it.bytes == 10_000_000, "{it:?}");
        let Some(next) = flow.deadlines.get(n + 1) else { continue };
        let finished = it.finished_s.expect("the next begins when it is complete");
        assert!((next.start_s - finished - 1.5).abs() < 1e-9, "{it:?} {next:?}");
        assert_eq!((it.met, it.late_s), (Some(finished <= it.due_s), Some(finished - it.due_s)));
    }
    assert_eq!(firsts, vec![0.01; flow.deadlines.len()], "each begins at w_min");
    assert!(highest > 0.05, "{highest}");
    // the last one was stopped
    let last = flow.deadlines.last().expect("several");
    assert_eq!((last.finished_s, last.met), (None, None), "{last:?}");
    assert!(flow.finished_s.is_some_and(|at| (50.0..51.0).contains(&at)), "{:?}", flow.finished_s);
    let complete = flow.deadlines.len() as u64 - 1;
    assert!((complete * 10_000_000..(complete + 1) * 10_000_000).contains(&flow.acked_bytes), "{}", flow.acked_bytes);
}

#[test]
fn what_could_not_be_complete_is_late_by_the_least_that_it_can_be() {
    let text = "duration = \"12s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"bg\"\ncc = \"cubic\"\nsize = \"100MB\"\ndeadline = \"5s\"\ncontrol = \"pid\"\n";
    let deadlines = &outcome(text).flows[0].deadlines;
    assert_eq!((deadlines[0].finished_s, deadlines[0].met, deadlines[0].late_s), (None, Some(false), Some(7.0)));
    assert!((deadlines[0].basis_s.feedback - 5.0).abs() < 1e-9, "{deadlines:?}");
}

/// What each law's control rests on. A signal is there if the model rules.
#[test]
fn a_model_rules_where_there_is_one_and_a_price() {
    let mut table = Table::default();
    let codel = "queue = \"codel\"";
    let step = "queue = \"step:at=5ms\"\nbuffer = \"500p\"";
    for (law, other, more, ruled) in [
        ("cubic", "cubic", "", true),
        ("reno", "cubic", "", true),
        ("cdg", "cubic", "", true),
        ("vegas", "cubic", "", true),
        ("cubic:ecn=on", "cubic:ecn=on", codel, true), // marks of classic ECN are its price
        ("dctcp", "dctcp", step, false),
        ("reno:beta=0.7", "cubic", "", false),
    ] {
        let outcome = outcome(&beside_one(law, other, more));
        let it = &outcome.flows[1].deadlines[0];
        let controlled = it.finished_s.unwrap_or(60.0).min(it.due_s) - it.start_s;
        let sum = it.basis_s.model + it.basis_s.feedback + it.basis_s.fallback();
        table.row(
            &format!("{law}: seconds accounted for, of {controlled:.1}"),
            sum,
            controlled - 0.11..=controlled + 1e-6,
        );
        let part = it.basis_s.model / controlled;
        table.row(&format!("{law}: part by model"), part, if ruled { 0.6..=1.0 } else { 0.0..=0.0 });
        if !ruled {
            table.row(&format!("{law}: for want of a model"), it.basis_s.no_model / sum, 0.95..=1.0);
        }
    }
    table.check();
}

/// φ* is there for Vegas without being asked for, and reaches the law: the packets that it keeps queued are 15·w·φ.
#[test]
fn the_ratio_of_prices_reaches_vegas() {
    let mut seen = 0;
    let mut watch = Samples(|sample: &FlowSample<'_>| {
        let Some(control) = sample.control else { return };
        let alpha = sample.inner.iter().find(|it| it.0 == "alpha").expect("it is Vegas").1;
        let expected = (15.0 * control.weight * control.price_ratio).clamp(1.0, 100.0);
        assert!((alpha - expected).abs() < 1e-9, "{alpha} is not {expected}");
        seen += u32::from(control.price_ratio != 1.0 && control.basis == Basis::Model);
    });
    run(&scenario(&beside_one("vegas", "cubic", "")), &mut watch);
    assert!(seen > 100, "{seen}");
}

#[test]
fn spans_have_rates_and_parts_of_a_fair_share() {
    // 20 Mbit/s, of which datagrams take 4: 16·1448/1500 of payload. `b` comes when the second span is half over.
    let text = "duration = \"90s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"a\"\ncc = \"cubic\"\n\
                [[flow]]\nname = \"b\"\ncc = \"cubic\"\nstart = \"60s\"\n\
                [[flow]]\nname = \"c\"\nsource = \"cbr:bytes=1472B,interval=3ms\"\n\
                [[span]]\nfrom = \"10s\"\nto = \"40s\"\n[[span]]\nfrom = \"30s\"\nto = \"90s\"\n";
    let outcome = outcome(text);
    let [first, second] = &outcome.spans[..] else { panic!("two spans") };
    assert_eq!((first.from_s, first.to_s, first.flows.len(), second.flows.len()), (10.0, 40.0, 2, 3));
    let payload = 16e6 * 1448.0 / 1500.0;
    let mut table = Table::default();
    let alone = &first.flows[0];
    table.row("a, alone: Mbit/s", alone.mean_bps / 1e6, within(payload / 1e6, 0.02));
    table.row("a, alone: part of a fair share", alone.of_fair_share.expect("TCP"), within(1.0, 0.02));
    let [a, b, c] = &second.flows[..] else { panic!("three flows") };
    for (flow, fair) in [(a, 0.75), (b, 0.25)] {
        let fair = flow.mean_bps / (fair * payload);
        table.row(
            &format!("{}: part of a fair share", flow.name),
            flow.of_fair_share.expect("TCP"),
            within(fair, 0.01),
        );
    }
    table.row("c: Mbit/s", c.mean_bps / 1e6, within(4.0 * 1472.0 / 1500.0, 0.01));
    assert_eq!((c.of_fair_share, a.target_bps, a.weight), (None, None, None));
    table.check();
}

/// What became of three transfers beside a foreground flow.
#[derive(Debug, Default)]
struct Three {
    met: u32,
    /// The most that the three needed together; and over five seconds, the most that they had together and the least
    /// that the foreground had. Mbit/s.
    needed: f64,
    most: f64,
    least: f64,
}

/// Rate and needed rate of each flow at a time, Mbit/s; the foreground is the first.
type Moment = [(f64, f64); 4];

/// `scenarios/three-deadlines.toml`, from when they begin until the last one is due.
fn three_deadlines(seed: u64, overrides: &[&str]) -> Three {
    let file = Scenario { seed, ..scenario_file("three-deadlines", overrides) };
    let mut rows: Vec<Moment> = Vec::new();
    let mut watch = Samples(|sample: &FlowSample<'_>| {
        if sample.flow == 0 {
            rows.push(Default::default());
        }
        let target = sample.control.and_then(|control| control.target_bps).unwrap_or(0.0);
        rows.last_mut().expect("the foreground is the first")[sample.flow] = (sample.rate_bps / 1e6, target / 1e6);
    });
    let outcome = run(&file, &mut watch);
    let second = (1.0 / file.sample_interval.as_secs_f64()).round() as usize;
    let under_way = &rows[5 * second..65 * second];
    let sum = |row: &Moment, part: fn((f64, f64)) -> f64| row[1..].iter().copied().map(part).sum::<f64>();
    let means = |of: &dyn Fn(&Moment) -> f64| -> Vec<f64> {
        under_way.windows(5 * second).map(|rows| rows.iter().map(of).sum::<f64>() / rows.len() as f64).collect()
    };
    let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    Three {
        met: outcome.flows[1..].iter().map(|flow| u32::from(flow.deadlines[0].met == Some(true))).sum(),
        needed: most(under_way.iter().map(|row| sum(row, |(_, target)| target)).collect()),
        most: most(means(&|row| sum(row, |(rate, _)| rate))),
        least: means(&|row| row[0].0).into_iter().fold(f64::INFINITY, f64::min),
    }
}

/// Transfers that share one budget are on time as those are that each press for themselves, and cost the foreground
/// less at the worst.
#[test]
fn a_group_meets_its_deadlines_with_a_lower_peak() {
    const SEEDS: u64 = 9;
    let measure = |how: &str, overrides: &[&str]| {
        let runs: Vec<_> = (1..=SEEDS).map(|seed| three_deadlines(seed, overrides)).collect();
        let median = |of: fn(&Three) -> f64| {
            let mut values: Vec<_> = runs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let three = Three {
            met: runs.iter().map(|run| run.met).sum(),
            needed: median(|run| run.needed),
            most: median(|run| run.most),
            least: median(|run| run.least),
        };
        println!("{how}: {three:.2?}");
        three
    };
    let together = measure("one budget", &[]);
    let alone = measure("each by itself", &["flow.first.group=a", "flow.second.group=b"]);
    assert_eq!(u64::from(together.met), 3 * SEEDS, "deadlines met");
    assert!(together.needed < 0.8 * alone.needed, "{together:?} {alone:?}");
    assert!(together.most < 0.9 * alone.most, "{together:?} {alone:?}");
    assert!(together.least > 1.2 * alone.least, "{together:?} {alone:?}");
}
