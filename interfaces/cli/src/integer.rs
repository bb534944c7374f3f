//! Integers as the library's merge operators keep them, 64 bits, little-endian, and in decimal.
//!
//! Purpose: what an operator takes for an operand, and how a value is shown.
//! Invariants: an integer that is shown is read as the same bytes, by the same operator.

use std::ops::RangeInclusive;

use adamant::BuiltInOperator;

/// The integers that an operator takes; `None`: it takes bytes.
fn range_of(operator: BuiltInOperator) -> Option<RangeInclusive<i128>> {
    match operator {
        // A sum of either kind: it wraps around.
        BuiltInOperator::Add => Some(i64::MIN.into()..=u64::MAX.into()),
        BuiltInOperator::MaxU64 | BuiltInOperator::MinU64 => Some(0..=u64::MAX.into()),
        BuiltInOperator::MaxI64 | BuiltInOperator::MinI64 => {
            Some(i64::MIN.into()..=i64::MAX.into())
        }
        _ => None,
    }
}

/// Whether an operator's operands are integers.
pub(crate) fn takes_integers(operator: BuiltInOperator) -> bool {
    range_of(operator).is_some()
}

/// The bytes of an integer in decimal, for an operator that takes integers.
///
/// # Errors
/// What was expected, and what was found.
pub(crate) fn parse(operator: BuiltInOperator, text: &str) -> Result<[u8; 8], String> {
    let range = range_of(operator).unwrap_or(0..=0);
    let number = text.parse::<i128>().ok().filter(|number| range.contains(number));
    // The low 64 bits, which are those of either kind.
    number.map(|number| (number as u64).to_le_bytes()).ok_or_else(|| {
        format!(
            "expected an integer of {} to {}, as the merge operator {} takes it, found {text:?}; \
             give other bytes with --base64",
            range.start(),
            range.end(),
            operator.name()
        )
    })
}

/// A stored integer: without a sign if its operator, if any, takes none.
///
/// # Errors
/// What was expected, and what was found.
pub(crate) fn read(operator: Option<BuiltInOperator>, value: &[u8]) -> Result<i128, String> {
    let bytes = value.try_into().map_err(|_| {
        let found = value.len();
        format!("expected an integer of 8 bytes, found {found} bytes; get them without --integer")
    })?;
    Ok(match operator {
        Some(BuiltInOperator::MaxU64 | BuiltInOperator::MinU64) => u64::from_le_bytes(bytes).into(),
        _ => i64::from_le_bytes(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_as_the_same_bytes() {
        let mut random = fastrand::Rng::with_seed(6);
        for operator in BuiltInOperator::ALL.into_iter().filter(|it| takes_integers(*it)) {
            let edges = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1];
            let all = edges.into_iter().chain(std::iter::repeat_with(|| random.u64(..)).take(500));
            for bytes in all.map(u64::to_le_bytes) {
                let shown = read(Some(operator), &bytes).unwrap().to_string();
                assert_eq!(parse(operator, &shown), Ok(bytes), "{operator:?}: {shown}");
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        use BuiltInOperator::{Add, MaxI64, MaxU64};
        assert_eq!(parse(Add, "18446744073709551615"), Ok([255; 8]));
        assert_eq!(parse(Add, "-1"), Ok([255; 8]));
        for (operator, text, says) in [
            (Add, "18446744073709551616", "18446744073709551615"),
            (Add, "-9223372036854775809", "-9223372036854775808"),
            (MaxU64, "-1", "0 to"),
            (MaxI64, "9223372036854775808", "9223372036854775807"),
            (Add, "", "found \"\""),
            (Add, "1.5", "found \"1.5\""),
            (Add, " 1", "--base64"),
        ] {
            let error = parse(operator, text).unwrap_err();
            assert!(error.contains(says) && error.contains(operator.name()), "{error}");
        }
        assert!(read(None, b"seven b").unwrap_err().contains("found 7 bytes"));
        assert_eq!(read(None, &[255; 8]), Ok(-1));
    }
}
