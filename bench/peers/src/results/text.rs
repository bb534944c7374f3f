//! Figures with their range as text.

pub use adamant_bench::harness::text::{figure, table};

use crate::results::figures::Spread;

/// The median, and the range in brackets if there is one.
pub fn spread(spread: Spread) -> String {
    let (median, min, max) = (figure(spread.median), figure(spread.min), figure(spread.max));
    if min == max { median } else { format!("{median} ({min}..{max})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_stands_behind_the_median() {
        let range = spread(Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(range, "2.00 (1.00..3.00)");
    }
}
