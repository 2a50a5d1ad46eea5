// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF programs of one transfer: loaded, attached, steered and read.

use std::{
    collections::HashSet,
    mem::offset_of,
    os::fd::AsFd,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::{Link, MapCore, MapFlags, ObjectBuilder, OpenObject};

use crate::{
    Cgroup, Direction, Download, Error, Flows, Result, Setup, Steering,
    bpf_skel::types,
    clock::monotonic_now,
    fixed::{Q16, Q32},
    goals::{GoalRecord, SocketDecision, decision_value, goal_record},
    hierarchy::processes_below,
    libbpf_log::LibbpfLog,
    networks::Networks,
    observer::{OBSERVERS, Observer, observer, walks_states},
    programs::{Programs, apply, text_of},
    socket_record::{in_flight, is_sending, record},
    takeover::{Selection, Taken},
};

/// `LT_ONE_WAY` and `LT_ROUND_TRIPS` of `bpf/shared.h`.
const ONE_WAY: u32 = 1;
const ROUND_TRIPS: u32 = 2;

/// Running totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Payload bytes that receivers acknowledged.
    pub acknowledged: u64,
    /// Those of them on a law of the program's own.
    pub own_law_acknowledged: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Those of them on connections that no law for downloads has measured.
    pub unmeasured: u64,
    /// Payload bytes sent again.
    pub retransmitted: u64,
    /// Data segments sent.
    pub segments: u64,
    /// Real congestion: recoveries begun and marks answered, one for each window of data; with our own law, whose
    /// sockets share one window, one for all of them. None that a phantom signal made.
    pub losses: u64,
    /// What delay has cost our own law: g⁺/G₀ of each round trip, added up.
    pub delay_price: f64,
    /// Phantom signals.
    pub phantoms: u64,
    /// Window reductions on account of delay.
    pub delay_backoffs: u64,
    /// UDP bytes sent and received, which is not governed.
    pub udp_sent: u64,
    /// See [`Totals::udp_sent`].
    pub udp_received: u64,
    /// Connections made or accepted.
    pub sockets_opened: u64,
    /// Calls by which the program asked for a law of its own.
    pub own_law: u64,
    /// Sockets that could not be given the law.
    pub law_refused: u64,
    /// Sockets whose peer does not offer the ECN that the law needs; they run the kernel's Reno.
    pub without_ecn: u64,
    /// Skipped struct_ops callbacks that were repaired at the next ACK.
    pub law_missed: u64,
    /// Connections, closed ones too, for which our law had one-way delays.
    pub one_way: u64,
    /// And those for which it had round trips in their place: the receiver sends no timestamps, or its clock is none
    /// that we know.
    pub round_trips: u64,
    /// Connections that received data without timestamps, and were left alone for that.
    pub unstamped: u64,
}

impl Totals {
    /// What live sockets add is never less than before: one that closes during a look is missing for that one.
    fn not_below(self, before: &Totals) -> Totals {
        Totals {
            acknowledged: self.acknowledged.max(before.acknowledged),
            own_law_acknowledged: self.own_law_acknowledged.max(before.own_law_acknowledged),
            received: self.received.max(before.received),
            unmeasured: self.unmeasured.max(before.unmeasured),
            retransmitted: self.retransmitted.max(before.retransmitted),
            one_way: self.one_way.max(before.one_way),
            round_trips: self.round_trips.max(before.round_trips),
            ..self
        }
    }

    /// Payload bytes of a transfer in this direction: those acknowledged, or those received.
    pub fn moved(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Up => self.acknowledged,
            Direction::Down => self.received,
            Direction::Both => self.acknowledged.max(self.received),
        }
    }

    /// The one way that is meant: of both the one that has moved more.
    pub fn way(&self, direction: Direction) -> Direction {
        match direction {
            Direction::Both if self.received > self.acknowledged => Direction::Down,
            Direction::Both => Direction::Up,
            one => one,
        }
    }
}

