//! Prose check: comments and documents have at most 100 columns, and name their subjects.
//!
//! Purpose: rustfmt leaves comments alone, and no other tool checks Markdown. Tables, code and
//! lines that are one long word, such as a link, may be longer. Vague pronouns are counted, not
//! refused.

/// Maximum characters of a line.
const COLUMNS_MAX: usize = 100;
/// Pronouns for a thread, a caller or a transaction that could be named.
const PRONOUNS: [&str; 4] = ["whoever", "nobody", "somebody", "anybody"];
/// Generated documents, and the list of changes, which describes the past.
const NOT_PROSE: [&str; 8] = [
    "docs/benchmarks.md",
    "docs/heap.md",
    "docs/slice.md",
    "docs/splits.md",
    "docs/soak.md",
    "docs/large.md",
    "docs/lsm/sources.md",
    "CHANGELOG.md",
];

/// What is wrong in a source or a document, by line, and how many lines have one of the pronouns.
pub(crate) fn check(name: &str, text: &str) -> (Vec<(usize, String)>, usize) {
    let (mut problems, mut pronouns) = (Vec::new(), 0);
    if NOT_PROSE.contains(&name) {
        return (problems, pronouns);
    }
    for (at, line) in prose(text, name.ends_with(".rs")) {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && line.trim().contains(' ') {
            let what = format!("{columns} columns, and prose has {COLUMNS_MAX}; break the line");
            problems.push((at, what));
        }
        let lower = line.to_ascii_lowercase();
        let mut words = lower.split(|sign: char| !sign.is_ascii_alphabetic());
        pronouns += usize::from(words.any(|word| PRONOUNS.contains(&word)));
    }
    (problems, pronouns)
}

/// The lines of prose with their numbers: the comments of a source; of a document everything but
/// tables and code.
fn prose(text: &str, is_source: bool) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let line = line.trim_start();
        let content = match line.strip_prefix("//") {
            Some(comment) => comment.trim_start_matches(['/', '!']).trim_start(),
            None if is_source => return false,
            None => line,
        };
        if content.starts_with("```") {
            is_code = !is_code;
            return false;
        }
        !is_code && !content.starts_with('|')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_code_are_no_prose() {
        let text = "# One\n\n| a | b |\n```sh\ncode\n```\nTwo.\n";
        let found: Vec<usize> = prose(text, false).map(|(at, _)| at).collect();
        assert_eq!(found, [1, 2, 7]);
        let source =
            "//! Head.\nlet x = 1; // no\n    /// ```\n    /// code\n    /// ```\n    // Tail.\n";
        let found: Vec<usize> = prose(source, true).map(|(at, _)| at).collect();
        assert_eq!(found, [1, 6]);
    }
}
