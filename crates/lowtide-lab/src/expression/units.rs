// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws' and the control's own functions, for targets that need no run. No formula is written here.

use super::{Answer, Language, number, wrong};
use lowtide_cc::{
    Value as _,
    law::cdg::{Clock, Exp},
};
use lowtide_deadline::{
    Bounds, Cubic, Model, ModelBased, PathState, PriceAverage, Signal, SignalKind, Signals, Step, WeightControl,
    limit_increase,
};
use lowtide_net::{Class, Ecn, Limit, Link, LinkConfig, Packet, Rate, Time};
use lowtide_sim::fluid;
use rhai::{Dynamic, ImmutableString as Text};
use std::time::Duration;

pub(super) fn register(language: &mut Language) {
    cdg(language);
    control(language);
    models(language);
    language.add(
        "serialisation_ms(bytes, rate)",
        "how long a link takes to send a packet: serialisation_ms(1514, \"10mbit\")",
        |bytes: Dynamic, rate: Text| serialisation(number(&bytes)?, &rate),
    );
}

fn cdg(language: &mut Language) {
    language.add(
        "cdg_probability(gradient, g)",
        "the probability of CDG's delay back-off, for a gradient and a G in ms",
        |gradient: Dynamic, g: Dynamic| Answer::Ok(Exp::Exact.probability(number(&gradient)? / number(&g)?)),
    );
    language.add(
        "cdg_probability_by(how, hazard)",
        "the same for gradient/G, with exp(-x) \"exact\", by Linux's \"product\" or by FreeBSD's \"table\"",
        |how: Text, hazard: Dynamic| match Exp::read(&how) {
            Some(exp) => Ok(exp.probability(number(&hazard)?)),
            None => wrong(format!("cdg_probability_by: \"{how}\" is not {}", Exp::expected())),
        },
    );
    language.add(
        "ertt_us(sent, rtt)",
        "a round trip as FreeBSD's ERTT helper measures it, for one that began at `sent`; all in µs",
        |sent: Dynamic, rtt: Dynamic| {
            let nanos = |micros: f64| libm::round(micros * 1e3) as i64;
            let (sent, rtt) = (nanos(number(&sent)?), nanos(number(&rtt)?));
            Answer::Ok(Clock::Milli.between(sent, sent + rtt) as f64)
        },
    );
}

fn control(language: &mut Language) {
    language.add(
        "limited_increase(from, to, limit)",
        "the weight after one update from one weight towards another under l_w (the framework, eq. 19)",
        |from: Dynamic, to: Dynamic, limit: Dynamic| {
            Answer::Ok(limit_increase(number(&from)?, number(&to)?, number(&limit)?).weight)
        },
    );
    language.add(
        "mbc_weight(alpha, price, target, achieved, before)",
        "the weight by model-based control of an alpha-fair source: the price measured, the target rate ζ, the rate achieved and \
         the target before; a rate of 1 has the price 1",
        |alpha: Dynamic, price: Dynamic, target: Dynamic, achieved: Dynamic, before: Dynamic| {
            let (alpha, price) = (number(&alpha)?, number(&price)?);
            mbc_weight(alpha, price, number(&target)?, number(&achieved)?, number(&before)?)
        },
    );
}

fn models(language: &mut Language) {
    language.add(
        "cubic_mean_window(beta, price, rtt)",
        "the mean window of CUBIC's cubic region, segments, at so many loss events per packet and a round trip in s",
        |beta: Dynamic, price: Dynamic, rtt: Dynamic| {
            Answer::Ok(cubic(number(&beta)?).mean_window(number(&price)?, number(&rtt)?))
        },
    );
    language.add(
        "cubic_price(beta, window, rtt)",
        "the loss events per packet at which that region holds such a mean window",
        |beta: Dynamic, window: Dynamic, rtt: Dynamic| {
            Answer::Ok(cubic(number(&beta)?).price_of_window(number(&window)?, number(&rtt)?))
        },
    );
    language.add(
        "blocking(load, places)",
        "the blocking probability of an M/M/1/K queue",
        |load: Dynamic, places: Dynamic| Answer::Ok(fluid::blocking(number(&load)?, number(&places)? as u32)),
    );
    language.add(
        "longer_than(queue, load, places)",
        "the probability that more than `queue` are in an M/M/1/K queue",
        |queue: Dynamic, load: Dynamic, places: Dynamic| {
            Answer::Ok(fluid::longer_than(number(&queue)? as u32, number(&load)?, number(&places)? as u32))
        },
    );
}

