// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide emulate`: a bottleneck to try things on, until it is interrupted.

use std::{
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use lowtide_emu::{Config, Emulator, Second};
use lowtide_kernel::{Need, diagnose};
use lowtide_net::{Reordering, Schedule, Statistics, units::format_duration};

use crate::{cli::EmulateArguments, interruption::Interruption};

/// Runs the emulator until SIGINT, SIGTERM or SIGHUP, until its output is closed, or for the given time.
///
/// # Errors
/// One sentence on what is wrong with the arguments or the machine.
pub fn emulate(arguments: &EmulateArguments) -> Result<ExitCode> {
    let [a, b] = arguments.between.as_slice() else {
        bail!("--between takes two names, as in --between A,B");
    };
    let config = configuration(arguments, a, b)?;
    if let Some(sentence) = diagnose().verdict(&[Need::Emulate]) {
        bail!("cannot emulate a link here: {sentence}");
    }
    let interruption = Interruption::block()?;

    let emulator = Emulator::start(config)?;
    explain(&mut io::stdout(), &emulator, a, b)?;

    let started = Instant::now();
    let mut next = 0;
    loop {
        let left = arguments.seconds.map(|s| Duration::from_secs(s).saturating_sub(started.elapsed()));
        let pause = left.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
        if left == Some(Duration::ZERO) || interruption.came_or_unread(pause)? {
            break;
        }
        emulator.check()?;
        for second in emulator.seconds_from(next) {
            next = second.number + 1;
            print_second(&mut io::stdout(), &second)?;
        }
    }
    emulator.stop().map_err(|error| anyhow!(error))?;
    Ok(ExitCode::SUCCESS)
}

/// What is emulated between the namespaces `a` and `b`.
fn configuration(arguments: &EmulateArguments, a: &str, b: &str) -> Result<Config> {
    let mean = |schedule: &Option<Schedule>| schedule.as_ref().and_then(Schedule::mean_rate);
    let rate = arguments.rate.or_else(|| mean(&arguments.schedule)).ok_or_else(|| {
        anyhow!("the steps of --schedule do not repeat and have no mean rate; give --rate, for the buffer's size")
    })?;
    // where no rate is given, each direction goes by its own schedule
    let reverse_mean = || arguments.rate.is_none().then(|| mean(&arguments.reverse_schedule)).flatten();
    Ok(Config {
        reverse_rate: arguments.reverse_rate.or_else(reverse_mean),
        schedule: arguments.schedule.clone(),
        reverse_schedule: arguments.reverse_schedule.clone(),
        burst: arguments.burst,
        rtt_schedule: arguments.rtt_schedule.clone(),
        extra_delays: arguments.extra_delay.clone(),
        buffer: arguments.buffer,
        discipline: arguments.queue.clone(),
        loss: arguments.loss,
        jitter: arguments.jitter,
        reordering: arguments.reorder.unwrap_or(Reordering::NONE),
        police: arguments.police,
        seed: arguments.seed,
        realtime: true,
        ..Config::new(a, b, rate, arguments.rtt)
    })
}

fn explain(out: &mut impl Write, emulator: &Emulator, a: &str, b: &str) -> io::Result<()> {
    let six = |address: Option<std::net::Ipv6Addr>| address.map(|a| format!(", {a}")).unwrap_or_default();
    writeln!(out, "{a}: {}{}", emulator.a4(), six(emulator.a6()))?;
    writeln!(out, "{b}: {}{}", emulator.b4(), six(emulator.b6()))?;
    for (index, delay) in emulator.config().extra_delays.iter().enumerate() {
        if let Some(address) = emulator.far4(index) {
            let more = format_duration(*delay);
            writeln!(out, "{b}, {more} farther away: {address}{}", six(emulator.far6(index)))?;
        }
    }
    writeln!(out, "try: nsenter --net=/run/netns/{a} ping -c 3 {}", emulator.b4())?;
    writeln!(out, "or:  ip netns exec {b} iperf3 -s    and    ip netns exec {a} iperf3 -c {} -C cubic", emulator.b4())?;
    writeln!(out, "Ctrl-C ends it and takes the namespaces down.")
}

/// A line for each second in which anything moved.
fn print_second(out: &mut impl Write, second: &Second) -> io::Result<()> {
    if second.forward.arrived.packets + second.reverse.arrived.packets == 0 {
        return Ok(());
    }
    let direction = |name: &str, s: &Statistics| {
        format!(
            "{name} {:8.3} Mbit/s  queue {:6.1} ms (max {:6.1})  dropped {:4}  lost {:3}  marked {:4}",
            s.delivered.bytes as f64 * 8e-6,
            s.queueing_delay_mean().as_secs_f64() * 1e3,
            s.queueing_delay_max.as_secs_f64() * 1e3,
            s.dropped().packets,
            s.lost.packets,
            s.marked.packets
        )
    };
    let (there, back) = (direction("->", &second.forward), direction("<-", &second.reverse));
    writeln!(out, "{:5} s  {there}   {back}", second.number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use lowtide_net::Limit;

    fn configured(words: &[&str]) -> Result<Config> {
        let words = ["lowtide", "emulate", "--rtt", "40ms", "--between", "A,B"].iter().chain(words);
        match Cli::try_parse_from(words).expect("they are the words of a link").command {
            Command::Emulate(arguments) => configuration(&arguments, "A", "B"),
            _ => unreachable!("emulate was asked for"),
        }
    }

    #[test]
    fn a_schedule_that_repeats_needs_no_rate() {
        let directory = tempfile::tempdir().unwrap();
        // 12 and 6 Mbit/s
        let [up, down] = [("up", "1\n2\n"), ("down", "2\n")].map(|(name, lines)| {
            let file = directory.path().join(name);
            std::fs::write(&file, lines).unwrap();
            format!("mahimahi:{}", file.display())
        });
        let limits = |words: &[&str]| {
            let config = configured(words).unwrap();
            [config.forward().limit, config.reverse().limit]
        };
        assert_eq!(limits(&["--schedule", &up]), [Limit::Bytes(60_000), Limit::Bytes(60_000)]);
        let both = limits(&["--schedule", &up, "--reverse-schedule", &down]);
        assert_eq!(both, [Limit::Bytes(60_000), Limit::Bytes(30_000)]);
        let given = limits(&["--rate", "20mbit", "--schedule", &up, "--reverse-schedule", &down]);
        assert_eq!(given, [Limit::Bytes(100_000), Limit::Bytes(100_000)]);
        let steps = limits(&["--schedule", "0s:8mbit,1s:16mbit,every:2s", "--buffer", "10ms"]);
        assert_eq!(steps, [Limit::Bytes(15_000), Limit::Bytes(15_000)]);
        let error = configured(&["--schedule", "0s:8mbit,1s:16mbit"]).unwrap_err().to_string();
        assert!(error.contains("do not repeat") && error.contains("--rate"), "{error}");
    }

    #[test]
    fn the_round_trip_may_change() {
        let config = configured(&["--rate", "20mbit", "--rtt-schedule", "0s:20ms,10s:200ms"]).unwrap();
        assert_eq!(config.forward().delay.to_string(), "0s:10ms,10s:100ms");
        assert_eq!(config.forward().limit, Limit::Bytes(100_000), "of --rtt");
    }
}
