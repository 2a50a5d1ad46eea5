// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run`: its options, and what it ends with.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

/// The exit status of `lowtide run` where it could not do its own part, as `env`, `nohup` and `timeout` have it.
pub const RUN_FAILED: u8 = 125;
/// Where PROGRAM is there but cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// Where there is no PROGRAM of this name.
pub const NOT_FOUND: u8 = 127;
/// Under `--require-governed`, where PROGRAM succeeded but was not governed.
pub const NOT_GOVERNED: u8 = 3;

/// Where `lowtide run` keeps what its jobs sent, unless told.
pub const HISTORY: &str = "/var/lib/lowtide/history.json";

/// The heading of what nobody needs who has no law, weight or network in mind.
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
HOURS are by the local clock: 22:00-06:00, 10pm-6am, \"mon-fri 08:00-18:00\"; past midnight they belong to the day on which they begin.
SIZE is 120GiB, 40MB or a number of bytes; or last: as much as this job sent when it last ran. Options go before PROGRAM; a -- between them is needed
after --size-of. Lowtide governs what PROGRAM sends over TCP; with --direction down what it receives, by the windows that it offers to any server.

The exit status is PROGRAM's own; 125 if Lowtide failed (or, after PROGRAM's 0, only its report), 126 if PROGRAM cannot be executed, 127 if there is
none of this name; 3 under --require-governed.

  sudo lowtide run --deadline 06:00 --size-of /srv -- restic backup /srv
  sudo lowtide run rsync -a /srv/ backup:/srv/
  sudo lowtide run --direction down --deadline 06:00 --size 80GB -- rclone copy remote:media /media"
)]
pub struct RunArguments {
    /// When the transfer has to be finished; without it, background for ever
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub deadline: Option<String>,

    /// Which way the data go that are governed, and that --size and --deadline are about
    #[arg(long, value_enum, default_value_t = DirectionArgument::Up)]
    pub direction: DirectionArgument,

    /// How much PROGRAM will send, or receive with --direction down; a deadline needs it
    #[arg(long, value_name = "SIZE|last", allow_hyphen_values = true)]
    pub size: Option<String>,

    /// Take the size from the files under these paths; with --size last for a job that has not run before
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub size_of: Vec<PathBuf>,

    /// The job's name, by which --size last finds its last run, and `lowtide status` the transfer; else its command line, and its program, are the name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Wait until the processes that PROGRAM leaves behind have ended, too, and count what they send
    #[arg(long)]
    pub wait_group: bool,

    /// End with status 3 if PROGRAM succeeds, but nothing or too little of what it sent was governed
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

    /// Have PROGRAM's arguments in the report, too; they may hold secrets
    #[arg(long, requires = "report")]
    pub report_arguments: bool,

    /// Keep in this file how much each job sent, for --size last; none: do not keep it
    #[arg(long, value_name = "FILE|none", env = "LOWTIDE_HISTORY", default_value = HISTORY, help_heading = EXPERT)]
    pub history: PathBuf,

    /// Run PROGRAM as this user (a name or number); under sudo the default is the one who called it
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Run PROGRAM even where nothing can be governed, as an ordinary program
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
    /// Press only in these hours, in the others take spare capacity alone: 22:00-06:00, or "mon-fri 20:00-24:00"; several times: in any of them
    #[arg(long, value_name = "HOURS")]
    pub window: Vec<String>,

    /// In these hours send no more than this: 08:00-18:00=5mbit; several times: the least of those in force
    #[arg(long, value_name = "HOURS=RATE")]
    pub cap: Vec<String>,

    /// Share one budget with the other transfers of this machine in the group of this name: one presses at a time, the one that is due first, as hard as
    /// all of them together need
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,

    /// What all its connections together may send at any time: 20mbit
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<String>,
}

/// The control law, its weight, and what acts on it.
#[derive(Debug, Args)]
pub struct LawArguments {
    /// Control law: one of Lowtide's own, which `lowtide cc list` lists, with its parameters, or one that the kernel has: cubic, reno, ...
    /// (dctcp and prague need ECN, and a receiver under such a law; connections to others run reno)
    #[arg(long, value_name = "LAW", default_value = "tide", help_heading = EXPERT)]
    pub cc: String,

    /// What moves the price weight towards a deadline; mbc where the law has a model, else pid, unless given
    #[arg(long, value_enum, help_heading = EXPERT)]
    pub control: Option<ControlArgument>,

    /// What the price weight acts on; native where the law has a weight, else phantom, unless given
    #[arg(long, value_enum, help_heading = EXPERT)]
    pub actuator: Option<ActuatorArgument>,

    /// The least price weight: how submissive the transfer may be (0 < w <= 1)
    #[arg(long, value_name = "W", allow_negative_numbers = true, default_value_t = lowtide_deadline::DEFAULT_W_MIN, help_heading = EXPERT)]
    pub w_min: f64,

    /// The greatest price weight: 1 is an ordinary flow; above 1 (with --cc cdg, --actuator native) it takes more than its share from everybody else
    #[arg(long, value_name = "W", allow_negative_numbers = true, default_value_t = lowtide_deadline::DEFAULT_W_MAX, help_heading = EXPERT)]
    pub w_max: f64,

    /// Code point of the packets sent
    #[arg(long, value_enum, default_value_t = DscpArgument::Le, help_heading = EXPERT)]
    pub dscp: DscpArgument,

    /// Let PROGRAM choose a control law of its own for its sockets, which are then not governed
    #[arg(long, help_heading = EXPERT)]
    pub allow_own_cc: bool,
}

/// What is said, and how.
#[derive(Debug, Args)]
pub struct TellArguments {
    /// Say nothing but errors
    #[arg(long, short)]
    pub quiet: bool,

    /// Tell what the control law went by, too
    #[arg(long, short)]
    pub verbose: bool,

    /// How the progress is shown
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressArgument::Auto)]
    pub progress: ProgressArgument,
}

/// `--direction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionArgument {
    /// What PROGRAM sends
    Up,
    /// What it receives; what it sends is left alone
    Down,
    /// Both; --size and --deadline are about what it sends, and what it receives is in the background
    Both,
}

/// `--progress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressArgument {
    /// A line that changes in place on a terminal, elsewhere a line when the outlook changes
    Auto,
    /// A line when the outlook changes, on a terminal, too
    Line,
    /// Only the summary
    Never,
}

/// `--control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ControlArgument {
    /// The rate achieved, by a PID controller
    Pid,
    /// A model of the control law and the price of congestion as measured; PID where there has been no congestion
    Mbc,
}

/// `--actuator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ActuatorArgument {
    /// The law's own weight, where it has one
    Native,
    /// Phantom congestion signals, which any law takes for real ones
    Phantom,
    /// What the law keeps of its window at a reduction, scaled; with Lowtide's own laws only
    Beta,
}

/// `--dscp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DscpArgument {
    /// Lower effort, RFC 8622
    Le,
    /// Class selector 1
    Cs1,
    /// Leave it to PROGRAM
    None,
}
