// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decimal fractions in integer arithmetic.

/// Splits `1.5gbit` into `1.5` and `gbit`, the unit in lower case.
pub(super) fn split(text: &str) -> (&str, String) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start_matches(' ').to_ascii_lowercase())
}

/// `number` × `unit`, rounded down; `None` if it is no number or too large.
pub(super) fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (fraction.is_empty() && number.contains('.')) {
        return None;
    }
    let tenths = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    u64::try_from(digits.checked_mul(u128::from(unit))? / tenths).ok()
}

/// `value` in the largest of `units` that is not larger than it, exactly. The units are powers of
/// ten in falling order, and the last is 1.
pub(super) fn format(value: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(unit, _)| *unit <= value);
    let &(unit, name) = fits.or(units.last()).expect("there is a unit");
    let digits = unit.ilog10() as usize;
    let number = format!("{}.{:0digits$}", value / unit, value % unit);
    let number =
        if unit == 1 { value.to_string() } else { number.trim_end_matches('0').trim_end_matches('.').to_owned() };
    number + name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact() {
        assert_eq!(scale("0.3", 1_000_000_000), Some(300_000_000));
        assert_eq!(scale("1.0000000019", 1_000_000_000), Some(1_000_000_001));
        assert_eq!(scale("18446744073709551615", 1), Some(u64::MAX));
    }

    #[test]
    fn other_texts_are_no_numbers() {
        let tiny = format!("0.{}1", "0".repeat(60));
        for text in ["", ".", "1.", ".5", "1.2.3", "18446744073709551616", &tiny] {
            assert_eq!(scale(text, 1), None, "{text}");
        }
    }
}
