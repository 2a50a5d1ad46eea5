// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow alone: what the textbooks say about it.

use crate::support::{
    Link, Packets, Table, flows, flows_text, is_data_arrival, outcome, scenario, share, window, within,
};
use lowtide_sim::run;

/// A path that only random loss limits, at `p`.
fn lossy(law: &str, rtt: &str, p: f64, seed: u64, duration: u32) -> String {
    format!(
        "seed = {seed}\nduration = \"{duration}s\"\nmeasure_from = \"{}s\"\ntcp = {{ receive_window = \"1GB\" }}\n\
         [bottleneck]\nrate = \"1gbit\"\nrtt = \"{rtt}\"\nloss = {p}\n[[flow]]\nname = \"a\"\ncc = \"{law}\"\n",
        duration / 20
    )
}

#[test]
fn a_packet_takes_its_bits_at_the_rate() {
    // 1514 B at 10 Mbit/s take 1.2112 ms (the CDG thesis, figures 2.1 and 2.4).
    let text = "duration = \"2s\"\ntcp = { mss = \"1462B\" }\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"50ms\"\nbuffer = \"9p\"\n\
                [[flow]]\nname = \"a\"\ncc = \"reno\"\nsize = \"14620B\"\n";
    let mut packets = Packets::default();
    run(&scenario(text), &mut packets);
    let arrivals: Vec<u64> = packets.0.iter().filter(|it| is_data_arrival(it)).map(|it| it.now.as_nanos()).collect();
    // The SYN: 52 bytes, there and back; then the first of ten segments that leave at once.
    assert_eq!(arrivals[0], 41_600 + 50_000_000 + 1_211_200 + 25_000_000);
    // The tenth found the buffer full: nine are held.
    assert!(arrivals[..9].windows(2).all(|pair| pair[1] - pair[0] == 1_211_200), "{arrivals:?}");
    assert!(arrivals[9] - arrivals[8] > 1_211_200);
}

#[test]
fn reno_follows_the_square_root_law() {
    // W = c / sqrt(p). Periodic loss: c = sqrt(3/2) = 1.22 (Mathis et al., 1997). Loss without memory: 1.31 (Ott et
    // al., 1996), and 1.30, 1.29, 1.28 and 1.25 at these p with a round trip of recovery after each loss. Delayed ACKs
    // cost about 2 %. Five deviations of some hundred losses are 10 %.
    let mut table = Table::default();
    for (p, expected) in [(0.0003, 1.30), (0.001, 1.29), (0.003, 1.28), (0.01, 1.25)] {
        let result = outcome(&lossy("reno", "100ms", p, 3, 1000));
        let constant = window(&result.flows[0]) * f64::sqrt(p);
        table.row(&format!("Reno at p = {p}: W sqrt(p)"), constant, within(expected, 0.1));
    }
    table.check();
}

#[test]
fn cubic_follows_its_response_function() {
    // RFC 9438, section 5.1: W = 1.054 (RTT/p)^(3/4) for periodic loss. Loss without memory, with fast convergence and
    // a round trip of recovery: the same power, and 1.17 (numerically, the ideal function). All of it far from where
    // Reno would be faster.
    let mut table = Table::default();
    let mut windows = Vec::new();
    for (p, duration) in [(0.0003, 2000), (0.001, 3000), (0.003, 3000)] {
        let result = outcome(&lossy("cubic", "400ms", p, 2, duration));
        let window = window(&result.flows[0]);
        table.row(&format!("CUBIC at p = {p}: W (p/RTT)^3/4"), window * libm::pow(p / 0.4, 0.75), within(1.17, 0.13));
        windows.push(window);
    }
    let power = libm::log(windows[0] / windows[2]) / libm::log(10.0);
    table.row("CUBIC: the power of 1/p", power, within(0.75, 0.07));
    table.check();
}

#[test]
fn vegas_keeps_alpha_to_beta_packets_queued() {
    // Brakmo and Peterson, 1995. Linux compares whole packets of cwnd (RTT - base)/base, which is the queue times
    // RTT/base.
    let mut table = Table::default();
    for (alpha, beta) in [(2.0, 4.0), (10.0, 12.0), (20.0, 22.0)] {
        let law = format!("vegas:alpha={alpha},beta={beta}");
        let result = flows(Link { rate: "10mbit", rtt: "50ms", more: "" }, &[&law], 20, 60);
        let base = 51.2;
        let rtt = result.flows[0].mean_rtt_ms.expect("it has samples");
        let difference = window(&result.flows[0]) * (rtt - base) / base;
        table.row(&format!("{law}: difference in packets"), difference, alpha - 1.0..=beta + 1.0);
        table.row(
            &format!("{law}: packets queued"),
            result.bottlenecks[0].mean_queue_ms / 1.2,
            alpha * 0.7..=beta + 1.0,
        );
    }
    table.check();
}

