// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run`: its options, and what it ends with.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};

use super::deadline;
use crate::{size, when::When};

/// The exit status of `lowtide run` where it could not do its own part, as `env`, `nohup` and `timeout` have it.
pub const RUN_FAILED: u8 = 125;
/// Where PROGRAM is there but cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// Where there is no PROGRAM of this name.
pub const NOT_FOUND: u8 = 127;
/// Under `--require-governed`, where PROGRAM succeeded but was not governed.
pub const NOT_GOVERNED: u8 = 3;

/// Where `lowtide run` keeps what its jobs sent, unless `--history` names another file.
pub const HISTORY: &str = "/var/lib/lowtide/history.json";

/// The heading of options about laws, weights and networks, which most users do not need.
pub(super) const EXPERT: &str = "Expert options";

/// `lowtide run`.
#[derive(Debug, Args)]
#[command(
    override_usage = "lowtide run [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
    after_help = "\
WHEN is one of these:
  06:00, 6:00, 6am, 6:30pm               the next time that the local clock reads so
  tomorrow 06:00, tomorrow 6am
  2026-11-22 06:00, 2026-11-22T06:00     by the local clock
  2026-11-22T06:00:00Z                   RFC 3339
  +2h30m, 2h, 90s, 1d                    from now, however the clock is set meanwhile
HOURS are by the local clock: 22:00-06:00, 10pm-6am, \"mon-fri 08:00-18:00\"; past
midnight they belong to the day on which they begin.
SIZE is 120GiB, 40MB or a number of bytes; last is what this job sent when it last ran. Options go before PROGRAM; after
--size-of a -- has to follow. Lowtide governs what PROGRAM sends over TCP; with --direction down or both also what PROGRAM
receives, by the receive window that each connection advertises.

With --progress-from PROGRAM's output stays a terminal where it is one that Lowtide shares with its shell. Elsewhere (a
file, a pipe, another terminal) it becomes a pipe, which Lowtide passes on byte by byte as it comes.

Weight: the share of a bottleneck relative to one ordinary TCP flow. Without a deadline it stays at --w-min.

The exit status is PROGRAM's own; 125 if Lowtide failed (also if only its report failed after PROGRAM succeeded), 126 if
PROGRAM cannot be executed, 127 if there is no such program, 3 under --require-governed.

  sudo lowtide run --deadline 06:00 --size-of /srv -- restic backup /srv
  sudo lowtide run rsync -a /srv/ backup:/srv/
  sudo lowtide run --deadline 06:00 --download-size 80GB -- rclone copy remote:media /media"
)]
pub struct RunArguments {
    /// When the transfer has to be finished; without it the transfer stays in the background
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = deadline)]
    pub deadline: Option<When>,

    /// The direction of the data that are governed [default: up; with --download-size both]
    #[arg(long, value_enum)]
    pub direction: Option<DirectionArgument>,

    /// How much PROGRAM will send, or with --direction down receive; required with --deadline, unless --progress-from
    /// says it
    #[arg(long, value_name = "SIZE|last", allow_hyphen_values = true)]
    pub size: Option<SizeArgument>,

    /// How much PROGRAM will receive; the deadline is about that, and what it sends stays in the background
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size::parse,
          conflicts_with_all = ["size", "size_of"])]
    pub download_size: Option<u64>,

    /// Estimate the size from the files under these paths; with --size last, for a job that has not run before
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub size_of: Vec<PathBuf>,

    /// Take what is left to send from PROGRAM's own output, which passes unchanged: of rsync with --info=progress2, of
    /// restic with --json, of rclone with --stats 1s -v. From its first word on that counts in place of a --size
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub progress_from: Option<ProgressFromArgument>,

    /// The job's name: --size last finds its last run by it, and `lowtide status` shows it. Default: its command line,
    /// and for `lowtide status` its program
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Wait for the processes that PROGRAM leaves behind, too, and count what they send
    #[arg(long)]
    pub wait_group: bool,

    /// Exit with status 3 if PROGRAM succeeds, but too little of its traffic was governed
    #[arg(long, conflicts_with = "best_effort")]
    pub require_governed: bool,
    /// With --size-of: count only what is on the same file systems as these paths
    #[arg(long, requires = "size_of")]
    pub one_file_system: bool,

    /// When it may press, and how fast
    #[command(flatten)]
    pub limits: LimitArguments,

    /// The law and its weight
    #[command(flatten)]
    pub law: LawArguments,

    /// Write a report in JSON to this file at the end
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Include PROGRAM's arguments in the report; they may contain secrets
    #[arg(long, requires = "report")]
    pub report_arguments: bool,

    /// File that records how much each job sent, for --size last; none: do not record it
    #[arg(long, value_name = "FILE|none", env = "LOWTIDE_HISTORY", default_value = HISTORY, help_heading = EXPERT)]
    pub history: PathBuf,

    /// Run PROGRAM as this user (name or number); default: the user who called sudo
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// If Lowtide cannot govern here, run PROGRAM ungoverned instead of failing
    #[arg(long)]
    pub best_effort: bool,

    /// What is said
    #[command(flatten)]
    pub tell: TellArguments,

    /// The program; all that follows it is its own
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// When a transfer may press, and how fast.
#[derive(Debug, Args)]
pub struct LimitArguments {
    /// Press only in these hours, in the others take spare capacity alone: 22:00-06:00, or "mon-fri 20:00-24:00";
    /// several times: in any of them
    #[arg(long, value_name = "HOURS")]
    pub window: Vec<String>,

