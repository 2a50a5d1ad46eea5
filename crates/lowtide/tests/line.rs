// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that changes in place shares a terminal with PROGRAM, and takes nothing of PROGRAM's away.

#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/terminal.rs"]
mod terminal;

use std::{fs, num::NonZeroU16, path::Path, process::Command, thread, time::Duration};

use lifecycle::{finish, needs_kernel};
use terminal::{Terminal, screen};

const LOWTIDE: &str = env!("CARGO_BIN_EXE_lowtide");
const ROWS: u16 = 60;
/// What the line, and nothing else, says throughout these tests.
const LINE: &str = "gentle (w 0.004)";

/// The rows that have text once this has been shown.
fn rows_of(shown: &[u8], columns: u16) -> Vec<String> {
    let mut screen = screen(ROWS, columns);
    screen.process(shown);
    text(&screen)
}

fn text(screen: &vt100::Parser) -> Vec<String> {
    let contents = screen.screen().contents();
    contents.lines().map(str::trim_end).filter(|row| !row.is_empty()).map(str::to_owned).collect()
}

/// At any time the line is in one row, and nowhere else.
fn never_wraps(shown: &str, columns: u16) {
    let mut screen = screen(ROWS, columns);
    for part in shown.split_inclusive("\x1b[K") {
        screen.process(part.as_bytes());
        let rows: Vec<_> = screen.screen().rows(0, columns).collect();
        let lines: Vec<_> = (0..).zip(&rows).filter(|(_, row)| row.contains(LINE)).map(|(row, _)| row).collect();
        assert!(lines.len() <= 1 && !lines.iter().any(|row| screen.screen().row_wrapped(*row)), "{rows:?}");
    }
}

/// What `lowtide run` shows of a program, and what the program itself writes to its terminal, which a recorder between
/// them keeps.
fn run_recorded(program: &str, columns: u16, directory: &Path) -> (String, Vec<u8>) {
    let file = directory.join(format!("record-{columns}"));
    let script = format!(
        "cd {}; {LOWTIDE} run -- script -qe -O {} -c '{program}'; exit $?",
        directory.display(),
        file.display()
    );
    let (status, shown) = Terminal::sized(&script, ROWS, columns).end();
    assert_eq!(status, Some(0), "{program}: {shown}");
    let record = fs::read(file).unwrap();
    let begin = record.iter().position(|byte| *byte == b'\n').expect("the recorder's first line") + 1;
    let end = record.windows(12).rposition(|window| window == b"\nScript done").expect("the recorder's last line");
    (shown, record[begin..end].to_vec())
}

/// The screen at the end, but for Lowtide's last words, is the one that the program would have left alone.
fn shares_the_screen_with(program: impl Fn(u16) -> String, directory: &Path, last: &str) {
    for columns in [40, 80, 200] {
        let (shown, record) = run_recorded(&program(columns), columns, directory);
        assert!(shown.contains(LINE), "there was a line: {shown:?}");
        let rows = rows_of(shown.as_bytes(), columns);
        let (ours, its): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(|row| row.starts_with("lowtide: "));
        assert_eq!(ours.len(), 1, "the summary: {rows:?}");
        assert_eq!(its, rows_of(&record, columns), "{columns} columns: {shown:?}");
        assert!(its.concat().contains(last), "{columns} columns: {its:?}");
        never_wraps(&shown, columns);
    }
}