/// The transfer at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Snapshot {
    /// Totals.
    pub totals: Totals,
    /// Live TCP connections.
    pub sockets: u32,
    /// Those that have sent in the last second (or four round trips), or still have something to send.
    pub sending: u32,
    /// Pairs of networks that these go between, one at the least.
    pub paths: u32,
    /// Those that the limit on all sockets holds back.
    pub held: u32,
    /// Some sending connection has more to send than it may.
    pub backlogged: bool,
    /// Payload that is not yet acknowledged, sent or not, in whole segments where it has been sent.
    pub unfinished_bytes: u64,
    /// Payload that has been sent and is not yet acknowledged, in whole segments.
    pub in_flight_bytes: u64,
    /// Mean smoothed round-trip time of the sending connections.
    pub srtt: Option<Duration>,
    /// Mean of their smallest round-trip times.
    pub min_rtt: Option<Duration>,
    /// Sum of the sending connections' windows, in segments; fractions where shares are below one.
    pub window: f64,
    /// Payload bytes of a full segment, mean of the sending connections.
    pub segment_bytes: Option<u32>,
    /// Live connections that the program put on a law of its own.
    pub own_law: u32,
    /// What comes in, where that is governed.
    pub download: Download,
}

impl Snapshot {
    /// The queue on the way of the data, in time.
    pub fn queue(&self, direction: Direction) -> Option<Duration> {
        match direction {
            Direction::Up | Direction::Both => self.queueing_delay(),
            Direction::Down => self.download.queue,
        }
    }

    /// Queueing delay: the mean round trip over its minimum.
    pub fn queueing_delay(&self) -> Option<Duration> {
        Some(self.srtt?.saturating_sub(self.min_rtt?))
    }
}

/// What gives open sockets the law, and back what they had.
struct Takeover {
    take: Link,
    give_back: Link,
}

/// The programs of one transfer, in the kernel as long as this value. If the process dies the kernel removes them, all
/// but a law that came by [`Registration::Plain`].
pub struct Transfer {
    // before the skeleton: a law without a link is deleted through its map
    observer: Observer,
    /// The directory of the group.
    group: PathBuf,
    /// Those that its processes were found in.
    networks: Networks,
    /// Of a group that was there before.
    takeover: Option<Takeover>,
    /// To the group.
    links: Vec<Link>,
    _law: Option<Link>,
    programs: Programs,
    /// Windows are held back.
    downloads: bool,
    /// By the last look.
    counted: Totals,
    goals: Vec<GoalRecord>,
}

impl std::fmt::Debug for Transfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transfer").field("counted", &self.counted).finish_non_exhaustive()
    }
}

