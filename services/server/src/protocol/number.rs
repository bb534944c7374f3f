//! Number syntax of Redis.
//!
//! Purpose: an integer has exactly one text: no spaces, no `+`, no leading zeros.

/// Parses an integer of 64 bits; `None` unless the text is its canonical one.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Decimals after the point to which sums are exact.
const SCALE_DIGITS: u32 = 17;

/// The sum of two decimal numbers, as a text without superfluous zeros; `None` if it is not finite.
///
/// Redis adds in the 80-bit floating point of x86 and prints 17 decimals. Here the sum is exact in
/// units of 10^-17 where both fit into 128 bits of those, and of 64-bit floating point elsewhere.
pub(crate) fn sum(one: Decimal, other: Decimal) -> Option<String> {
    if let (Some(one), Some(other)) = (one.units, other.units)
        && let Some(sum) = one.checked_add(other)
    {
        return Some(text_of_units(sum));
    }
    let sum = one.float + other.float;
    sum.is_finite().then(|| format!("{sum}"))
}

/// A parsed number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    float: f64,
    units: Option<i128>,
}

/// Parses a number: digits with a point, an exponent, or an infinity; no space.
pub(crate) fn decimal(text: &[u8]) -> Option<Decimal> {
    let text = std::str::from_utf8(text).ok()?;
    let float: f64 = text.parse().ok()?;
    (!float.is_nan()).then(|| Decimal { float, units: units(text) })
}

fn units(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let part_digits = u32::try_from(part.len()).ok()?;
    if !is_digits(whole) || !is_digits(part) || part_digits > SCALE_DIGITS {
        return None;
    }
    let of = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let whole = of(whole)?.checked_mul(10_i128.pow(SCALE_DIGITS))?;
    let part = of(part)? * 10_i128.pow(SCALE_DIGITS - part_digits);
    let units = whole.checked_add(part)?;
    Some(if is_negative { -units } else { units })
}

fn text_of_units(units: i128) -> String {
    let (scale, size) = (10_u128.pow(SCALE_DIGITS), units.unsigned_abs());
    let sign = if units < 0 { "-" } else { "" };
    let (whole, part) = (size / scale, size % scale);
    let text = format!("{sign}{whole}.{part:017}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_text() {
        for number in [0, 7, -7, 10, i64::MAX, i64::MIN, -1] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        let others =
            ["", "-", "-0", "+1", "01", " 1", "1 ", "1.0", "9223372036854775808", "0x1", "--1"];
        for text in others {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn sums_are_exact_where_they_fit() {
        let added = |one: &str, other: &str| {
            sum(decimal(one.as_bytes()).unwrap(), decimal(other.as_bytes()).unwrap())
        };
        assert_eq!(added("0.1", "0.2").unwrap(), "0.3");
        assert_eq!(added("10.5", "0.1").unwrap(), "10.6");
        assert_eq!(added("-1.5", "1.5").unwrap(), "0");
        assert_eq!(added("-1.25", "1").unwrap(), "-0.25");
        assert_eq!(added("5.0e3", "2.0e2").unwrap(), "5200");
        assert_eq!(added("3", "-5").unwrap(), "-2");
        assert_eq!(added("1e308", "1e308"), None, "it is infinite");
        for text in ["", "abc", "1 ", "nan", " 1"] {
            assert!(decimal(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
