// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, parts of runs, and what is kept of them.

use lowtide_lab::{
    Cache, Comparison, Extent, LabError, Library, Place, Plan, Recording, Results, Runner, Shard, Track,
    report::{Section, page, write_kernels, write_markdown},
    score::{Score, Verdict, score},
    scoreboard,
    testbed::{Recorded, Request, Testbed},
};
use std::{collections::BTreeMap, fs, num::NonZeroUsize, path::Path, rc::Rc};

const EXPERIMENT: &str = r#"
title = "An example"
source = "Nobody's paper"
runs = 2
[draw]
start = "uniform(0, 1)"
[scenario]
duration = "5s"
bottleneck = { rate = "2mbit", rtt = "{rtt}ms", buffer = "20p" }
[[scenario.flow]]
name = "flow"
cc = "reno"
start = "{start}s"
[[axis]]
name = "rtt"
unit = "ms"
values = [10, 40]
[[measure]]
name = "rate"
unit = "Mbit/s"
value = 'mean_rate("flow", 2, 5) / 1e6'
[[measure]]
name = "delays"
value = "queue().between(2, 5).values()"
[[series]]
name = "queue"
value = "queue()"
[[target]]
id = "E-01"
kind = "quantitative"
claim = "Reno fills the link"
band = "a guess"
[[target.check]]
what = "rate at {rtt} ms"
each = "rtt"
value = 'typical("rate", here)'
low = 1.5
high = 2
[[target]]
id = "E-02"
kind = "shape"
claim = "more than there is"
reason = "nobody can"
[[target.check]]
what = "rate"
holds = 'typical("rate") > 2'
[[target]]
id = "E-03"
kind = "question"
claim = "How much?"
answer = "{round(10 * typical(\"rate\")) / 10} Mbit/s"
[[figure]]
name = "one"
title = "Rates"
[[figure.panel]]
plot = "lines"
measure = "rate"
x = "rtt"
[[figure.panel]]
plot = "boxes"
measure = "delays"
x = "rtt"
[[figure.panel]]
plot = "cdf"
measure = "delays"
each = "rtt"
[[figure.panel]]
plot = "series"
series = ["queue"]
each = "rtt"
[[figure.panel]]
plot = "table"
x = "rtt"
column = [{ title = "Mbit/s", value = 'typical("rate", here)', digits = 2 }]
"#;

/// How a program would run the experiment of this name.
fn command_for(id: &str, _: Extent, on: Place) -> String {
    format!("lowtide lab run {id} on {on}")
}

/// A library of one experiment.
fn library(directory: &Path) -> Library {
    fs::create_dir_all(directory.join("000")).unwrap();
    fs::write(directory.join("000/example.toml"), EXPERIMENT).unwrap();
    Library::read(directory).unwrap()
}

fn results<'a>(library: &'a Library, cache: &Cache, shard: &str, run: bool) -> Vec<Results<'a>> {
    let plan = Plan::new(&library.experiments[0], Extent::default()).unwrap();
    let threads = NonZeroUsize::new(2);
    Runner { library, cache, shard: shard.parse().unwrap(), run, threads, again: false, testbed: None }
        .results(vec![plan])
        .unwrap()
}

fn scores<'a>(results: &[Results<'a>]) -> Vec<Score<'a>> {
    results.iter().flat_map(|results| score(results).unwrap()).collect()
}

/// The files of a directory and all in it, with their contents but for the time that a run took.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_of(&path));
        }
    }
    files.sort();
    files
}

fn files_of(directory: &Path) -> Vec<(String, String)> {
    let file = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let without = text.split("\"wall_s\"").next().unwrap().to_owned();
        (path.file_name().unwrap().to_string_lossy().into_owned(), without)
    };
    fs::read_dir(directory).unwrap().map(|entry| file(entry.unwrap().path())).collect()
}

