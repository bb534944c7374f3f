//! Numbers and tables as text, and numbers from it.

use std::fmt::Write as _;

use crate::harness::error::Result;

/// The numbers that a child process was given as arguments.
///
/// # Errors
/// They are more or fewer, or one is no number.
pub fn numbers<const N: usize>(arguments: &[String]) -> Result<[u64; N]> {
    let numbers: Vec<u64> =
        arguments.iter().map(|it| it.parse()).collect::<std::result::Result<_, _>>()?;
    numbers.try_into().map_err(|_| format!("a child needs {N} numbers").into())
}

/// Enough digits to compare by, and no more.
pub fn figure(figure: f64) -> String {
    let digits = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 4,
    };
    format!("{figure:.digits$}")
}

/// A table in Markdown: the first column to the left, the others to the right.
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "| {} |", head.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(head.len().saturating_sub(1)));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        let texts = [1234.5, 12.34, 1.234, 0.01234, 0.0].map(figure);
        assert_eq!(texts, ["1234", "12.3", "1.23", "0.0123", "0.00"]);
    }
}
