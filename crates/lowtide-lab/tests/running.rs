// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, parts of runs, and what is kept of them.

use lowtide_lab::{
    Cache, Extent, Library, Plan, Results, Runner, Shard,
    report::{Section, page, write_markdown},
    score::{Score, Verdict, score},
    scoreboard,
};
use std::{fs, num::NonZeroUsize, path::Path};

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

/// A library of one experiment.
fn library(directory: &Path) -> Library {
    fs::create_dir_all(directory.join("000")).unwrap();
    fs::write(directory.join("000/example.toml"), EXPERIMENT).unwrap();
    Library::read(directory).unwrap()
}

fn results<'a>(library: &'a Library, cache: &Cache, shard: &str, run: bool) -> Vec<Results<'a>> {
    let plan = Plan::new(&library.experiments[0], Extent::default()).unwrap();
    let threads = NonZeroUsize::new(2);
    Runner { library, cache, shard: shard.parse().unwrap(), run, threads }.results(vec![plan]).unwrap()
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
    let json = scoreboard(&scores(&first), lowtide_lab::Place::Sim);
    assert_eq!(json, scoreboard(&scores(&again), lowtide_lab::Place::Sim));
    assert!(json.contains("\"reason\": \"nobody can\"") && json.contains("Mbit/s"), "{json}");
    assert!(scores(&first)[0].checks[0].spread.is_some());
}

#[test]
fn the_page_shows_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(&directory.path().join("experiments"));
    let cache = Cache::new(directory.path().join("cache"));
    let mut results = results(&library, &cache, "1/1", true);
    let section = Section::new(&library, results.remove(0)).unwrap();
    let text = page(&[section]);
    assert_eq!(text.matches("<svg class=\"plot\"").count(), 4, "{text}");
    for part in ["nobody can", "Run it yourself", "lowtide lab run example", "2mbit", ">miss<", ">pass<"] {
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
    let runner = Runner { library: &library, cache: &cache, shard: Shard::WHOLE, run: true, threads: None };
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
    lowtide_lab::rehearse(&library.experiments[0], &library).unwrap();
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

    let section = Section::new(&library, results.remove(0)).unwrap();
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
