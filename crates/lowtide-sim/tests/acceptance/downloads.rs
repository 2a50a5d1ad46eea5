// SPDX-License-Identifier: MIT OR Apache-2.0
//! Downloads governed at the receiver: the cases in `scenarios/downloads/`. What a kernel makes of them:
//! docs/downloads.md. Parts are of what the link carries for one flow.

use crate::support::{Table, outcome, scenario_file};
use lowtide_sim::{Outcome, observe::Nobody, run};

/// Payload of a link of 1 Mbit/s.
const PAYLOAD: f64 = 1448.0 / 1500.0 * 1e6;

fn case(name: &str, overrides: &[&str]) -> Outcome {
    run(&scenario_file(&format!("downloads/{name}"), overrides), &mut Nobody)
}

/// The rate of a flow in a span, as a part of a link of so many Mbit/s.
fn part(outcome: &Outcome, span: usize, flow: &str, mbit: f64) -> f64 {
    let rows = &outcome.spans[span].flows;
    rows.iter().find(|row| row.name == flow).map_or(0.0, |row| row.mean_bps) / (mbit * PAYLOAD)
}

#[test]
fn whatever_the_server_is_the_foreground_keeps_its_rate_and_an_idle_link_is_used() {
    let mut table = Table::default();
    for buffer in ["1bdp", "4bdp"] {
        // the foreground has its slow start in the span, so alone it has less than the link
        let alone = outcome(&format!(
            "duration = \"40s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\nbuffer = \"{buffer}\"\n\
             [[flow]]\nname = \"fg\"\ncc = \"cubic\"\n[[span]]\nfrom = \"0s\"\nto = \"20s\"\n"
        ));
        let alone = part(&alone, 0, "fg", 20.0);
        for server in ["cubic", "reno", "bbr1"] {
            let what = |what| format!("{server}, {buffer}: {what}");
            let outcome = case("cubic", &[&format!("flow.bg.cc={server}"), &format!("bottleneck.buffer={buffer}")]);
            table.row(&what("used alone"), part(&outcome, 0, "bg", 20.0), 0.97..=1.001);
            table.row(&what("kept"), part(&outcome, 1, "fg", 20.0) / alone, 0.97..=1.01);
            table.row(&what("used again"), part(&outcome, 2, "bg", 20.0), 0.97..=1.001);
        }
    }
    table.check();
}

#[test]
fn without_a_law_at_the_receiver_a_server_with_bbr_takes_most_of_the_link() {
    let text = "duration = \"40s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\n\
                [[flow]]\nname = \"fg\"\ncc = \"cubic\"\nstart = \"20s\"\n[[flow]]\nname = \"bg\"\ncc = \"bbr1\"\n\
                [[span]]\nfrom = \"20s\"\nto = \"40s\"\n";
    let mut table = Table::default();
    table.row("kept", part(&outcome(text), 0, "fg", 20.0), 0.0..=0.2);
    table.check();
}

/// From its first second on. It loses some of its first data in the full queue.
#[test]
fn a_latecomer_leaves_the_link_to_whoever_is_there() {
    let mut table = Table::default();
    for server in ["cubic", "bbr1"] {
        let server = format!("flow.bg.cc={server}");
        let outcome = case("latecomer", &[&server]);
        table.row(&format!("kept, {server}"), part(&outcome, 1, "fg", 20.0), 0.99..=1.0);
        table.row(&format!("used afterwards, {server}"), part(&outcome, 2, "bg", 20.0), 0.95..=1.001);
        let four = [&server, "flow.bg.source=connections:size=50MB,count=4,parallel=4"];
        let outcome = case("latecomer", &four);
        table.row(&format!("kept by four, {server}"), part(&outcome, 1, "fg", 20.0), 0.975..=1.0);
    }
    table.check();
}

/// A law that fills the idle link leaves it now and then, as the connections meet in the queue: 78 to 100 % are used.
/// When is chance, so these are means over round trips.
#[test]
fn eight_connections_are_one_flow() {
    let rtts = ["34ms", "36ms", "38ms", "40ms", "42ms", "44ms", "46ms"];
    let outcomes = rtts.map(|rtt| case("eight", &[&format!("bottleneck.rtt={rtt}")]));
    let mean = |span, flow| {
        let sum: f64 = outcomes.iter().map(|outcome| part(outcome, span, flow, 20.0)).sum();
        sum / outcomes.len() as f64
    };
    let mut table = Table::default();
    table.row("used alone", mean(0, "bg"), 0.9..=1.001);
    table.row("kept", mean(1, "fg"), 0.95..=1.0);
    table.row("used again", mean(2, "bg"), 0.9..=1.001);
    table.check();
}

/// The round trip doubles, and its data wait nowhere.
#[test]
fn an_upload_in_whose_queue_the_acks_wait_is_no_reason_to_yield() {
    let outcome = case("upload", &[]);
    let mut table = Table::default();
    table.row("used alone", part(&outcome, 0, "bg", 20.0), 0.97..=1.001);
    table.row("used beside it", part(&outcome, 1, "bg", 20.0), 0.5..=1.001);
    table.row("used again", part(&outcome, 2, "bg", 20.0), 0.97..=1.001);
    table.check();
}

