// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--control` and `--actuator`: how the weight moves and what it acts on.

use anyhow::{Context, Result, anyhow, bail};
use lowtide_deadline::{Basis, Bounds, Control, Cubic, FallbackReason, Model, Policy, RatioPolicy, RatioRule};
use lowtide_kernel::{Direction, Dscp, KernelActuator, KernelLaw, Setup};

use crate::cli::{ActuatorArgument, ControlArgument, DirectionArgument, DscpArgument, LawArguments, RunArguments};

/// What is fixed for the life of a transfer.
pub(super) fn setup(arguments: &LawArguments, law: KernelLaw, direction: Direction) -> Result<Setup> {
    let actuator = actuator(arguments, &law)?;
    let dscp = match arguments.dscp {
        DscpArgument::Le => Dscp::Le,
        DscpArgument::Cs1 => Dscp::Cs1,
        DscpArgument::None => Dscp::None,
    };
    Ok(Setup { actuator, dscp, keep_law: !arguments.allow_own_cc, ..Setup::new(direction, law) })
}

/// The law asked for.
pub(super) fn law(arguments: &LawArguments) -> Result<KernelLaw> {
    KernelLaw::parse(&arguments.cc).context("--cc")
}

/// The actuator asked for, or the law's usual one.
fn actuator(arguments: &LawArguments, law: &KernelLaw) -> Result<KernelActuator> {
    let actuator = match arguments.actuator {
        None => KernelActuator::usual(law),
        Some(ActuatorArgument::Native) => KernelActuator::Native,
        Some(ActuatorArgument::Phantom) => KernelActuator::Phantom,
        Some(ActuatorArgument::Beta) => KernelActuator::Beta,
    };
    actuator.check(law).with_context(|| format!("--actuator {}", actuator.name()))?;
    Ok(actuator)
}

/// The direction asked for, which the law has to govern.
pub(super) fn direction(arguments: &RunArguments, law: &KernelLaw) -> Result<Direction> {
    let able = law.governs_downloads();
    let direction = match arguments.direction {
        None if arguments.download_size.is_some() => Direction::Both,
        None | Some(DirectionArgument::Up) => Direction::Up,
        Some(DirectionArgument::Down) => Direction::Down,
        Some(DirectionArgument::Both) => Direction::Both,
    };
    if direction.has_down() && !able {
        bail!(
            "--{}: --cc {} governs only what is sent; leave --cc out, as tide governs what is received, too",
            if arguments.direction.is_some() {
                format!("direction {}", direction.name())
            } else {
                "download-size".into()
            },
            law.name()
        );
    }
    if !direction.has_down() && arguments.download_size.is_some() {
        bail!(
            "--download-size is about what is received, and --direction up governs only what is sent; give --direction both"
        );
    }
    if direction == Direction::Down && !arguments.size_of.is_empty() {
        bail!(
            "--direction down: --size-of counts files that are here already; say with --size how much is to be received"
        );
    }
    Ok(direction)
}

/// Whether a law at the receiver can do what is asked: it takes a weight itself, or there is nothing to press for.
pub(super) fn check_that_it_can_press(arguments: &RunArguments, law: &KernelLaw, about: Direction) -> Result<()> {
    if about == Direction::Down && arguments.deadline.is_some() && !law.takes_weight() {
        bail!(
            "--deadline: --cc {} knows no weight, which is how a deadline presses for what is received; leave --cc out, or take cdg, vegas or eclipse",
            law.name()
        );
    }
    Ok(())
}

/// The way that size and deadline are about; both, where there is neither.
pub(super) fn about(arguments: &RunArguments, direction: Direction) -> Direction {
    match direction {
        Direction::Both if arguments.download_size.is_some() => Direction::Down,
        Direction::Both if arguments.size.is_some() || !arguments.size_of.is_empty() => Direction::Up,
        one => one,
    }
}

/// The policy that the command line asks for.
pub(super) fn policy(arguments: &LawArguments, setup: &Setup, about: Direction) -> Result<Policy> {
    let (law, actuator) = (&setup.law, setup.actuator);
    let model = model(law, actuator, about);
    let bounds = Bounds::new(arguments.w_min, arguments.w_max).map_err(|error| anyhow!("--w-min, --w-max: {error}"))?;
    check_w_max(arguments.w_max, law, actuator)?;
    if arguments.w_max > 1.0 {
        eprintln!(
            "lowtide: --w-max {}: pressed by its deadline this transfer takes more than one ordinary flow, at the expense of everybody on its path",
            arguments.w_max
        );
    }
    Ok(Policy {
        bounds,
        alpha: law.exponent(None, None),
        response_round_trips: law.response_round_trips(),
        control: control(arguments.control, model, (law, actuator, about))?,
        ratio: ratio(model),
        ..Policy::default()
    })
}

