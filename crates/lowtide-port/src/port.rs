// SPDX-License-Identifier: MIT OR Apache-2.0
//! A law's C functions behind the trait of the references.

use crate::{Ported, table::LAWS};
use lowtide_cc::{
    Ack, Congestion, CongestionControl, Flow, LinkRates, Random, Reaction, Recovered, Restart, Signal, Stance, Time,
    Weighted,
    part::{DelaySignal, Episode},
};
use std::{ffi::c_void, fmt};

/// `struct law_table` of `laws.c`.
#[repr(C)]
pub(crate) struct Table {
    size: u64,
    parameters: u64,
    of_marks: u64,
    of_episodes: u64,
    begin: unsafe extern "C" fn(*mut c_void, *const u32, *mut Window, u32),
    sample: unsafe extern "C" fn(*mut c_void, *const u32, *const LawAck),
    ack: unsafe extern "C" fn(*mut c_void, *const u32, *const Weight, *mut Window, *const LawAck) -> bool,
    reduce: unsafe extern "C" fn(*mut c_void, *const u32, *const Weight, *mut Window, u32, u32),
    answered: unsafe extern "C" fn(*mut c_void),
    recovered: unsafe extern "C" fn(*mut c_void, *mut Window, u32),
    undone: unsafe extern "C" fn(*mut c_void, *mut Window),
    restart: unsafe extern "C" fn(*mut c_void, *mut Window, u32, u64),
    inspect: unsafe extern "C" fn(*const c_void, *const u32, *const Weight, *mut i64) -> u32,
    pace: Option<unsafe extern "C" fn(*const c_void, *const u32) -> u64>,
    least_burst: Option<unsafe extern "C" fn(*const c_void) -> u32>,
    stance: Option<unsafe extern "C" fn(*const c_void, *mut u64) -> u32>,
    link_rates: Option<unsafe extern "C" fn(*const c_void, u32, *mut u64, *mut u64)>,
}

unsafe extern "C" {
    /// In the order of the table of laws.
    static lowtide_laws: [&'static Table; LAWS.len()];
}

/// `struct law_ack`.
#[repr(C)]
#[derive(Default)]
struct LawAck {
    now_us: u64,
    packets: u32,
    marked: u32,
    rtt_us: u32,
    srtt_us: u32,
    delay_us: i64,
    has_delay: u32,
    una: u32,
    nxt: u32,
    in_flight: u32,
    window_limited: u32,
    bytes: u32,
    cwnd: u64,
    weight: u64,
    reducing: u32,
    mss: u32,
    lost: u32,
    rate_delivered: u32,
    rate_interval_us: u32,
    rate_app_limited: u32,
    app_limited: u32,
    latency_us: u32,
    holes: u32,
    random: u32,
    senders: u32,
    burst: u32,
    beside: u32,
}

/// `struct law_window`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Window {
    cwnd: u64,
    least: u64,
    ssthresh: u64,
    nxt: u32,
}

/// `struct law_weight`.
#[repr(C)]
struct Weight {
    weight: u64,
    ratio: u64,
    kept: u64,
}

pub(crate) const Q16: f64 = 65_536.0;
const ONE: u64 = 1 << 16;
const NO_THRESHOLD: u64 = 0x7fff_ffff << 16;
/// That a reduction leaves: two segments (RFC 5681, equation 4).
const LEAST: u64 = 2 * ONE;

/// The port of a law, for one flow.
pub struct Port {
    table: &'static Table,
    /// The law's own, in C; words, so that its fields are aligned.
    state: Box<[u64]>,
    parameters: Box<[u32]>,
    window: Window,
    /// Before the latest reduction.
    before: Window,
    weight: Weight,
    takes_weight: bool,
    episode: Episode,
    signal: DelaySignal,
    mss: u64,
    random: Random,
    /// The law's own chances, and the next of them; those of the reference, number by number.
    chances: Random,
    chance: u32,
    /// Of a law of episodes: that of the latest reduction without a loss, as long as it lasts; what was `snd_nxt` at
    /// its start.
    reduced: Option<u64>,
}

impl Ported {
    /// A flow's state, as the references have it.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(self.port(flow))
    }

    /// A flow's state.
    pub fn port(&self, flow: &Flow) -> Port {
        let table = self.table();
        assert_eq!(table.parameters as usize, 4 * self.count(), "the law's structure in C and its list here");
        let window =
            Window { cwnd: u64::from(flow.initial_window) * ONE, least: LEAST, ssthresh: NO_THRESHOLD, nxt: 0 };
        let mut port = Port {
            table,
            state: vec![0; (table.size as usize).div_ceil(8)].into(),
            parameters: self.parameters().as_slice().into(),
            window,
            before: window,
            weight: Weight { weight: 0, ratio: ONE, kept: ONE },
            takes_weight: self.takes_weight(),
            episode: Episode::default(),
            signal: DelaySignal::default(),
            mss: u64::from(flow.mss),
            random: Random::new(flow.seed),
            chances: Random::new(flow.seed),
            chance: 0,
            reduced: None,
        };
        port.chance = chance(&mut port.chances);
        // SAFETY: as in all calls below: the state is as long as the table says and ours alone, the parameters are as
        // many as the law reads, and the function keeps no pointer.
        unsafe { (table.begin)(port.state.as_mut_ptr().cast(), port.parameters.as_ptr(), &mut port.window, 0) };
        port
    }

    fn table(&self) -> &'static Table {
        // SAFETY: a constant of C, which is made from the same table.
        unsafe { lowtide_laws[self.index()] }
    }
}

