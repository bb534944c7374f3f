//! Numbers and tables as text.

use std::fmt::Write as _;

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
