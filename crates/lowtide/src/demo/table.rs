// SPDX-License-Identifier: MIT OR Apache-2.0
//! The four acts in figures.

use std::fmt::Write;

use super::{
    acts::{Bulk, RTT_MS},
    recording::{Flow, Recording, mean, percent_of, percentile},
};

/// One act.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    name: String,
    /// Mbit/s.
    foreground: f64,
    /// Percent of what it has alone.
    kept: f64,
    /// Mbit/s.
    bulk: Option<f64>,
    /// Mean and 95th percentile of the seconds' means, in ms.
    queue: (f64, f64),
    deadline: Option<String>,
}

/// The figures of all acts, the first of them the foreground alone.
pub(super) fn rows(recordings: &[Recording]) -> Vec<Row> {
    let foreground = |recording: &Recording| recording.mean(Flow::Foreground);
    let alone = recordings.first().map_or(0.0, foreground);
    let row = |recording: &Recording| Row {
        name: format!("{}  {}", recording.act.number, recording.act.name()),
        foreground: foreground(recording),
        kept: percent_of(foreground(recording), alone),
        bulk: (recording.act.bulk != Bulk::Absent).then(|| recording.mean(Flow::Bulk)),
        queue: (mean(&recording.queue), percentile(&recording.queue, 0.95)),
        deadline: recording.deadline().map(|deadline| deadline.sentence()),
    };
    recordings.iter().map(row).collect()
}

/// The table, for people.
pub(super) fn render(rows: &[Row]) -> String {
    let name_width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:name_width$}      foreground         bulk   queueing delay\n\
         {:name_width$}   Mbit/s    kept     Mbit/s     mean      p95\n",
        "", ""
    );
    let mut sentences = String::new();
    for row in rows {
        let bulk = row.bulk.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        // writing to a String cannot fail
        let _ = writeln!(
            text,
            "{:name_width$}   {:6.1}   {:3.0} %   {bulk:>8}   {:3.0} ms   {:3.0} ms",
            row.name, row.foreground, row.kept, row.queue.0, row.queue.1
        );
        if let Some(sentence) = &row.deadline {
            let act = row.name.split(' ').next().unwrap_or_default();
            let _ = writeln!(sentences, "The bulk transfer of act {act} {sentence}; its row ends with it.");
        }
    }
    format!("{text}\n{sentences}Rates are what the receivers got; the queueing delay adds to the link's {RTT_MS} ms.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::recording::examples::constant;

    #[test]
    fn the_figures_of_four_acts() {
        let rates = [(18.0, 0.0), (9.0, 9.0), (17.1, 1.0), (12.0, 6.0)];
        let rows = rows(&constant(rates, Some(18.5)));
        let kept: Vec<f64> = rows.iter().map(|row| row.kept.round()).collect();
        assert_eq!(kept, [100.0, 50.0, 95.0, 67.0]);
        assert_eq!(rows[0].bulk, None);
        assert!((rows[3].bulk.unwrap() - 6.0).abs() < 1e-3);
        assert_eq!(rows[1].queue, (9.5, 18.0));

        let text = render(&rows);
        assert!(text.contains("1  foreground alone               18.0   100 %          -    10 ms    18 ms"), "{text}");
        assert!(text.contains("2  + ordinary bulk transfer        9.0    50 %        9.0"), "{text}");
        assert!(text.contains("act 4 finished 1.5 s before the deadline"), "{text}");
    }

    #[test]
    fn nothing_measured_is_no_panic() {
        assert!(render(&rows(&[])).contains("foreground"));
    }
}
