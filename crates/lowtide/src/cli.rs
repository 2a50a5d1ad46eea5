// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every command and flag, with its documentation, in this one place; those of `lowtide run`, of `lab` and
//! of what transfers are operated by in `cli/`.

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use clap::{
    Args, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue},
};
use jiff::Zoned;
use lowtide_net::{
    BufferSize, DelaySchedule, Discipline, Jitter, LossModel, Police, Rate, Reordering, Schedule, file,
    units::parse_duration,
};

use crate::{
    size,
    when::{self, When},
};

mod lab;
mod operate;
mod run;
mod testbed;

pub use lab::*;
pub use operate::*;
pub use run::*;
pub use testbed::*;

/// Bulk transfers in the background, done by their deadline.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program whose TCP connections use only spare capacity, and more only as far as a deadline requires
    Run(Box<RunArguments>),
    /// Govern the connections of what runs already: a unit, a process, a container, a cgroup
    Attach(Box<AttachArguments>),
    /// Say how the transfers of this machine are
    Status(StatusArguments),
    /// Watch all transfers on the terminal: rate, need, weight, forecast, and why
    Top,
    /// Change a transfer that runs: its deadline, its size, limits on its rate
    Set(SetArguments),
    /// Hold a transfer back to a trickle that keeps its connections alive
    Pause(NameArguments),
    /// Go on with a transfer that is paused
    Resume(NameArguments),
    /// Stop governing what `attach` governs; its connections go on as before
    Detach(NameArguments),
    /// Say what transfers ran and how they ended
    History(HistoryArguments),
    /// Report what this kernel and these privileges allow
    Doctor,
    /// Load Lowtide's congestion controls for the whole machine, for any program to use
    #[command(subcommand)]
    Cc(CcCommand),
    /// Record what the congestion controls of running transfers measure and decide, each round trip and at each event
    Trace(TraceArguments),
    /// Emulate a bottleneck between two network namespaces
    Emulate(Box<EmulateArguments>),
    /// Simulate flows that share bottlenecks, packet by packet, in virtual time
    Sim(SimArguments),
    /// Repeat the papers' experiments: run, measure, draw, and score the claims
    Lab(LabArguments),
    /// Show what `run` does, in about two minutes, on an emulated 20 Mbit/s link
    Demo(DemoArguments),
    /// Write manual pages into a directory
    #[command(hide = true)]
    Man {
        /// Where they go
        directory: PathBuf,
    },
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        /// Which
        shell: clap_complete::Shell,
    },
    /// Lowtide's own traffic programs, as the demo uses them
    #[command(hide = true)]
    Traffic(TrafficArguments),
}

/// `lowtide cc`.
#[derive(Debug, Subcommand)]
pub enum CcCommand {
    /// List the laws, which are loaded, and how many sockets use them
    List,
    /// Load laws, each under the name lt_LAW, until Ctrl-C
    #[command(after_help = "\
LAW is a name, or a name with parameters as in scenarios of `lowtide sim`: vegas:alpha=3,beta=5. docs/laws.md has all of them.

  sudo lowtide cc load vegas --pin && iperf3 -C lt_vegas -c server
  sudo ip route change default via 192.0.2.1 congctl lt_vegas")]
    Load {
        /// The laws to load
        #[arg(required = true, value_name = "LAW")]
        laws: Vec<String>,
        /// Their weight (0 < w <= 1): 1/w multiplies the congestion price; default: the law as published
        #[arg(long, value_name = "W", value_parser = weight)]
        weight: Option<f64>,
        /// Keep them loaded after this program ends, until `unload` or the next boot
        #[arg(long)]
        pin: bool,
    },
    /// Unload pinned laws
    Unload {
        /// The laws to unload
        #[arg(required = true, value_name = "LAW")]
        laws: Vec<String>,
        /// Also laws that sockets use; these sockets keep the law until they close
        #[arg(long)]
        force: bool,
    },
    /// Show pinned laws with their parameters and counters
    Show {
        /// The laws to show; default: all
        #[arg(value_name = "LAW")]
        laws: Vec<String>,
    },
}

