// SPDX-License-Identifier: MIT OR Apache-2.0
//! `deadline` of a flow of packets, and what belongs to it: `control`, `policy`, `gap` and `group`.

use super::{
    RatioKind, ScenarioError, Source, Steering, Transport,
    model::{model_of, model_under},
    steering::part,
    tree::{Table, whole},
    values::time_or_none,
};
use lowtide_cc::{Actuator, Law};
use lowtide_deadline::{DEFAULT_RATIO_INCREASE_LIMIT, Model, Policy, RatioPolicy, RatioRule};
use lowtide_net::units::format_duration;
use std::time::Duration;

/// When a transfer is due, and what steers it there.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// So long after its start.
    pub after: Duration,
    /// So long after a transfer is complete the next one begins, of the same size and with a deadline of its own;
    /// `None`: there is but one.
    pub gap: Option<Duration>,
    /// The transfers of the same name share one budget, as under `lowtide run --group`.
    pub group: Option<String>,
    /// What steers it.
    pub steering: Steering,
    /// φ, for a law that reacts to another price than the flows beside it; `None`: 1.
    pub ratio: Option<Ratio>,
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

impl Deadline {
    /// A single transfer that is due so long after its start, under the policy of `lowtide run`.
    pub fn new(after: Duration) -> Self {
        Self { after, gap: None, group: None, steering: Steering::default(), ratio: None }
    }

    /// The policy for a flow under this law, which takes its weight by this actuator.
    pub fn policy(&self, law: &Law, actuator: &Actuator) -> Policy {
        let model = model_under(law, actuator);
        Policy { ratio: self.ratio.as_ref().and_then(|ratio| ratio.policy(model)), ..self.steering.policy(model) }
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
    let Some(after) = after(table)? else {
        let keys = ["control", "policy", "gap", "group"];
        keys.into_iter().try_for_each(|key| needs_a_deadline(table, key))?;
        return Ok(None);
    };
    if source.size().is_none() {
        return Err(table.error("deadline", "deadline: it needs a size, like size = \"1GB\""));
    }
    let Transport::Tcp(tcp) = transport else {
        return Err(table.error("deadline", "deadline: it needs TCP; name a law, like cc = \"cdg\""));
    };
    let Some(actuator) = actuator.cloned().or_else(|| tcp.law.default_actuator()) else {
        let law = tcp.law.name();
        return Err(table.error("deadline", format!("deadline: {law} takes no weight to be steered by; cdg does")));
    };
    let gap = table.read("gap", time_or_none)?;
    let group = table.read("group", super::frame::name)?;
    let policy = table.table_or_empty("policy")?;
    let steering = Steering::read(table, &policy)?;
    let ratio = ratio(&policy, &tcp.law, &actuator)?;
    policy.finish()?;
    Ok(Some(Deadline { after, gap, group, steering, ratio }))
}

/// `deadline`: how long after its start a transfer is due.
pub(super) fn after(table: &Table) -> Result<Option<Duration>, ScenarioError> {
    match table.read("deadline", time_or_none)? {
        Some(after) if after.is_zero() => Err(table.error("deadline", "deadline: it has to be after the start")),
        after => Ok(after),
    }
}

/// A key that says nothing where there is no deadline.
pub(super) fn needs_a_deadline(table: &Table, key: &'static str) -> Result<(), ScenarioError> {
    match table.get(key) {
        Some(node) => Err(node.origin.error(format!("{key}: it needs a deadline, like deadline = \"600s\""))),
        None => Ok(()),
    }
}

/// φ is there by default where a law's price is delay alone: beside laws that pay in losses.
fn ratio(table: &Table, law: &Law, actuator: &Actuator) -> Result<Option<Ratio>, ScenarioError> {
    let model = model_under(law, actuator);
    let usual = matches!(model, Some(Model::Vegas { .. })).then_some(RatioKind::Corrected);
    let kind = table.read("price_ratio", RatioKind::read)?.unwrap_or(usual);
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

fn standard(text: &str) -> Result<Law, String> {
    let law: Law = text.parse().map_err(|error: lowtide_cc::LawError| error.to_string())?;
    match model_of(&law).and_then(reduction) {
        Some(_) => Ok(law),
        None => Err(format!("`{text}` is not possible; the ordinary flows have cubic, or reno with beta 0.5")),
    }
}

/// The keys of a deadline, with all their values.
pub(super) fn print(deadline: &Deadline, table: &mut toml::Table) {
    let text = |value: String| toml::Value::String(value);
    table.insert("deadline".into(), text(format_duration(deadline.after)));
    if let Some(gap) = deadline.gap {
        table.insert("gap".into(), text(format_duration(gap)));
    }
    if let Some(group) = &deadline.group {
        table.insert("group".into(), text(group.clone()));
    }
    let mut policy = toml::Table::new();
    deadline.steering.print(table, &mut policy);
    policy.insert("price_ratio".into(), RatioKind::name_of(deadline.ratio.as_ref().map(|ratio| ratio.kind)).into());
    if let Some(ratio) = &deadline.ratio {
        policy.insert("ratio_standard".into(), text(ratio.standard.to_string()));
        policy.insert("ratio_limit".into(), ratio.increase_limit.into());
        policy.insert("ratio_every".into(), i64::from(ratio.every).into());
        policy.insert("ratio_losses".into(), i64::from(ratio.enough_losses).into());
    }
    table.insert("policy".into(), policy.into());
}
