// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide trace`: what the control laws of running transfers know and decide. docs/tracing.md describes the format.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod listen;
mod picture;
mod read;
#[cfg(target_os = "linux")]
mod write;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use lowtide_net::file;

use crate::draft;

#[cfg(target_os = "linux")]
pub use listen::trace;

/// Bytes of a trace that is drawn: some hours of a connection.
const MOST: u64 = 512 << 20;

/// Draws the trace in `file`.
///
/// # Errors
/// In a sentence: it cannot be read or is no trace, or the picture cannot be written.
pub fn plot(file: &Path, output: Option<&Path>) -> Result<ExitCode> {
    let text = file::read_text(file, MOST).with_context(|| format!("cannot read the trace {}", file.display()))?;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let svg = picture_of(&text, &name).with_context(|| format!("{} is no trace in JSON lines", file.display()))?;
    let output = output.map_or_else(|| file.with_extension("svg"), PathBuf::from);
    draft::write(&output, svg.as_bytes()).with_context(|| format!("cannot write the picture {}", output.display()))?;
    writeln!(io::stdout(), "{}", output.display())?;
    Ok(ExitCode::SUCCESS)
}

/// The picture of a trace in JSON lines, as SVG, with its name.
///
/// # Errors
/// In a sentence: what is wrong, and in which line.
pub fn picture_of(text: &str, name: &str) -> Result<String> {
    Ok(picture::draw(&read::read(text)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = r#"{"lowtide_trace":1,"started":"2026-11-22T05:00:00Z"}"#;

    /// A JSON value that may stand for a field, mostly a number that may be absurd.
    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => (0.0..1e9_f64).prop_map(|n| n.to_string()),
            2 => any::<f64>().prop_map(|n| format!("{n:e}")),
            2 => prop::sample::select(vec![
                "0", "-1", "1e16", "1.1e16", "1e308", "1e999", "-0.0", "18446744073709551615", "NaN", "null", "\"a\"", "[]",
                "{}", "true", "5e-324", "\"\\u0000<\"",
            ]).prop_map(str::to_owned),
            1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ]
    }

    fn record() -> impl Strategy<Value = String> {
        let number = || prop_oneof![6 => (0..2_000_000_000_u64).prop_map(|n| n.to_string()), 1 => value()];
        let word = |usual: &'static str| prop_oneof![6 => Just(format!("\"{usual}\"")), 1 => value()];
        let event = prop_oneof![
            4 => prop::sample::select(vec!["\"round\"", "\"loss\"", "\"dropped\""]).prop_map(str::to_owned),
            1 => value()
        ];
        (number(), number(), number(), number(), number(), event, word("vegas"), word("192.0.2.1:1")).prop_map(
            |(t, connection, cwnd, ssthresh, rtt, event, law, peer)| {
                format!(
                    r#"{{"t_us":{t},"connection":{connection},"event":{event},"law":{law},"peer":{peer},"cwnd":{cwnd},"ssthresh":{ssthresh},"srtt_us":{rtt},"dropped":{connection}}}"#
                )
            },
        )
    }

    proptest! {
        #[test]
        fn any_record_is_drawn_or_refused_in_a_sentence(
            records in prop::collection::vec(prop_oneof![9 => record(), 1 => any::<String>()], 0..6),
        ) {
            match picture_of(&format!("{HEADER}\n{}", records.join("\n")), "a.jsonl") {
                Ok(svg) => prop_assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf")),
                Err(error) => {
                    let sentence = format!("{error:#}");
                    prop_assert!(!sentence.is_empty() && !sentence.contains('\n'), "{}", sentence);
                }
            }
        }
    }

    #[test]
    fn what_was_drawn_stays_where_a_trace_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        let (file, picture) = (directory.path().join("a.jsonl"), directory.path().join("a.svg"));
        std::fs::write(&picture, "old").unwrap();
        let record = r#"{"t_us":1e30,"connection":1,"event":"round","law":"a","peer":"b","cwnd":1}"#;
        std::fs::write(&file, format!("{HEADER}\n{record}\n")).unwrap();
        let sentence = format!("{:#}", plot(&file, None).unwrap_err());
        assert!(sentence.contains("a.jsonl") && sentence.contains("line 2") && sentence.contains("t_us"), "{sentence}");
        assert_eq!(std::fs::read_to_string(&picture).unwrap(), "old");
        let sentence = format!("{:#}", plot(directory.path(), Some(&picture)).unwrap_err());
        assert!(sentence.contains("it is a directory"), "{sentence}");
    }
}
