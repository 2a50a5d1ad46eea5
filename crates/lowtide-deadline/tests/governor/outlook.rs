// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a program that pauses, waits or sends little.

use super::*;

/// What a program does, second by second, with what there is to say of it: a rate in bytes per second, and whether the
/// program is what limits it, has a connection, receives from its peer. Gives the kinds said, each with the second it
/// began.
fn said(g: &mut Governor, seconds: &[(f64, bool, bool, bool)]) -> String {
    let (mut sent, mut text, mut last) = (0.0, String::new(), "");
    for n in 0..seconds.len() * 10 {
        let (rate, app_limited, connected, waiting) = seconds[n / 10];
        sent += 0.1 * rate;
        let now = 0.1 * (n + 1) as f64;
        let d = g.tick(&Progress { active: rate > 0.0, app_limited, connected, waiting, ..progress(now, sent as u64) });
        let kind = match d.outlook {
            Outlook::TooEarly => "early",
            Outlook::OnCourse { .. } => "course",
            Outlook::Behind { .. } => "behind",
            Outlook::CannotFinish { .. } => "cannot",
            Outlook::Waiting { connected: false } => "connecting",
            Outlook::Waiting { connected: true } => "waiting",
            Outlook::ProgramLimited { .. } => "program",
            Outlook::Stalled { .. } => "stalled",
            _ => "other",
        };
        if kind != last {
            text += &format!("{}{kind} {}", if last.is_empty() { "" } else { ", " }, now.floor());
            last = kind;
        }
    }
    text
}

fn span(seconds: usize, what: (f64, bool, bool, bool)) -> Vec<(f64, bool, bool, bool)> {
    vec![what; seconds]
}

const SILENT: (f64, bool, bool, bool) = (0.0, true, true, false);
const HEARS: (f64, bool, bool, bool) = (0.0, true, true, true);
const BUSY: (f64, bool, bool, bool) = (1.2e6, false, true, false);

/// 25 MB in 50 s, half a megabyte a second.
fn program(spans: &[Vec<(f64, bool, bool, bool)>]) -> String {
    said(&mut governor(25 * MEGA, 50.0), &spans.concat())
}

#[test]
fn a_program_that_connects_or_waits_is_not_called_slow() {
    let nobody = (0.0, true, false, false);
    let handshake = (600.0, true, true, false);
    // no connection yet, then a handshake, then it sends
    assert_eq!(
        program(&[span(6, nobody), span(2, handshake), span(4, HEARS), span(20, BUSY)]),
        "early 0, connecting 3, waiting 6, early 15, course 16"
    );
    // a server that thinks for 15 s after a handshake, and says so now and then
    let thinks: Vec<_> = (0..15).map(|n| if n % 5 == 0 { HEARS } else { SILENT }).collect();
    assert_eq!(program(&[span(1, handshake), thinks, span(10, BUSY)]), "early 0, waiting 3, early 18, course 20");
    // one that does nothing for ten seconds and more, and does not wait for a peer
    assert_eq!(program(&[span(10, BUSY), span(20, SILENT)]), "early 0, course 4, waiting 18, program 20");
}

#[test]
fn a_program_that_sends_little_at_a_time_is_called_slow() {
    let throttled = (0.2e6, true, true, false);
    assert_eq!(program(&[span(30, throttled)]), "early 0, program 3");
    // enough for the deadline: nothing to complain about
    let enough = program(&[span(10, BUSY), span(15, (0.55e6, true, true, false))]);
    assert_eq!(enough, "early 0, course 4");
}

/// Bursts of one or two seconds with pauses as long, as programs have them that read, compress and then send.
#[test]
fn the_sentence_does_not_follow_each_pause() {
    for pattern in [[BUSY, SILENT], [SILENT, BUSY], [HEARS, BUSY]] {
        for length in [1, 2] {
            let turns: Vec<_> = (0..40).map(|n| pattern[n / length % 2]).collect();
            let text = program(&[turns]);
            assert!(text.split(", ").count() <= 3, "{pattern:?} {length}: {text}");
            assert!(!text.contains("program"), "{text}");
        }
    }
}
