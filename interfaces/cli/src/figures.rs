//! Human-readable numbers.

use std::time::Duration;

/// A count with commas: 1234567 as `1,234,567`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rate per second, rounded; an immeasurably short time counts as a microsecond.
pub(crate) fn per_second(count: u64, time: Duration) -> u64 {
    (count as f64 / time.as_secs_f64().max(1e-6)).round() as u64
}

/// Bytes in units of 1024: `5.5 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}

/// Reads bytes: a number, alone or before KiB, MiB, GiB or TiB.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    let bytes = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("expected bytes, such as 1000000 or 64MiB, found {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_every_three_digits() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(count), text);
        }
    }

    #[test]
    fn rates_are_finite() {
        assert_eq!(per_second(500, Duration::from_millis(500)), 1_000);
        assert_eq!(per_second(1, Duration::ZERO), 1_000_000);
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("7"), Ok(7));
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("2 KiB"), Ok(2048));
        for wrong in ["", "MiB", "1.5MiB", "64mb", "-1", "99999999TiB", "99999999999999999999"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
