// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver whose law chooses the windows.

use super::{
    super::{Receiver, Sender, law},
    path::{MSS, Path, at, settings},
};
use crate::scenario::Tcp;
use lowtide_net::Time;
use lowtide_port::{Downloads, Ported};

/// A download under Tide over a link of a megabyte per second and 40 ms.
fn governed(settings: &Tcp, weight: Option<f64>) -> Path {
    governed_by("tide", settings, weight)
}

fn governed_by(receiver: &str, settings: &Tcp, weight: Option<f64>) -> Path {
    let ported = Ported::new(&receiver.parse().expect("it exists")).expect("it is ported");
    let downloads = Downloads::new(&ported, weight, 1);
    let sender = Sender::new(settings, law(settings, None, 1));
    let receiver = Receiver::new(settings, settings.law.ecn_use()).governed(Some(downloads.connect()));
    Path::with(sender, receiver)
}

/// With full segments, which are longer than the least window that Linux offers.
fn cubic() -> Tcp {
    Tcp { mss: 1448, law: "cubic".parse().expect("it exists"), ack_every: 2, receive_window: 6 << 20, ..settings() }
}

#[test]
fn no_edge_moves_left_and_the_sender_keeps_to_it() {
    for law in ["tide", "cdg", "vegas", "eclipse", "ledbat", "ledbatpp", "cubic"] {
        let mut path = governed_by(law, &cubic(), None).write(at(0), 1 << 40);
        path.run(at(20_000));
        let mut edge = 0;
        for ack in &path.acks {
            assert!(ack.ack + ack.window >= edge, "{law}: {edge} at {:?}", ack.sent);
            assert!(ack.window > 0);
            edge = ack.ack + ack.window;
        }
        let offered = |now: Time| {
            let known = path.acks.iter().take_while(|ack| ack.sent + path.delay <= now);
            known.map(|ack| ack.ack + ack.window).max().unwrap_or(0)
        };
        for (segment, _) in path.sent.iter().filter(|(segment, _)| segment.bytes > 0).step_by(97) {
            assert!(segment.end() <= offered(segment.sent), "{law}: {segment:?}");
        }
    }
}

#[test]
fn it_uses_an_idle_link_without_a_queue_and_loses_nothing() {
    let mut path = governed(&cubic(), None).write(at(0), 1 << 40);
    path.run(at(5_000));
    let before = path.receiver.received();
    path.run(at(15_000));
    let used = (path.receiver.received() - before) as f64 / (10_000 * MSS) as f64;
    assert!((0.97..=1.0).contains(&used), "{used}");
    assert_eq!(path.retransmits(), 0);
    // CUBIC alone would fill the endless buffer
    let srtt = path.sender.srtt().expect("there are samples");
    assert!(srtt.as_millis() < 55, "{srtt:?}");
}

#[test]
fn at_weight_1_the_window_is_the_receivers() {
    let mut path = governed(&cubic(), Some(1.0)).write(at(0), 1 << 40);
    path.run(at(5_000));
    assert!(path.acks.iter().skip(1).all(|ack| ack.window >= 6 << 20));
}

/// Queues of others stand on the link from 5 s on. Between its probes the window is less than a segment: then the
/// sender sends a piece whenever its persist timer expires, and no more.
#[test]
fn while_it_probes_pieces_of_segments_come() {
    let busy_from = at(5_000);
    let mut path = governed(&cubic(), None).write(at(0), 1 << 40).faults(move |now, _| {
        let queue = std::time::Duration::from_millis(now.as_nanos() / 1_000_000 % 700 / 10);
        if now >= busy_from { super::path::Fate::Late(queue) } else { super::path::Fate::Pass }
    });
    path.run(at(30_000));
    let late: Vec<_> = path.sent.iter().filter(|(segment, _)| segment.sent >= at(15_000)).collect();
    let pieces = late.iter().filter(|(segment, _)| segment.bytes < 1448).count();
    assert!(pieces > 10, "{pieces} pieces among {}", late.len());
    let bytes: u32 = late.iter().map(|(segment, _)| segment.bytes).sum();
    assert!(bytes < 1_500_000, "a tenth of the link at most: {bytes}");
}
