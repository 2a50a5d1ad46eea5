// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated packets as IPv4 headers: addresses, ports, flags, options, checksums.

use crate::{
    observe::{Content, PacketEvent},
    scenario::{Direction, Flow, Transport},
    tcp::{Acknowledgement, Segment},
};
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use lowtide_cc::EcnUse;
use lowtide_net::{Ecn, Time};
use std::collections::HashMap;

/// The headers of a packet, and its whole length in bytes.
pub(super) struct Frame {
    pub(super) headers: Vec<u8>,
    pub(super) length: u32,
}

/// Most bytes of headers: IPv4 without options, TCP with all it can have.
pub(super) const HEADERS_MAX: u32 = 20 + 60;

/// Port that all receivers listen at.
const SERVICE: u16 = 5001;

/// The first port of a sender; connections of a flow count up from it.
const FIRST_PORT: u16 = 10_000;

/// Ports for the connections of a flow; after so many they are used again, towards another port of the receiver.
const PORTS: u32 = 50_000;

/// The window that a sender announces; it receives nothing.
const IDLE_WINDOW: u16 = 512;

/// Payload is zero: it counts for lengths and checksums, and is never stored.
static PAYLOAD: [u8; 65_535] = [0; 65_535];

/// What does not change within a flow.
struct Peers {
    sender: [u8; 4],
    receiver: [u8; 4],
    /// The MSS option.
    mss: u16,
    /// Bytes of TCP options on a data segment.
    options: usize,
    ecn: EcnUse,
    /// Shift of the receiver's window (RFC 7323).
    scale: u8,
}

/// Makes headers.
pub(super) struct Wire {
    flows: Vec<Peers>,
    /// Marks that the ACK before reported, by flow, connection and interface.
    told: HashMap<(usize, u32, u32), u64>,
}

impl Wire {
    pub(super) fn new(flows: &[Flow]) -> Self {
        Self { flows: flows.iter().enumerate().map(Peers::new).collect(), told: HashMap::new() }
    }

    /// The packet as it is on the wire at an interface; `None` if its flow is not one of the scenario's.
    pub(super) fn frame(&mut self, event: &PacketEvent, interface: u32) -> Option<Frame> {
        let peers = self.flows.get(event.flow)?;
        let (port, service) = ports(event.connection);
        match event.content {
            Content::Segment(segment) => {
                let mut tcp = TcpHeader::new(port, service, 0, IDLE_WINDOW);
                peers.fill_segment(&mut tcp, &segment);
                Some(peers.tcp(event, tcp, segment.bytes as usize))
            }
            Content::Acknowledgement(ack) => {
                let told = self.told.insert((event.flow, event.connection, interface), ack.ce_packets).unwrap_or(0);
                let mut tcp = TcpHeader::new(service, port, 0, 0);
                peers.fill_acknowledgement(&mut tcp, &ack, told);
                Some(peers.tcp(event, tcp, 0))
            }
            Content::Datagram(_) => Some(peers.datagram(event, port, service)),
        }
    }
}

impl Peers {
    fn new((number, flow): (usize, &Flow)) -> Self {
        let [.., high, low] = (number as u32 + 1).to_be_bytes();
        let (near, far) = ([10, 0, high, low], [10, 1, high, low]);
        let (sender, receiver) = match flow.direction {
            Direction::Forward => (near, far),
            Direction::Reverse => (far, near),
        };
        let (mss, header, ecn, window) = match &flow.transport {
            Transport::Tcp(tcp) => (tcp.mss, tcp.header, tcp.law.ecn_use(), tcp.receive_window),
            Transport::Udp => (0, 40, EcnUse::Off, 0),
        };
        Self {
            sender,
            receiver,
            // the option does not count what other options take (RFC 6691)
            mss: u16::try_from(mss + header.saturating_sub(40)).unwrap_or(u16::MAX),
            options: (header as usize).saturating_sub(40).min(40),
            ecn,
            scale: (0..14).find(|scale| window >> scale <= u64::from(u16::MAX)).unwrap_or(14),
        }
    }

    /// Whether there is room for a timestamp option on each segment.
    const fn has_timestamps(&self) -> bool {
        self.options >= 12
    }

    fn fill_segment(&self, tcp: &mut TcpHeader, segment: &Segment) {
        let mut options = Vec::new();
        tcp.syn = segment.syn;
        tcp.ack = !segment.syn;
        tcp.fin = segment.fin;
        if segment.syn {
            (tcp.window_size, tcp.sequence_number) = (u16::MAX, 0);
            (tcp.ns, tcp.cwr, tcp.ece) = (self.ecn == EcnUse::L4s, self.ecn != EcnUse::Off, self.ecn != EcnUse::Off);
            self.greet(&mut options, segment.sent, None, 7);
        } else {
            // the SYN took the number 0, of either side
            (tcp.sequence_number, tcp.acknowledgment_number) = (sequence(segment.seq), 1);
            tcp.cwr = segment.cwr;
            self.timestamps(&mut options, segment.sent, segment.echo);
            self.pad(&mut options);
        }
        tcp.set_options(&options).expect("at most 40 bytes");
    }

