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
use lowtide_net::{Reordering, Statistics, units::format_duration};

use crate::{cli::EmulateArguments, interruption::Interruption};

/// Runs the emulator until SIGINT, SIGTERM or SIGHUP, until nobody reads its output any more, or for the given time.
///
/// # Errors
/// One sentence on what is wrong with the arguments or the machine.
pub fn emulate(arguments: &EmulateArguments) -> Result<ExitCode> {
    let [a, b] = arguments.between.as_slice() else {
        bail!("--between takes two names, as in --between A,B");
    };
    if let Some(sentence) = diagnose().verdict(&[Need::Emulate]) {
        bail!("cannot emulate a link here: {sentence}");
    }
    let interruption = Interruption::block()?;

    let emulator = Emulator::start(Config {
        reverse_rate: arguments.reverse_rate,
        schedule: arguments.schedule.clone(),
        reverse_schedule: arguments.reverse_schedule.clone(),
        burst: arguments.burst,
        extra_delays: arguments.extra_delay.clone(),
        buffer: arguments.buffer,
        discipline: arguments.queue.clone(),
        loss: arguments.loss,
        jitter: arguments.jitter,
        reordering: arguments.reorder.unwrap_or(Reordering::NONE),
        police: arguments.police,
        seed: arguments.seed,
        realtime: true,
        ..Config::new(a, b, arguments.rate, arguments.rtt)
    })?;
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