fn cubic(beta: f64) -> Cubic {
    Cubic { kept: beta, ..Cubic::RFC_9438 }
}

fn mbc_weight(alpha: f64, price: f64, target: f64, achieved: f64, before: f64) -> Answer<f64> {
    let Ok(bounds) = Bounds::new(1e-9, 1.0) else { return wrong("mbc_weight: no such bounds") };
    let model = Model::AlphaFair { alpha, unit_rate: 1.0, signal: SignalKind::Loss };
    let mut control = ModelBased::new(bounds, Some(model)).with_average(PriceAverage::NONE);
    let interval = Duration::from_secs(10);
    let step = |target_rate, achieved_rate, weight| Step {
        target_rate,
        achieved_rate,
        weight,
        elapsed: interval,
        interval,
        path: PathState::default(),
        signals: Signals { packets: 1.0, loss: Signal { indications: price, reduction: 0.0 }, ..Signals::default() },
        price_ratio: 1.0,
    };
    let first = control.update(&step(before, before, 1.0));
    control.applied(first, false);
    Ok(control.update(&step(target, achieved, first)))
}

fn serialisation(bytes: f64, rate: &str) -> Answer<f64> {
    let rate: Rate = match rate.parse() {
        Ok(rate) => rate,
        Err(error) => return wrong(format!("serialisation_ms: {error}")),
    };
    let mut link = Link::new(&LinkConfig::new(rate, Duration::ZERO, Limit::Packets(1)));
    link.arrive(
        Time::ZERO,
        Packet { bytes: bytes as u32, ecn: Ecn::NotEct, class: Class::default(), flow: 0, payload: () },
    );
    let end = Time::ZERO + Duration::from_secs(3600);
    match link.poll(end) {
        Some(delivery) => Ok((delivery.at - Time::ZERO).as_secs_f64() * 1e3),
        None => wrong("serialisation_ms: it takes more than an hour"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Language, Value};

    /// Against numbers of the papers (targets C-08, D-15, D-17, T-10, T-12).
    #[test]
    fn known_values() {
        let language = Language::new(Context::Nothing);
        for (expression, expected, slack) in [
            ("cdg_probability(3, 3)", 0.632, 1e-3),
            ("cdg_probability_by(\"product\", 1)", 0.632, 1e-3),
            ("limited_increase(0.1, 0.5, 0.05)", 0.125, 1e-12),
            ("mbc_weight(2, 0.25, 2, 2, 2)", 1.0, 1e-12),
            ("cubic_mean_window(0.8, 1, 1)", 1.174, 1e-3),
            ("cubic_price(0.8, 100, 0.024)", 6.40e-5, 1e-7),
            ("serialisation_ms(1514, \"10mbit\")", 1.2112, 1e-9),
            ("blocking(1, 100)", 9.901e-3, 1e-6),
            ("longer_than(10, 1, 100)", 0.8911, 1e-4),
            ("ertt_us(999, 2)", 2000.0, 0.0),
        ] {
            let value = language.value("", expression, &rhai::Scope::new()).unwrap();
            let Value::Number(Some(value)) = value else { panic!("{expression}") };
            assert!((value - expected).abs() <= slack, "{expression} is {value}");
        }
        let error = language.value("", "cdg_probability_by(\"guess\", 1)", &rhai::Scope::new()).unwrap_err();
        assert!(error.to_string().contains("exact"), "{error}");
    }
}