/// A law acts if this is above exp(-hazard), and its reference if one less it is below 1 - exp(-hazard).
fn chance(random: &mut Random) -> u32 {
    ((1.0 - random.uniform()) * 4_294_967_296.0).min(f64::from(u32::MAX)) as u32
}

/// As many as a law has in a trace at most: `LAW_VALUES` of `law.h`.
const VALUES: usize = 8;

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").field("values", &self.values()).finish_non_exhaustive()
    }
}

impl Port {
    /// What the law shows of itself in a trace, as the BPF programs write it: `lowtide_kernel::trace::names` has the
    /// values' names and scales.
    pub fn values(&self) -> Vec<i64> {
        let mut values = [0; VALUES];
        let state = self.state.as_ptr().cast();
        // SAFETY: see Ported::port; no law writes more values than there is room for.
        let count = unsafe { (self.table.inspect)(state, self.parameters.as_ptr(), &self.weight, values.as_mut_ptr()) };
        values[..count as usize].to_vec()
    }

    fn state(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }

    /// Whether it receives ACKs in reduction episodes, too.
    const fn of_marks(&self) -> bool {
        self.table.of_marks != 0
    }

    const fn of_episodes(&self) -> bool {
        self.table.of_episodes != 0
    }

    /// How many chances a law of episodes has taken.
    fn draws(&self) -> u32 {
        self.state[0] as u32 // its first field, on a little-endian machine
    }

    const fn bytes(&self, segments: u64) -> u64 {
        ((segments as u128 * self.mss as u128) >> 16) as u64
    }

    /// Within the episode of a reduction the stack does not ask; a timeout keeps its threshold.
    fn hear_in_episode(&mut self, congestion: &Congestion) {
        if congestion.signal != Signal::Timeout {
            return;
        }
        self.reduced = None;
        self.before = self.window;
        self.episode.begin(congestion);
        self.window.cwnd = ONE;
        let (table, state) = (self.table, self.state());
        // SAFETY: see Ported::build.
        unsafe { (table.answered)(state) };
    }

    /// RFC 2861, section 3.1.
    fn restart_window(&mut self, restart: &Restart) {
        if let Some(bytes) = restart.window {
            let cwnd = ((bytes as f64 / self.mss as f64).max(1.0) * Q16) as u64;
            if cwnd < self.window.cwnd {
                self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd - self.window.cwnd / 4);
                self.window.cwnd = cwnd;
            }
        }
    }

    fn hear_restart(&mut self, restart: &Restart) {
        let (table, state) = (self.table, self.state());
        // SAFETY: see Ported::build.
        unsafe { (table.restart)(state, &mut self.window, restart.nxt as u32, restart.idle.as_micros() as u64) };
    }
}

