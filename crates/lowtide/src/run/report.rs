// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--report FILE`: docs/report.md describes the format. Fields may be added; a change of meaning changes the schema's
//! number.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lowtide_deadline::Time;
use lowtide_kernel::Exit;
use serde::Serialize;

use super::{
    control,
    goals::{Counts, Goals},
    own_progress::Told,
    phrases,
    plan::Plan,
    run_record::RunRecord,
    verdict::{Ending, Outcome},
};
use crate::{operate::protocol::OwnProgress, when::unix_seconds};

const SCHEMA: &str = "lowtide-report/2";

#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    version: &'static str,
    program: Vec<String>,
    exit_code: Option<i32>,
    exit_signal: Option<i32>,
    law: String,
    direction: &'static str,
    about: &'static str,
    actuator: &'static str,
    control: &'static str,
    w_min: f64,
    w_max: f64,
    size_bytes: Option<u64>,
    progress: Option<OwnProgress>,
    acknowledged_bytes: u64,
    received_bytes: u64,
    retransmitted_bytes: u64,
    started: Timestamp,
    started_unix_s: f64,
    deadline: Option<Timestamp>,
    deadline_unix_s: Option<f64>,
    finished: Timestamp,
    finished_unix_s: f64,
    completed: Option<Timestamp>,
    completed_unix_s: Option<f64>,
    outcome: Option<&'static str>,
    met: Option<bool>,
    governed_fraction: f64,
    mean_bps: f64,
    losses: u64,
    phantom_signals: u64,
    delay_backoffs: u64,
    connections: u64,
    law_missed: u64,
    sockets_without_ecn: u64,
    basis_s: BTreeMap<&'static str, f64>,
    socket_goals: SocketGoals,
    not_controlled: NotControlled,
    changes: Vec<Change>,
    announcements: Vec<Announcement>,
    series: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct SocketGoals {
    number: u64,
    met: u64,
    missed: u64,
    list: Vec<SocketGoal>,
}

#[derive(Debug, Serialize)]
struct SocketGoal {
    t: f64,
    size_bytes: u64,
    acknowledged_bytes: u64,
    deadline_t: f64,
    completed_t: Option<f64>,
    met: Option<bool>,
    w_least: Option<f64>,
    w_most: Option<f64>,
}

#[derive(Debug, Serialize)]
struct NotControlled {
    udp_sent_bytes: u64,
    udp_received_bytes: u64,
    sockets_opened_before: usize,
    sockets_with_own_law: u32,
    own_law_requests: u64,
    sockets_that_refused_the_law: u64,
    downloads_without_timestamps: u64,
    download: bool,
    group_moved_no_bytes: bool,
}

#[derive(Debug, Serialize)]
struct Change {
    t: f64,
    what: String,
}

