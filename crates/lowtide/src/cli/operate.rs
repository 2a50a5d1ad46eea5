// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide status`, `set`, `pause`, `resume`, `detach` and `history`: their options.

use std::{path::PathBuf, str::FromStr};

use clap::{ArgGroup, Args};

use super::{HISTORY, LawArguments, LimitArguments, TellArguments, deadline};
use crate::{size, when::When};

/// `lowtide status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each transfer has a name: that of --name, or its program's, with a number where that is taken. docs/control-socket.md has every field of --json.

  sudo lowtide status
  sudo lowtide status nightly --watch
  sudo lowtide status --prometheus > /var/lib/prometheus/node-exporter/lowtide.prom")]
pub struct StatusArguments {
    /// Which transfer; all of them unless given
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print metrics in the format of OpenMetrics
    #[arg(long, conflicts_with_all = ["json", "watch", "prometheus"])]
    pub openmetrics: bool,
    /// Print metrics in the text format of Prometheus, for node_exporter's textfile collector
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub prometheus: bool,
    /// Again each second, until Ctrl-C; with --json a line each
    #[arg(long)]
    pub watch: bool,
}

/// `lowtide attach`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("target").required(true).args(["unit", "cgroup", "pid", "container"]),
    after_help = "\
Open connections get the law at once, without being interrupted, and new ones as they begin; --port and --to choose some of them. It ends with the
group's last process, at Ctrl-C, or by `lowtide detach NAME`: the connections then have their former law back. WHEN and SIZE are as for `lowtide run`;
SIZE is what is left to send from now on.

  sudo lowtide attach --unit syncthing
  sudo lowtide attach --pid 4711 --port 5432 --to 192.0.2.0/24 --deadline 06:00 --size 80GB"
)]
pub struct AttachArguments {
    /// A unit of systemd's: postgresql, or backup.service
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// A group, a directory of cgroup v2
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// The group that this process is in, with all that is in it
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// A container of Docker's, Podman's or containerd's, by its name or number
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Only connections with this port on either side
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Only connections with this network: 192.0.2.0/24, or an address
    #[arg(long, value_name = "NETWORK")]
    pub to: Option<String>,
    /// When the transfer has to be finished; without it, background for ever
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = deadline, requires = "size")]
    pub deadline: Option<When>,
    /// How much is left to send
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub size: Option<u64>,
    /// The transfer's name; that of what is attached to unless given
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// When it may press, and how fast
    #[command(flatten)]
    pub limits: LimitArguments,
    /// The law and its weight
    #[command(flatten)]
    pub law: LawArguments,
    /// Keep in a file beside this one what ran; none: do not keep it
    #[arg(long, value_name = "FILE|none", env = "LOWTIDE_HISTORY", default_value = HISTORY, help_heading = super::run::EXPERT)]
    pub history: PathBuf,
    /// Write a report in JSON to this file at the end
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// What is said
    #[command(flatten)]
    pub tell: TellArguments,
}

/// `lowtide set`.
#[derive(Debug, Args)]
#[command(after_help = "\
WHEN, SIZE and HOURS are as for `lowtide run`; RATE is 20mbit, 1.5gbit or 800kbit. What is not given stays as it is.

  sudo lowtide set nightly --deadline +2h
  sudo lowtide set nightly --remaining 12GB
  sudo lowtide set nightly --max-rate 20mbit && sudo lowtide set nightly --max-rate none
  sudo lowtide set nightly --window 22:00-06:00 --cap \"mon-fri 08:00-18:00=5mbit\"")]
pub struct SetArguments {
    /// Which transfer
    #[arg(value_name = "NAME")]
    pub name: String,
    /// When it has to be finished, from now on; none: in the background for ever
    #[arg(long, value_name = "WHEN|none", allow_hyphen_values = true)]
    pub deadline: Option<DeadlineArgument>,
    /// How much it sends in all
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with = "remaining")]
    pub size: Option<u64>,
    /// How much it still has to send
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub remaining: Option<u64>,
    /// What all its connections together may send
    #[arg(long, value_name = "RATE|none")]
    pub max_rate: Option<String>,
    /// What it aims for at least, deadline or not, as far as the greatest weight allows
    #[arg(long, value_name = "RATE|none")]
    pub min_rate: Option<String>,
    /// The greatest weight: 1 is an ordinary flow
    #[arg(long, value_name = "W")]
    pub w_max: Option<f64>,
    /// Press only in these hours, in place of the former ones; none: at any time
    #[arg(long, value_name = "HOURS|none")]
    pub window: Vec<String>,
    /// In these hours send no more than this, in place of the former caps; none: no cap
    #[arg(long, value_name = "HOURS=RATE|none")]
    pub cap: Vec<String>,
}

/// `--deadline` of `lowtide set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineArgument {
    /// A new one
    When(When),
    /// No deadline any more
    None,
}

impl FromStr for DeadlineArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<DeadlineArgument> {
        match text {
            "none" => Ok(DeadlineArgument::None),
            text => deadline(text).map(DeadlineArgument::When),
        }
    }
}

/// `lowtide pause`, `resume` and `detach`.
#[derive(Debug, Args)]
pub struct NameArguments {
    /// Which transfer
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `lowtide history`.
#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// Runs of this name; all of them unless given
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The file that `run --history` named
    #[arg(long, value_name = "FILE", env = "LOWTIDE_HISTORY", default_value = HISTORY)]
    pub history: PathBuf,
}