impl CongestionControl for Port {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        let micros = |time: std::time::Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let delay = self.signal.sample(ack);
        let event = LawAck {
            now_us: ack.now.as_nanos() / 1000,
            packets: ack.packets,
            marked: ack.marked,
            rtt_us: ack.rtt.map_or(0, |rtt| micros(rtt).max(1)),
            srtt_us: micros(ack.srtt),
            delay_us: delay.unwrap_or(0).div_euclid(1000),
            has_delay: delay.is_some().into(),
            una: ack.una as u32, // sequence numbers wrap
            nxt: ack.nxt as u32,
            in_flight: u32::try_from(ack.in_flight / self.mss).unwrap_or(u32::MAX),
            window_limited: ack.window_limited.into(),
            bytes: u32::try_from(ack.bytes).unwrap_or(u32::MAX),
            cwnd: self.window.cwnd,
            weight: self.weight.weight,
            reducing: ack.reducing.into(),
            mss: u32::try_from(self.mss).unwrap_or(u32::MAX),
            lost: u32::try_from(ack.lost / self.mss).unwrap_or(u32::MAX),
            rate_delivered: ack.rate.map_or(0, |rate| u32::try_from(rate.delivered / self.mss).unwrap_or(u32::MAX)),
            rate_interval_us: ack.rate.map_or(0, |rate| micros(rate.interval)),
            rate_app_limited: ack.rate.is_some_and(|rate| rate.app_limited).into(),
            app_limited: ack.rate.is_some_and(|rate| rate.app_limited).into(),
            latency_us: 0,
            holes: ack.sacked.into(),
            random: self.chance,
            senders: ack.senders,
            burst: ack.burst,
            beside: ack.beside,
        };
        if self.reduced.is_some_and(|end| ack.una > end) {
            self.reduced = None;
        }
        let (table, state) = (self.table, self.state());
        // SAFETY: see Ported::port.
        unsafe { (table.sample)(state, self.parameters.as_ptr(), &raw const event) };
        if ack.reducing && !self.of_marks() {
            return Reaction::None;
        }
        let (before, draws) = (self.window, self.draws());
        let parameters = self.parameters.as_ptr();
        // SAFETY: see Ported::port.
        let reduced = unsafe { (table.ack)(state, parameters, &self.weight, &mut self.window, &raw const event) };
        if self.of_episodes() && self.draws() != draws {
            self.chance = chance(&mut self.chances);
        }
        if reduced {
            self.reduced = Some(ack.nxt);
            (self.before, self.episode) = (before, Episode::default());
            return Reaction::Reduced;
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if self.of_episodes() && self.reduced.is_some() {
            self.hear_in_episode(congestion);
            return;
        }
        let loss = matches!(congestion.signal, Signal::Loss | Signal::Timeout);
        self.reduced = (!loss).then_some(congestion.nxt);
        if !self.episode.begin(congestion) && !self.of_marks() {
            let (table, state) = (self.table, self.state());
            // SAFETY: see Ported::port.
            unsafe { (table.answered)(state) };
            return;
        }
        self.before = self.window;
        self.window.nxt = congestion.nxt as u32;
        let signal = match congestion.signal {
            Signal::Loss => 0,
            Signal::Ecn => 1,
            Signal::Phantom => 2,
            Signal::Timeout => 3,
        };
        let (table, state, random) = (self.table, self.state(), (self.random.uniform() * 4_294_967_296.0) as u32);
        let parameters = self.parameters.as_ptr();
        // SAFETY: see Ported::port.
        unsafe { (table.reduce)(state, parameters, &self.weight, &mut self.window, signal, random) };
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.episode.finish();
        self.reduced = None;
        let (table, state) = (self.table, self.state());
        // SAFETY: see Ported::port.
        unsafe { (table.recovered)(state, &mut self.window, recovered.nxt as u32) };
    }

    fn on_spurious(&mut self) {
        self.reduced = None;
        if self.episode.undo() && !self.of_marks() {
            self.window.cwnd = self.window.cwnd.max(self.before.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(self.before.ssthresh);
        }
        let (table, state) = (self.table, self.state());
        // SAFETY: see Ported::port.
        unsafe { (table.undone)(state, &mut self.window) };
    }

    fn on_restart(&mut self, restart: &Restart) {
        if self.of_episodes() {
            if restart.window.is_some() {
                self.hear_restart(restart); // the stack says so before it lowers the window
            }
            self.restart_window(restart);
        } else {
            self.restart_window(restart);
            self.hear_restart(restart);
        }
    }

    fn window(&self) -> u64 {
        self.bytes(self.window.cwnd)
    }

    fn pacing_rate(&self) -> Option<u64> {
        let pace = self.table.pace?;
        // SAFETY: see Ported::port.
        let rate = unsafe { pace(self.state.as_ptr().cast(), self.parameters.as_ptr()) };
        (rate > 0).then_some(rate)
    }

    fn least_burst(&self) -> u64 {
        // SAFETY: see Ported::port.
        self.table.least_burst.map_or(2, |least| u64::from(unsafe { least(self.state.as_ptr().cast()) }))
    }

    fn stance(&self) -> Stance {
        let mut since_us = 0;
        // SAFETY: see Ported::port.
        match self.table.stance.map(|stance| unsafe { stance(self.state.as_ptr().cast(), &raw mut since_us) }) {
            Some(1) => Stance::Fills,
            Some(probes @ (2 | 3)) => {
                Stance::Probes { since: Time::from_nanos(1000 * since_us), measures: probes == 3 }
            }
            _ => Stance::Window,
        }
    }

    fn link_rates(&self) -> Option<LinkRates> {
        let mss = u32::try_from(self.mss).unwrap_or(u32::MAX);
        let mut rates = LinkRates::default();
        // SAFETY: see Ported::port.
        self.table.link_rates.map(|of_law| unsafe {
            of_law(self.state.as_ptr().cast(), mss, &raw mut rates.known, &raw mut rates.at_most);
            rates
        })
    }

    fn ssthresh(&self) -> Option<u64> {
        (self.window.ssthresh < NO_THRESHOLD).then(|| self.bytes(self.window.ssthresh))
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        if self.takes_weight { Some(self) } else { None }
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        let scaled = |segments: u64| segments.min(((segments as f64 * factor) as u64).max(self.window.least));
        (self.window.cwnd, self.window.ssthresh) = (scaled(self.window.cwnd), scaled(self.window.ssthresh));
        true
    }
}

impl Weighted for Port {
    fn set_weight(&mut self, weight: f64) {
        self.set_weight_and_ratio(weight, 1.0);
    }

    fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        self.weight.weight = ((weight.max(0.0) * Q16) as u64).max(1);
        self.weight.ratio = (ratio.max(0.0) * Q16) as u64;
    }
}