/// `lowtide trace`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Traces the transfers of `lowtide run` and the laws loaded by `lowtide cc` that exist when it starts.
docs/tracing.md has every field.

  sudo lowtide trace -o run.jsonl --for 30s && lowtide trace plot run.jsonl
  sudo lowtide trace --law vegas --port 443 --format csv"
)]
pub struct TraceArguments {
    /// What to do with a trace
    #[command(subcommand)]
    pub command: Option<TraceCommand>,
    /// Only connections of processes in this cgroup, a directory, and below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Only connections of this process and its descendants
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Only connections with this port on either side
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Only connections under this law
    #[arg(long, value_name = "LAW")]
    pub law: Option<String>,
    /// Write the trace to this file; default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format; default: by FILE's extension, else jsonl
    #[arg(long, value_enum)]
    pub format: Option<TraceFormat>,
    /// Stop after this time; default: at Ctrl-C or at the end of all transfers
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Buffer for records that are not yet written, in bytes; records that do not fit are dropped and counted
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = trace_buffer)]
    pub buffer: u32,
}

/// The commands of `lowtide trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Draw windows, round trips and events of a trace in JSON lines
    Plot {
        /// The trace
        file: PathBuf,
        /// Write the picture to this file; default: FILE.svg
        #[arg(short, long, value_name = "OUT.svg")]
        output: Option<PathBuf>,
    },
}

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// A JSON object in each line; the first one describes the fields
    Jsonl,
    /// Comma-separated values; the first line has their names
    Csv,
}

fn trace_buffer(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<BufferSize>().ok().and_then(|size| match size {
        BufferSize::Bytes(bytes @ 1..=0x4000_0000) => u32::try_from(bytes).ok(),
        _ => None,
    });
    bytes.ok_or_else(|| "a buffer is a size up to 1GiB, like 1MiB".to_owned())
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| *weight > 0.0 && *weight <= 1.0);
    weight.ok_or_else(|| "a weight is a number above 0, at most 1".to_owned())
}

/// `lowtide emulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
QUEUE is a name, or a name with parameters, whose defaults are those of its RFC:
  droptail                                     drops packets that do not fit into the buffer
  step:at=3ms                                  marks (ECN) packets that waited longer
  codel:target=5ms,interval=100ms,ecn=on       RFC 8289; ecn=off unless given
  pie:target=15ms,update=15ms,alpha=0.125,beta=1.25,burst=150ms,ecn=on,mark=0.1,derandomise=on
                                               RFC 8033; ecn and derandomise are off unless given
  dualpi2:target=15ms,update=15ms,alpha=0.15,beta=3,coupling=2,threshold=800us,ramp=400us,classic=6.25%
                                               RFC 9332; variant=linux has the defaults of Linux
  fq_codel:flows=1024,quantum=1514,limit=10240,target=5ms,interval=100ms,ecn=on
                                               RFC 8290
  priority, priority:codel:ecn=on              strict priority: packets with the DSCP LE (RFC 8622) or CS1 are served only
                                               when the other queue is empty; the colon is followed by that queue's discipline

  sudo lowtide emulate --rate 20mbit --rtt 40ms --buffer 1bdp --between A,B
  sudo lowtide emulate --rate 20mbit --rtt 40ms --queue fq_codel --schedule 0s:20mbit,10s:5mbit,every:20s --between A,B
  sudo lowtide emulate --schedule mahimahi:cell.up --rtt 20ms --rtt-schedule 0s:20ms,10s:200ms --between A,B

Namespaces, addresses and routes are removed at the end; what a killed emulator left is removed at the next start.")]
pub struct EmulateArguments {
    /// Capacity: 20mbit, 1.5gbit; not needed with a --schedule that repeats, as a mahimahi:FILE does
    #[arg(long, required_unless_present = "schedule")]
    pub rate: Option<Rate>,

