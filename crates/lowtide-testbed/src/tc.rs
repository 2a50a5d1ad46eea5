// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's bottleneck by the kernel's own queue disciplines: two hosts, and a router between them.
//!
//! On its way out the router delays a packet by half of the round trip (netem) and then queues it (pfifo, CoDel, …) in
//! front of a token bucket (tbf). The bottleneck is not on the senders' own devices: TCP keeps the queue of its own
//! host short, and there would be none.

use crate::{
    queues::{Queues, Seen},
    route::{Counts, Route},
};
use anyhow::{Context, Result, anyhow, bail};
use lowtide_emu::Namespace;
use lowtide_net::{
    Codel, Discipline, FqCodel, Jitter, Limit, LossModel, Pie, Reordering, Step, units::format_duration,
};
use lowtide_sim::scenario::{Bottleneck, MTU, Scenario};
use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The hosts' device, and the router's, towards each side.
const DEVICE: &str = "lowtide0";
const TO_A: &str = "to-a";
const TO_B: &str = "to-b";

const A4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
const B4: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
/// The router's addresses.
const NEAR_A: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
const NEAR_B: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

/// What a qdisc counts of a packet beside its IP bytes, and shall not.
const ETHERNET: u32 = 14;
/// Packets on their way at the most: more than any scenario has.
const UNDERWAY: u32 = 1_000_000;
/// The token bucket, in packets. With one, the lateness of each timer would be lost capacity.
const BUCKET: u32 = 2;
/// How often the length of the queue is looked at, to know how long packets wait in it.
const LOOK: Duration = Duration::from_millis(10);

/// Why tc cannot make this scenario's path, in a sentence.
pub(crate) fn refusal(scenario: &Scenario) -> Option<String> {
    let [link] = scenario.bottlenecks.as_slice() else {
        return Some("there is one bottleneck with tc, and this scenario has more".to_owned());
    };
    let refused = [Some(link), scenario.reverse.as_ref()].into_iter().flatten().find_map(refusal_of_link);
    refused.or_else(|| {
        let other = scenario.flows.iter().find(|flow| flow.rtt != link.rtt)?;
        Some(format!("{}: with tc all flows have the bottleneck's round trip", other.name))
    })
}

fn refusal_of_link(link: &Bottleneck) -> Option<String> {
    let name = &link.name;
    let what = match () {
        () if link.schedule.is_some() => "a rate that changes",
        () if link.rtt_schedule.is_some() => "a round trip that changes",
        () if link.jitter != Jitter::NONE || link.reverse_jitter != Jitter::NONE => "jitter",
        () if link.reordering != Reordering::NONE => "reordering",
        () if link.police.is_some() => "a policer",
        () if matches!(link.loss, LossModel::GilbertElliott(_)) => "loss in bursts",
        () => return leaf(&link.queue, Limit::Packets(1)).err().map(|why| format!("{name}: {why}")),
    };
    Some(format!("{name}: with tc there is no {what}"))
}

/// The queue in front of the token bucket, as tc wants it written.
fn leaf(queue: &Discipline, limit: Limit) -> Result<String, String> {
    let packets = match limit {
        Limit::Packets(packets) => packets,
        // all of them count packets, and these are as long as they can be
        Limit::Bytes(bytes) => (bytes / u64::from(MTU)).max(1),
    };
    let time = |time: &Duration| format_duration(*time);
    let ecn = |on: &bool| if *on { "ecn" } else { "noecn" };
    match queue {
        Discipline::DropTail => Ok(match limit {
            Limit::Packets(packets) => format!("pfifo limit {packets}"),
            Limit::Bytes(bytes) => format!("bfifo limit {bytes}"),
        }),
        Discipline::Codel(Codel { target, interval, ecn: marks }) => {
            Ok(format!("codel limit {packets} target {} interval {} {}", time(target), time(interval), ecn(marks)))
        }
        // CoDel marks by this threshold alone when its own target is out of reach
        Discipline::Step(Step { at }) => {
            Ok(format!("codel limit {packets} target 10s interval 10s ce_threshold {} ecn", time(at)))
        }
        Discipline::FqCodel(FqCodel { flows, quantum, limit, target, interval, ecn: marks }) => Ok(format!(
            "fq_codel limit {} flows {flows} quantum {quantum} target {} interval {} {}",
            packets.min((*limit).into()),
            time(target),
            time(interval),
            ecn(marks)
        )),
        Discipline::Pie(pie) => leaf_of_pie(pie, packets),
        other => Err(format!("with tc there is no queue {other}")),
    }
}

