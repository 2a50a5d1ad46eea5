// SPDX-License-Identifier: MIT OR Apache-2.0
//! `control` and `policy` of a flow with a deadline: what they say of the weight, whatever it is that has one.

use super::{
    ScenarioError,
    tree::{Table, boolean, unknown},
    values::time_or_none,
};
use lowtide_deadline::{self as deadline, Bounds, Model, Policy};
use lowtide_net::units::format_duration;
use std::time::Duration;

/// What steers a transfer towards its deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steering {
    /// What moves the weight.
    pub control: Control,
    /// T_w for long transfers.
    pub interval: Duration,
    /// The range of weights.
    pub bounds: Bounds,
    /// l_w, in (0, 1].
    pub increase_limit: f64,
    /// Whether l_w is larger for short transfers.
    pub scale_increase_limit: bool,
    /// Whether to aim a little before the deadline.
    pub early_aim: bool,
}

/// What moves the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// `pid`.
    Pid,
    /// `mbc`: model-based, with the model of the flow's law. Without one PID takes over, and the results say so.
    #[default]
    ModelBased,
}

/// Which φ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioKind {
    /// `literal`: the paper's.
    Literal,
    /// `corrected`: φ*, at which the law at w = 1 has the rate of the ordinary one.
    Corrected,
}

/// Their names.
const CONTROLS: [&str; 2] = ["pid", "mbc"];
const RATIOS: [&str; 3] = ["off", "literal", "corrected"];

impl Default for Steering {
    /// As in `lowtide run`.
    fn default() -> Self {
        let usual = Policy::default();
        Self {
            control: Control::default(),
            interval: usual.nominal_interval,
            bounds: usual.bounds,
            increase_limit: usual.increase_limit,
            scale_increase_limit: usual.scale_increase_limit,
            early_aim: usual.early_aim,
        }
    }
}

impl Steering {
    /// Its keys in `policy`.
    pub(super) const KEYS: [&str; 6] =
        ["interval", "w_min", "w_max", "increase_limit", "scale_increase_limit", "early_aim"];

    /// Reads `control` of a flow, and its `policy` but for the ratio of prices.
    pub(super) fn read(flow: &Table, policy: &Table) -> Result<Self, ScenarioError> {
        let usual = Self::default();
        let control = flow.read("control", control)?.unwrap_or_default();
        let interval = policy.read("interval", time_or_none)?.unwrap_or(usual.interval);
        if interval.is_zero() {
            return Err(policy.error("interval", "interval: it has to be above zero"));
        }
        let w_min = policy.read("w_min", part)?.unwrap_or(usual.bounds.min().get());
        let w_max = policy.read("w_max", part)?.unwrap_or(usual.bounds.max().get());
        let bounds = Bounds::new(w_min, w_max).map_err(|error| {
            let key = if policy.peek("w_min").is_some() { "w_min" } else { "w_max" };
            policy.error(key, format!("{key}: {error}"))
        })?;
        Ok(Self {
            control,
            interval,
            bounds,
            increase_limit: policy.read("increase_limit", part)?.unwrap_or(usual.increase_limit),
            scale_increase_limit: policy.read("scale_increase_limit", boolean)?.unwrap_or(usual.scale_increase_limit),
            early_aim: policy.read("early_aim", boolean)?.unwrap_or(usual.early_aim),
        })
    }

    /// The policy, with this model of what is steered.
    pub fn policy(&self, model: Option<Model>) -> Policy {
        Policy {
            bounds: self.bounds,
            increase_limit: self.increase_limit,
            scale_increase_limit: self.scale_increase_limit,
            nominal_interval: self.interval,
            early_aim: self.early_aim,
            control: match self.control {
                Control::Pid => deadline::Control::Pid,
                Control::ModelBased => deadline::Control::ModelBased(model),
            },
            ..Policy::default()
        }
    }

    /// The keys, with all their values.
    pub(super) fn print(&self, flow: &mut toml::Table, policy: &mut toml::Table) {
        flow.insert("control".into(), self.control.name().into());
        policy.insert("interval".into(), format_duration(self.interval).into());
        policy.insert("w_min".into(), self.bounds.min().get().into());
        policy.insert("w_max".into(), self.bounds.max().get().into());
        policy.insert("increase_limit".into(), self.increase_limit.into());
        policy.insert("scale_increase_limit".into(), self.scale_increase_limit.into());
        policy.insert("early_aim".into(), self.early_aim.into());
    }
}

impl Control {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pid => CONTROLS[0],
            Self::ModelBased => CONTROLS[1],
        }
    }
}

impl RatioKind {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Literal => RATIOS[1],
            Self::Corrected => RATIOS[2],
        }
    }

    /// `price_ratio` as it is written; `None`: `off`.
    pub(super) fn name_of(kind: Option<Self>) -> &'static str {
        kind.map_or(RATIOS[0], Self::name)
    }

    /// Reads `price_ratio`.
    pub(super) fn read(text: &str) -> Result<Option<Self>, String> {
        let kinds = [None, Some(Self::Literal), Some(Self::Corrected)];
        let known = kinds.into_iter().find(|kind| Self::name_of(*kind) == text);
        known.ok_or_else(|| unknown("ratio of prices", text, &RATIOS))
    }
}

fn control(text: &str) -> Result<Control, String> {
    let known = [Control::Pid, Control::ModelBased];
    known.into_iter().find(|it| it.name() == text).ok_or_else(|| unknown("control", text, &CONTROLS))
}

/// A number above 0 and at most 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number <= 1.0);
    number.ok_or_else(|| format!("\"{text}\" is not a number above 0 and at most 1"))
}
