// SPDX-License-Identifier: MIT OR Apache-2.0
//! `deadline` of a flow, and what steers it there: `control`, `policy` and `gap`.

use super::{
    ScenarioError, Source, Transport,
    model::{model_of, model_under},
    source::time_or_none,
    tree::{Table, boolean, unknown, whole},
};
use lowtide_cc::{Actuator, Law};
use lowtide_deadline::{
    Bounds, Control as Steering, DEFAULT_RATIO_INCREASE_LIMIT, Model, Policy, RatioPolicy, RatioRule,
};
use lowtide_net::units::format_duration;
use std::time::Duration;

/// When a transfer is due, and what steers it there.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// So long after its start.
    pub after: Duration,
    /// So long after a transfer is complete the next one begins, of the same size and with a deadline of its own; `None`:
    /// there is but one.
    pub gap: Option<Duration>,
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
    /// φ, for a law that reacts to another price than the flows beside it; `None`: 1.
    pub ratio: Option<Ratio>,
}

/// What moves the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// `pid`.
    #[default]
    Pid,
    /// `mbc`: model-based, with the model of the flow's law. Without one PID takes over, and the results say so.
    ModelBased,
}

/// How φ is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// The rule.
    pub kind: RatioKind,
    /// The law of the ordinary flows: CUBIC or Reno.
    pub standard: Law,
    /// l_φ, in (0, 1].
    pub increase_limit: f64,
    /// T_φ in update intervals, above 0.
    pub every: u32,
    /// With fewer loss events than this another T_φ is waited for.
    pub enough_losses: u32,
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

impl Deadline {
    /// A single transfer that is due so long after its start, under the policy of `lowtide run`.
    pub fn new(after: Duration) -> Self {
        let usual = Policy::default();
        Self {
            after,
            gap: None,
            control: Control::Pid,
            interval: usual.nominal_interval,
            bounds: usual.bounds,
            increase_limit: usual.increase_limit,
            scale_increase_limit: usual.scale_increase_limit,
            early_aim: usual.early_aim,
            ratio: None,
        }
    }