    fn fill_acknowledgement(&self, tcp: &mut TcpHeader, ack: &Acknowledgement, told: u64) {
        let mut options = Vec::new();
        (tcp.ack, tcp.syn) = (true, ack.syn);
        if ack.syn {
            tcp.acknowledgment_number = 1;
            tcp.window_size = u16::try_from(ack.window).unwrap_or(u16::MAX);
            // RFC 3168, section 6.1.1; RFC 9768, table 2, for a SYN that was not ECT
            (tcp.ece, tcp.cwr) = match self.ecn {
                EcnUse::Off => (false, false),
                EcnUse::Classic | EcnUse::Accurate => (true, false),
                EcnUse::L4s => (false, true),
            };
            self.greet(&mut options, ack.sent, Some(ack.echo), self.scale);
        } else {
            tcp.sequence_number = 1;
            tcp.acknowledgment_number = sequence(ack.ack);
            tcp.window_size = u16::try_from(ack.window >> self.scale).unwrap_or(u16::MAX);
            self.feedback(tcp, ack, told);
            self.timestamps(&mut options, ack.sent, ack.echo);
            let mut blocks = ack.sack.as_slice().iter().map(|(start, end)| (sequence(*start), sequence(*end)));
            match blocks.next() {
                Some(first) => {
                    options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
                    let rest = [blocks.next(), blocks.next(), None];
                    options.push(TcpOptionElement::SelectiveAcknowledgement(first, rest));
                }
                None => self.pad(&mut options),
            }
        }
        tcp.set_options(&options).expect("at most 40 bytes");
    }

    /// The flags that tell the sender of marks.
    fn feedback(&self, tcp: &mut TcpHeader, ack: &Acknowledgement, told: u64) {
        match self.ecn {
            EcnUse::Off => {}
            EcnUse::Classic => tcp.ece = ack.ece,
            EcnUse::Accurate => tcp.ece = ack.ce_packets > told,
            // ACE, which starts at 5 (RFC 9768, section 3.2.2)
            EcnUse::L4s => {
                let count = (ack.ce_packets + 5) & 0b111;
                (tcp.ns, tcp.cwr, tcp.ece) = (count & 0b100 != 0, count & 0b10 != 0, count & 1 != 0);
            }
        }
    }

    /// The options of a SYN.
    fn greet(&self, options: &mut Vec<TcpOptionElement>, sent: Time, echo: Option<Time>, scale: u8) {
        options.extend([
            TcpOptionElement::MaximumSegmentSize(self.mss),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
        ]);
        if self.has_timestamps() {
            options.push(TcpOptionElement::Timestamp(milliseconds(sent), echo.map_or(0, milliseconds)));
        }
        options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(scale)]);
    }

    fn timestamps(&self, options: &mut Vec<TcpOptionElement>, sent: Time, echo: Time) {
        if self.has_timestamps() {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::Timestamp(milliseconds(sent), milliseconds(echo)));
        }
    }

    /// Fills the header up to its size in the scenario.
    fn pad(&self, options: &mut Vec<TcpOptionElement>) {
        let used = if self.has_timestamps() { 12 } else { 0 };
        options.extend(std::iter::repeat_n(TcpOptionElement::Noop, self.options - used));
    }

    fn tcp(&self, event: &PacketEvent, mut tcp: TcpHeader, payload: usize) -> Frame {
        let payload = &PAYLOAD[..payload.min(PAYLOAD.len() - HEADERS_MAX as usize)];
        let ip = self.ip(event, tcp.header_len() + payload.len(), IpNumber::TCP);
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("it fits an IP packet");
        let mut headers = ip.to_bytes().to_vec();
        headers.extend_from_slice(&tcp.to_bytes());
        Frame { headers, length: u32::from(ip.total_len) }
    }

    fn datagram(&self, event: &PacketEvent, port: u16, service: u16) -> Frame {
        let payload = (event.bytes as usize).saturating_sub(28).min(PAYLOAD.len() - 28);
        let ip = self.ip(event, UdpHeader::LEN + payload, IpNumber::UDP);
        let udp = UdpHeader::with_ipv4_checksum(port, service, &ip, &PAYLOAD[..payload]).expect("it fits an IP packet");
        let mut headers = ip.to_bytes().to_vec();
        headers.extend_from_slice(&udp.to_bytes());
        Frame { headers, length: u32::from(ip.total_len) }
    }

    fn ip(&self, event: &PacketEvent, payload: usize, protocol: IpNumber) -> Ipv4Header {
        let (source, destination) =
            if event.from_sender { (self.sender, self.receiver) } else { (self.receiver, self.sender) };
        let payload = u16::try_from(payload).unwrap_or(u16::MAX);
        let mut ip = Ipv4Header::new(payload, 64, protocol, source, destination).expect("it fits an IP packet");
        ip.dont_fragment = true;
        ip.ecn = match event.ecn {
            Ecn::NotEct => IpEcn::ZERO,
            Ecn::Ect1 => IpEcn::ONE,
            Ecn::Ect0 => IpEcn::TWO,
            Ecn::Ce => IpEcn::THREE,
        };
        ip.header_checksum = ip.calc_header_checksum();
        ip
    }
}

fn ports(connection: u32) -> (u16, u16) {
    let port = FIRST_PORT + u16::try_from(connection % PORTS).unwrap_or(0);
    (port, SERVICE.wrapping_add(u16::try_from(connection / PORTS % 1000).unwrap_or(0)))
}

/// The number of a byte on the wire: after the SYN's, modulo 2^32.
const fn sequence(byte: u64) -> u32 {
    (byte as u32).wrapping_add(1)
}

/// The clock of the timestamp option, as Linux has it.
const fn milliseconds(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