#[test]
fn what_was_run_is_scored_and_not_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(&directory.path().join("experiments"));
    let cache = Cache::new(directory.path().join("cache"));
    let before = results(&library, &cache, "1/1", false);
    assert!(scores(&before).iter().all(|score| score.verdict == Verdict::NotRun));
    let first = results(&library, &cache, "1/1", true);
    assert!(first[0].complete() && first[0].done() == 4);
    let again = results(&library, &cache, "1/1", false);
    assert_eq!(first[0].entries, again[0].entries);

    let verdicts: Vec<Verdict> = scores(&first).iter().map(|score| score.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Miss, Verdict::Answered]);
    let json = scoreboard(&scores(&first), &[]);
    assert_eq!(json, scoreboard(&scores(&again), &[]));
    assert!(json.contains("\"reason\": \"nobody can\"") && json.contains("Mbit/s"), "{json}");
    assert!(scores(&first)[0].checks[0].spread.is_some());
}

#[test]
fn the_page_shows_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(&directory.path().join("experiments"));
    let cache = Cache::new(directory.path().join("cache"));
    let mut results = results(&library, &cache, "1/1", true);
    let section = Section::new(&library, results.remove(0), command_for).unwrap();
    let text = page(&[section]);
    assert_eq!(text.matches("<svg class=\"plot\"").count(), 4, "{text}");
    for part in ["nobody can", "Run it yourself", "lowtide lab run example on sim", "2mbit", ">miss<", ">pass<"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("http://") && !text.contains("https://"), "the page needs the network");
}

#[test]
fn parts_make_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(&directory.path().join("experiments"));
    let [whole, first, second] = ["whole", "1", "2"].map(|name| Cache::new(directory.path().join(name)));
    results(&library, &whole, "1/1", true);
    let parts = [results(&library, &first, "1/2", true), results(&library, &second, "2/2", true)];
    assert_eq!(parts.each_ref().map(|part| part[0].done()), [2, 2]);
    assert!(!parts[0][0].complete());
    assert_eq!(first.merge(second.directory()), Ok(2));
    assert_eq!(files(first.directory()), files(whole.directory()));
    assert_eq!(scores(&results(&library, &first, "1/1", false)).len(), 3);
}

#[test]
fn a_mistake_in_a_measure_has_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("mean_rate(\"flow\"", "mean_rate(\"flaw\"");
    fs::create_dir_all(directory.path().join("000")).unwrap();
    fs::write(directory.path().join("000/example.toml"), text).unwrap();
    let library = Library::read(directory.path()).unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let plan = Plan::new(&library.experiments[0], Extent::default()).unwrap();
    let runner = Runner {
        library: &library,
        cache: &cache,
        shard: Shard::WHOLE,
        run: true,
        threads: None,
        again: false,
        testbed: None,
    };
    let error = runner.results(vec![plan]).unwrap_err().to_string();
    assert!(
        error.contains("example (rtt=") && error.contains("measure rate") && error.contains("there are flow"),
        "{error}"
    );
}