/// Whether a weight above 1 means anything under this law and actuator.
pub(super) fn check_w_max(w_max: f64, law: &KernelLaw, actuator: KernelActuator) -> Result<()> {
    if w_max > 1.0 && !(actuator == KernelActuator::Native && law.has_one_window()) {
        bail!(
            "--w-max above 1 needs --cc cdg with --actuator native; --actuator {} can only make --cc {} weaker",
            actuator.name(),
            law.name()
        );
    }
    Ok(())
}

/// What a weight means under this law; of what is received there is no model, as the prices are those of its sender.
fn model(law: &KernelLaw, actuator: KernelActuator, about: Direction) -> Option<Model> {
    actuator.model(law).filter(|_| about != Direction::Down)
}

/// The control asked for; else the one that meets more deadlines: docs/results/deadline-matrix.md.
fn control(
    wanted: Option<ControlArgument>,
    model: Option<Model>,
    (law, actuator, about): (&KernelLaw, KernelActuator, Direction),
) -> Result<Control> {
    match (wanted, model) {
        (Some(ControlArgument::Pid), _) | (None, None) => Ok(Control::Pid),
        (_, Some(model)) => Ok(Control::ModelBased(Some(model))),
        (Some(ControlArgument::Mbc), None) if about == Direction::Down => {
            bail!("--control mbc: there is no model of what is received; take --control pid")
        }
        (Some(ControlArgument::Mbc), None) => bail!(
            "--control mbc: there is no model of --cc {} under --actuator {}; take --control pid, or --cc cdg, cubic or reno with their default actuator",
            law.name(),
            actuator.name()
        ),
    }
}

/// Where a law's price is delay alone, the others on the path pay theirs in losses, and one weight does not mean the
/// same to both.
fn ratio(model: Option<Model>) -> Option<RatioPolicy> {
    let own = model.filter(|model| matches!(model, Model::Vegas { .. }))?;
    Some(RatioPolicy::new(RatioRule::Corrected { own, standard: Model::Cubic(Cubic::RFC_9438) }))
}

/// The control's name in the report.
pub(super) fn name(control: Control) -> &'static str {
    match control {
        Control::Pid => "pid",
        Control::ModelBased(_) => "mbc",
    }
}

/// What a weight rests on, as the report names it.
pub(super) fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Feedback => "feedback",
        Basis::Model => "model",
        Basis::Fallback(FallbackReason::NoModel) => "no_model",
        Basis::Fallback(FallbackReason::NoPrice) => "no_price",
        Basis::Fallback(FallbackReason::NoRoundTripTime) => "no_rtt",
    }
}

/// The same in the live line; nothing where nothing else was asked for.
pub(super) fn remark(basis: Basis) -> &'static str {
    match basis {
        Basis::Feedback => "",
        Basis::Model => " by model",
        Basis::Fallback(FallbackReason::NoModel) => " by feedback: no model",
        Basis::Fallback(FallbackReason::NoPrice) => " by feedback: no price",
        Basis::Fallback(FallbackReason::NoRoundTripTime) => " by feedback: no RTT sample",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_based_unless_there_is_no_model_or_pid_is_asked_for() {
        let cubic = KernelLaw::Kernel("cubic".into());
        let htcp = KernelLaw::Kernel("htcp".into());
        let actuator = KernelActuator::Phantom;
        for (wanted, law, about, expected) in [
            (None, &cubic, Direction::Up, Some("mbc")),
            (None, &cubic, Direction::Down, Some("pid")),
            (None, &htcp, Direction::Up, Some("pid")),
            (Some(ControlArgument::Pid), &cubic, Direction::Up, Some("pid")),
            (Some(ControlArgument::Mbc), &cubic, Direction::Both, Some("mbc")),
            (Some(ControlArgument::Mbc), &cubic, Direction::Down, None),
            (Some(ControlArgument::Mbc), &htcp, Direction::Up, None),
        ] {
            let control = control(wanted, model(law, actuator, about), (law, actuator, about));
            assert_eq!(control.ok().map(name), expected, "{wanted:?} {law:?} {about:?}");
        }
    }
}
