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
}
