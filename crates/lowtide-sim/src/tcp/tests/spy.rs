// SPDX-License-Identifier: MIT OR Apache-2.0
//! A law that records its calls.

use super::{
    super::{Receiver, Sender},
    path::{MSS, Path, settings},
};
use crate::scenario::Tcp;
use lowtide_cc::{Ack, Congestion, CongestionControl, EcnUse, Lost, Reaction, Recovered, Restart, Sent, Signal};
use std::sync::{Arc, Mutex};

/// The calls of a law.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Sent,
    Lost(Lost),
    Ack(Ack),
    Congestion(Congestion),
    Recovered(Recovered),
    Spurious,
    Restart(Restart),
}

/// A fixed window that congestion halves; it does not grow.
pub(super) struct Spy {
    pub(super) window: u64,
    /// It reduces its window by itself once so much is acknowledged.
    pub(super) reduces_at: Option<u64>,
    pub(super) pacing_rate: Option<u64>,
    pub(super) steers: bool,
    before: u64,
    calls: Arc<Mutex<Vec<Call>>>,
}

pub(super) type Calls = Arc<Mutex<Vec<Call>>>;

impl Spy {
    pub(super) fn new(segments: f64) -> (Self, Calls) {
        let calls = Calls::default();
        let window = (segments * MSS as f64) as u64;
        (
            Self { window, reduces_at: None, pacing_rate: None, steers: false, before: window, calls: calls.clone() },
            calls,
        )
    }

    /// A path whose sender has this law.
    pub(super) fn path(self, settings: &Tcp, ecn: EcnUse) -> Path {
        Path::with(Sender::with_law(settings, Box::new(self), ecn), Receiver::new(settings, ecn))
    }

    fn note(&self, call: Call) {
        self.calls.lock().expect("one thread").push(call);
    }

    fn halve(&mut self) {
        self.before = self.window;
        self.window = (self.window / 2).max(2 * MSS);
    }
}

/// A path with a fixed window of so many segments.
pub(super) fn fixed(segments: f64) -> (Path, Calls) {
    let (spy, calls) = Spy::new(segments);
    (spy.path(&settings(), EcnUse::Off), calls)
}

impl CongestionControl for Spy {
    fn on_sent(&mut self, _sent: &Sent) {
        self.note(Call::Sent);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.note(Call::Lost(*lost));
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.note(Call::Ack(*ack));
        if self.reduces_at.take_if(|at| ack.una >= *at).is_some() {
            self.halve();
            return Reaction::Reduced;
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.note(Call::Congestion(*congestion));
        self.halve();
        if congestion.signal == Signal::Timeout {
            self.window = MSS;
        }
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.note(Call::Recovered(*recovered));
        self.window = self.window.max(2 * MSS);
    }

    fn on_spurious(&mut self) {
        self.note(Call::Spurious);
        self.window = self.before;
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.note(Call::Restart(*restart));
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }

    fn steers_recovery(&self) -> bool {
        self.steers
    }
}