#[test]
fn dctcp_gets_two_marks_in_a_round_trip_under_probabilistic_marking() {
    // The acceleration paper, section 2: p W = 2, for even marks and growth in every round. Random marks: 2.68, as a
    // round with two marks is reduced once. Linux does not grow in a round that it reduces: 1.40 for random marks, 1.23
    // for even ones (all three numerically, of the ideal law). PIE marks at random; with `derandomise` at about even
    // distances.
    let mut table = Table::default();
    for (law, derandomise, expected, tolerance) in
        [("dctcp:cwr_increase=on", "off", 2.68, 0.1), ("dctcp", "off", 1.40, 0.1), ("dctcp", "on", 1.23, 0.1)]
    {
        let queue = format!("pie:ecn=on,mark=1,burst=0s,alpha=0.02,beta=1,derandomise={derandomise}");
        let more = format!("buffer = \"3000p\"\nqueue = \"{queue}\"");
        let result = flows(Link { rate: "50mbit", rtt: "20ms", more: &more }, &[law], 50, 150);
        let round_trips = 100_000.0 / result.flows[0].mean_rtt_ms.expect("it has samples");
        let marks = result.bottlenecks[0].marks as f64 / round_trips;
        table.row(
            &format!("{law}, derandomise={derandomise}: marks in a round trip"),
            marks,
            within(expected, tolerance),
        );
    }
    table.check();
}

#[test]
fn ledbat_keeps_its_target_queued() {
    // RFC 6817, section 2.4.2: the window rests where the queueing delay is TARGET. LEDBAT++ (section 4.2 of its
    // draft): at q = TARGET (1 + GAIN/W), but for a slowdown in a tenth of the time.
    let mut table = Table::default();
    for (law, target) in [
        ("ledbat", 100.0),
        ("ledbat:target=60ms", 60.0),
        ("ledbat:target=25ms", 25.0),
        ("ledbatpp", 60.0),
        ("ledbatpp:target=25ms", 25.0),
    ] {
        let more = "buffer = \"1000p\"";
        let result = flows(Link { rate: "10mbit", rtt: "50ms", more }, &[law], 60, 120);
        table.row(&format!("{law}: ms queued"), result.bottlenecks[0].mean_queue_ms, target - 5.0..=target + 2.0);
        table.row(&format!("{law}: 95th percentile"), result.bottlenecks[0].p95_queue_ms, target - 1.0..=target + 4.0);
    }
    table.check();
}

#[test]
fn a_flow_alone_uses_its_link() {
    // One bandwidth-delay product of buffer is what Reno needs to fill the link (Villamizar and Song, 1994), CUBIC and
    // the laws that fall back to loss need less. The others: what they reach, so that a change is noticed.
    let mut table = Table::default();
    let tail_drop = [
        ("reno", 0.98..=1.001),
        ("cubic", 0.995..=1.001),
        ("cubic:hystart=off", 0.995..=1.001),
        ("cdg:g=120", 0.95..=1.001),
        ("vegas", 0.995..=1.001),
        ("ledbat", 0.99..=1.001),
        ("nice", 0.95..=1.001),
        ("tide", 0.98..=1.001),
        ("ledbatpp", 0.90..=1.001), // a slowdown in a tenth of the time
        ("proteus", 0.90..=1.001),  // the lower half of its trials
        ("bbr1", 0.95..=1.001),     // ProbeRTT
        ("bbr2", 0.95..=1.001),
        ("bbr3", 0.95..=1.001),
    ];
    for (law, band) in tail_drop {
        for rtt in ["20ms", "50ms", "150ms"] {
            let result = flows(Link { rate: "10mbit", rtt, more: "" }, &[law], 30, 90);
            table.row(&format!("{law} alone at {rtt}: utilisation"), result.bottlenecks[0].utilisation, band.clone());
        }
    }
    // Overload mode takes the queue's threshold for a standing queue where the round trip is long: 85 % at 50 ms.
    for law in ["dctcp", "prague", "dctcp:accel=on,overload=on", "prague:accel=on,overload=on"] {
        for rtt in ["5ms", "15ms", "25ms"] {
            let more = "buffer = \"500p\"\nqueue = \"step:at=3ms\"";
            let result = flows(Link { rate: "50mbit", rtt, more }, &[law], 30, 50);
            table.row(&format!("{law} alone at {rtt}: utilisation"), result.bottlenecks[0].utilisation, 0.95..=1.001);
        }
    }
    table.check();
}

#[test]
fn a_submissive_flow_alone_leaves_capacity_unused() {
    // What the background laws that do not fill an idle link at one bandwidth-delay product reach. With an ACK for
    // every segment, since the receiver's 40 ms on a last odd one look like a queue to what measures one-way delay.
    let mut table = Table::default();
    for (law, band) in [
        ("eclipse", 0.80..=1.001), // its paper's law: 4.1 to 4.8 of 5 Mbit/s on longer paths
        ("lp:variant=paper", 0.40..=0.75),
        ("cdg:g=0.125", 0.05..=0.75),
        ("cdg:g=0.5", 0.60..=0.85), // a kernel: 79 % at 20 Mbit/s and 40 ms
        ("cdg:g=2", 0.80..=0.95),   // 90 %
    ] {
        let text = flows_text(Link { rate: "20mbit", rtt: "40ms", more: "" }, &[law], 20, 100);
        let result = outcome(&format!("tcp = {{ ack_every = 1 }}\n{text}"));
        table.row(&format!("{law} alone: utilisation"), result.bottlenecks[0].utilisation, band);
    }
    table.check();
}

