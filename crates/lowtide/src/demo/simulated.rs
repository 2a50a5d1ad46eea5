// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo in the simulator: the same link, flows and deadlines in virtual time.

use std::time::Duration;

use anyhow::{Result, bail};
use lowtide_cc::Law;
use lowtide_net::{Rate, Time};
use lowtide_sim::{
    observe::{BottleneckSample, FlowSample, Observer},
    run,
    scenario::{Bottleneck, Deadline, Flow as Sender, Scenario, Source, Tcp, Transport},
};

use super::{
    acts::{Act, Bulk, LINK_MBPS, RTT_MS, SAMPLE},
    live::Live,
    recording::{Ended, Recording, Sample},
};

/// The deadline of the third act, seconds.
const FAR: u64 = 8 * 3600;
const SEED: u64 = 1;

/// Plays the acts, as fast as the machine can.
pub(super) fn perform(acts: &[Act], law: &str) -> Result<Ended> {
    // as `lowtide run` has it in the kernel: without a price where there is no queue
    let law: Law = if law == "cdg" { "cdg:floor=2ms" } else { law }.parse()?;
    if !law.takes_weight() {
        bail!("in the simulator the demo needs a law that takes a price weight, like --cc cdg");
    }
    let mut live = Live::new();
    live.introduce("A simulated link", acts)?;
    let mut recordings = Vec::new();
    for act in acts {
        live.begin(act)?;
        let mut recorder = Recorder { recording: Recording::new(act), latest: [0; 2], second: (0.0, 0) };
        let outcome = run(&scenario(act, &law), &mut recorder);
        let mut recording = recorder.recording;
        if act.bulk == Bulk::NearDeadline {
            recording.finished = outcome.flows.get(1).and_then(|bulk| bulk.finished_s);
        }
        cut(&mut recording);
        show(&mut live, &recording)?;
        recordings.push(recording);
    }
    Ok(Ended::Through(recordings))
}

/// The link with the flows of an act.
fn scenario(act: &Act, law: &Law) -> Scenario {
    let rate = Rate::from_bits_per_second(LINK_MBPS * 1_000_000).expect("above zero");
    let rtt = Duration::from_millis(RTT_MS);
    let cubic = || "cubic".parse().expect("a law");
    let flow = |name, law: Law| Sender::greedy(name, law, rtt);
    let due = |law: Law, bytes, seconds| {
        let deadline = Some(Deadline::new(Duration::from_secs(seconds)));
        let tcp = Tcp { pacing: true, ..Tcp::new(law) }; // all sockets under `lowtide run` are paced
        let transport = Transport::Tcp(Box::new(tcp));
        Sender { name: "bulk".to_owned(), transport, source: Source::Sized(bytes), deadline, ..flow("", cubic()) }
    };
    let mut flows = vec![flow("foreground", cubic())];
    flows.extend(match act.bulk {
        Bulk::Absent => None,
        Bulk::Ordinary => Some(flow("bulk", cubic())),
        Bulk::FarDeadline => Some(due(law.clone(), act.far_bytes(), FAR)),
        Bulk::NearDeadline => Some(due(law.clone(), act.due_bytes(), act.seconds)),
    });
    Scenario {
        seed: SEED,
        duration: Duration::from_secs_f64(act.latest_end()),
        measure_from: Duration::ZERO,
        bottlenecks: vec![Bottleneck::new("link", rate, rtt)],
        reverse: None,
        flows,
        sample_interval: Duration::from_secs_f64(SAMPLE),
        spans: Vec::new(),
    }
}

/// Writes an act down while it runs.
struct Recorder {
    recording: Recording,
    /// Bytes of the foreground and of the bulk transfer so far.
    latest: [u64; 2],
    /// Of the present second: sum of the packets' queueing delays in ms, and their number.
    second: (f64, u64),
}

impl Observer for Recorder {
    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        if let Some(latest) = self.latest.get_mut(sample.flow) {
            *latest = sample.delivered;
        }
    }

    /// Comes after those of the flows.
    fn bottleneck(&mut self, sample: &BottleneckSample) {
        let t = (sample.now - Time::ZERO).as_secs_f64();
        let [foreground, bulk] = self.latest;
        self.recording.samples.push(Sample { t, foreground, bulk });
        self.second.0 += sample.queue_ms * sample.packets as f64;
        self.second.1 += sample.packets;
        if t.fract() == 0.0 {
            self.recording.queue.push(self.second.0 / self.second.1.max(1) as f64);
            self.second = (0.0, 0);
        }
    }
}

/// An act ends at its time, or with the transfer that is late.
fn cut(recording: &mut Recording) {
    let end = recording.finished.unwrap_or(0.0).max(recording.act.seconds as f64);
    let late = recording.act.bulk == Bulk::NearDeadline && recording.finished.is_none();
    if !late {
        recording.samples.retain(|sample| sample.t < end + SAMPLE);
        recording.queue.truncate(end.round() as usize);
    }
}

/// Shows it as if it ran now.
fn show(live: &mut Live, recording: &Recording) -> Result<()> {
    let mut shown = Recording { samples: Vec::new(), queue: Vec::new(), finished: None, ..recording.clone() };
    for sample in &recording.samples {
        shown.samples.push(*sample);
        shown.queue = recording.queue[..recording.queue.len().min(sample.t as usize)].to_vec();
        live.update(&shown)?;
    }
    live.finish(recording)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::recording::Flow;

    #[test]
    fn the_acts_show_what_the_kernel_shows() {
        ["tide", "cdg"].into_iter().for_each(shows_what_the_kernel_shows);
    }

    fn shows_what_the_kernel_shows(law: &str) {
        let acts = Act::all(25);
        let Ended::Through(recordings) = perform(&acts, law).unwrap() else { panic!("nobody interrupts") };
        let foreground: Vec<f64> = recordings.iter().map(|it| it.mean(Flow::Foreground)).collect();
        let alone = foreground[0];
        assert!(alone > 17.5, "{foreground:?}");
        assert!(
            (0.35..0.65).contains(&(foreground[1] / alone)),
            "an ordinary transfer takes its share: {foreground:?}"
        );
        assert!(foreground[2] / alone > 0.85, "one that is not due steps aside: {foreground:?}");
        let deadline = recordings[3].deadline().unwrap();
        assert!(deadline.finished.is_some_and(|finished| finished <= 1.05 * deadline.due), "{deadline:?}");
        assert!(foreground[3] / alone > 0.5, "a deadline takes what it needs: {foreground:?}");
        assert!(recordings.iter().all(|it| it.samples.len() >= 50 && it.queue.len() >= 25));
    }

    #[test]
    fn a_law_without_a_weight_is_refused() {
        assert!(perform(&Act::all(25), "bbr1").is_err());
        assert!(perform(&Act::all(25), "nonsense").is_err());
    }
}
