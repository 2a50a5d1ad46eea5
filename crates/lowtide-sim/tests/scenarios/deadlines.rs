// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers with a deadline: control, policy and model.

use super::*;

/// `SMALL` with a transfer that is due after 600 s.
const DUE: [&str; 2] = ["flow.size=1GB", "flow.deadline=600s"];

#[test]
fn a_deadline_has_a_control_and_a_policy() {
    let due = |overrides: &[&str]| {
        let overrides = [&DUE[..], overrides].concat();
        let scenario = small(&overrides);
        assert_eq!(parse(&scenario.to_toml(), &[]).as_ref(), Ok(&scenario), "{overrides:?}");
        scenario.flows[0].deadline.clone().unwrap()
    };
    assert_eq!(due(&[]), Deadline::new(secs(600)), "as `lowtide run` has it");
    let literal = due(&[
        "flow.control=mbc",
        "flow.gap=10s",
        "flow.group=nightly",
        "flow.policy.interval=5s",
        "flow.policy.w_min=0.001",
        "flow.policy.w_max=0.5",
        "flow.policy.increase_limit=0.1",
        "flow.policy.scale_increase_limit=false",
        "flow.policy.early_aim=false",
        "flow.policy.price_ratio=literal",
        "flow.policy.ratio_standard=cubic:variant=2008",
        "flow.policy.ratio_limit=0.2",
        "flow.policy.ratio_every=2",
        "flow.policy.ratio_losses=7",
    ]);
    assert_eq!((literal.gap, literal.group.as_deref()), (Some(secs(10)), Some("nightly")));
    let expected = Steering {
        control: Control::ModelBased,
        interval: secs(5),
        bounds: Bounds::new(0.001, 0.5).unwrap(),
        increase_limit: 0.1,
        scale_increase_limit: false,
        early_aim: false,
    };
    assert_eq!(literal.steering, expected);
    let ratio = literal.ratio.unwrap();
    assert_eq!((ratio.kind, ratio.standard.to_string()), (RatioKind::Literal, "cubic:variant=2008".into()));
    assert_eq!((ratio.increase_limit, ratio.every, ratio.enough_losses), (0.2, 2, 7));
    // only where delay is a law's price there is a ratio without being asked for
    let kind = |overrides: &[&str]| due(overrides).ratio.map(|ratio| ratio.kind);
    assert_eq!(kind(&["flow.cc=vegas"]), Some(RatioKind::Corrected));
    assert_eq!(kind(&["flow.cc=vegas", "flow.policy.price_ratio=off"]), None);
    assert_eq!(kind(&["flow.cc=vegas", "flow.actuator=phantom"]), None);
    assert_eq!(kind(&["flow.cc=cdg"]), None);
}

#[test]
fn a_policy_has_the_model_of_the_law() {
    let policy = |overrides: &[&str]| {
        let scenario = small(&[&DUE[..], &["flow.control=mbc"], overrides].concat());
        let flow = &scenario.flows[0];
        flow.deadline.as_ref().unwrap().policy(&tcp(flow).law, &flow.steered_by().unwrap())
    };
    assert_eq!(policy(&[]).control, Law::ModelBased(Some(Model::Reno)));
    assert_eq!(policy(&["flow.cc=dctcp"]).control, Law::ModelBased(None));
    let vegas = policy(&["flow.cc=vegas"]);
    let own = Model::Vegas { packets: 15.0, linux: true };
    assert_eq!(vegas.control, Law::ModelBased(Some(own)));
    let rule = RatioRule::Corrected { own, standard: Model::Cubic(Cubic::RFC_9438) };
    assert_eq!(vegas.ratio, Some(RatioPolicy::new(rule)));
    let literal = policy(&["flow.policy.price_ratio=literal", "flow.policy.ratio_standard=cubic:variant=2008"]);
    let RatioRule::Literal { standard_reduction } = literal.ratio.unwrap().rule else { panic!("literal") };
    assert!((standard_reduction - 0.2).abs() < 1e-12);
}

#[test]
fn mistakes_around_a_deadline_have_a_sentence() {
    for (overriding, sentence) in [
        ("flow.control=mcb", "control: unknown control `mcb`; did you mean `mbc`? There are pid and mbc"),
        ("flow.gap=10", "gap: \"10\" is not a length of time; write it like 40ms or 250us"),
        ("flow.group=a b", "group: \"a b\" is not a name; it has to be of letters, digits, - and _"),
        ("flow.policy=1", "policy: a table is expected here, like [policy]"),
        ("flow.policy.interval=0s", "interval: it has to be above zero"),
        ("flow.policy.w_min=0", "w_min: \"0\" is not a number above 0 and at most 1"),
        ("flow.policy.w_max=1.5", "w_max: \"1.5\" is not a number above 0 and at most 1"),
        ("flow.policy.w_max=0.001", "w_max: the smallest weight (0.004) must not be greater than the largest (0.001)"),
        ("flow.policy.increase_limit=nan", "increase_limit: \"nan\" is not a number above 0 and at most 1"),
        ("flow.policy.early_aim=yes", "early_aim: \"yes\" is neither true nor false"),
        (
            "flow.policy.price_ratio=corected",
            "price_ratio: unknown ratio of prices `corected`; did you mean `corrected`? There are off, literal and corrected",
        ),
        (
            "flow.policy.ratio_standard=vegas",
            "ratio_standard: `vegas` is not possible; the ordinary flows have cubic, or reno with beta 0.5",
        ),
        ("flow.policy.ratio_every=0", "ratio_every: \"0\" is not a whole number from 1 to 1000000"),
        (
            "flow.policy.w_mn=0.1",
            "unknown key `w_mn`; did you mean `w_min`? There are interval, w_min, w_max, increase_limit, \
             scale_increase_limit, early_aim, price_ratio, ratio_standard, ratio_limit, ratio_every and ratio_losses",
        ),
    ] {
        let error = parse(SMALL, &[&DUE[..], &[overriding]].concat()).unwrap_err();
        assert_eq!(error, format!("{overriding}: {sentence}"));
    }
    let error = parse(SMALL, &[&DUE[..], &["flow.cc=dctcp", "flow.policy.price_ratio=corrected"]].concat());
    let sentence = "price_ratio: there is no model of dctcp by `phantom` to correct with; take literal or off";
    assert!(error.unwrap_err().ends_with(sentence));
    for key in ["control=mbc", "gap=1s", "group=nightly", "policy.w_min=0.1"] {
        let error = parse(SMALL, &["flow.size=1GB", &format!("flow.{key}")]).unwrap_err();
        assert!(error.ends_with("it needs a deadline, like deadline = \"600s\""), "{error}");
    }
}
