// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures are read as TCP and UDP: by a reader in Rust, and by tshark where there is one.

mod support;

use etherparse::{IpEcn, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use lowtide_net::{Ecn, Time};
use lowtide_sim::{
    observe::{Content, Observer, PacketEvent},
    output::{Results, Side, Summary, Wanted},
    scenario::Scenario,
    tcp::{Acknowledgement, SackBlocks, Segment},
};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::{fs::File, path::Path, process::Command, time::Duration};
use support::{outcome, scenario};

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Of flow 0, connection 0, as its sender's host sees them.
fn sent(at: u64, bytes: u32, segment: Segment) -> PacketEvent {
    PacketEvent {
        now: ms(at),
        flow: 0,
        connection: 0,
        from_sender: true,
        leaving: true,
        bytes,
        ecn: Ecn::NotEct,
        content: Content::Segment(segment),
    }
}

fn acknowledged(at: u64, ack: Acknowledgement) -> PacketEvent {
    let content = Content::Acknowledgement(ack);
    PacketEvent { from_sender: false, leaving: false, bytes: 52, content, ..sent(at, 0, segment(0, 0, 0)) }
}

fn segment(seq: u64, bytes: u32, at: u64) -> Segment {
    Segment { seq, bytes, sent: ms(at), echo: Time::ZERO, syn: false, fin: false, cwr: false }
}

fn ack(ack: u64, echo: u64, at: u64) -> Acknowledgement {
    Acknowledgement {
        ack,
        window: 6 << 20,
        sack: SackBlocks::default(),
        echo: ms(echo),
        sent: ms(at),
        syn: false,
        ece: false,
        ce_packets: 0,
        ce_bytes: 0,
    }
}

/// A handshake, three segments, the second of them lost and sent again, and the end.
fn conversation() -> Vec<PacketEvent> {
    let mut sack = SackBlocks::default();
    sack.push(2896, 4344);
    vec![
        sent(0, 60, Segment { syn: true, ..segment(0, 0, 0) }),
        acknowledged(40, Acknowledgement { syn: true, ..ack(0, 0, 20) }),
        sent(41, 1500, segment(0, 1448, 41)),
        sent(42, 1500, segment(1448, 1448, 42)),
        sent(43, 1500, Segment { fin: true, ..segment(2896, 1448, 43) }),
        acknowledged(81, ack(1448, 41, 61)),
        acknowledged(83, Acknowledgement { sack, ..ack(1448, 41, 63) }),
        sent(84, 1500, segment(1448, 1448, 84)),
        acknowledged(124, ack(4345, 84, 104)),
    ]
}

/// Writes a capture of these packets of a scenario.
fn capture(directory: &Path, scenario: &Scenario, side: Side, packets: &[PacketEvent]) -> std::path::PathBuf {
    let mut results = Results::create(directory, scenario, &Wanted { plot: false, capture: Some(side) }).unwrap();
    assert!(results.wants_packets());
    packets.iter().for_each(|packet| results.packet(packet));
    let outcome = outcome();
    results.finish(&outcome, &Summary::new(&outcome, Duration::ZERO)).unwrap();
    directory.join("packets.pcapng")
}

/// A packet of a capture: interface, nanoseconds, length on the wire, stored bytes.
type Stored = (u32, u128, u32, Vec<u8>);

fn read(path: &Path) -> Vec<Stored> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            let nanos = packet.timestamp.as_nanos();
            packets.push((packet.interface_id, nanos, packet.original_len, packet.data.into_owned()));
        }
    }
    packets
}

/// The headers of a stored packet, whose checksums have to be right with a payload of zeros.
fn tcp(packet: &Stored) -> (Ipv4Header, TcpHeader) {
    let (ip, rest) = Ipv4Header::from_slice(&packet.3).unwrap();
    let (tcp, payload) = TcpHeader::from_slice(rest).unwrap();
    assert!(payload.is_empty(), "payload is not stored");
    assert_eq!(u32::from(ip.total_len), packet.2);
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    let zeros = vec![0; packet.2 as usize - ip.header_len() - tcp.header_len()];
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &zeros).unwrap());
    (ip, tcp)
}

fn options(tcp: &TcpHeader) -> Vec<TcpOptionElement> {
    tcp.options_iterator().map(Result::unwrap).filter(|option| *option != TcpOptionElement::Noop).collect()
}

#[test]
fn a_conversation_is_tcp() {
    let directory = tempfile::tempdir().unwrap();
    let packets = read(&capture(directory.path(), &scenario(), Side::Sender, &conversation()));
    let times: Vec<u128> = packets.iter().map(|packet| packet.1 / 1_000_000).collect();
    assert_eq!(times, [0, 40, 41, 42, 43, 81, 83, 84, 124]);
    let headers: Vec<_> = packets.iter().map(tcp).collect();

    let (ip, syn) = &headers[0];
    assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1], [10, 1, 0, 1]));
    assert_eq!((syn.syn, syn.ack, syn.sequence_number), (true, false, 0));
    assert_eq!(
        options(syn),
        [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(0, 0),
            TcpOptionElement::WindowScale(7),
        ]
    );
    let (ip, answer) = &headers[1];
    assert_eq!(ip.source, [10, 1, 0, 1]);
    assert_eq!((answer.syn, answer.ack, answer.acknowledgment_number), (true, true, 1));
    assert_eq!((answer.source_port, answer.destination_port), (syn.destination_port, syn.source_port));

    let data: Vec<_> = [2, 3, 4, 7].map(|n| (headers[n].1.sequence_number, headers[n].1.fin, packets[n].2)).into();
    assert_eq!(data, [(1, false, 1500), (1449, false, 1500), (2897, true, 1500), (1449, false, 1500)]);
    assert_eq!(options(&headers[7].1), [TcpOptionElement::Timestamp(84, 0)]);

    let acks: Vec<_> = [5, 6, 8].map(|n| (headers[n].1.acknowledgment_number, packets[n].2)).into();
    assert_eq!(acks, [(1449, 52), (1449, 64), (4346, 52)], "the last one covers the FIN");
    assert_eq!(u32::from(headers[5].1.window_size) << 7, 6 << 20 >> 7 << 7);
    let block = TcpOptionElement::SelectiveAcknowledgement((2897, 4345), [None; 3]);
    assert_eq!(options(&headers[6].1), [TcpOptionElement::Timestamp(63, 41), block]);
}