/// The programs of a transfer that was killed a moment ago need less to go.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether it comes true within that time.
fn within(limit: Duration, it: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !it() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

impl Transfer {
    /// Loads the programs and attaches them to `cgroup`. Until the first [`Transfer::steer`] the sockets run as
    /// submissively as `first` says.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::Attach`], with the kernel's reason.
    pub fn start(setup: &Setup, first: &Steering, cgroup: &Cgroup) -> Result<Transfer> {
        Transfer::load(setup, first, (cgroup, None))
    }

    /// The same for a group that was there before, and for some of its connections. Those that are open are to be taken
    /// next.
    ///
    /// # Errors
    /// See [`Transfer::start`].
    pub fn attach(setup: &Setup, first: &Steering, cgroup: &Cgroup, selection: &Selection) -> Result<Transfer> {
        Transfer::load(setup, first, (cgroup, Some(selection)))
    }

    fn load(setup: &Setup, first: &Steering, (cgroup, existing): (&Cgroup, Option<&Selection>)) -> Result<Transfer> {
        let log = LibbpfLog::listen();
        let group = existing.map(|selection| (cgroup, selection));
        let mut programs = Programs::of_transfer(setup, first, group, &log)?;
        let (up, downloads) = (setup.direction.has_up(), setup.direction.has_down());
        let law = (setup.law.is_ours() && up).then(|| programs.register(&setup.law, &log)).transpose()?;
        let links = programs.attach(cgroup, &log)?;
        if existing.is_some() && !within(PATIENCE, || !programs.come_second(cgroup)) {
            return Err(Error::Governed(cgroup.path().to_owned()));
        }
        if downloads {
            programs.attach_downloads(cgroup)?;
        }
        let observer = programs.observe(&log)?;
        let takeover = existing.map(|_| programs.takeover(&log)).transpose()?;
        let takeover = takeover.map(|[take, give_back]| Takeover { take, give_back });
        Ok(Transfer {
            observer,
            group: cgroup.path().to_owned(),
            networks: Networks::default(),
            takeover,
            links,
            _law: law,
            programs,
            downloads,
            counted: Totals::default(),
            goals: Vec::new(),
        })
    }

    /// Gives the law to the open connections of the group in network namespaces that its processes have come to be in
    /// since the last call.
    ///
    /// # Errors
    /// [`Error::Observe`]: no right to enter a namespace, or the kernel does not tell its sockets.
    pub fn take(&mut self, cgroup: &Cgroup) -> Result<Taken> {
        let Some(Takeover { take, .. }) = &self.takeover else { return Ok(Taken::default()) };
        let (new, left_out) = self.networks.look(&cgroup.processes());
        Ok(Taken { left_out, ..Taken::from_answers(&self.networks.read(take, &new)?) })
    }

    /// Ends it: connections of a group that was there before have what they had then.
    ///
    /// # Errors
    /// See [`Transfer::take`].
    pub fn give_back(&mut self, cgroup: &Cgroup) -> Result<Taken> {
        let Some(Takeover { give_back, .. }) = &self.takeover else { return Ok(Taken::default()) };
        self.links.clear(); // so that no new one gets the law meanwhile
        self.networks.look(&cgroup.processes());
        self.networks.read(give_back, &self.networks.all()).map(|answers| Taken::from_answers(&answers))
    }

    /// Applies new values and [shows](Transfer::beat) that the controller lives.
    pub fn steer(&mut self, steering: &Steering) {
        apply(&mut self.programs.variables().steering, steering);
        self.beat();
    }

    /// Shows the programs that the controller lives: without that for as long as [`Steering::stale`] they behave as
    /// plain TCP.
    pub fn beat(&mut self) {
        self.programs.variables().steering.heartbeat_ns = monotonic_now();
    }

    /// Reads totals and sockets.
    ///
    /// # Errors
    /// [`Error::Observe`].
    pub fn observe(&mut self) -> Result<Snapshot> {
        // Totals first: a socket that closes in between is then missing for this once, never counted twice.
        let counted = &self.programs.variables().totals;
        let mut totals = Totals {
            acknowledged: counted.closed_acked,
            own_law_acknowledged: counted.closed_own_law,
            received: counted.closed_received,
            unmeasured: counted.closed_unmeasured,
            retransmitted: counted.closed_retransmitted,
            segments: counted.segments,
            losses: counted.losses,
            delay_price: counted.delay_price_q32 as f64 / Q32,
            phantoms: counted.phantoms,
            delay_backoffs: counted.delay_backoffs,
            udp_sent: counted.udp_sent,
            udp_received: counted.udp_received,
            sockets_opened: counted.sockets_opened,
            own_law: counted.own_law,
            law_refused: counted.law_refused,
            without_ecn: counted.without_ecn,
            law_missed: counted.law_missed,
            one_way: counted.closed_one_way,
            round_trips: counted.closed_round_trips,
            unstamped: counted.unstamped,
        };
        let bytes = self.look()?;
        let records: Vec<_> = bytes.chunks_exact(size_of::<types::lt_socket_record>()).map(record).collect();
        // after the live ones: a socket that closes in between is in both, and the second word is the last
        let mut closed = Vec::new();
        while let Ok(Some(bytes)) = self.programs.maps().closed_goals.lookup_and_delete(&[]) {
            closed.push(record(&bytes));
        }
        for record in &records {
            totals.acknowledged += record.acked;
            totals.own_law_acknowledged += if record.own_law != 0 { record.acked } else { 0 };
            totals.received += record.received;
            totals.unmeasured += if record.download_measured == 0 { record.received } else { 0 };
            totals.retransmitted += record.retransmitted;
            totals.one_way += u64::from(record.delays == ONE_WAY);
            totals.round_trips += u64::from(record.delays == ROUND_TRIPS);
        }
        self.counted = totals.not_below(&self.counted);
        let totals = self.counted;
        let now = monotonic_now();
        let all = records.iter().map(|record| (record, false)).chain(closed.iter().map(|record| (record, true)));
        self.goals = all.filter_map(|(record, closed)| goal_record(record, closed, now)).collect();
        Ok(summarize(totals, &records, now))
    }

    /// Connections with a goal of their own at the last look; those that had closed by then come after the live ones.
    pub(crate) fn goals(&self) -> &[GoalRecord] {
        &self.goals
    }

    /// Applies what the governors of single sockets decided, and forgets those of sockets that are gone.
    ///
    /// # Errors
    /// [`Error::Observe`]: the kernel does not take the decisions.
    pub(crate) fn steer_sockets(&mut self, decisions: &[SocketDecision], gone: &[u64]) -> Result<()> {
        let map = &self.programs.maps().decisions;
        for id in gone {
            let _ = map.delete(&id.to_ne_bytes()); // there was none if it never came to a decision
        }
        for decision in decisions {
            let value = decision_value(decision);
            // SAFETY: a plain C structure of integers without padding.
            let bytes = unsafe { plain::as_bytes(&value) };
            map.update(&decision.id.to_ne_bytes(), bytes, MapFlags::ANY)
                .map_err(|error| Error::Observe(std::io::Error::other(error)))?;
        }
        if decisions.is_empty() { Ok(()) } else { self.look().map(drop) }
    }

    /// A record per socket; on this occasion sockets with goals take what was decided about them.
    fn look(&mut self) -> Result<Vec<u8>> {
        if self.takeover.is_none() && !walks_states() {
            self.networks.look(&processes_below(&self.group));
        }
        self.observer.read(&self.networks)
    }

    /// The programs in the kernel, and how many instructions its verifier went through for each; it refuses more than a
    /// million.
    pub fn verified(&self) -> Vec<(String, u32)> {
        self.programs.verified()
    }

    /// The state per path, for another transfer to share.
    ///
    /// # Errors
    /// [`Error::System`]: this process has no descriptor left.
    pub fn flows(&self) -> Result<Flows> {
        let map = self.programs.maps().flows.as_fd().try_clone_to_owned();
        map.map(Flows::from).map_err(Error::system("sharing the state per path"))
    }

    /// The name under which the kernel lists the law, if it is ours.
    pub fn law_name(&self) -> String {
        text_of(&self.programs.setup().law)
    }

    /// The name of the law if a receiver's listener has to run it, too (or another one that echoes every mark).
    pub fn receivers_law(&self) -> Option<String> {
        (self.programs.setup().needs_ecn != 0).then(|| self.law_name())
    }
}

/// A compiled BPF object with what this kernel takes of it, not loaded yet. The tests try variants with it.
///
/// # Errors
/// The object is none.
#[doc(hidden)]
pub fn open_object(object: &[u8]) -> libbpf_rs::Result<OpenObject> {
    let mut open = ObjectBuilder::default().open_memory(object)?;
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        program.set_autoload(!OBSERVERS.contains(&&*name) || name == observer());
    }
    Ok(open)
}

