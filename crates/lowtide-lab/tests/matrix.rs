// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of rivals and the deadline matrix have the same paths, queues and neighbours, though each writes them
//! down.

#[expect(dead_code, reason = "the bench uses all of it")]
#[path = "../../lowtide-sim/benches/deadline_matrix/matrix.rs"]
mod matrix;

use lowtide_lab::{Extent, Library, Plan, experiment::Experiment};
use matrix::{COMPETITORS, Place, QUEUES, RATES, RTTS};
use toml::{Table, Value};

fn written(experiment: &Experiment, axis: &str) -> Vec<String> {
    experiment.axis(axis).unwrap().values.iter().map(|value| value.written()).collect()
}

#[test]
fn the_cells_are_those_of_the_deadline_matrix() {
    let library = Library::built_in().unwrap();
    let rivals = library.choose(&["rivals".to_owned()]).unwrap()[0];
    assert_eq!(written(rivals, "rtt"), RTTS.map(|rtt| rtt.to_string()));
    assert_eq!(written(rivals, "rate"), RATES.map(|rate| rate.to_string()));
    assert_eq!(written(rivals, "queue"), QUEUES.map(|queue| queue.name.to_owned()));
    let foregrounds = written(rivals, "foreground");
    assert!(COMPETITORS.iter().all(|it| foregrounds.contains(&it.name.to_owned())), "{foregrounds:?}");

    let plan = Plan::new(rivals, Extent::default()).unwrap();
    for (queue, kind) in QUEUES.iter().enumerate() {
        for (competitors, neighbours) in COMPETITORS.iter().enumerate() {
            let place = Place { rtt: 50, rate: 500, queue, competitors };
            let wanted = [
                ("rtt", "50"),
                ("rate", "500"),
                ("queue", kind.name),
                ("foreground", neighbours.name),
                ("law", "strict priority"),
            ];
            let wanted = wanted.map(|(axis, value)| (axis.to_owned(), value.to_owned()));
            let cell = plan.cells.iter().position(|cell| cell.place == wanted).unwrap();
            let ours: Table = plan.scenario(&library, cell, 0).unwrap().parse().unwrap();
            let theirs = lowtide_sim::scenario::Scenario::parse(&place.ideal(), "cell.toml".as_ref(), &[]).unwrap();
            let theirs: Table = theirs.to_toml().parse().unwrap();
            for key in ["bottleneck", "tcp"] {
                assert_eq!(ours.get(key), theirs.get(key), "{place}: {key}");
            }
            let foreground = |table: &Table| -> Vec<Table> {
                let flows = table["flow"].as_array().unwrap().iter().filter_map(Value::as_table);
                let flows = flows.filter(|flow| flow["name"].as_str().unwrap().starts_with("fg")).cloned();
                // when they come and go is another matter
                let without = |mut flow: Table| {
                    flow.retain(|key, _| !["start", "stop"].contains(&key));
                    flow
                };
                flows.map(without).collect()
            };
            assert_eq!(foreground(&ours), foreground(&theirs), "{place}");
        }
    }
}
