// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a fair share that a flow had in a span, as the simulator counts it.

use lowtide_sim::{
    FairShares,
    scenario::{MTU, Scenario, Span, Transport, UDP_HEADER},
};
use std::{collections::BTreeMap, time::Duration};

/// For each flow, the spans in which it was there: from, to, and its rate as a part of an equal one for each TCP flow
/// of what datagrams leave. With `finished`, when all data of each flow had been acknowledged, and with what had been
/// delivered at these times.
pub(crate) fn of_spans(
    scenario: &Scenario,
    finished: &[Option<Duration>],
    times: &[f64],
    columns: &[BTreeMap<String, Vec<f64>>],
) -> Vec<Vec<(f64, f64, f64)>> {
    let delivered = |flow: usize, at: Duration| {
        let before = times.partition_point(|time| *time <= at.as_secs_f64() + 1e-9);
        before.checked_sub(1).and_then(|index| columns[flow].get("delivered")?.get(index).copied()).unwrap_or(0.0)
    };
    let shares = FairShares::new(scenario, finished.iter().copied());
    let with_headers = f64::from(MTU) / f64::from(MTU - UDP_HEADER);
    let share = |flow: usize, span: &Span| {
        let received = |flow: usize| delivered(flow, span.to) - delivered(flow, span.from);
        let datagrams = scenario.flows.iter().enumerate().map(|(index, flow)| match flow.transport {
            Transport::Tcp(_) => 0.0,
            Transport::Udp => received(index) * with_headers,
        });
        let fair = shares.of(flow, span, &datagrams.collect::<Vec<_>>())?;
        Some((span.from.as_secs_f64(), span.to.as_secs_f64(), received(flow) / fair))
    };
    let of_flow = |flow| scenario.spans.iter().filter_map(|span| share(flow, span)).collect();
    (0..scenario.flows.len()).map(of_flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_equal_part_of_what_datagrams_leave() {
        let text = "duration = \"9s\"\n[bottleneck]\nrate = \"8mbit\"\nrtt = \"20ms\"\n[[span]]\nfrom = \"0s\"\nto = \"2s\"\n\
                    [[flow]]\nname = \"a\"\ncc = \"reno\"\n[[flow]]\nname = \"b\"\ncc = \"reno\"\nstart = \"1s\"\n\
                    [[flow]]\nname = \"c\"\nsource = \"poisson:mean=23.2ms\"\n";
        let scenario = Scenario::parse(text, Path::new("test"), &[]).unwrap();
        let column = |bytes: f64| BTreeMap::from([("delivered".to_owned(), vec![bytes / 2.0, bytes])]);
        // of 2 MB, 200 kB are datagrams: alone for a second, then half
        let columns = [column(900_000.0 * 1.5), column(450_000.0), column(200_000.0 * 1472.0 / 1500.0)];
        let shares = of_spans(&scenario, &[None, None, None], &[1.0, 2.0], &columns);
        let payload = 1500.0 / 1448.0;
        assert_eq!(shares[2], []);
        for (flow, of) in [(0, 1.0), (1, 1.0)] {
            let [(from, to, share)] = shares[flow][..] else { panic!("one span") };
            assert_eq!((from, to), (0.0, 2.0));
            assert!((share - of * payload).abs() < 1e-9, "{flow}: {share}");
        }
    }
}