    /// The policy for a flow under this law, which takes its weight by this actuator.
    pub fn policy(&self, law: &Law, actuator: &Actuator) -> Policy {
        let model = model_under(law, actuator);
        Policy {
            bounds: self.bounds,
            increase_limit: self.increase_limit,
            scale_increase_limit: self.scale_increase_limit,
            nominal_interval: self.interval,
            early_aim: self.early_aim,
            control: match self.control {
                Control::Pid => Steering::Pid,
                Control::ModelBased => Steering::ModelBased(model),
            },
            ratio: self.ratio.as_ref().and_then(|ratio| ratio.policy(model)),
            ..Policy::default()
        }
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

impl Ratio {
    /// φ towards CUBIC of RFC 9438, with the paper's l_φ.
    fn new(kind: RatioKind) -> Self {
        let usual = RatioPolicy::new(RatioRule::Literal { standard_reduction: 1.0 });
        Self {
            kind,
            standard: Law::Cubic(Default::default()),
            increase_limit: DEFAULT_RATIO_INCREASE_LIMIT,
            every: usual.every,
            enough_losses: usual.enough_losses as u32,
        }
    }

    /// `None` where a rule needs a model that there is not.
    fn policy(&self, own: Option<Model>) -> Option<RatioPolicy> {
        let standard = model_of(&self.standard)?;
        let rule = match self.kind {
            RatioKind::Literal => RatioRule::Literal { standard_reduction: reduction(standard)? },
            RatioKind::Corrected => RatioRule::Corrected { own: own?, standard },
        };
        let &Self { every, enough_losses, increase_limit, .. } = self;
        Some(RatioPolicy { rule, every, enough_losses: f64::from(enough_losses), increase_limit })
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
}

/// The part of its window that an ordinary flow takes off at a loss.
fn reduction(standard: Model) -> Option<f64> {
    match standard {
        Model::Reno => Some(0.5),
        Model::Cubic(cubic) => Some(1.0 - cubic.kept),
        _ => None,
    }
}

/// Reads what belongs to a deadline; only a transfer of known size has one, under a law that can be steered.
pub(super) fn read(
    table: &Table,
    source: &Source,
    transport: &Transport,
    actuator: Option<&Actuator>,
) -> Result<Option<Deadline>, ScenarioError> {
    let Some(after) = table.read("deadline", time_or_none)? else {
        for key in ["control", "policy", "gap"] {
            if table.get(key).is_some() {
                return Err(table.error(key, format!("{key}: it needs a deadline, like deadline = \"600s\"")));
            }
        }
        return Ok(None);
    };
    if after.is_zero() {
        return Err(table.error("deadline", "deadline: it has to be after the start"));
    }
    if !matches!(source, Source::Sized(_)) {
        return Err(table.error("deadline", "deadline: it needs a size, like size = \"1GB\""));
    }
    let Transport::Tcp(tcp) = transport else {
        return Err(table.error("deadline", "deadline: it needs TCP; name a law, like cc = \"cdg\""));
    };
    let Some(actuator) = actuator.cloned().or_else(|| tcp.law.default_actuator()) else {
        let law = tcp.law.name();
        return Err(table.error("deadline", format!("deadline: {law} takes no weight to be steered by; cdg does")));
    };
    let control = table.read("control", control)?.unwrap_or_default();
    let gap = table.read("gap", time_or_none)?;
    let empty = Table::empty(table.origin.clone());
    let own = table.get("policy").map_or(Ok(&empty), |node| node.table("policy"))?;
    let usual = Deadline { gap, control, ..Deadline::new(after) };
    let deadline = policy(own, &tcp.law, &actuator, usual)?;
    own.finish()?;
    Ok(Some(deadline))
}

fn policy(table: &Table, law: &Law, actuator: &Actuator, usual: Deadline) -> Result<Deadline, ScenarioError> {
    let interval = table.read("interval", time_or_none)?.unwrap_or(usual.interval);
    if interval.is_zero() {
        return Err(table.error("interval", "interval: it has to be above zero"));
    }
    let w_min = table.read("w_min", part)?.unwrap_or(usual.bounds.min().get());
    let w_max = table.read("w_max", part)?.unwrap_or(usual.bounds.max().get());
    let bounds = Bounds::new(w_min, w_max).map_err(|error| {
        let key = if table.peek("w_min").is_some() { "w_min" } else { "w_max" };
        table.error(key, format!("{key}: {error}"))
    })?;
    Ok(Deadline {
        interval,
        bounds,
        increase_limit: table.read("increase_limit", part)?.unwrap_or(usual.increase_limit),
        scale_increase_limit: table.read("scale_increase_limit", boolean)?.unwrap_or(usual.scale_increase_limit),
        early_aim: table.read("early_aim", boolean)?.unwrap_or(usual.early_aim),
        ratio: ratio(table, law, actuator)?,
        ..usual
    })
}

/// φ is there by default where a law's price is delay alone: beside laws that pay in losses.
fn ratio(table: &Table, law: &Law, actuator: &Actuator) -> Result<Option<Ratio>, ScenarioError> {
    let model = model_under(law, actuator);
    let usual = matches!(model, Some(Model::Vegas { .. })).then_some(RatioKind::Corrected);
    let kind = table.read("price_ratio", ratio_kind)?.unwrap_or(usual);
    if kind == Some(RatioKind::Corrected) && model.is_none() {
        let name = law.name();
        let what = format!(
            "price_ratio: there is no model of {name} by `{}` to correct with; take literal or off",
            actuator.name()
        );
        return Err(table.error("price_ratio", what));
    }
    let usual = Ratio::new(kind.unwrap_or(RatioKind::Literal));
    let ratio = Ratio {
        standard: table.read("ratio_standard", standard)?.unwrap_or(usual.standard),
        increase_limit: table.read("ratio_limit", part)?.unwrap_or(usual.increase_limit),
        every: table.read("ratio_every", whole(1..=1_000_000))?.map_or(usual.every, |number| number as u32),
        enough_losses: table.read("ratio_losses", whole(0..=1_000_000))?.map_or(usual.enough_losses, |n| n as u32),
        ..usual
    };
    Ok(kind.map(|_| ratio))
}

fn control(text: &str) -> Result<Control, String> {
    let known = [Control::Pid, Control::ModelBased];
    known.into_iter().find(|it| it.name() == text).ok_or_else(|| unknown("control", text, &CONTROLS))
}

fn ratio_kind(text: &str) -> Result<Option<RatioKind>, String> {
    let known = [RatioKind::Literal, RatioKind::Corrected];
    match known.into_iter().find(|it| it.name() == text) {
        None if text == RATIOS[0] => Ok(None),
        None => Err(unknown("ratio of prices", text, &RATIOS)),
        kind => Ok(kind),
    }
}

fn standard(text: &str) -> Result<Law, String> {
    let law: Law = text.parse().map_err(|error: lowtide_cc::LawError| error.to_string())?;
    match model_of(&law).and_then(reduction) {
        Some(_) => Ok(law),
        None => Err(format!("`{text}` is not possible; the ordinary flows have cubic, or reno with beta 0.5")),
    }
}

/// A number above 0 and at most 1.
fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number <= 1.0);
    number.ok_or_else(|| format!("\"{text}\" is not a number above 0 and at most 1"))
}

/// The keys of a deadline, with all their values.
pub(super) fn print(deadline: &Deadline, table: &mut toml::Table) {
    let text = |value: String| toml::Value::String(value);
    table.insert("deadline".into(), text(format_duration(deadline.after)));
    table.insert("control".into(), text(deadline.control.name().into()));
    if let Some(gap) = deadline.gap {
        table.insert("gap".into(), text(format_duration(gap)));
    }
    let mut policy = toml::Table::new();
    policy.insert("interval".into(), text(format_duration(deadline.interval)));
    policy.insert("w_min".into(), deadline.bounds.min().get().into());
    policy.insert("w_max".into(), deadline.bounds.max().get().into());
    policy.insert("increase_limit".into(), deadline.increase_limit.into());
    policy.insert("scale_increase_limit".into(), deadline.scale_increase_limit.into());
    policy.insert("early_aim".into(), deadline.early_aim.into());
    let kind = deadline.ratio.as_ref().map_or(RATIOS[0], |ratio| ratio.kind.name());
    policy.insert("price_ratio".into(), text(kind.into()));
    if let Some(ratio) = &deadline.ratio {
        policy.insert("ratio_standard".into(), text(ratio.standard.to_string()));
        policy.insert("ratio_limit".into(), ratio.increase_limit.into());
        policy.insert("ratio_every".into(), i64::from(ratio.every).into());
        policy.insert("ratio_losses".into(), i64::from(ratio.enough_losses).into());
    }
    table.insert("policy".into(), policy.into());
}