/// Linux counts its gains in sixteenths of a Hz.
fn leaf_of_pie(pie: &Pie, packets: u64) -> Result<String, String> {
    let Pie { target, update, alpha, beta, ecn, .. } = pie;
    if (Pie { target: *target, update: *update, alpha: *alpha, beta: *beta, ecn: *ecn, ..Pie::default() }) != *pie {
        return Err("tc's pie has a burst of 150 ms, marks below 10 % and does not derandomise".to_owned());
    }
    let gain = |gain: f64| {
        let sixteenths = gain * 16.0;
        if sixteenths.fract() == 0.0 { Ok(sixteenths) } else { Err("tc's pie has gains in sixteenths".to_owned()) }
    };
    let (alpha, beta) = (gain(*alpha)?, gain(*beta)?);
    let (target, update) = (format_duration(*target), format_duration(*update));
    let ecn = if *ecn { "ecn" } else { "noecn" };
    // the RFC's switching off when idle and its estimate of the departure rate are off here, as in our own
    Ok(format!(
        "pie limit {packets} target {target} tupdate {update} alpha {alpha} beta {beta} {ecn} nobytemode no_dq_rate_estimator"
    ))
}

/// What a device of the router does with what leaves by it. `link` is `None` for a way without a bottleneck.
fn out(device: &str, link: Option<&Bottleneck>, delay: Duration) -> Result<String> {
    let loss = match link.map(|link| &link.loss) {
        // in percent, with or without the percent sign for tc
        Some(loss @ LossModel::Bernoulli(chance)) if *loss != LossModel::NONE => {
            format!(" loss random {}%", 100.0 * chance.as_f64())
        }
        _ => String::new(),
    };
    let delay = delay.as_nanos() as f64 / 1e3;
    let mut commands = format!(
        "qdisc add dev {device} root handle 1: stab overhead -{ETHERNET} netem delay {delay}us limit {UNDERWAY}{loss}\n"
    );
    if let Some(link) = link {
        let (rate, bucket) = (link.rate.bits_per_second(), link.burst.max((BUCKET * MTU).into()));
        let limit = link.buffer.resolve(link.rate, link.rtt, MTU);
        let leaf = leaf(&link.queue, limit).map_err(|why| anyhow!(why))?;
        commands += &format!(
            "qdisc add dev {device} parent 1:1 handle 2: tbf rate {rate}bit burst {bucket} limit {UNDERWAY}\n\
             qdisc add dev {device} parent 2:1 handle 3: {leaf}\n"
        );
    }
    Ok(commands)
}

/// Two hosts and a router.
pub(crate) struct Tc {
    a: Namespace,
    b: Namespace,
    _router: Namespace,
    watch: Watch,
}

impl Tc {
    /// For a scenario that was not refused.
    pub(crate) fn start(scenario: &Scenario) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let make = |side| Namespace::create(&format!("lt{}tc{number}{side}", std::process::id()));
        let (a, b, router) = (make("a")?, make("b")?, make("r")?);
        let link = &scenario.bottlenecks[0];
        let half = link.rtt / 2;
        wire(&a, &router, TO_A, (A4, NEAR_A), 1)?;
        wire(&b, &router, TO_B, (B4, NEAR_B), 3)?;
        router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?.context("forwarding")?;
        router.tc(&out(TO_B, Some(link), half)?)?;
        router.tc(&out(TO_A, scenario.reverse.as_ref(), link.rtt - half)?)?;
        let queues = router.run(|| Queues::open([TO_B, TO_A]))??;
        Ok(Self { a, b, _router: router, watch: Watch::start(queues) })
    }
}

/// A wire from a host to the router. Nothing is looked up on it, and no packet is longer than it may be at the
/// bottleneck. `first` of two numbers is in the host's hardware address, the next in the router's.
fn wire(
    host: &Namespace,
    router: &Namespace,
    device: &str,
    (its, routers): (Ipv4Addr, Ipv4Addr),
    first: u8,
) -> Result<()> {
    let hardware = |number: u8| format!("02:00:00:00:00:{number:02x}");
    let (its_hardware, routers_hardware) = (hardware(first), hardware(first + 1));
    let pair = format!(
        "link add dev {DEVICE} address {its_hardware} type veth peer name {device} address {routers_hardware} netns {}",
        router.name()
    );
    host.ip(&pair)?;
    let end = |device: &str, own: Ipv4Addr, other: Ipv4Addr, hardware: &str| {
        format!(
            "link set dev {device} gso_max_segs 1\n\
             addr add {own}/24 dev {device}\n\
             link set dev {device} up\n\
             neigh replace {other} lladdr {hardware} dev {device} nud permanent\n"
        )
    };
    router.ip(&end(device, routers, its, &its_hardware))?;
    host.ip(&end(DEVICE, its, routers, &routers_hardware))?;
    Ok(host.ip(&format!("route add default via {routers}"))?)
}

impl Route for Tc {
    fn a(&self) -> &Namespace {
        &self.a
    }

    fn b(&self) -> &Namespace {
        &self.b
    }

    fn a_device(&self) -> &str {
        DEVICE
    }

    fn b_device(&self) -> &str {
        DEVICE
    }

    fn a4(&self) -> Ipv4Addr {
        A4
    }

    fn b4(&self, _flow: usize) -> Ipv4Addr {
        B4
    }

