// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows that share a link.

use crate::support::{Link, Table, flows, flows_text, outcome, share};

const TEN_MBIT: Link<'static> = Link { rate: "10mbit", rtt: "50ms", more: "" };

#[test]
fn cubic_and_reno_share_as_rfc_9438_expects() {
    // RFC 9438, section 4.3: in its Reno-friendly region CUBIC is as Reno; where the round-trip time is long it takes
    // what Reno leaves (section 5.2). With windows below ten segments (10 Mbit/s, 10 ms) it takes 69 to 74 %, whatever
    // the starts: there a third of a window is seldom more than a segment or two.
    let mut table = Table::default();
    for (rate, rtt, band) in [
        ("50mbit", "10ms", 0.4..=0.62),
        ("50mbit", "20ms", 0.4..=0.62),
        ("10mbit", "50ms", 0.4..=0.62),
        ("10mbit", "200ms", 0.65..=0.95),
    ] {
        let share = share(&flows(Link { rate, rtt, more: "" }, &["cubic", "reno"], 20, 120));
        table.row(&format!("CUBIC beside Reno at {rate}, {rtt}: share"), share, band);
    }
    table.check();
}

#[test]
fn nobody_starves_among_equals() {
    // Chiu and Jain, 1989: additive increase and multiplicative decrease converge to fairness. Four flows.
    let mut table = Table::default();
    for law in ["reno", "cubic", "cdg", "cdg:g=0.5", "bbr1", "bbr3"] {
        let result = flows(TEN_MBIT, &[law; 4], 30, 180);
        table.row(&format!("four of {law}: Jain's index"), result.jain.expect("four flows"), 0.9..=1.0);
        table.row(&format!("four of {law}: utilisation"), result.bottlenecks[0].utilisation, 0.8..=1.001);
    }
    for law in ["dctcp", "prague"] {
        let more = "buffer = \"500p\"\nqueue = \"step:at=3ms\"";
        let result = flows(Link { rate: "50mbit", rtt: "15ms", more }, &[law; 4], 10, 50);
        table.row(&format!("four of {law}: Jain's index"), result.jain.expect("four flows"), 0.9..=1.0);
    }
    table.check();
}

#[test]
fn background_laws_give_way_to_cubic() {
    // One flow beside one CUBIC flow at 10 Mbit/s and 50 ms; less than a quarter. A law with a target of delay gives
    // way only where a buffer of several targets lets the queue stand above it.
    let mut table = Table::default();
    for (law, buffer) in [
        ("eclipse", "1bdp"),
        ("nice", "1bdp"),
        ("proteus", "1bdp"),
        ("tide", "1bdp"),
        ("cdg:g=0.1", "1bdp"),
        ("cdg:g=0.5", "1bdp"),
        ("vegas", "1bdp"),
        ("lp:variant=paper", "1bdp"),
        ("vegas", "40ms"),
        ("ledbat", "400ms"),
        ("ledbatpp", "240ms"),
        ("lp", "400ms"),
        ("lp:variant=paper", "400ms"),
    ] {
        for ack_every in [1, 2] {
            let more = format!("buffer = \"{buffer}\"");
            let text = flows_text(Link { more: &more, ..TEN_MBIT }, &[law, "cubic"], 20, 170);
            let result = outcome(&format!("tcp = {{ ack_every = {ack_every} }}\n{text}"));
            table.row(
                &format!("{law} beside CUBIC, {buffer}, an ACK for {ack_every}: share"),
                share(&result),
                0.0..=0.25,
            );
            table.row("  utilisation", result.bottlenecks[0].utilisation, 0.97..=1.001);
        }
    }
    table.check();
}

#[test]
fn proteus_shares_with_its_like_and_the_scavenger_yields_to_the_primary() {
    // Its paper: -S among itself and -P among itself are fair, and -S leaves most to -P, which leaves it the link where
    // alone.
    let mut table = Table::default();
    let link = Link { rate: "50mbit", rtt: "30ms", more: "buffer = \"2bdp\"" };
    for (a, b, band) in [
        ("proteus", "proteus", 0.35..=0.65),
        ("proteus:d=0", "proteus:d=0", 0.35..=0.65),
        ("proteus", "proteus:d=0", 0.0..=0.3),
        ("proteus", "cubic", 0.0..=0.1),
    ] {
        let result = flows(link, &[a, b], 30, 110);
        table.row(&format!("{a} beside {b}: share"), share(&result), band);
        table.row("  utilisation", result.bottlenecks[0].utilisation, 0.9..=1.001);
        if b != "cubic" {
            table.row("  ms queued", result.bottlenecks[0].mean_queue_ms, 0.0..=5.0);
        }
    }
    table.check();
}