/// How a run compares with another one of the same seed, where there is one.
#[test]
fn runs_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let more = r#"
[[axis]]
name = "law"
values = [{ label = "one", cc = "reno" }, { label = "two", cc = "cubic" }, { label = "half", cc = "reno" }]
[[measure]]
name = "parts"
value = 'rate("flow").bins(1).values()'
[[measure]]
name = "kept"
value = "if other.parts.len() == 5 { own.rate / other.rate } else { () }"
with = { law = "one" }
[[figure]]
name = "two"
title = "Laws"
[[figure.panel]]
plot = "points"
each = "law"
x_value = 'typical("kept", here)'
value = 'typical("rate", here)'
[[figure.panel]]
plot = "table"
x = "law"
sort = "kept"
column = [
  { title = "kept", value = 'typical("kept", here)', digits = 2 },
  { title = "words", text = '{law} a|b' },
  { title = "worst", least = "kept", digits = 1 },
  { title = "most", greatest = "kept", digits = 1 },
]
"#;
    // at 40 ms there is nothing to compare with
    let text = EXPERIMENT.replacen("runs = 2\n", "runs = 2\nonly = \"rtt == 10 || law != \\\"one\\\"\"\n", 1);
    let text = text.split("[[figure]]").next().unwrap().replace("cc = \"reno\"", "cc = \"{cc}\"") + more;
    fs::create_dir_all(directory.path().join("000")).unwrap();
    fs::write(directory.path().join("000/example.toml"), text).unwrap();
    let library = Library::read(directory.path()).unwrap();
    lowtide_lab::check(&library.experiments[0], &library).unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let mut results = results(&library, &cache, "1/1", true);
    let cells = results[0].cells().unwrap();
    let samples = |law: &str, rtt: &str, measure: &str| {
        let place = [("law", law), ("rtt", rtt)].map(|(axis, value)| (axis.to_owned(), value.to_owned()));
        cells.samples(measure, &place.to_vec(), None).unwrap()
    };
    assert_eq!(samples("one", "10", "kept"), [1.0, 1.0]);
    assert_eq!(samples("half", "10", "kept"), [1.0, 1.0]);
    let (own, other) = (samples("two", "10", "rate"), samples("one", "10", "rate"));
    let expected: Vec<f64> = own.iter().zip(&other).map(|(own, other)| own / other).collect();
    assert_eq!(samples("two", "10", "kept"), expected);
    assert!(samples("two", "40", "kept").is_empty() && samples("two", "40", "rate").len() == 2);
    // a comparison is not kept, so that changing it runs nothing
    assert!(files(cache.directory()).iter().all(|(_, text)| text.contains("parts") && !text.contains("kept")));

    let section = Section::new(&library, results.remove(0), command_for).unwrap();
    let page = page(std::slice::from_ref(&section));
    assert!(page.contains(">half</text>") && page.contains("1.0: 10 ms") && page.contains("half a|b"), "{page}");
    let file = directory.path().join("docs/example.md");
    write_markdown(&[section], &file).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    for part in [
        "| one | 1.00 | one a\\|b | 1.0: 10 ms | 1.0: 10 ms |",
        "](plots/example-two.svg)",
        "# An example",
        "**E-02, miss.**",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(directory.path().join("docs/plots/example-two.svg").exists());
}

/// Says that every flow had 1 Mbit/s, unless it runs Reno.
#[derive(Debug)]
struct Somewhere(&'static str);

impl Testbed for Somewhere {
    fn place(&self) -> Place {
        Place::Kernel
    }

    fn environment(&self) -> &str {
        "1.0"
    }

    fn version(&self) -> &str {
        self.0
    }

    fn at_once(&self) -> usize {
        2
    }

    fn refusal(&self, request: &Request) -> Option<String> {
        let refuses = (self.0 == "refuses").then(|| "not any more".to_owned());
        refuses.or_else(|| request.kernel_law("flow").is_none().then(|| "there is no Reno".to_owned()))
    }

    fn run(&self, request: &Request) -> Result<Recording, LabError> {
        let column = |value: f64| BTreeMap::from([("rate".to_owned(), Rc::from([value, value]))]);
        let name = request.scenario.flows[0].name.clone();
        let flows = vec![Track { name, columns: column(1e6), ..Track::default() }];
        let queue = BTreeMap::from([("queue".to_owned(), Rc::from([5.0, 5.0]))]);
        let links = vec![Track { name: "bottleneck".to_owned(), columns: queue, ..Track::default() }];
        Ok(Recording { times: Rc::from([3.0, 4.0]), flows, links, version: None })
    }
}

/// An experiment of this text.
fn library_of(directory: &Path, text: &str) -> Library {
    fs::create_dir_all(directory.join("000")).unwrap();
    fs::write(directory.join("000/example.toml"), text).unwrap();
    Library::read(directory).unwrap()
}

/// What came of the example under this name of a table `on`, and of the same runs in the simulator. Without a version
/// it is looked at as where nothing can be recorded.
fn column<'a>(
    library: &'a Library,
    cache: &Cache,
    name: &str,
    version: Option<&'static str>,
    again: bool,
) -> Comparison<'a> {
    let on = library.experiments[0].on_testbeds.iter().find(|on| on.name == name).unwrap();
    let environments = cache.environments("example", on.place).unwrap();
    let environment = environments.first().cloned();
    let kept =
        Recorded { place: on.place, environment: environment.clone().unwrap_or_default(), version: "1".to_owned() };
    let somewhere = version.map(Somewhere);
    let testbed: &dyn Testbed = somewhere.as_ref().map_or(&kept, |it| it);
    let results = |testbed| {
        let plan = Plan::new(&on.experiment, Extent::default()).unwrap();
        let run = version.is_some();
        let runner = Runner { library, cache, shard: Shard::WHOLE, run, threads: None, again, testbed };
        runner.results(vec![plan]).unwrap().remove(0)
    };
    Comparison::new(on, environment.as_deref(), results(Some(testbed)), &results(None)).unwrap()
}