/// Whether this kernel takes a compiled BPF object; nothing of it stays. The tests try broken variants with it.
///
/// # Errors
/// [`Error::Load`], with the kernel's reason.
#[doc(hidden)]
pub fn load_object(object: &[u8]) -> Result<()> {
    let log = LibbpfLog::listen();
    let load = || -> libbpf_rs::Result<()> {
        let mut open = open_object(object)?;
        // under a setup of zeros the verifier would drop most of the code unseen
        let mut setup = open.maps_mut().find(|map| map.name() == ".rodata.setup").expect("the programs have a setup");
        let bytes = setup.initial_value_mut().expect("a setup has a value");
        for switch in [offset_of!(types::lt_setup, uploads), offset_of!(types::lt_setup, ours)] {
            bytes[switch..][..4].copy_from_slice(&1u32.to_ne_bytes());
        }
        open.load().map(drop)
    };
    load().map_err(|error| log.refusal(error))
}

fn summarize(totals: Totals, records: &[types::lt_socket_record], now_ns: u64) -> Snapshot {
    let sending: Vec<_> = records.iter().filter(|r| is_sending(r, now_ns)).collect();
    let mean = |value: fn(&types::lt_socket_record) -> u32| {
        let known: Vec<u64> = sending.iter().map(|r| u64::from(value(r))).filter(|v| *v > 0).collect();
        (!known.is_empty()).then(|| known.iter().sum::<u64>() / known.len() as u64)
    };
    let networks = sending.iter().map(|r| (r.path.local.word, r.path.remote.word));
    let paths: HashSet<_> = networks.filter(|path| *path != ([0; 4], [0; 4])).collect();
    Snapshot {
        totals,
        sockets: records.len() as u32,
        sending: sending.len() as u32,
        paths: paths.len().max(1) as u32,
        held: sending.iter().filter(|r| r.held != 0).count() as u32,
        backlogged: sending.iter().any(|r| r.unsent > 0),
        unfinished_bytes: records.iter().map(|r| u64::from(r.unsent) + in_flight(r)).sum(),
        in_flight_bytes: records.iter().map(in_flight).sum(),
        srtt: mean(|r| r.srtt_us).map(Duration::from_micros),
        min_rtt: mean(|r| r.min_rtt_us).map(Duration::from_micros),
        segment_bytes: mean(|r| r.mss).map(|bytes| bytes as u32),
        window: sending
            .iter()
            .map(|r| if r.window_q16 > 0 { r.window_q16 as f64 / Q16 } else { f64::from(r.cwnd) })
            .fold(0.0, |sum, window| sum + window), // a sum of none would be -0.0
        own_law: records.iter().filter(|r| r.own_law != 0).count() as u32,
        download: Download::of(records, now_ns),
    }
}