#[test]
fn beside_tide_a_foreground_keeps_what_it_has_alone() {
    // Where the buffer is short and the link never full for long Tide comes back often: it must not overflow the buffer
    // then.
    let mut table = Table::default();
    for (rate, rtt, buffer, least) in
        [("20mbit", "40ms", "1bdp", 0.97), ("20mbit", "150ms", "4bdp", 0.97), ("50mbit", "10ms", "0.5bdp", 0.88)]
    {
        for law in ["cubic", "reno", "bbr3"] {
            let more = format!("buffer = \"{buffer}\"");
            let link = Link { rate, rtt, more: &more };
            let alone = flows(link, &[law], 5, 65).flows[0].mean_bps;
            let result = flows(link, &["tide", law], 5, 65);
            let kept = result.flows[1].mean_bps / alone;
            table.row(&format!("{law} beside Tide, {rate}, {rtt}, {buffer}: kept"), kept, least..=1.1);
            table.row("  utilisation", result.bottlenecks[0].utilisation, 0.9..=1.001);
        }
    }
    table.check();
}

#[test]
fn behind_a_priority_queue_the_background_costs_nothing() {
    // The foreground has what it has alone, the background what is left: nothing by CUBIC with a buffer of one BDP,
    // three fifths by a video.
    let mut table = Table::default();
    for queue in ["priority", "priority:codel", "priority:fq_codel"] {
        let more = format!("queue = \"{queue}\"");
        let link = flows_text(Link { more: &more, ..TEN_MBIT }, &[], 20, 120);
        for foreground in ["cc = \"cubic\"", "source = \"cbr:rate=4mbit\""] {
            let alone = format!("{link}[[flow]]\nname = \"fg\"\n{foreground}\n");
            let both =
                format!("{alone}[[flow]]\nname = \"bg\"\ncc = \"cubic\"\nstart = \"1s\"\nclass = \"background\"\n");
            let (alone, both) = (outcome(&alone), outcome(&both));
            let kept = both.flows[0].mean_bps / alone.flows[0].mean_bps;
            table.row(&format!("{queue}, {foreground}: foreground kept"), kept, 0.99..=1.01);
            table.row("  utilisation", both.bottlenecks[0].utilisation, 0.98..=1.001);
        }
    }
    table.check();
}

#[test]
fn ledbat_is_no_background_law_where_its_target_does_not_fit() {
    // RFC 6817, section 4.4 (and libutp in a kernel's emulation: 64 % with 40 ms): below its target it is an ordinary
    // flow.
    let mut table = Table::default();
    let ledbat = flows(TEN_MBIT, &["ledbat", "cubic"], 20, 220);
    table.row("LEDBAT beside CUBIC at one BDP (50 ms): share", share(&ledbat), 0.3..=0.7);
    table.check();
}

#[test]
fn eclipse_shares_with_its_like_and_a_late_ledbat_takes_more() {
    // Eclipse, figure 8: equal shares; LEDBAT's latecomer sees the first one's queue as the base. 5 Mbit/s, no delay.
    let link = Link { rate: "5mbit", rtt: "0ms", more: "buffer = \"100p\"" };
    let pair = |law: &str| {
        let text = flows_text(link, &[law], 45, 60);
        outcome(&format!("{text}[[flow]]\nname = \"late\"\ncc = \"{law}\"\nstart = \"30s\"\n"))
    };
    let mut table = Table::default();
    table.row("X-09: Jain's index of two Eclipse flows", pair("eclipse").jain.expect("two flows"), 0.95..=1.0);
    table.row("X-10: share of the first LEDBAT flow", share(&pair("ledbat")), 0.0..=0.4);
    table.check();
}
