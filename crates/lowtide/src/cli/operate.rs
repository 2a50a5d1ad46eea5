// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide status`, `set`, `pause`, `resume`, `detach` and `history`: their options.

use std::path::PathBuf;

use clap::Args;

use super::HISTORY;

/// `lowtide status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each transfer has a name: that of --name, or its program's, with a number where that is taken. docs/control-socket.md has every field of --json.

  sudo lowtide status
  sudo lowtide status nightly --watch
  sudo lowtide status --openmetrics > /var/lib/prometheus/node-exporter/lowtide.prom")]
pub struct StatusArguments {
    /// Which transfer; all of them unless given
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print metrics for Prometheus
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub openmetrics: bool,
    /// Again each second, until Ctrl-C; with --json a line each
    #[arg(long)]
    pub watch: bool,
}

/// `lowtide set`.
#[derive(Debug, Args)]
#[command(after_help = "\
WHEN and SIZE are as for `lowtide run`; RATE is 20mbit, 1.5gbit or 800kbit. What is not given stays as it is.

  sudo lowtide set nightly --deadline +2h
  sudo lowtide set nightly --remaining 12GB
  sudo lowtide set nightly --max-rate 20mbit && sudo lowtide set nightly --max-rate none")]
pub struct SetArguments {
    /// Which transfer
    #[arg(value_name = "NAME")]
    pub name: String,
    /// When it has to be finished, from now on; none: in the background for ever
    #[arg(long, value_name = "WHEN|none", allow_hyphen_values = true)]
    pub deadline: Option<String>,
    /// How much it sends in all
    #[arg(long, value_name = "SIZE", conflicts_with = "remaining")]
    pub size: Option<String>,
    /// How much it still has to send
    #[arg(long, value_name = "SIZE")]
    pub remaining: Option<String>,
    /// What all its connections together may send
    #[arg(long, value_name = "RATE|none")]
    pub max_rate: Option<String>,
    /// What it aims for at least, deadline or not, as far as the greatest weight allows
    #[arg(long, value_name = "RATE|none")]
    pub min_rate: Option<String>,
    /// The greatest price weight: 1 is an ordinary flow
    #[arg(long, value_name = "W")]
    pub w_max: Option<f64>,
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
