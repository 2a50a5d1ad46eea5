// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which model of an equilibrium belongs to which control law: the one place where the two meet.

use lowtide_cc::{Actuator, Law};
use lowtide_deadline::{Cubic, Model};

/// The model of the rate at which a law rests, with the law's own parameters; `None` where there is none.
pub fn model_of(law: &Law) -> Option<Model> {
    let within = |number: f64| (number > 0.0 && number < 1.0).then_some(number);
    match law {
        Law::Reno(_) => (number(law, "beta")? == 0.5).then_some(Model::Reno),
        Law::Cubic(_) => {
            let reno_friendly = text(law, "reno_friendly")? == "on";
            Some(Model::Cubic(Cubic { kept: number(law, "beta")?, scale: number(law, "c")?, reno_friendly }))
        }
        Law::Vegas(_) => {
            let linux = text(law, "variant")? == "linux";
            Some(Model::Vegas { packets: number(law, "alpha_base")?, linux })
        }
        // the model grows by a segment per round, as both of these do
        Law::Cdg(_) if matches!(text(law, "increase")?.as_str(), "reno" | "round") => Some(Model::Cdg {
            kept_at_delay: within(number(law, "beta")?)?,
            kept_at_loss: within(number(law, "beta_loss")?)?,
        }),
        _ => None,
    }
}

/// The same for a law that takes a weight by this actuator. Vegas and CDG rest as their models say only under a weight
/// of their own: by the others their price, delay, stays as it is.
pub(super) fn model_under(law: &Law, actuator: &Actuator) -> Option<Model> {
    let model = model_of(law)?;
    let by_delay = matches!(model, Model::Vegas { .. } | Model::Cdg { .. });
    (!by_delay || matches!(actuator, Actuator::Native(_))).then_some(model)
}

fn text(law: &Law, name: &str) -> Option<String> {
    law.parameters().into_iter().find(|parameter| parameter.0 == name).map(|parameter| parameter.1)
}

fn number(law: &Law, name: &str) -> Option<f64> {
    text(law, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(text: &str) -> Law {
        text.parse().unwrap()
    }

    #[test]
    fn a_model_has_its_laws_parameters() {
        let plain = Cubic { reno_friendly: false, ..Cubic::RFC_9438 };
        for (text, model) in [
            ("reno", Some(Model::Reno)),
            ("reno:beta=0.7", None),
            ("cubic", Some(Model::Cubic(Cubic::RFC_9438))),
            ("cubic:variant=linux", Some(Model::Cubic(Cubic::RFC_9438))),
            ("cubic:variant=2008", Some(Model::Cubic(Cubic::PUBLISHED_2008))),
            ("cubic:reno_friendly=off", Some(Model::Cubic(plain))),
            ("cubic:c=0.1", Some(Model::Cubic(Cubic { scale: 0.1, ..Cubic::RFC_9438 }))),
            ("vegas:variant=original", Some(Model::VEGAS)),
            ("vegas:alpha_base=30", Some(Model::Vegas { packets: 30.0, linux: true })),
            ("cdg", Some(Model::CDG)),
            ("cdg:variant=thesis", Some(Model::Cdg { kept_at_delay: 716.0 / 1024.0, kept_at_loss: 0.5 })),
            ("cdg:increase=cubic", None),
            ("cdg:beta=1", None),
            ("dctcp", None),
            ("eclipse", None),
        ] {
            assert_eq!(model_of(&law(text)), model, "{text}");
        }
    }

    #[test]
    fn delay_is_inflated_by_a_weight_of_ones_own_only() {
        for (text, actuator, known) in [
            ("vegas", "native", true),
            ("vegas", "phantom", false),
            ("cdg", "native", true),
            ("cdg", "beta", false),
            ("cubic", "phantom", true),
            ("cubic", "beta", true),
        ] {
            let model = model_under(&law(text), &actuator.parse().unwrap());
            assert_eq!(model.is_some(), known, "{text} by {actuator}");
        }
    }
}
