// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that are replaced, and texts that are refused with a sentence.

use super::*;

#[test]
fn overrides_replace_what_the_file_says() {
    let scenario = small(&[
        "seed=9",
        "bottleneck.rate=20mbit",
        "bottleneck.bottleneck.buffer=100p",
        "flow.bg.cc=reno:beta=0.7",
        "flow.bg.tcp.ack_every=1",
        "tcp.mss=1400B",
        "flow.start=5s",
        "reverse.rate=1mbit",
        "reverse.rtt=10ms",
    ]);
    assert_eq!((scenario.seed, scenario.bottlenecks[0].rate), (9, "20mbit".parse::<Rate>().unwrap()));
    assert_eq!(scenario.bottlenecks[0].buffer, BufferSize::Packets(100));
    assert_eq!(scenario.flows[0].start, secs(5));
    let tcp = tcp(&scenario.flows[0]);
    assert_eq!((tcp.law.to_string().as_str(), tcp.ack_every, tcp.mss), ("reno:beta=0.7", 1, 1400));
    assert_eq!(scenario.reverse.map(|link| link.rtt), Some(Duration::from_millis(10)));
    assert_eq!(small(&["seed=1", "seed=2"]).seed, 2, "the last one holds");
}

#[test]
fn overrides_that_lead_nowhere_are_refused() {
    let two = format!("{SMALL}[[flow]]\nname = \"fg\"\ncc = \"reno\"\n");
    for (text, overriding, sentence) in [
        (SMALL, "seed", "seed: there is no value; write it like bottleneck.rate=20mbit"),
        (
            SMALL,
            "sed=1",
            "sed=1: unknown key `sed`; did you mean `seed`? There are model, seed, duration, measure_from, sample, \
                          span, bottleneck, reverse, tcp and flow",
        ),
        (
            SMALL,
            "bottleneck.ratee=1mbit",
            "bottleneck.ratee=1mbit: unknown key `ratee`; did you mean `rate`? There are \
                          name, rate, rtt, schedule, rtt_schedule, buffer, queue, loss, jitter, reverse_jitter, reordering, police \
                          and burst",
        ),
        (
            SMALL,
            "bottleneck.rate=fast",
            "bottleneck.rate=fast: rate: \"fast\" is not a rate; write it like 20mbit or 1.5gbit",
        ),
        (SMALL, "bottleneck=1", "bottleneck=1: bottleneck: a table is expected here, like [bottleneck]"),
        (SMALL, "seed.x=1", "a.toml:3:1"),
        (&two, "flow.fgg.cc=reno", "flow.fgg.cc=reno: unknown flow `fgg`; did you mean `fg`? There are bg and fg"),
        (&two, "flow.cc=reno", "flow.cc=reno: unknown flow `cc`; there are bg and fg"),
        (SMALL, "flow.bg.cc.g=4", "flow.bg.cc.g=4: `cc` is a single value and has no parts"),
        (SMALL, "", ": there is no value; write it like bottleneck.rate=20mbit"),
        (
            SMALL,
            "=1",
            "=1: unknown key ``; there are model, seed, duration, measure_from, sample, span, bottleneck, reverse, tcp and flow",
        ),
    ] {
        let error = parse(text, &[overriding]).unwrap_err();
        if overriding == "seed.x=1" {
            assert_eq!(error, "seed.x=1: seed: a single value is expected here");
        } else {
            assert_eq!(error, sentence, "{overriding}");
        }
    }
}