#[test]
fn eclipse_reproduces_its_paper_on_the_zero_delay_path() {
    // 5 Mbit/s, no delay but the queue's 100 packets, segments of 1452 bytes (Eclipse, figures 4 and 7).
    let text = |duration: u32, from: u32, reno: &str, start: u32| {
        format!(
            "duration = \"{duration}s\"\nmeasure_from = \"{from}s\"\ntcp = {{ mss = \"1452B\", header = \"48B\" }}\n\
             [bottleneck]\nrate = \"5mbit\"\nrtt = \"0ms\"\nbuffer = \"100p\"\n\
             [[flow]]\nname = \"eclipse\"\ncc = \"eclipse:cwnd_min=4\"\nstart = \"{start}s\"\naccess = \"100mbit\"\n{reno}"
        )
    };
    let reno = "[[flow]]\nname = \"reno\"\ncc = \"reno\"\nstop = \"25s\"\naccess = \"100mbit\"\n";
    let mut table = Table::default();
    let both = outcome(&text(25, 12, reno, 10));
    let ratio = both.flows[0].mean_bps / both.flows[1].mean_bps;
    table.row("X-01: Eclipse over Reno (paper 7 %)", ratio, 0.03..=0.09);
    let after = outcome(&text(60, 26, reno, 10));
    table.row("X-02: Eclipse once Reno has gone, of 4.84 Mbit/s", after.flows[0].mean_bps / 4.84e6, 0.95..=1.001);
    let alone = outcome(&text(2600, 1, "", 0));
    let delay = alone.flows[0].mean_queue_ms.expect("it has packets") + 2.4 + 0.12;
    table.row("X-07: mean one-way delay in ms (paper 9.7)", delay, 8.0..=11.0);
    table.check();
}

#[test]
fn ledbat_climbs_a_staircase_when_it_forgets_the_base() {
    // 5 Mbit/s without delay, TARGET 100 ms and ten minutes of memory (Eclipse, figure 7): 102 ms to 600 s, 202 ms to
    // 1200 s, then the queue of 240 ms overflows.
    let text = "duration = \"1500s\"\nsample = \"50s\"\n[bottleneck]\nrate = \"5mbit\"\nrtt = \"0ms\"\nbuffer = \"100p\"\n\
                [[flow]]\nname = \"a\"\ncc = \"ledbat\"\n";
    let mut delays = Vec::new();
    run(
        &scenario(text),
        &mut crate::support::Samples(|sample: &lowtide_sim::observe::FlowSample<'_>| {
            delays.push(sample.one_way_delay_ms.expect("it has packets"));
        }),
    );
    let mean = |from: usize, to: usize| delays[from / 50..to / 50].iter().sum::<f64>() / ((to - from) / 50) as f64;
    let mut table = Table::default();
    table.row("X-08: ms from 100 s to 600 s", mean(100, 600), 92.0..=112.0);
    table.row("X-08: ms from 700 s to 1200 s", mean(700, 1200), 192.0..=212.0);
    table.row("X-08: ms from 1300 s to 1500 s", mean(1300, 1500), 212.0..=242.0);
    table.check();
}

#[test]
fn cdg_keeps_the_shares_of_its_paper() {
    // Targets C-01 and C-03: two CDG and two CUBIC flows at 10 Mbit/s with one BDP and 1 Mbit/s of datagrams; the share
    // of the CDG flows together, in percent.
    let mut table = Table::default();
    for (rtt, g, paper, tolerance) in
        [(20, 0.1, 20.6, 6.0), (100, 0.1, 6.0, 3.0), (20, 120.0, 49.0, 8.0), (100, 120.0, 37.3, 7.0)]
    {
        let mut text = format!(
            "duration = \"300s\"\nmeasure_from = \"150s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"{rtt}ms\"\n"
        );
        for (n, law) in [format!("cdg:g={g}"), format!("cdg:g={g}"), "cubic".into(), "cubic".into()].iter().enumerate()
        {
            text +=
                &format!("[[flow]]\nname = \"f{n}\"\ncc = \"{law}\"\nstart = \"{}s\"\naccess = \"300mbit\"\n", 32 * n);
        }
        for n in 0..2 {
            text += &format!("[[flow]]\nname = \"u{n}\"\nsource = \"poisson:bytes=1450B,mean=23200us\"\n");
        }
        let mut result = outcome(&text);
        result.flows.truncate(4);
        let both = share(&result) + result.flows[1].mean_bps / result.flows.iter().map(|it| it.mean_bps).sum::<f64>();
        table.row(&format!("CDG share at {rtt} ms, G = {g}"), 100.0 * both, paper - tolerance..=paper + tolerance);
    }
    table.check();
}