    /// Capacity from the second namespace to the first; default: as --rate
    #[arg(long)]
    pub reverse_rate: Option<Rate>,

    /// Base round-trip time, half of it in each direction
    #[arg(long, value_parser = parse_duration)]
    pub rtt: Duration,

    /// Base round-trip time over time: 0s:20ms,10s:200ms,every:20s; where it falls, no packet overtakes an earlier one.
    /// --rtt still sizes the buffer
    #[arg(long, value_name = "SCHEDULE")]
    pub rtt_schedule: Option<DelaySchedule>,

    /// Further addresses of the second namespace, each with this much more base round-trip time: 20ms,60ms
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = parse_duration)]
    pub extra_delay: Vec<Duration>,

    /// Buffer: 1bdp, 64KiB, 67p (packets), 30ms
    #[arg(long, default_value = "1bdp")]
    pub buffer: BufferSize,

    /// Queue discipline, as below: droptail, step, codel, pie, dualpi2, fq_codel or priority
    #[arg(long, default_value = "droptail")]
    pub queue: Discipline,

    /// Capacity over time: 0s:20mbit,10s:5mbit,every:20s (0mbit is an outage), or mahimahi:FILE (a line for each
    /// opportunity to send 1500 bytes, in ms). --rate still sizes the buffer; without it, the mean rate of a schedule
    /// that repeats
    #[arg(long, value_parser = parse_schedule)]
    pub schedule: Option<Schedule>,

    /// The same from the second namespace to the first; default: as --schedule, unless --reverse-rate is given
    #[arg(long, value_name = "SCHEDULE", value_parser = parse_schedule)]
    pub reverse_schedule: Option<Schedule>,

    /// Token bucket of the link: capacity that it saves while idle and then sends at once: 3080B
    #[arg(long, value_name = "SIZE", value_parser = parse_burst, default_value = "0B")]
    pub burst: u64,

    /// Packets lost at random: 0.01 or 1%, or in bursts (Gilbert-Elliott) ge:p=1%,r=30%,good=0,bad=1 (p: to the bad
    /// state, r: back to the good one)
    #[arg(long, default_value = "0")]
    pub loss: LossModel,

    /// Random additional delay without reordering: 2ms (uniform from 0 to 2 ms), 2ms:normal
    #[arg(long, default_value = "0s")]
    pub jitter: Jitter,

    /// Packets that are delayed behind later ones: 1%:5ms (one in a hundred, by 5 ms)
    #[arg(long, value_name = "PART:DELAY")]
    pub reorder: Option<Reordering>,

    /// Policer before the buffer: drop packets above a rate and a burst: 10mbit:15kB
    #[arg(long, value_name = "RATE:SIZE")]
    pub police: Option<Police>,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Names of the two namespaces
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, required = true)]
    pub between: Vec<String>,

    /// Stop after this many seconds; default: at Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

/// `lowtide sim`.
#[derive(Debug, Args)]
#[command(after_help = "\
  lowtide sim scenarios/cubic-and-cdg.toml
  lowtide sim scenarios/cubic-and-cdg.toml --set bottleneck.rate=20mbit --set flow.bg.cc=cdg:g=4 --out result --plot
  lowtide sim scenarios/deadline/d01-fluid-pid.toml --set flow.transfer.eta=0.2

The same scenario, seed and version give the same result on every machine. docs/simulator.md has all keys.")]
pub struct SimArguments {
    /// The scenario, in TOML
    pub scenario: PathBuf,

    /// Write summary.json, scenario.toml, flows.csv, inner.csv and bottlenecks.csv to this directory, which must be
    /// new, empty or an earlier result
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Seed of all random numbers, in place of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Replace a value of the scenario: bottleneck.rate=20mbit, flow.NAME.cc=cubic
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Also write plot.svg: the rates of the flows, the weights of those with a deadline, and the queueing delay
    #[arg(long, requires = "out")]
    pub plot: bool,

