// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a scenario this kernel can run. Whatever it cannot is refused in a sentence, and nothing is left out.

use crate::{
    Bottleneck, emulated,
    hosts::tcp,
    laws::{self, Host},
    tc,
};
use lowtide_cc::EcnUse;
use lowtide_lab::testbed::Request;
use lowtide_net::Class;
use lowtide_sim::scenario::{Direction, Flow, Source, Tcp};

/// Who sends each flow on a kernel with these laws, or why the scenario cannot run there.
pub(crate) fn hosts(request: &Request, bottleneck: Bottleneck, laws: &str) -> Result<Vec<Host>, String> {
    let scenario = &request.scenario;
    request.check_kernel_laws().map_err(|error| error.to_string())?;
    match bottleneck {
        Bottleneck::Emulator => emulated::refusal(scenario).map_or(Ok(()), Err)?,
        Bottleneck::Tc => tc::refusal(scenario).map_or(Ok(()), Err)?,
    }
    if scenario.reverse.is_none()
        && let Some(flow) = scenario.flows.iter().find(|flow| flow.direction == Direction::Reverse)
    {
        return Err(format!("{}: its data goes through the reverse bottleneck, and there is none", flow.name));
    }
    let all: Vec<&Tcp> = scenario.flows.iter().filter_map(tcp).collect();
    same(&all, "tcp.receive_window", |tcp| tcp.receive_window)?;
    same(&all, "tcp.validate_window", |tcp| tcp.validate_window)?;
    same(&all, "whether its law uses ECN", |tcp| tcp.law.ecn_use() != EcnUse::Off)?;
    let host = |flow: &Flow| {
        let settings = tcp(flow);
        let host = settings.map_or(Ok(()), settled).and_then(|()| source(flow, settings));
        let host = host.and_then(|()| laws::host(flow, settings, request, laws)).and_then(|host| one_class(flow, host));
        host.map_err(|why| format!("{}: {why}", flow.name))
    };
    scenario.flows.iter().map(host).collect()
}

/// What a host sets for all of its connections has to be the same in all flows.
fn same<T: PartialEq>(all: &[&Tcp], what: &str, of: impl Fn(&Tcp) -> T) -> Result<(), String> {
    if all.windows(2).all(|pair| of(pair[0]) == of(pair[1])) {
        Ok(())
    } else {
        Err(format!("a host has one value for all of its connections, and the flows differ in {what}"))
    }
}

/// What of a connection the kernel lets no process set.
fn settled(tcp: &Tcp) -> Result<(), String> {
    let usual = Tcp::new(tcp.law.clone());
    let own = Tcp {
        port: usual.port,
        pacing: usual.pacing,
        receive_window: usual.receive_window,
        validate_window: usual.validate_window,
        ..tcp.clone()
    };
    if tcp.receive_window < usual.receive_window {
        return Err(format!(
            "tcp.receive_window: a kernel advertises a part of its memory that it chooses itself; it must be at least {} bytes, so that it does not limit the flow",
            usual.receive_window
        ));
    }
    if own == usual {
        return Ok(());
    }
    let differs = [
        ("mss", tcp.mss != usual.mss),
        ("header", tcp.header != usual.header),
        ("initial_window", tcp.initial_window != usual.initial_window),
        ("ack_every", tcp.ack_every != usual.ack_every),
        ("ack_delay", tcp.ack_delay != usual.ack_delay),
        ("quick_acks", tcp.quick_acks != usual.quick_acks),
        ("rto_min", tcp.rto_min != usual.rto_min),
    ];
    let keys: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect();
    Err(format!("tcp.{} is the kernel's own there; leave it out", keys.join(", tcp.")))
}

/// Whether its transport can send what its source gives.
fn source(flow: &Flow, tcp: Option<&Tcp>) -> Result<(), String> {
    match (&flow.source, tcp) {
        (Source::Greedy | Source::Sized(_), Some(_)) => {}
        (source, None) if source.is_timed() => {}
        (source, _) => {
            return Err(format!(
                "its source {source} cannot run; over TCP there are greedy and sized, over UDP those with times"
            ));
        }
    }
    Ok(())
}

/// Both choose the class of what a sender's device carries.
fn one_class(flow: &Flow, host: Host) -> Result<Host, String> {
    if flow.access.is_some() && flow.class == Class::Background && host.has_our_law() {
        return Err("Lowtide's law has either an access link or the class background".to_owned());
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_sim::scenario::Scenario;
    use std::path::Path;

    const HEAD: &str = "duration = \"9s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"20ms\"\n";

    fn refusal(text: &str) -> Option<String> {
        let scenario = Scenario::parse(text, Path::new("test"), &[]).unwrap();
        hosts(&Request { scenario, kernel_laws: Default::default() }, Bottleneck::Emulator, "reno cubic").err()
    }

    #[test]
    fn what_can_run_is_not_refused() {
        let flows = "[[flow]]\nname = \"a\"\ncc = \"reno:whole_segments=on\"\naccess = \"300mbit\"\nrtt = \"50ms\"\nstop = \"3s\"\n\
                     [[flow]]\nname = \"b\"\nsize = \"1MB\"\ncc = \"cubic:variant=linux\"\n\
                     [[flow]]\nname = \"c\"\nsource = \"poisson:mean=23.2ms\"\n\
                     [[flow]]\nname = \"d\"\nsource = \"cbr:bytes=20kB,rate=1mbit\"\nclass = \"background\"\n";
        assert_eq!(refusal(&format!("{HEAD}{flows}")), None);
    }

    #[test]
    fn what_cannot_is_named() {
        let reno = "[[flow]]\nname = \"a\"\ncc = \"reno:whole_segments=on\"\n";
        for (text, part) in [
            (format!("{HEAD}{reno}tcp = {{ ack_every = 1, rto_min = \"1s\" }}\n"), "a: tcp.ack_every, tcp.rto_min"),
            (format!("{HEAD}{reno}tcp = {{ receive_window = \"100kB\" }}\n"), "a: tcp.receive_window: a kernel"),
            (format!("{HEAD}{reno}rtt = \"10ms\"\n"), "a: its rtt is below"),
            (format!("{HEAD}{reno}source = \"onoff:on=1s,off=1s\"\n"), "a: its source onoff"),
            (format!("{HEAD}{reno}direction = \"reverse\"\n"), "the reverse bottleneck, and there is none"),
            (format!("{HEAD}loss = \"1%\"\n{reno}"), "both directions"),
            (format!("{HEAD}{reno}[[flow]]\nname = \"b\"\ncc = \"cubic:variant=linux,ecn=on\"\n"), "uses ECN"),
            (format!("{HEAD}{reno}[[flow]]\nname = \"b\"\ncc = \"nice\"\n"), "b: nice is not ported"),
        ] {
            let sentence = refusal(&text).unwrap_or_default();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
        let scenario = Scenario::parse(&format!("{HEAD}{reno}"), Path::new("test"), &[]).unwrap();
        let request = Request { scenario, kernel_laws: [("b".to_owned(), "cubic".to_owned())].into() };
        let refused = hosts(&request, Bottleneck::Emulator, "reno cubic").unwrap_err();
        assert!(refused.contains("no flow is called b"), "{refused}");
        let two = "duration = \"9s\"\n[[bottleneck]]\nname = \"x\"\nrate = \"1mbit\"\nrtt = \"1ms\"\n\
                   [[bottleneck]]\nname = \"y\"\nrate = \"1mbit\"\nrtt = \"1ms\"\n";
        assert!(refusal(&format!("{two}{reno}")).unwrap().contains("one bottleneck"));
    }
}