#[derive(Debug, Serialize)]
struct Announcement {
    t: f64,
    outlook: &'static str,
    expected: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Row {
    t: f64,
    rate_bps: f64,
    target_bps: Option<f64>,
    w: f64,
    basis: &'static str,
    srtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    window_segments: f64,
    sockets: u32,
    sending: u32,
    acknowledged_bytes: u64,
    received_bytes: u64,
    receiving: u32,
    download_rtt_ms: Option<f64>,
    download_queue_ms: Option<f64>,
    download_window_bytes: u64,
    download_yields: bool,
    losses: u64,
    phantom_signals: u64,
    delay_backoffs: u64,
    socket_goals: u32,
    socket_goals_behind: u32,
}

impl Report {
    pub(super) fn new(record: &RunRecord, plan: &Plan, ending: &Ending) -> Report {
        let totals = record.totals();
        let clock = &plan.clock;
        let Ending { exit, finished, inherited, verdict } = *ending;
        let (started, end) = (clock.wall(Time::ZERO), clock.wall(finished));
        let completed = record.completed.map(|time| clock.wall(time));
        let (exit_code, exit_signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            program: plan.program.clone(),
            exit_code,
            exit_signal,
            law: plan.setup.law.name().to_owned(),
            direction: plan.setup.direction.name(),
            about: record.way().name(),
            actuator: plan.setup.actuator.name(),
            control: control::name(plan.policy.control),
            w_min: plan.policy.bounds.min().get(),
            w_max: plan.policy.bounds.max().get(),
            size_bytes: plan.size,
            progress: plan.told.map(Told::shown),
            acknowledged_bytes: totals.acknowledged,
            received_bytes: totals.received,
            retransmitted_bytes: totals.retransmitted,
            started,
            started_unix_s: unix_seconds(started),
            deadline: plan.deadline,
            deadline_unix_s: plan.deadline.map(unix_seconds),
            finished: end,
            finished_unix_s: unix_seconds(end),
            completed,
            completed_unix_s: completed.map(unix_seconds),
            outcome: verdict.outcome.map(Outcome::name),
            met: verdict.met(),
            governed_fraction: verdict.governed_fraction,
            mean_bps: 8.0 * record.moved() as f64 / finished.as_secs_f64().max(1e-3),
            losses: totals.losses,
            phantom_signals: totals.phantoms,
            delay_backoffs: totals.delay_backoffs,
            connections: totals.sockets_opened,
            law_missed: totals.law_missed,
            sockets_without_ecn: totals.without_ecn,
            basis_s: record.bases.iter().map(|(basis, time)| (*basis, time.as_secs_f64())).collect(),
            socket_goals: SocketGoals::new(&record.goals),
            not_controlled: NotControlled {
                udp_sent_bytes: totals.udp_sent,
                udp_received_bytes: totals.udp_received,
                sockets_opened_before: inherited,
                sockets_with_own_law: record.own_law_sockets,
                own_law_requests: totals.own_law,
                sockets_that_refused_the_law: totals.law_refused,
                downloads_without_timestamps: totals.unstamped,
                download: record.is_download(),
                group_moved_no_bytes: record.moved_nothing(),
            },
            changes: record
                .changes
                .iter()
                .map(|(now, what)| Change { t: now.as_secs_f64(), what: what.clone() })
                .collect(),
            announcements: record
                .announcements
                .iter()
                .map(|said| Announcement {
                    t: said.now.as_secs_f64(),
                    outlook: phrases::kind(&said.outlook),
                    expected: said.outlook.expected().map(|time| clock.wall(time)),
                })
                .collect(),
            series: record
                .rows
                .iter()
                .map(|row| {
                    let (snapshot, decision) = (&row.status.snapshot, &row.status.decision);
                    Row {
                        t: row.now.as_secs_f64(),
                        rate_bps: 8.0 * row.rate,
                        target_bps: decision.target_rate.map(|rate| 8.0 * rate),
                        w: decision.weight.get(),
                        basis: control::basis(decision.basis),
                        srtt_ms: snapshot.srtt.map(ms),
                        min_rtt_ms: snapshot.min_rtt.map(ms),
                        window_segments: snapshot.window,
                        sockets: snapshot.sockets,
                        sending: snapshot.sending,
                        acknowledged_bytes: snapshot.totals.acknowledged,
                        received_bytes: snapshot.totals.received,
                        receiving: snapshot.download.receiving,
                        download_rtt_ms: snapshot.download.srtt.map(ms),
                        download_queue_ms: snapshot.download.queue.map(ms),
                        download_window_bytes: snapshot.download.window_bytes,
                        download_yields: snapshot.download.yields,
                        losses: snapshot.totals.losses,
                        phantom_signals: snapshot.totals.phantoms,
                        delay_backoffs: snapshot.totals.delay_backoffs,
                        socket_goals: row.goals.number,
                        socket_goals_behind: row.goals.behind,
                    }
                })
                .collect(),
        }
    }
}

impl SocketGoals {
    fn new(goals: &Goals) -> SocketGoals {
        let Counts { number, met, missed } = goals.counts();
        let list = goals.list().map(|goal| SocketGoal {
            t: goal.seen.as_secs_f64(),
            size_bytes: goal.size,
            acknowledged_bytes: goal.acknowledged,
            deadline_t: goal.deadline.as_secs_f64(),
            completed_t: goal.completed.map(|time| time.as_secs_f64()),
            met: goal.met(),
            w_least: goal.weights.map(|(least, _)| least),
            w_most: goal.weights.map(|(_, most)| most),
        });
        SocketGoals { number, met, missed, list: list.collect() }
    }
}