    fn counts(&self) -> Result<[Counts; 2]> {
        self.watch.counts()
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Looks at both queues all the time, because the kernel does not say how long packets wait: as long as the queue was,
/// by Little's law.
struct Watch {
    state: Arc<Mutex<Readings>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Readings {
    queues: Queues,
    last: Instant,
    seen: [Seen; 2],
    waited: [Duration; 2],
    failure: Option<String>,
}

impl Readings {
    fn look(&mut self) {
        let now = Instant::now();
        let span = now - self.last;
        match self.queues.look() {
            Ok(seen) => {
                for ((waited, before), after) in self.waited.iter_mut().zip(&self.seen).zip(&seen) {
                    *waited += span * (before.queued_packets + after.queued_packets) / 2;
                }
                (self.seen, self.last) = (seen, now);
            }
            Err(error) => self.failure = Some(format!("{error:#}")),
        }
    }
}

impl Watch {
    fn start(queues: Queues) -> Self {
        let state = Readings {
            queues,
            last: Instant::now(),
            seen: Default::default(),
            waited: Default::default(),
            failure: None,
        };
        let (state, over) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        let (its, until) = (Arc::clone(&state), Arc::clone(&over));
        let thread = thread::spawn(move || {
            crate::priority::raise_priority();
            while !until.load(Ordering::Relaxed) {
                its.lock().unwrap_or_else(PoisonError::into_inner).look();
                thread::sleep(LOOK);
            }
        });
        Self { state, over, thread: Some(thread) }
    }

    fn counts(&self) -> Result<[Counts; 2]> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.look();
        if let Some(failure) = &state.failure {
            bail!("the queues cannot be read: {failure}");
        }
        let of = |seen: &Seen, waited: Duration| Counts {
            packets: seen.packets,
            bytes: seen.bytes,
            drops: seen.drops,
            marks: seen.marks,
            queued_packets: seen.queued_packets.into(),
            queued_bytes: seen.queued_bytes.into(),
            waited,
        };
        Ok([of(&state.seen[0], state.waited[0]), of(&state.seen[1], state.waited[1])])
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(link: &str) -> Scenario {
        let text = format!(
            "duration = \"9s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"20ms\"\n{link}\n[[flow]]\nname = \"a\"\ncc = \"reno\"\n"
        );
        Scenario::parse(&text, std::path::Path::new("test"), &[]).unwrap()
    }

    fn commands(link: &str) -> String {
        let scenario = scenario(link);
        assert_eq!(refusal(&scenario), None);
        out("x", scenario.bottlenecks.first(), Duration::from_millis(10)).unwrap()
    }

    #[test]
    fn a_queue_for_each_discipline() {
        for (link, part) in [
            ("buffer = \"17p\"", "pfifo limit 17\n"),
            ("", "bfifo limit 25000\n"),
            ("queue = \"codel:ecn=on\"", "codel limit 16 target 5ms interval 100ms ecn\n"),
            (
                "queue = \"step:at=3ms\"\nbuffer = \"1000p\"",
                "codel limit 1000 target 10s interval 10s ce_threshold 3ms ecn\n",
            ),
            (
                "queue = \"fq_codel\"\nbuffer = \"1000p\"",
                "fq_codel limit 1000 flows 1024 quantum 1514 target 5ms interval 100ms ecn\n",
            ),
            ("queue = \"pie\"", "pie limit 16 target 15ms tupdate 15ms alpha 2 beta 20 noecn"),
            ("loss = \"1%\"", "limit 1000000 loss random 1%\n"),
            ("burst = \"3080B\"", "tbf rate 10000000bit burst 3080 "),
        ] {
            let commands = commands(link);
            assert!(commands.contains(part), "{link}: {commands}");
            assert!(
                commands.starts_with("qdisc add dev x root handle 1: stab overhead -14 netem delay 10000us "),
                "{commands}"
            );
        }
    }

    #[test]
    fn what_tc_has_not_is_named() {
        for (link, part) in [
            ("queue = \"dualpi2\"", "no queue dualpi2"),
            ("queue = \"pie:derandomise=on\"", "does not derandomise"),
            ("jitter = \"1ms\"", "no jitter"),
            ("reverse_jitter = \"1ms\"", "no jitter"),
            ("schedule = \"0s:10mbit,1s:5mbit\"", "a rate that changes"),
            ("rtt_schedule = \"0s:10ms,1s:20ms\"", "a round trip that changes"),
        ] {
            let sentence = refusal(&scenario(link)).unwrap_or_default();
            assert!(sentence.contains(part), "{link}: {sentence}");
        }
        let far = "[[flow]]\nname = \"b\"\ncc = \"reno\"\nrtt = \"50ms\"\n";
        let text = format!("duration = \"9s\"\nbottleneck = {{ rate = \"10mbit\", rtt = \"20ms\" }}\n{far}");
        let far = Scenario::parse(&text, std::path::Path::new("test"), &[]).unwrap();
        assert!(refusal(&far).unwrap().starts_with("b: with tc all flows"));
    }
}
