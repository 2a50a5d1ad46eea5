// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rsync 3.5, restic 0.14 and rclone 1.60 printed, as it was recorded.

use proptest::prelude::*;

use super::*;

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../../../fuzz/corpus/progress/", $name))
    };
}

/// All that a program says of its progress while it prints this.
fn said(source: Source, output: &[u8]) -> Vec<Progress> {
    let mut reader = Reader::new(source);
    let read = |byte: &u8| {
        reader.read(&[*byte]);
        reader.news()
    };
    output.iter().filter_map(read).collect()
}

fn of(done: u64, total: u64) -> Progress {
    Progress { done, total }
}

#[test]
fn restic_tells_bytes() {
    let said = said(Source::Restic, recorded!("restic"));
    assert_eq!(said[..2], [of(0, 3_000_000), of(593_063, 9_000_000)]);
    assert_eq!(said.last(), Some(&of(9_000_000, 9_000_000)));
    assert_eq!(said.len(), 7, "the summary is one of them");
}

#[test]
fn restic_tells_what_it_restores() {
    let output = br#"{"message_type":"status","total_files":2,"total_bytes":20,"bytes_restored":8,"bytes_skipped":2}
{"message_type":"verbose_status","action":"restored","item":"/a","size":8}
{"message_type":"summary","total_files":2,"files_restored":2,"total_bytes":20,"bytes_restored":20}
"#;
    assert_eq!(said(Source::Restic, output), [of(10, 20), of(20, 20)]);
}

#[test]
fn rclone_tells_bytes_in_its_log_and_its_statistics_in_text() {
    let json = said(Source::Rclone, recorded!("rclone-json"));
    assert!(json.len() > 8 && json.iter().all(|progress| progress.total == 9_000_000), "{json:?}");
    assert_eq!(json.last(), Some(&of(9_000_000, 9_000_000)));
    for output in [&recorded!("rclone-line")[..], recorded!("rclone-text")] {
        let text = said(Source::Rclone, output);
        // 8.583 MiB
        assert!(text.len() > 2 && text.iter().all(|it| it.total.abs_diff(9_000_000) < 1000), "{text:?}");
        assert!(text.is_sorted_by_key(|progress| progress.done));
        assert_eq!(text.last().map(|progress| progress.remaining()), Some(0));
    }
}

#[test]
fn rsync_tells_bytes_and_what_part_they_are() {
    let few = said(Source::Rsync, recorded!("rsync-few"));
    // 33 % of what is more than 8.82 and up to 9.09 MB
    assert_eq!(few[0], of(3_000_000, 9_090_909));
    assert!(few.iter().all(|progress| (9_000_000..=9_090_909).contains(&progress.total)), "{few:?}");
    assert_eq!(few.last().map(|progress| progress.remaining()), Some(0));
    let human = said(Source::Rsync, recorded!("rsync-human"));
    assert_eq!(human.last().map(|progress| progress.remaining()), Some(0));
    assert!(human.iter().all(|progress| (8_990_000..=9_100_000).contains(&progress.total)), "{human:?}");
}

/// 120 files of 20 kB: from one percent to the next the total is known better.
#[test]
fn rsyncs_total_becomes_narrow() {
    let many = said(Source::Rsync, recorded!("rsync-many"));
    let totals: Vec<_> = many.iter().map(|progress| progress.total).collect();
    assert!(totals.iter().all(|total| *total >= 2_400_000), "never too little is left: {totals:?}");
    let half = many.iter().find(|progress| progress.done > 1_200_000).unwrap();
    assert!(half.total < 2_450_000, "{half:?}");
}

/// One file of 120 has changed, and the rest counts in the percentage.
#[test]
fn what_rsync_finds_up_to_date_is_not_left_in_the_end() {
    let again = said(Source::Rsync, recorded!("rsync-again"));
    assert_eq!(again.last(), Some(&of(60_000, 60_000)));
}

#[test]
fn rsync_in_other_words() {
    for (line, progress) in [
        ("  1.234.567  50%    1,21MB/s    0:00:10 ", Some(of(1_234_567, 2_469_134))),
        ("  1,23G   1%  11.70MB/s    0:00:10 (xfr#3, ir-chk=1005/2010)", Some(of(1_230_000_000, 123_000_000_000))),
        ("  32,768   0%    0.00kB/s    0:00:00", None),
        ("  5 100%    0.00kB/s    0:00:00 (xfr#1, to-chk=3/4)", Some(of(5, 5))),
        ("  99,999,999,999,999,999,999  10% 1kB/s 0:00:00", None),
        ("  10  101% 1kB/s 0:00:00", None),
        ("  KK  10% 1kB/s 0:00:00", None),
        ("  9e9K  10% 1kB/s 0:00:00", None),
        ("sent 9,002,400 bytes  received 73 bytes  3,600,989.20 bytes/sec", None),
        ("100% of it is mine", None),
    ] {
        assert_eq!(said(Source::Rsync, format!("{line}\r").as_bytes()).pop(), progress, "{line}");
    }
}