const KERNEL: &str = r#"
[on.kernel]
targets = ["E-01"]
axis = { rtt = [10] }
runs = 1
kernel_law = { "fl*" = "reno" }
figures = ["one"]
set = ["duration=4s"]
measure = { rate = 'mean_rate("flow", 2, 4) / 1e6' }
reason = { E-01 = "nobody knows" }
"#;

#[test]
fn what_runs_elsewhere_stands_beside_the_simulator() {
    let directory = tempfile::tempdir().unwrap();
    let library = library_of(directory.path(), &format!("{EXPERIMENT}{KERNEL}[on.bare]\nplace = \"kernel\"\n"));
    let cache = Cache::new(directory.path().join("cache"));
    let before = column(&library, &cache, "kernel", None, false);
    assert!(!before.results.complete() && before.environment.is_none());
    column(&library, &cache, "kernel", Some("1 QEMU 7"), false);
    column(&library, &cache, "bare", Some("1 QEMU 7"), false);

    // by what is kept alone
    let kernel = column(&library, &cache, "kernel", None, false);
    let parts = kernel.compare("E-01");
    assert_eq!((parts.len(), kernel.scores.len(), kernel.results.done()), (1, 1, 1));
    assert_eq!((parts[0].there.what.as_str(), parts[0].there.value), ("rate at 10 ms", Some(1.0)));
    assert!(parts[0].simulated.unwrap().value.unwrap() > 1.5 && parts[0].is_notable());
    assert_eq!((kernel.environment.as_deref(), kernel.results.outdated), (Some("1.0"), 0));
    let bare = column(&library, &cache, "bare", None, false);
    assert_eq!((bare.results.refused.as_deref(), bare.results.done()), (Some("there is no Reno"), 0));
    assert_eq!(bare.scores[0].verdict, Verdict::NotRun);

    let mut own = results(&library, &cache, "1/1", true);
    let mut section = Section::new(&library, own.remove(0), command_for).unwrap();
    section.on_testbeds = vec![kernel, bare];
    let json = scoreboard(&section.scores, &section.on_testbeds.iter().collect::<Vec<_>>());
    assert!(json.contains("\"environment\": \"1.0\"") && json.contains("\"refused\": \"there is no Reno\""), "{json}");
    let without = scoreboard(&section.scores, &[]);
    assert!(json.starts_with(without.trim_end().trim_end_matches('}').trim_end()), "what is elsewhere comes last");
    let file = directory.path().join("kernels.md");
    write_kernels(std::slice::from_ref(&section), &file).unwrap();
    let kernels = fs::read_to_string(&file).unwrap();
    for part in [
        "**On the kernel** (1.0): 1 cells with 1 seeds",
        "| E-01: rate at 10 ms | 1 | – |",
        "E-01: nobody knows",
        "not run: there is no Reno.",
    ] {
        assert!(kernels.contains(part), "{part}: {kernels}");
    }
    let text = page(&[section]);
    for part in ["nobody knows", "there is no Reno", "beside the simulator with the same scenario", "differs"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("another version"));
}