/// Files of 12 MB together that no program can compress.
fn files(directory: &Path) {
    let source = directory.join("source");
    fs::create_dir(&source).unwrap();
    let mut value = 1u64;
    for number in 0..6 {
        let byte = || {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (value >> 56) as u8
        };
        let bytes: Vec<u8> = std::iter::repeat_with(byte).take(2_000_000).collect();
        fs::write(source.join(format!("file-with-a-rather-long-name-{number}")), bytes).unwrap();
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn rsync_keeps_its_screen() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let rsync = |columns| format!("rsync -a --info=progress2,stats1 --bwlimit=4M source/ rsync-{columns}/");
    shares_the_screen_with(rsync, directory.path(), "total size is 12,");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn restic_keeps_its_screen() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let init = "export RESTIC_PASSWORD=x; restic init --repo restic-40 && cp -r restic-40 restic-80 && cp -r restic-40 restic-200";
    assert!(finish(Command::new("sh").args(["-c", init]).current_dir(directory.path())).status.success());
    let restic =
        |columns| format!("RESTIC_PASSWORD=x restic --repo restic-{columns} --cache-dir cache-{columns} backup source");
    shares_the_screen_with(restic, directory.path(), " saved");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn rclone_keeps_its_screen() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    files(directory.path());
    let rclone = |columns| format!("rclone --config /dev/null copy --progress --bwlimit 4M source rclone-{columns}");
    shares_the_screen_with(rclone, directory.path(), "100%");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn prompts_bars_and_lines_without_an_end_stay() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("program"),
        r"
        printf 'a question: '; sleep 0.6; printf 'an answer\n'
        for part in 10 20 30; do printf '\r%s %% of something' $part; sleep 0.3; done; printf '\n'
        printf 'first\nsecond\nthird\r\033[2A'; sleep 0.6
        printf '\033[KFIRST\n\033[KSECOND\n\033[KTHIRD\n'; sleep 0.6
        printf '\033[31mred '; sleep 0.6; printf 'and still red\033[m\n'
        printf 'a row as long as the terminal is wide, and then some more of it: %s' $(seq -s, 60); sleep 0.6
        printf '\nthe last words'
        ",
    )
    .unwrap();
    shares_the_screen_with(|_| "sh program".to_owned(), directory.path(), "the last words");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_smaller_window_cuts_the_line() {
    needs_kernel();
    let program = "trap \"\" WINCH; sleep 1; printf \"half \"; sleep 2; echo done";
    let mut terminal = Terminal::sized(&format!("{LOWTIDE} run -- sh -c '{program}'"), ROWS, 100);
    terminal.shows("half ");
    terminal.shows(LINE);
    thread::sleep(Duration::from_millis(300)); // from now on the line says the same
    terminal.read();
    let before = terminal.shown.len();
    terminal.resize(ROWS, 45);
    let (_, shown) = terminal.end();
    let mut screen = screen(ROWS, 100);
    screen.process(&shown.as_bytes()[..before]);
    assert!(text(&screen).iter().any(|row| row.ends_with("in the background")), "{shown:?}");
    screen.set_size(NonZeroU16::new(ROWS).unwrap(), NonZeroU16::new(45).unwrap());
    let mut cut = false;
    for part in shown[before..].split_inclusive("\x1b[K") {
        screen.process(part.as_bytes());
        cut |= text(&screen).iter().any(|row| row.contains(LINE) && row.ends_with('…'));
    }
    assert!(cut, "{shown:?}");
    let rows = text(&screen);
    assert!(rows.len() == 2 && rows[0] == "half done" && rows[1].starts_with("lowtide: "), "{rows:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn where_nothing_can_change_in_place_there_are_lines() {
    needs_kernel();
    let check = |run: String, after: &str, lines: usize| {
        let (_, shown) = Terminal::start(&format!("cd /; {run} --size 1GB --deadline +1h -- sleep 4 {after}")).end();
        assert!(!shown.contains('\x1b'), "{run}: {shown:?}");
        let count =
            |part: &str| shown.lines().filter(|line| line.starts_with("lowtide: ") && line.contains(part)).count();
        let summary = usize::from(!run.contains("quiet"));
        let found = (count("waiting for the program's connection"), count(": 0 B in "));
        assert_eq!(found, (lines, summary), "{run}: {shown:?}");
    };
    thread::scope(|scope| {
        for (run, after, lines) in [
            (format!("TERM=dumb {LOWTIDE} run"), "", 1),
            (format!("TERM=dumb {LOWTIDE} run --user nobody"), "", 1),
            (format!("{LOWTIDE} run"), "| cat", 1),
            (format!("{LOWTIDE} run --progress line"), "", 1),
            (format!("{LOWTIDE} run --progress line --user nobody"), "", 1),
            (format!("{LOWTIDE} run --progress never"), "", 0),
            (format!("{LOWTIDE} run --quiet"), "", 0),
        ] {
            scope.spawn(move || check(run, after, lines));
        }
    });
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_the_law_went_by_is_told_on_demand() {
    needs_kernel();
    for (option, told) in [("", false), ("--verbose", true)] {
        let (_, shown) = Terminal::start(&format!("{LOWTIDE} run {option} -- sleep 0.6")).end();
        assert_eq!(shown.contains("delay back-offs"), told, "{option}: {shown:?}");
    }
}