#[test]
fn what_is_none_of_it_changes_nothing() {
    for source in [Source::Rsync, Source::Restic, Source::Rclone] {
        for line in [
            "",
            "{",
            "{}",
            "[1, 2]",
            "{\"message_type\":\"status\"}",
            "{\"message_type\":\"status\",\"total_bytes\":-1}",
            "{\"message_type\":\"summary\",\"total_bytes_processed\":5}",
            "{\"message_type\":\"status\",\"total_bytes\":1e300,\"bytes_done\":7}",
            "{\"stats\":{\"bytes\":3}}",
            "{\"stats\":{\"bytes\":\"3\",\"totalBytes\":\"4\"}}",
            "Transferred:            3 / 3, 100%",
            "a / b",
            "NaN MiB / inf MiB, 3%, 1 B/s",
            "1 MiB / 2 MB, 50%, 1 B/s",
        ] {
            assert_eq!(said(source, format!("{line}\n").as_bytes()), [], "{line}");
        }
    }
    let huge = "99999999 EiB / 99999999 EiB, 0%, 1 B/s\n";
    assert_eq!(said(Source::Rclone, huge.as_bytes()), [of(u64::MAX, u64::MAX)]);
}

#[test]
fn a_line_that_is_too_long_or_has_a_gap_does_not_count_and_the_next_one_does() {
    let line = b"{\"message_type\":\"status\",\"total_bytes\":20,\"bytes_done\":5}\n";
    let mut reader = Reader::new(Source::Restic);
    for _ in 0..1000 {
        reader.read(&[b'x'; 4096]);
        assert!(reader.line.capacity() <= 2 * LONGEST_LINE);
    }
    reader.read(line);
    assert_eq!(reader.news(), None);
    reader.read(line);
    assert_eq!(reader.news(), Some(of(5, 20)));
    reader.read(&line[..20]);
    reader.miss();
    reader.read(line); // its beginning may be missing
    assert_eq!(reader.news(), None);
    reader.read(line);
    assert_eq!(reader.news(), Some(of(5, 20)));
}

proptest! {
    /// However the output is cut into pieces, and whatever is around it.
    #[test]
    fn pieces_and_what_is_between_lines_do_not_matter(
        cuts in prop::collection::vec(1usize..200, 1..60),
        noise in prop::collection::vec(any::<u8>(), 0..300),
        end in prop::sample::select(vec![b'\n', b'\r']),
    ) {
        for (source, output) in [
            (Source::Restic, &recorded!("restic")[..]),
            (Source::Rclone, recorded!("rclone-text")),
            (Source::Rsync, recorded!("rsync-few")),
        ] {
            let mut reader = Reader::new(source);
            reader.read(&noise);
            reader.read(&[end]);
            let mut rest = output;
            for cut in cuts.iter().cycle() {
                let (piece, then) = rest.split_at(rest.len().min(*cut));
                reader.read(piece);
                rest = then;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(reader.latest().map(Progress::remaining), Some(0));
        }
    }

    /// As rsync computes its percentage: what is left is never too little, unless more files turn up.
    #[test]
    fn rsyncs_total_is_bounded_from_both_sides(total in 1u64..u64::MAX / 200, steps in prop::collection::vec(0u64..1000, 1..80)) {
        let mut bounds = rsync::Total::default();
        let all: u64 = steps.iter().sum();
        let mut gone = 0;
        for step in steps {
            gone += step;
            let done = (u128::from(total) * u128::from(gone) / u128::from(all.max(1))) as u64;
            let percent = u128::from(done) * 100 / u128::from(total);
            let told = bounds.line(&format!("{done} {percent}% 1.00kB/s 0:00:01"));
            if let Some(told) = told {
                prop_assert!(told.total + 1 >= total, "{told:?} of {total}");
                prop_assert!(told.done == done && u128::from(told.total) <= u128::from(done) * 100 / percent.max(1));
            }
        }
    }
}