impl Drop for Transfer {
    /// What holds back windows gives them back at the next ACK of each socket: no controller lives any more.
    fn drop(&mut self) {
        if !self.downloads {
            return;
        }
        let steering = &mut self.programs.variables().steering;
        (steering.heartbeat_ns, steering.stale_ns) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(last_sent_ns: u64, unsent: u32) -> types::lt_socket_record {
        types::lt_socket_record {
            last_sent_ns,
            unsent,
            srtt_us: 60_000,
            min_rtt_us: 40_000,
            mss: 1448,
            window_q16: 1 << 15,
            ..Default::default()
        }
    }

    #[test]
    fn connections_between_the_same_networks_are_one_path() {
        let now = 100_000_000_000;
        let to = |network: u32| {
            let mut record = record(now, 0);
            record.path.local.word[3] = 1;
            record.path.remote.word[3] = network;
            record
        };
        let silent = types::lt_socket_record { last_sent_ns: now - 5_000_000_000, ..to(9) };
        let paths = |records: &[_]| summarize(Totals::default(), records, now).paths;
        assert_eq!(paths(&[to(7), to(7), to(8), record(now, 0), silent]), 2);
        assert_eq!(paths(&[record(now, 0), silent]), 1, "one at the least");
    }

    #[test]
    fn what_is_missing_for_one_look_is_not_taken_back() {
        let before =
            Totals { acknowledged: 9, received: 8, retransmitted: 7, one_way: 2, segments: 5, ..Totals::default() };
        let now = Totals { acknowledged: 10, received: 3, retransmitted: 0, segments: 6, ..Totals::default() };
        let counted = now.not_below(&before);
        assert_eq!((counted.acknowledged, counted.received, counted.retransmitted), (10, 8, 7));
        assert_eq!((counted.one_way, counted.segments), (2, 6));
    }

    #[test]
    fn only_sockets_that_send_share_the_budget() {
        let now = 100_000_000_000;
        let flying = types::lt_socket_record { packets_out: 3, ..record(now - 1_000_000, 1) };
        let records = [flying, record(now - 5_000_000_000, 0), record(0, 0)];
        let snapshot = summarize(Totals::default(), &records, now);
        assert_eq!((snapshot.sockets, snapshot.sending, snapshot.backlogged), (3, 1, true));
        assert_eq!(snapshot.queueing_delay(), Some(Duration::from_millis(20)));
        assert_eq!((snapshot.window, snapshot.segment_bytes), (0.5, Some(1448)));
        assert_eq!(snapshot.in_flight_bytes, 3 * 1448);
    }
}
