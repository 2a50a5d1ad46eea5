// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spans of time, as people read them.

use jiff::SignedDuration;

/// `11 h 57 min`, `4 min 10 s`, `8.2 s`: the two greatest units, and tenths only of seconds alone. The sign is left out.
pub fn show(span: SignedDuration) -> String {
    let seconds = span.as_secs_f64().abs();
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.round() as u64;
    let (greater, lesser) = match seconds {
        s if s >= 86_400 => ((s / 86_400, "d"), (s % 86_400 / 3_600, "h")),
        s if s >= 3_600 => ((s / 3_600, "h"), (s % 3_600 / 60, "min")),
        s => ((s / 60, "min"), (s % 60, "s")),
    };
    let (number, unit) = greater;
    match lesser {
        (0, _) => format!("{number} {unit}"),
        (rest, small) => format!("{number} {unit} {rest} {small}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_at_the_most() {
        for (milliseconds, text) in [
            (0, "0.0 s"),
            (8_240, "8.2 s"),
            (-8_240, "8.2 s"),
            (59_940, "59.9 s"),
            (59_960, "1 min"),
            (250_000, "4 min 10 s"),
            (3_600_000, "1 h"),
            (43_053_800, "11 h 57 min"),
            (200_000_000, "2 d 7 h"),
        ] {
            assert_eq!(show(SignedDuration::from_millis(milliseconds)), text);
        }
    }
}
