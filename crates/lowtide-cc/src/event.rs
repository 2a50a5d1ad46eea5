// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a transport reports to a law, and what the law did about it.
//!
//! Sequence numbers count bytes of the stream from 0 and never wrap.

use crate::Time;
use std::time::Duration;

/// An acknowledgement arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Segments newly delivered by it, cumulatively or selectively. Zero for an ACK that brings only marks or losses.
    pub packets: u32,
    /// Payload bytes of those.
    pub bytes: u64,
    /// Of those segments, how many the receiver saw with CE. With classic ECN: all or none (ECE).
    pub marked: u32,
    /// The newest round-trip sample; by Karn's rule never from a retransmitted segment.
    pub rtt: Option<Duration>,
    /// The transport's smoothed round-trip time (RFC 6298), with this sample; zero before the first.
    pub srtt: Duration,
    /// Receiver's timestamp minus ours for the newest segment acknowledged, in nanoseconds. The clocks' offset is
    /// unknown, so only differences mean anything.
    pub one_way_delay: Option<i64>,
    /// The lowest byte that is not yet cumulatively acknowledged, after this ACK (`snd_una`).
    pub una: u64,
    /// The next byte to be sent for the first time (`snd_nxt`).
    pub nxt: u64,
    /// Bytes in flight just before this ACK.
    pub in_flight: u64,
    /// Whether the window was what limited the sender in the last round trip. A window that is not used must not grow.
    pub window_limited: bool,
    /// Whether the transport is in a reduction episode (CWR or fast recovery) and walks towards [`window`] by PRR.
    /// Most laws do not grow then. After a timeout this is `false`: the window grows again by slow start.
    ///
    /// [`window`]: crate::CongestionControl::window
    pub reducing: bool,
    /// Whether the receiver holds data above a hole (SACK blocks are outstanding).
    pub sacked: bool,
    /// Bytes newly declared lost on this ACK.
    pub lost: u64,
    /// Delivery rate of the newest segment acknowledged, if it could be measured.
    pub rate: Option<RateSample>,
    /// Whether there is data that has not been sent yet.
    pub has_data: bool,
    /// Connections that fill the window together, where several are one flow to the law; 0 and 1: it is one.
    pub senders: u32,
    /// Segments that connections of that flow began with, each at once: one waits for the other.
    pub burst: u32,
    /// Segments that other connections of that flow have sent outside of its window, and that may have met those that
    /// tell of the queue.
    pub beside: u32,
}

impl Ack {
    /// Whether the sender had nothing to send when the newest segment acknowledged left, as far as known.
    pub fn app_limited(&self) -> bool {
        self.rate.is_some_and(|rate| rate.app_limited)
    }
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr, section 4.5.2; Linux `rate_sample`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the sending and the acknowledging span.
    pub interval: Duration,
    /// Bytes delivered in total when the sampled segment was sent (`prior_delivered`).
    pub prior_delivered: u64,
    /// Bytes delivered in total now.
    pub total_delivered: u64,
    /// Bytes in flight just after the sampled segment was sent.
    pub in_flight_at_send: u64,
    /// Bytes declared lost since the sampled segment was sent.
    pub lost_since_send: u64,
    /// Bytes delivered with CE since the sampled segment was sent.
    pub marked_since_send: u64,
    /// Whether the sender had nothing to send at that time, so that the rate may be the application's.
    pub app_limited: bool,
}

/// A segment was declared lost: what was known when it was sent (draft-ietf-ccwg-bbr, section 5.5.10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When it was declared lost.
    pub now: Time,
    /// When it was sent (the latest time).
    pub sent: Time,
    /// Its payload, bytes.
    pub bytes: u64,
    /// Bytes in flight just after it was sent (the latest time).
    pub in_flight_at_send: u64,
    /// Bytes declared lost since it was sent, it included.
    pub lost_since_send: u64,
    /// Whether the sender had nothing more to send at that time.
    pub app_limited: bool,
}

/// Why the window must come down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A segment was lost, and fast recovery begins.
    Loss,
    /// The network marked packets (ECE, or CE counts).
    Ecn,
    /// A signal that the sender made up, to be treated as [`Signal::Ecn`].
    Phantom,
    /// The retransmission timer fired.
    Timeout,
}

/// Congestion was found. The transport reports each kind once per episode: from the signal until everything that was
/// outstanding then is acknowledged. A loss inside an episode that marks began is reported, a mark inside recovery is
/// not. As in Linux, a mere reduction ends at the first ACK *above* the `snd_nxt` of its start: the ACK of the last
/// segment sent before belongs to it, and so does that segment's mark. Recovery ends when all that was sent before is
/// acknowledged; a mark on the ACK that ends it is not reported. One that begins with nothing outstanding ends at once.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When it was found.
    pub now: Time,
    /// What was found.
    pub signal: Signal,
    /// `snd_una`.
    pub una: u64,
    /// `snd_nxt`.
    pub nxt: u64,
    /// Bytes in flight just before.
    pub in_flight: u64,
}

/// A reduction episode or the recovery from a timeout is over: all that was outstanding at its start is acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Recovered {
    /// When.
    pub now: Time,
    /// `snd_una`.
    pub una: u64,
    /// `snd_nxt`.
    pub nxt: u64,
}

/// The sender was idle and starts again.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// When it starts again.
    pub now: Time,
    /// How long nothing was in flight.
    pub idle: Duration,
    /// `snd_nxt`.
    pub nxt: u64,
    /// The window that congestion window validation leaves (RFC 2861, RFC 5681 section 4.1), bytes; `None`: the
    /// transport does not validate, keep the window.
    pub window: Option<u64>,
}

/// A segment was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its payload, bytes.
    pub bytes: u64,
    /// Bytes in flight before it.
    pub in_flight: u64,
    /// `snd_nxt` after it.
    pub nxt: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Whether the application has no more data at hand, so that the BDP is not filled: it is application-limited.
    pub app_limited: bool,
    /// Whether there is data that has not been sent yet.
    pub has_data: bool,
}

/// What a law did on an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[must_use]
pub enum Reaction {
    /// Nothing that the transport need know.
    #[default]
    None,
    /// It found congestion by itself and lowered its window: the transport enters a reduction episode (as Linux
    /// `tcp_enter_cwr()`) and walks to the window by PRR. In an episode already, it goes on, to the lower window:
    /// overload mode takes what the mark that began the episode had left.
    Reduced,
}
