// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report in a browser: no script fails, no figure is empty, and nothing is wider than a phone.
//!
//! Skips with a sentence where there is no Chromium, unless LOWTIDE_REQUIRE_CHROMIUM=1.

use lowtide_lab::{Cache, Extent, Library, Plan, Results, Runner, Shard, report::Section};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(120);

/// Looks at the page in a frame as wide as a phone, and writes what is wrong with it into the title.
const JUDGE: &str = r#"
window.addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, wrong = [];
  const wide = page.documentElement.scrollWidth;
  if (wide > 400) wrong.push("the page is " + wide + " wide");
  const plots = page.querySelectorAll("svg.plot");
  if (!plots.length) wrong.push("there is no figure");
  plots.forEach(plot => {
    const name = plot.getAttribute("aria-label"), data = [...plot.querySelectorAll(".data")];
    const seen = data.filter(it => { const box = it.getBBox(); return box.width > 0 && box.height >= 0; });
    if (!seen.length) wrong.push("empty: " + name);
  });
  page.querySelectorAll("table").forEach(it => { if (!it.querySelector("tbody tr")) wrong.push("an empty table"); });
  if (page.querySelector("script")) wrong.push("the page has a script");
  document.title = "JUDGED " + plots.length + " figures; " + (wrong.join("; ") || "nothing wrong") + " END";
});
"#;

#[test]
fn the_report_can_be_looked_at() {
    let Some(chromium) = chromium() else {
        assert!(
            env::var_os("LOWTIDE_REQUIRE_CHROMIUM").is_none_or(|it| it != "1"),
            "there is no chromium to look with"
        );
        println!("skipped: there is no chromium to look at the report with");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let library = Library::built_in().unwrap();
    let cache = Cache::new(directory.path().join("cache"));
    let sections = sections(&library, &cache);
    let page = lowtide_lab::report::page(&sections);
    let frame = page.replace('&', "&amp;").replace('"', "&quot;");
    let judged = directory.path().join("judged.html");
    let html = format!(
        "<!DOCTYPE html><meta charset=utf-8><iframe width=400 height=800 style=\"border:0\" srcdoc=\"{frame}\"></iframe>\
         <script>{JUDGE}</script>"
    );
    fs::write(&judged, html).unwrap();
    let (dom, log) = look(&chromium, &judged, directory.path());
    let verdict = dom.split("JUDGED ").nth(1).and_then(|rest| rest.split(" END").next());
    let complaints: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let verdict = verdict.unwrap_or_else(|| panic!("the page was not judged: {log}"));
    println!("{verdict}");
    assert!(verdict.ends_with("nothing wrong"), "{verdict}");
}

/// The fast experiments, run, and the others, which were not.
fn sections<'a>(library: &'a Library, cache: &Cache) -> Vec<Section<'a>> {
    let fast = |id: &str| ["formulas", "kinds-of-foreground"].contains(&id);
    let extent = Extent { quick: true, ..Extent::default() };
    let section = |experiment| {
        let plan = Plan::new(experiment, extent).unwrap();
        let run = fast(&plan.experiment.id);
        let runner = Runner { library, cache, shard: Shard::WHOLE, run, threads: None, again: false, testbed: None };
        let mut results: Vec<Results<'a>> = runner.results(vec![plan]).unwrap();
        Section::new(library, results.remove(0), |id, _, _| format!("lowtide lab run {id}")).unwrap()
    };
    library.experiments.iter().map(section).collect()
}

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).flat_map(|path| names.map(|name| path.join(name))).find(|path| path.is_file())
}

/// The document as Chromium has it after loading, and what it says meanwhile.
fn look(chromium: &Path, page: &Path, directory: &Path) -> (String, String) {
    let [dom, log] = ["dom", "log"].map(|name| directory.join(name));
    let mut child = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromium has not finished after {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(50));
    }
    let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    (read(dom), read(log))
}