#[test]
fn recordings_of_another_version_are_told_and_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let library = library_of(directory.path(), &format!("{EXPERIMENT}{KERNEL}"));
    let cache = Cache::new(directory.path().join("cache"));
    column(&library, &cache, "kernel", Some("0"), false);
    let outdated = column(&library, &cache, "kernel", Some("1"), false);
    assert_eq!((outdated.results.done(), outdated.results.outdated), (1, 1));
    let board = scoreboard(&[], &[&outdated]);
    assert!(board.contains("\"recorded_by_another_version\": 1"), "{board}");
    let mut section = Section::new(&library, results(&library, &cache, "1/1", true).remove(0), command_for).unwrap();
    section.on_testbeds = vec![outdated];
    let file = directory.path().join("kernels.md");
    write_kernels(std::slice::from_ref(&section), &file).unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains("Recorded by another version of the program: 1 of them."));
    assert!(page(&[section]).contains("recorded by another version of the program"));
    assert_eq!(column(&library, &cache, "kernel", Some("1"), true).results.outdated, 0);
    assert_eq!(column(&library, &cache, "kernel", None, false).results.outdated, 0);
}

#[test]
fn what_is_refused_now_is_not_taken_from_before() {
    let directory = tempfile::tempdir().unwrap();
    let library = library_of(directory.path(), &format!("{EXPERIMENT}{KERNEL}"));
    let cache = Cache::new(directory.path().join("cache"));
    assert_eq!(column(&library, &cache, "kernel", Some("1"), false).results.done(), 1);
    let refused = column(&library, &cache, "kernel", Some("refuses"), false);
    assert_eq!((refused.results.refused.as_deref(), refused.results.done()), (Some("not any more"), 0));
    assert_eq!(column(&library, &cache, "kernel", None, false).results.done(), 0);
    assert_eq!(column(&library, &cache, "kernel", Some("1"), false).results.done(), 1);
    assert_eq!(column(&library, &cache, "kernel", None, false).results.refused, None);
}

#[test]
fn only_cells_that_are_cut_away_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let check = |holds: &str| {
        let check = format!("[[target.check]]\nwhat = \"more\"\nholds = '{holds}'\n[[target]]\nid = \"E-02\"");
        let text = EXPERIMENT.replacen("[[target]]\nid = \"E-02\"", &check, 1);
        library_of(directory.path(), &format!("{text}{KERNEL}"))
    };
    let library = check("typical(\"rate\", #{rtt: 40}) > 0");
    lowtide_lab::check(&library.experiments[0], &library).unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let kernel = column(&library, &cache, "kernel", Some("1"), false);
    assert_eq!((kernel.scores[0].left_out, kernel.scores[0].checks.len()), (1, 1));
    // right as long as there are two cells
    let library = check("along(\"rtt\", \"rate\")[1] > 0");
    let error = lowtide_lab::check(&library.experiments[0], &library).unwrap_err().to_string();
    assert!(error.contains("on.kernel: example: target E-01: \"more\"") && error.contains("out of bounds"), "{error}");
}

#[test]
fn each_law_of_the_kernel_is_for_a_flow() {
    let directory = tempfile::tempdir().unwrap();
    let wrong = |laws: &str| {
        let kernel = KERNEL.replace("{ \"fl*\" = \"reno\" }", laws);
        let library = library_of(directory.path(), &format!("{EXPERIMENT}{kernel}"));
        lowtide_lab::check(&library.experiments[0], &library).map_err(|error| error.to_string())
    };
    assert_eq!(wrong("{ flow = \"reno\" }"), Ok(()));
    assert!(wrong("{ flew = \"reno\" }").unwrap_err().contains("no flow is called flew"));
    assert!(wrong("{ \"f*\" = \"reno\", flow = \"cdg\" }").unwrap_err().contains("flow goes with f* and with flow"));
}