    /// Also write packets.pcapng: the packets at the senders, at the receivers, or at both as two interfaces
    #[arg(long, value_enum, value_name = "SIDE", requires = "out", num_args = 0..=1, require_equals = true,
          default_missing_value = "sender")]
    pub pcap: Option<SideArgument>,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `--pcap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SideArgument {
    /// Where data is sent
    Sender,
    /// Where it is received
    Receiver,
    /// Two interfaces
    Both,
}

/// `lowtide demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Write demo.svg to this directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub out: PathBuf,

    /// Seconds of each of the four acts; the last one may take up to 50 % longer
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(10..=300))]
    pub seconds: u64,

    /// Congestion control of the transfer under `run`
    #[arg(long, value_name = "LAW", default_value = "tide")]
    pub cc: String,

    /// Where to run; default: this machine's kernel if possible, else the simulator
    #[arg(long, value_name = "PLACE")]
    pub on: Option<Place>,
}

/// Where an experiment takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// In this machine's kernel, with real programs
    Kernel,
    /// In the simulator
    Sim,
}

/// `lowtide traffic`.
#[derive(Debug, Args)]
pub struct TrafficArguments {
    /// Which end.
    #[command(subcommand)]
    pub end: TrafficEnd,
}

/// The two ends of a bulk transfer.
#[derive(Debug, Subcommand)]
pub enum TrafficEnd {
    /// Accept connections and discard the data, until killed
    Sink {
        /// Address and port to listen at
        #[arg(long)]
        listen: std::net::SocketAddr,
    },
    /// Send zeros
    Send {
        /// Address and port of a sink
        #[arg(long)]
        to: std::net::SocketAddr,
        /// Bytes to send; default: without end
        #[arg(long, value_parser = size::parse)]
        size: Option<u64>,
        /// Stop after this many seconds
        #[arg(long)]
        seconds: Option<f64>,
        /// Congestion control to set
        #[arg(long)]
        cc: Option<String>,
        /// Address to send from
        #[arg(long)]
        from: Option<std::net::IpAddr>,
        /// Priority of the packets on this host
        #[arg(long)]
        priority: Option<u32>,
        /// Discard unsent and unacknowledged data at the end
        #[arg(long)]
        abort: bool,
        /// End when this process, its parent, ends
        #[arg(long, value_name = "PID")]
        parent: Option<u32>,
    },
}

/// What is wrong with a value, in one sentence, if that is what this error is about.
pub fn wrong_value(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    // an option's name stands before the names of its values
    let (option, _) = text(ContextKind::InvalidArg)?.split_once(' ')?;
    Some(format!("{option} {}: {}", text(ContextKind::InvalidValue)?, error.source()?))
}

/// Reads `--deadline`, as of now.
///
/// # Errors
/// One sentence: unreadable, or not in the future.
fn deadline(text: &str) -> Result<When> {
    when::parse(text, &Zoned::now())
}

/// Reads `--schedule`: steps, or `mahimahi:` and the file of a trace.
///
/// # Errors
/// One sentence on what is wrong with the text or, with the line, in the file.
fn parse_schedule(text: &str) -> Result<Schedule> {
    let Some(file) = text.strip_prefix("mahimahi:") else {
        return Ok(text.parse()?);
    };
    let trace = file::read_text(Path::new(file), file::MOST)
        .map_err(|error| anyhow!("cannot read the trace {file}: {error}"))?;
    Ok(Schedule::trace(file, &trace)?)
}

/// Reads `--burst`: a number of bytes.
///
/// # Errors
/// Another unit, or more than 1 GB.
fn parse_burst(text: &str) -> Result<u64> {
    match text.parse() {
        Ok(BufferSize::Bytes(bytes @ 0..=1_000_000_000)) => Ok(bytes),
        _ => bail!("\"{text}\" is not a size up to 1GB; write it like 3080B or 15kB"),
    }
}

#[cfg(test)]
mod tests;
