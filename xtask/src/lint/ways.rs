//! Check of the code paths that docs/internals lists: each function named there must exist.
//!
//! Purpose: a list of functions in call order becomes stale silently. A line of such a list begins
//! with the file, in backticks, and then has functions of that file up to the first full stop: "1.
//! `store/src/keyspace/read.rs`: `get`. Finds the tree."

use std::path::Path;

use crate::source::sources;

/// The folder of the lists.
const FOLDER: &str = "docs/internals";

/// Functions that a document names and that their files below the root do not have, by line.
pub(crate) fn check(root: &Path, name: &str, text: &str) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    if !name.starts_with(FOLDER) {
        return problems;
    }
    for (at, item) in items(text) {
        let Some((file, functions)) = step(&item) else { continue };
        let text = sources::read(&root.join(file)).unwrap_or_default();
        let missing = functions.into_iter().filter(|function| !has(&text, function));
        problems.extend(
            missing
                .map(|function| (at, format!("{file} has no function {function}; name what is"))),
        );
    }
    problems
}

/// Lines with their numbers, each joined with its continuation lines, which are indented.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        match items.last_mut() {
            Some((_, item)) if line.starts_with("   ") => {
                item.push(' ');
                item.push_str(line.trim_start());
            }
            _ => items.push((at, line.to_owned())),
        }
    }
    items
}

/// The file and the functions of a numbered line that begins with a source file.
fn step(line: &str) -> Option<(&str, Vec<&str>)> {
    let (number, rest) = line.trim_start().split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (file, rest) = rest.split_once('`')?;
    let names = rest.split_once(". ").map_or(rest, |(names, _)| names);
    let functions = names.split('`').skip(1).step_by(2).collect();
    file.ends_with(".rs").then_some((file, functions))
}

fn has(text: &str, function: &str) -> bool {
    let named = function.rsplit("::").next().unwrap_or(function);
    text.match_indices(&format!("fn {named}")).any(|(at, found)| {
        let behind = text[at + found.len()..].chars().next();
        behind.is_some_and(|sign| sign == '(' || sign == '<')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_before_the_full_stop() {
        let line = "2. `a/src/b.rs`: `one`, `Two::three`. Takes `four`.";
        assert_eq!(step(line), Some(("a/src/b.rs", vec!["one", "Two::three"])));
        let text = "1. `a/src/b.rs`: `one`,\n   `two`. No `three`.\nEnd.";
        let found = items(text);
        assert_eq!((found.len(), found[1].0), (2, 3));
        assert_eq!(step(&found[0].1), Some(("a/src/b.rs", vec!["one", "two"])));
        assert_eq!(step("3. A sentence with `a.rs`."), None);
        assert_eq!(step("Some `a/src/b.rs`: `one`."), None);
        let text = "pub(crate) fn one<T>() {}\nfn three() {}\nfn fourth() {}";
        assert!(has(text, "one") && has(text, "Two::three") && !has(text, "four"));
    }
}
