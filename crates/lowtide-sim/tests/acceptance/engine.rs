// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections that come and go.

use crate::support::{Packets, Table, scenario};
use lowtide_sim::{
    observe::{Content, FlowSample, Observer, PacketEvent},
    run,
};
use std::collections::HashSet;

#[test]
fn every_page_has_a_connection_of_its_own_and_every_loss_its_repair() {
    let text = "duration = \"120s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"web\"\ncc = \"cubic\"\nsource = \"web:load=5mbit\"\nstop = \"100s\"\n\
                [[flow]]\nname = \"bulk\"\ncc = \"cubic\"\nstop = \"100s\"\n";
    let mut packets = Packets::default();
    let outcome = run(&scenario(text), &mut packets);
    let web = |it: &&PacketEvent| it.flow == 0 && it.from_sender;
    let is_syn = |it: &&PacketEvent| matches!(it.content, Content::Segment(segment) if segment.syn);
    let is_data = |it: &&PacketEvent| matches!(it.content, Content::Segment(segment) if segment.bytes > 0);
    let opened: HashSet<u32> = packets.0.iter().filter(web).filter(is_syn).map(|it| it.connection).collect();
    assert!(opened.len() > 1000, "{} pages", opened.len());
    // Twenty seconds after the last request every page has come, each once.
    assert_eq!(outcome.flows[0].transfers.len(), opened.len());
    let data: Vec<&PacketEvent> = packets.0.iter().filter(|it| it.from_sender).filter(is_data).collect();
    let left = data.iter().filter(|it| it.leaving).count() as u64;
    let lost = left - (data.len() as u64 - left);
    let retransmits = outcome.flows.iter().map(|flow| flow.retransmits).sum::<u64>();
    assert!(lost > 500, "{lost} segments were lost");
    let mut table = Table::default();
    // Some repairs are of what was only late: by tail loss probes, and by timeouts.
    table.row("retransmissions of each lost segment", retransmits as f64 / lost as f64, 1.0..=1.1);
    table.check();
}

#[test]
fn a_stopped_flow_delivers_what_it_has_sent() {
    let text = "duration = \"20s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"a\"\ncc = \"reno\"\nstop = \"5s\"\n";
    let outcome = run(&scenario(text), &mut lowtide_sim::observe::Nobody);
    let finished = outcome.flows[0].finished_s.expect("it ends");
    assert!((5.0..5.2).contains(&finished), "{finished} s: a window's worth after the stop");
    assert!(outcome.flows[0].acked_bytes > 5_500_000);
}

#[test]
fn who_has_seen_enough_ends_the_run_as_if_it_had_been_so_short() {
    struct Until(u64, u64);
    impl Observer for Until {
        fn wants_samples(&self) -> bool {
            true
        }
        fn flow(&mut self, sample: &FlowSample<'_>) {
            self.1 = sample.delivered;
        }
        fn has_seen_enough(&self) -> bool {
            self.1 >= self.0
        }
    }
    let text = |seconds: u32| {
        format!(
            "duration = \"{seconds}s\"\nsample = \"1s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
             [[flow]]\nname = \"a\"\ncc = \"cubic\"\n"
        )
    };
    let short = run(&scenario(&text(7)), &mut lowtide_sim::observe::Nobody);
    let enough = run(&scenario(&text(20)), &mut Until(short.flows[0].acked_bytes, 0));
    assert_eq!(enough, short);
}
