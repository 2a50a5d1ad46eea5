// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths of time as people read them.

use std::time::Duration;

/// The two greatest units of it, what is below them left out: `3 d 4 h`, `11 h 57 min`, `2 min 5 s`, `43 s`; below ten
/// seconds `4.2 s`.
pub fn show(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 10 {
        return format!("{seconds}.{} s", span.subsec_millis() / 100);
    }
    let (greater, lesser, names) = match seconds {
        86_400.. => (86_400, 3_600, ["d", "h"]),
        3_600.. => (3_600, 60, ["h", "min"]),
        60.. => (60, 1, ["min", "s"]),
        _ => return format!("{seconds} s"),
    };
    match seconds % greater / lesser {
        0 => format!("{} {}", seconds / greater, names[0]),
        rest => format!("{} {} {rest} {}", seconds / greater, names[0], names[1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_say_enough() {
        for (seconds, text) in [
            (0.0, "0.0 s"),
            (4.29, "4.2 s"),
            (9.99, "9.9 s"),
            (43.7, "43 s"),
            (59.9, "59 s"),
            (60.0, "1 min"),
            (125.0, "2 min 5 s"),
            (3_629.0, "1 h"),
            (43_053.8, "11 h 57 min"),
            (86_399.0, "23 h 59 min"),
            (273_600.0, "3 d 4 h"),
            (8_640_000.0, "100 d"),
        ] {
            assert_eq!(show(Duration::from_secs_f64(seconds)), text, "{seconds}");
        }
    }
}
