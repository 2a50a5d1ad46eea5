// SPDX-License-Identifier: MIT OR Apache-2.0
//! `SIZE`: amounts of data as people write them, and as they read them.

use anyhow::{Result, bail};

/// Digits of the largest number of 64 bits.
const MOST_DIGITS: usize = 20;

/// Reads `120GiB`, `40MB` or bytes.
///
/// # Errors
/// One sentence: unreadable, or 0.
pub fn parse(text: &str) -> Result<u64> {
    // parse-size rounds a number of more digits, and that may overflow
    if text.bytes().filter(u8::is_ascii_digit).count() > MOST_DIGITS {
        bail!(
            "cannot read the size '{text}', of more than {MOST_DIGITS} digits; write 120GiB, 40MB or a number of bytes"
        );
    }
    match parse_size::parse_size(text) {
        Ok(0) => bail!("that leaves nothing to send; give what there is to move, such as 120GiB"),
        Ok(bytes) => Ok(bytes),
        Err(parse_size::Error::PosOverflow) => {
            bail!("cannot read the size '{text}', of more than 18 EB; write 120GiB, 40MB or a number of bytes")
        }
        Err(_) => bail!("cannot read the size '{text}'; write 120GiB, 40MB or a number of bytes"),
    }
}

/// `4.2 MB`.
pub fn show(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

/// `8.1 Mbit/s`, from bytes per second.
pub fn show_rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b => (b / 1e3, "kbit/s"),
    };
    let decimals = if value < 10.0 { 2 } else { 1 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_say_it() {
        for (text, bytes) in [("120GiB", 120 << 30), ("40MB", 40_000_000), ("1.5 GB", 1_500_000_000), ("12345", 12345)]
        {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn nothing_and_nonsense_are_refused() {
        assert!(parse("0").unwrap_err().to_string().contains("nothing to send"));
        assert!(parse("16EiB").unwrap_err().to_string().contains("more than 18 EB"));
        for text in [
            "",
            "much",
            "-4MB",
            "4 parsecs",
            "184467440737095516159",
            "18446744073709551616",
            "0.000000000000000000001",
        ] {
            assert!(parse(text).unwrap_err().to_string().contains("cannot read the size"), "{text}");
        }
    }

    #[test]
    fn rates_are_shown_in_bits() {
        assert_eq!(show_rate(1_250_000.0), "10.0 Mbit/s");
        assert_eq!(show_rate(1_000.0), "8.00 kbit/s");
    }
}