#[test]
fn mistakes_have_a_place_and_a_sentence() {
    for (text, sentence) in [
        (with("[bottleneck]", "[bottleneck"), "a.toml:4:12: unclosed table, expected `]`"),
        (
            with("rate = \"10mbit\"", "rate = 10mbit"),
            "a.toml:5:8: string values must be quoted, expected literal string",
        ),
        (with("rate = \"10mbit\"", "rate = \"a\"\nrate = \"b\""), "a.toml:6:1: duplicate key"),
        (with("duration = \"60s\"", ""), "a.toml:1:1: `duration` is missing here; write it like duration = \"120s\""),
        (with("60s", "0s"), "a.toml:2:12: duration: it has to be above zero and at most 1000000s"),
        (with("\"60s\"", "60"), "a.toml:2:12: duration: \"60\" is not a length of time; write it like 40ms or 250us"),
        (
            with("duration", "seed = -1\nduration"),
            "a.toml:2:8: seed: \"-1\" is not a whole number from 0 to 18446744073709551615",
        ),
        (
            with("duration", "measure_from = \"90s\"\nduration"),
            "a.toml:2:16: measure_from: the simulation is over by then",
        ),
        (with("duration", "sample = \"1us\"\nduration"), "a.toml:2:10: sample: it has to be 10us or more"),
        (
            with("duration", "durration = \"1s\"\nduration"),
            "a.toml:2:1: unknown key `durration`; did you mean `duration`? There are model, seed, duration, measure_from, sample, \
             span, bottleneck, reverse, tcp and flow",
        ),
        (with("rate = \"10mbit\"", ""), "a.toml:4:1: `rate` is missing here; write it like rate = \"10mbit\""),
        (with("rate =", "raet ="), "a.toml:5:1: unknown key `raet`; did you mean `rate`?"),
        (with("10mbit", "fast"), "a.toml:5:8: rate: \"fast\" is not a rate; write it like 20mbit or 1.5gbit"),
        (with("\"40ms\"", "40"), "a.toml:6:7: rtt: \"40\" is not a length of time; write it like 40ms or 250us"),
        (
            with("rtt", "queue = \"codl\"\nrtt"),
            "a.toml:6:9: queue: \"codl\" is not a queue discipline; did you mean codel? There are droptail, step, codel, pie, \
             dualpi2, fq_codel and priority",
        ),
        (
            with("rtt", "buffer = 100\nrtt"),
            "a.toml:6:10: buffer: \"100\" is not a buffer size; write it like 1bdp, 150kB, 67p or 30ms",
        ),
        (
            with("rtt", "schedule = [{ at = \"20s\" }]\nrtt"),
            "a.toml:6:13: `rate` is missing here; write it like rate = \"5mbit\"",
        ),
        (
            with("rtt", "schedule = [{ at = \"20s\", rate = \"1mbit\" }, { at = \"9s\", rate = \"1mbit\" }]\nrtt"),
            "a.toml:6:12: schedule: the steps of a schedule have to come in the order of their times, each time once",
        ),
        (
            with("cc = \"reno\"", ""),
            "a.toml:8:1: `cc` is missing here; write it like cc = \"cubic\" (only cbr, poisson and trace go without: by UDP)",
        ),
        (with("name = \"bg\"", ""), "a.toml:8:1: `name` is missing here; write it like name = \"bg\""),
        (
            with("\"bg\"", "\"b g\""),
            "a.toml:9:8: name: \"b g\" is not a name; it has to be of letters, digits, - and _",
        ),
        (with("cc =", "start = \"60s\"\ncc ="), "a.toml:10:9: start: the simulation is over by then"),
        (with("cc =", "start = \"5s\"\nstop = \"5s\"\ncc ="), "a.toml:11:8: stop: it has to be after the start"),
        (
            with("cc =", "source = \"greedy\"\nsize = \"1MB\"\ncc ="),
            "a.toml:11:8: size: the source `greedy` takes none; leave out one of the two",
        ),
        (
            with("cc =", "path = [\"botleneck\"]\ncc ="),
            "a.toml:10:9: path: unknown bottleneck `botleneck`; did you mean `bottleneck`? There are bottleneck",
        ),
        (with("cc =", "path = []\ncc ="), "a.toml:10:8: path: at least one bottleneck has to be in it"),
        (with("cc =", "direction = \"up\"\ncc ="), "a.toml:10:13: direction: \"up\" is neither forward nor reverse"),
        (with("cc =", "count = 0\ncc ="), "a.toml:10:9: count: \"0\" is not a whole number from 1 to 10000"),
        (with("cc =", "tcp = 1\ncc ="), "a.toml:10:7: tcp: a table is expected here, like [tcp]"),
        (
            with("cc =", "tcp = { mss = \"1448\" }\ncc ="),
            "a.toml:10:15: mss: \"1448\" is not an amount of data; write it like 10MB, 64KiB or 1500B",
        ),
        (
            with("cc =", "tcp = { header = \"50B\" }\ncc ="),
            "a.toml:10:18: header: \"50B\" is not a multiple of four bytes",
        ),
        (
            with("cc = \"reno\"", "source = \"cbr:rate=1mbit\"\ntcp = { mss = \"1448B\" }"),
            "a.toml:11:7: tcp: this flow has no cc and goes by UDP",
        ),
        (
            with("cc = \"reno\"", "cc = \"reno\"\n[[flow]]\nname = \"bg\"\ncc = \"reno\""),
            "a.toml:12:8: name: there is a flow `bg` already",
        ),
        (SMALL.split("[[flow]]").next().unwrap().to_owned(), "a.toml:1:1: there is no [[flow]]"),
        (with("[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n", ""), "a.toml:1:1: there is no [bottleneck]"),
        (String::new(), "a.toml:1:1: `duration` is missing here; write it like duration = \"120s\""),
    ] {
        assert_eq!(parse(&text, &[]).unwrap_err(), sentence, "{text}");
    }
}