#[test]
fn slow_and_fast_links_are_used_and_left() {
    let mut table = Table::default();
    for (mbit, rtt) in [(5.0, "40ms"), (8.0, "40ms"), (10.0, "40ms"), (200.0, "20ms"), (500.0, "20ms")] {
        let what = |what| format!("{mbit} Mbit/s: {what}");
        let outcome = case("fast", &[&format!("bottleneck.rate={mbit}mbit"), &format!("bottleneck.rtt={rtt}")]);
        table.row(&what("used alone"), part(&outcome, 0, "bg", mbit), 0.97..=1.001);
        table.row(&what("kept"), part(&outcome, 1, "fg", mbit), 0.95..=1.0);
        table.row(&what("used again"), part(&outcome, 2, "bg", mbit), 0.97..=1.001);
    }
    table.check();
}

/// In the third second after the foreground's end, as its packets that leave together are no queue of others.
#[test]
fn over_a_long_path_a_download_comes_back_within_seconds() {
    let mut table = Table::default();
    for server in ["cubic", "reno"] {
        let text = format!(
            "duration = \"25s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"150ms\"\nbuffer = \"1bdp\"\n\
             [[flow]]\nname = \"bg\"\ncc = \"{server}\"\nreceiver = \"tide\"\n\
             [[flow]]\nname = \"fg\"\ncc = \"cubic\"\nstart = \"10s\"\nstop = \"22s\"\n\
             [[span]]\nfrom = \"24s\"\nto = \"25s\"\n"
        );
        table.row(server, part(&outcome(&text), 0, "bg", 20.0), 0.9..=1.001);
    }
    table.check();
}

/// Between nothing and an ordinary flow, which has half.
#[test]
fn a_weight_is_a_share() {
    let taken = ["0.1", "0.3", "0.6"].map(|weight| {
        let outcome = outcome(&format!(
            "duration = \"240s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\n\
             [[flow]]\nname = \"fg\"\ncc = \"cubic\"\nstart = \"20s\"\n\
             [[flow]]\nname = \"bg\"\ncc = \"cubic\"\nreceiver = \"tide\"\nweight = {weight}\n\
             [[span]]\nfrom = \"60s\"\nto = \"240s\"\n"
        ));
        part(&outcome, 0, "bg", 20.0)
    });
    println!("{taken:.3?}");
    assert!(taken.is_sorted() && taken[0] > 0.03 && taken[2] < 0.6, "{taken:?}");
}

/// CDG as `lowtide run` has it; at the receiver there are no phantom signals for losses.
const CDG: &str = "cdg:g=125,floor=2ms,blend=off,hystart=delay,paced=on";

/// The part of the link that the background has of what both have, from 60 to 240 s.
fn taken(background: &str, buffer: &str) -> f64 {
    let outcome = outcome(&format!(
        "duration = \"240s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"40ms\"\nbuffer = \"{buffer}\"\n\
         [[flow]]\nname = \"fg\"\ncc = \"cubic\"\nstart = \"20s\"\n\
         [[flow]]\nname = \"bg\"\n{background}\n[[span]]\nfrom = \"60s\"\nto = \"240s\"\n"
    ));
    let [foreground, background] = ["fg", "bg"].map(|flow| part(&outcome, 0, flow, 20.0));
    background / (foreground + background)
}

/// Each other law in C takes at the receiver what it takes as a sender, whatever the server is.
#[test]
fn another_law_takes_at_the_receiver_what_it_takes_as_a_sender() {
    let mut table = Table::default();
    for (law, weight) in [
        ("vegas", Some(0.1)),
        ("vegas", Some(0.5)),
        ("eclipse", Some(0.1)),
        ("eclipse", Some(0.5)),
        (CDG, Some(0.02)),
        (CDG, Some(0.5)),
        ("ledbat", None),
        ("ledbatpp", None),
    ] {
        let weight = weight.map(|weight| format!("\nweight = {weight}")).unwrap_or_default();
        let actuator = if law == CDG { "\nactuator = \"native:losses=few\"" } else { "" };
        let port = if law.contains(':') { ",port=kernel" } else { ":port=kernel" };
        for buffer in ["1bdp", "4bdp"] {
            let sender = taken(&format!("cc = \"{law}{port}\"{weight}{actuator}"), buffer);
            for server in ["cubic", "reno", "bbr1"] {
                let what = format!("{law}{weight}, {server}, {buffer}").replace('\n', ", ");
                let receiver = taken(&format!("cc = \"{server}\"\nreceiver = \"{law}\"{weight}"), buffer);
                table.row(&what, receiver - sender, -0.16..=0.16);
            }
        }
    }
    table.check();
}

/// With each of these laws, too, the connections of a transfer are one flow.
#[test]
fn eight_connections_are_one_flow_under_another_law() {
    let mut table = Table::default();
    for (law, weight) in [("vegas", Some(0.1)), ("eclipse", Some(0.1)), ("ledbatpp", None)] {
        let mut overrides = vec![format!("flow.bg.receiver={law}")];
        overrides.extend(weight.map(|weight| format!("flow.bg.weight={weight}")));
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let case = |name: &str| case(name, &overrides);
        let (one, eight) = (case("cubic"), case("eight"));
        table.row(&format!("{law}: used alone"), part(&eight, 0, "bg", 20.0), 0.85..=1.001);
        let kept = |outcome| part(outcome, 1, "fg", 20.0);
        table.row(&format!("{law}: kept, beside that of one"), kept(&eight) - kept(&one), -0.1..=0.1);
    }
    table.check();
}