#[test]
fn sequence_numbers_wrap() {
    let directory = tempfile::tempdir().unwrap();
    let packets = [sent(0, 1500, segment((1 << 32) - 1, 1448, 0)), acknowledged(40, ack((1 << 32) + 1447, 0, 20))];
    let stored = read(&capture(directory.path(), &scenario(), Side::Sender, &packets));
    assert_eq!(tcp(&stored[0]).1.sequence_number, 0);
    assert_eq!(tcp(&stored[1]).1.acknowledgment_number, 1448);
}

#[test]
fn each_side_sees_its_own_packets() {
    let at_receiver = |packet: PacketEvent| PacketEvent { leaving: !packet.leaving, ..packet };
    let both: Vec<_> = conversation().into_iter().flat_map(|packet| [packet, at_receiver(packet)]).collect();
    for (side, expected) in [(Side::Sender, [9, 0]), (Side::Receiver, [9, 0]), (Side::Both, [9, 9])] {
        let directory = tempfile::tempdir().unwrap();
        let packets = read(&capture(directory.path(), &scenario(), side, &both));
        let count = |interface| packets.iter().filter(|packet| packet.0 == interface).count();
        assert_eq!([count(0), count(1)], expected, "{side:?}");
    }
}

#[test]
fn ecn_and_what_a_header_has_room_for_show() {
    let mut scenario = scenario();
    let overrides = ["flow.bg.cc=reno:ecn=on", "flow.bg.tcp.header=48B", "flow.bg.tcp.mss=1452B"].map(str::to_owned);
    scenario = Scenario::parse(&scenario.to_toml(), Path::new("ecn.toml"), &overrides).unwrap();
    let packets = [
        sent(0, 60, Segment { syn: true, ..segment(0, 0, 0) }),
        acknowledged(40, Acknowledgement { syn: true, ..ack(0, 0, 20) }),
        PacketEvent { ecn: Ecn::Ce, ..sent(41, 1500, Segment { cwr: true, ..segment(0, 1452, 41) }) },
        acknowledged(81, Acknowledgement { ece: true, ..ack(1452, 41, 61) }),
    ];
    let directory = tempfile::tempdir().unwrap();
    let stored = read(&capture(directory.path(), &scenario, Side::Sender, &packets));
    let headers: Vec<_> = stored.iter().map(tcp).collect();
    let flags: Vec<_> = headers.iter().map(|(_, tcp)| (tcp.ece, tcp.cwr)).collect();
    assert_eq!(flags, [(true, true), (true, false), (false, true), (true, false)]);
    assert_eq!((headers[2].0.ecn, headers[0].0.ecn), (IpEcn::THREE, IpEcn::ZERO));
    assert_eq!((stored[2].2, options(&headers[2].1)), (1500, vec![]), "48 bytes have no room for timestamps");
}

#[test]
fn datagrams_are_udp() {
    let datagram = PacketEvent { flow: 1, bytes: 1478, content: Content::Datagram(3), ..sent(5, 0, segment(0, 0, 0)) };
    let directory = tempfile::tempdir().unwrap();
    let stored = read(&capture(directory.path(), &scenario(), Side::Sender, &[datagram]));
    let (ip, rest) = Ipv4Header::from_slice(&stored[0].3).unwrap();
    let (udp, _) = UdpHeader::from_slice(rest).unwrap();
    assert_eq!((ip.source, stored[0].2, udp.length), ([10, 0, 0, 2], 1478, 1458));
    assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &[0; 1450]).unwrap());
}

/// What tshark prints; `None` without it.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let Ok(output) = Command::new("tshark").arg("-r").arg(path).args(arguments).output() else {
        eprintln!("skipped: there is no tshark here");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_sees_one_clean_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), &scenario(), Side::Sender, &conversation());
    let Some(conversations) = tshark(&file, &["-q", "-z", "conv,tcp"]) else { return };
    let line = conversations.lines().find(|line| line.contains("<->")).expect(&conversations);
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..3], ["10.0.0.1:10000", "<->", "10.1.0.1:5001"]);
    assert!(words.contains(&"9"), "nine frames: {line}");
    let fields = ["-T", "fields", "-e", "tcp.analysis.flags", "-e", "_ws.malformed", "-e", "tcp.analysis.ack_rtt"];
    let analysis = tshark(&file, &fields).unwrap();
    let flagged: Vec<usize> =
        analysis.lines().enumerate().filter(|(_, line)| !line.starts_with('\t')).map(|(number, _)| number).collect();
    assert_eq!(flagged, [6, 7], "the duplicate ACK and the retransmission:\n{analysis}");
    assert!(analysis.lines().all(|line| line.split('\t').nth(1) == Some("")), "malformed:\n{analysis}");
}