    /// In these hours send no more than this: 08:00-18:00=5mbit; several times: the least of those in force
    #[arg(long, value_name = "HOURS=RATE")]
    pub cap: Vec<String>,

    /// Share one budget with the other transfers of this machine in the group of this name: one presses at a time, the
    /// one that is due first, as hard as all of them together need
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// What all its connections together may send at any time: 20mbit
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<String>,
}

/// The control law, its weight, and what acts on it.
#[derive(Debug, Args)]
pub struct LawArguments {
    /// Congestion control: one of Lowtide's own with its parameters (`lowtide cc list`), or one of the kernel's: cubic,
    /// reno, ... (dctcp and prague need ECN and a receiver with such a law; other connections run reno)
    #[arg(long, value_name = "LAW", default_value = "tide", help_heading = EXPERT)]
    pub cc: String,

    /// How the weight follows a deadline; default: mbc for a law that has a model, else pid
    #[arg(long, value_enum, help_heading = EXPERT)]
    pub control: Option<ControlArgument>,

    /// What the weight acts on; default: native for a law that takes a weight, else phantom
    #[arg(long, value_enum, help_heading = EXPERT)]
    pub actuator: Option<ActuatorArgument>,

    /// The least weight (0 < w <= 1): the lower, the more capacity is left to cross traffic
    #[arg(long, value_name = "W", allow_negative_numbers = true, default_value_t = lowtide_deadline::DEFAULT_W_MIN, help_heading = EXPERT)]
    pub w_min: f64,

    /// The greatest weight: 1 is one ordinary flow; above 1 (--cc cdg with --actuator native) it takes more than a fair
    /// share
    #[arg(long, value_name = "W", allow_negative_numbers = true, default_value_t = lowtide_deadline::DEFAULT_W_MAX, help_heading = EXPERT)]
    pub w_max: f64,

    /// DSCP of the packets sent
    #[arg(long, value_enum, default_value_t = DscpArgument::Le, help_heading = EXPERT)]
    pub dscp: DscpArgument,

    /// Let PROGRAM set the congestion control of its sockets, which are then not governed
    #[arg(long, help_heading = EXPERT)]
    pub allow_own_cc: bool,
}

/// What is said, and how.
#[derive(Debug, Args)]
pub struct TellArguments {
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,

    /// Also report what the congestion control reacted to
    #[arg(long, short)]
    pub verbose: bool,

    /// How progress is shown
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressArgument::Auto)]
    pub progress: ProgressArgument,
}

/// `--size` of `lowtide run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeArgument {
    /// So many bytes
    Bytes(u64),
    /// What the job sent when it last ran
    Last,
}

impl FromStr for SizeArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<SizeArgument> {
        match text {
            "last" => Ok(SizeArgument::Last),
            text => size::parse(text).map(SizeArgument::Bytes),
        }
    }
}

/// `--direction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionArgument {
    /// What PROGRAM sends
    Up,
    /// What it receives; what it sends is not governed
    Down,
    /// Both, each by a law of its own; --size is about what it sends, --download-size about what it receives
    Both,
}

/// `--progress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressArgument {
    /// On a terminal a line that is updated in place, elsewhere a line when the outlook changes
    Auto,
    /// A line when the outlook changes, also on a terminal
    Line,
    /// Only the summary
    Never,
}

/// `--progress-from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressFromArgument {
    /// Standard output of rsync --info=progress2
    Rsync,
    /// Standard output of restic --json
    Restic,
    /// Standard error of rclone --stats 1s -v, also with --use-json-log
    Rclone,
}

/// `--control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ControlArgument {
    /// A PID controller on the rate achieved
    Pid,
    /// A model of the law and the measured congestion price; PID as long as there is no congestion
    Mbc,
}

/// `--actuator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ActuatorArgument {
    /// The law's own weight, if it has one
    Native,
    /// Phantom congestion signals, to which the law reacts as to real ones
    Phantom,
    /// The multiplicative decrease factor; only with Lowtide's own laws
    Beta,
}

/// `--dscp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DscpArgument {
    /// Lower effort, RFC 8622
    Le,
    /// Class selector 1
    Cs1,
    /// As PROGRAM sets it
    None,
}
