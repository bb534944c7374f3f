//! The mutations of the sources: how the code of each rule is broken, as text beside the code.
//!
//! Purpose: the product's sources say only what they do. The tables, `xtask/mutations/*.txt`, say
//! what `cargo xtask mutants` changes in a copy of them; `cargo xtask tidy` verifies that each
//! change still fits. An entry begins with a line of `==` and its names. Then come its changes: a
//! line with the file, and lines as in a patch, without line numbers. Those with a space or `-` are
//! looked for, those with a space or `+` take their place. In the latter, `PLANTED` asks whether
//! the mutation is the chosen one; `PLANTED(NAME)` says which, where an entry has several names.
//! Invariants: each name has one entry; what a change looks for is in its file exactly once; no
//! line belongs to two changes. Thread safety: none needed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::sources;

/// The folder of the tables.
const FOLDER: &str = "xtask/mutations";
/// Begins the line with the names of an entry.
const HEADING: &str = "== ";
/// Stands for the question whether a mutation is the chosen one.
const TOKEN: &str = "PLANTED";
/// The crate that answers it, in the copy.
const ASKED_CRATE: &str = "base/wire/";

/// An entry of a table.
#[derive(Debug)]
pub(crate) struct Mutation {
    /// More than one, where mutations change the same lines.
    pub(crate) names: Vec<String>,
    /// The table, and the line of its heading.
    place: String,
    changes: Vec<Change>,
}

/// A change of a file: lines, and those that take their place.
#[derive(Debug, Default)]
struct Change {
    file: String,
    from: Vec<String>,
    /// Each with the index of the line of `from` that it stands for.
    to: Vec<(String, usize)>,
}

/// A file with all its changes.
#[derive(Debug)]
pub(crate) struct Mutated {
    pub(crate) text: String,
    /// For each of its lines, the number of the line of the source that it stands for.
    lines: Vec<usize>,
}

impl Mutated {
    /// The line of the source that a line stands for.
    pub(crate) fn source_line(&self, line: usize) -> usize {
        line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(line)
    }
}

/// Reads all tables.
///
/// # Errors
/// In words: a file that cannot be read, and what is wrong in a table, with its line.
pub(crate) fn load(root: &Path) -> Result<Vec<Mutation>, String> {
    let mut mutations = Vec::new();
    for path in sources::files(&root.join(FOLDER), ".txt")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        mutations.extend(parse(&format!("{FOLDER}/{name}"), &sources::read(&path)?)?);
    }
    let mut places = BTreeMap::new();
    for mutation in &mutations {
        for name in &mutation.names {
            if let Some(other) = places.insert(name, &mutation.place) {
                let place = &mutation.place;
                return Err(format!("{place}: {name} has an entry in {other}, too; join them"));
            }
        }
    }
    Ok(mutations)
}

/// Makes all changes; returns the changed files by name.
///
/// # Errors
/// Which changes do not fit, in words, and what to do.
pub(crate) fn apply(
    root: &Path,
    mutations: &[Mutation],
) -> Result<BTreeMap<String, Mutated>, Vec<String>> {
    let mut by_file: BTreeMap<&str, Vec<(&Mutation, &Change)>> = BTreeMap::new();
    for mutation in mutations {
        for change in &mutation.changes {
            by_file.entry(&change.file).or_default().push((mutation, change));
        }
    }
    let (mut files, mut problems) = (BTreeMap::new(), Vec::new());
    for (file, changes) in by_file {
        match sources::read(&root.join(file)) {
            Ok(text) => match change_file(&text, &changes) {
                Ok(mutated) => _ = files.insert(file.to_owned(), mutated),
                Err(found) => problems.extend(found),
            },
            Err(error) => {
                let entries: BTreeSet<String> =
                    changes.iter().map(|(mutation, _)| mutation.title()).collect();
                let what = "if the file was moved, name its new place there";
                problems.extend(entries.iter().map(|entry| format!("{entry}: {error}; {what}")));
            }
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

impl Mutation {
    fn title(&self) -> String {
        format!("{}: {}", self.place, self.names.join(" "))
    }

    /// The text of a line in the copy of a file.
    fn expand(&self, line: &str, file: &str) -> String {
        let asked = if file.starts_with(ASKED_CRATE) { "crate" } else { "adamant_wire" };
        let mut pieces = line.split(TOKEN);
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = named(piece).unwrap_or((&self.names[0], piece));
            text.push_str(&format!("{asked}::mutants::is_planted(\"{name}\")"));
            text.push_str(rest);
        }
        text
    }
}

/// The name that follows a token in brackets, and the rest.
fn named(piece: &str) -> Option<(&str, &str)> {
    piece.strip_prefix('(')?.split_once(')')
}

/// Reads a table.
fn parse(table: &str, text: &str) -> Result<Vec<Mutation>, String> {
    let mut mutations: Vec<Mutation> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |what: &str| Err(format!("{table}:{line}: {what}"));
        if let Some(names) = content.strip_prefix(HEADING) {
            let names = names.split(' ').map(str::to_owned).collect();
            let place = format!("{table}:{line}");
            mutations.push(Mutation { names, place, changes: Vec::new() });
            continue;
        }
        let Some(mutation) = mutations.last_mut() else {
            return wrong("expected `== NAME`, the heading of an entry");
        };
        let sign = content.chars().next();
        if !matches!(sign, None | Some(' ' | '-' | '+')) {
            let file = content.to_owned();
            mutation.changes.push(Change { file, ..Change::default() });
            continue;
        }
        let Some(Change { from, to, .. }) = mutation.changes.last_mut() else {
            if content.is_empty() {
                continue;
            }
            return wrong("expected the file to be changed");
        };
        let words = content.get(1..).unwrap_or_default().to_owned();
        match sign {
            Some('+') => to.push((words, from.len().saturating_sub(1))),
            Some('-') => from.push(words),
            _ => {
                to.push((words.clone(), from.len()));
                from.push(words);
            }
        }
    }
    for mutation in &mut mutations {
        mutation.changes.iter_mut().for_each(Change::finish);
        mutation.check()?;
    }
    Ok(mutations)
}

impl Change {
    /// Removes empty lines at the end, which part the entries of a table, and finds the lines that
    /// are only moved.
    fn finish(&mut self) {
        while self.from.last().is_some_and(String::is_empty)
            && self.to.last().is_some_and(|(line, _)| line.is_empty())
        {
            self.from.pop();
            self.to.pop();
        }
        for (line, index) in &mut self.to {
            let words = line.trim();
            let is_known = |at: usize| self.from.get(at).is_some_and(|from| from.trim() == words);
            if !is_known(*index) {
                *index = (0..self.from.len()).find(|at| is_known(*at)).unwrap_or(*index);
            }
        }
    }
}

impl Mutation {
    /// Verifies that each change asks for the entry's names, and that all of them are asked for.
    fn check(&self) -> Result<(), String> {
        let title = self.title();
        let mut asked = BTreeSet::new();
        for change in &self.changes {
            let tokens = change.to.iter().flat_map(|(line, _)| line.split(TOKEN).skip(1));
            let mut count = 0;
            for piece in tokens {
                count += 1;
                let name = match named(piece) {
                    Some((name, _)) => name,
                    None if self.names.len() == 1 => &self.names[0],
                    None => return Err(format!("{title}: write {TOKEN}(NAME), and which")),
                };
                if !self.names.iter().any(|known| known == name) {
                    return Err(format!("{title}: {name} is not among the names of the entry"));
                }
                asked.insert(name);
            }
            if count == 0 || change.from.is_empty() {
                let file = &change.file;
                let what = "looks for nothing, or puts nothing there that asks";
                return Err(format!("{title}: the change of {file} {what} for {TOKEN}"));
            }
        }
        match self.names.iter().find(|name| !asked.contains(name.as_str())) {
            Some(name) => Err(format!("{title}: no change asks whether {name} is {TOKEN}")),
            None => Ok(()),
        }
    }
}

/// Makes the changes of one file.
fn change_file(text: &str, changes: &[(&Mutation, &Change)]) -> Result<Mutated, Vec<String>> {
    let source: Vec<&str> = text.lines().collect();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (mutation, change) in changes {
        let len = change.from.len();
        let mut places = (0..source.len().saturating_sub(len - 1))
            .filter(|at| source[*at..at + len].iter().eq(&change.from));
        match (places.next(), places.count()) {
            (Some(at), 0) => found.push((at, *mutation, *change)),
            (first, more) => {
                let count = more + usize::from(first.is_some());
                problems.push(format!(
                    "{}: expected these lines once in {}, found them {count} times; write in the \
                     entry what the code says now, or more lines around it, so that the change \
                     breaks the same rule, and run `cargo xtask mutants --only {}`:\n{}",
                    mutation.title(),
                    change.file,
                    mutation.names[0],
                    change.from.join("\n"),
                ));
            }
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    for pair in found.windows(2) {
        let [(at, one, change), (next, other, _)] = pair else { continue };
        if at + change.from.len() > *next {
            let (one, other, file) = (one.title(), other.title(), &change.file);
            problems.push(format!("{one} and {other} change the same lines of {file}; join them"));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let (mut text, mut lines, mut done) = (String::new(), Vec::new(), 0);
    let mut add = |line: &str, number: usize| {
        text.push_str(line);
        text.push('\n');
        lines.push(number);
    };
    for (at, mutation, change) in found {
        (done..at).for_each(|line| add(source[line], line + 1));
        for (line, index) in &change.to {
            add(&mutation.expand(line, &change.file), at + index + 1);
        }
        done = at + change.from.len();
    }
    (done..source.len()).for_each(|line| add(source[line], line + 1));
    Ok(Mutated { text, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "== R1.a\nf.rs\n a\n-b\n+if !PLANTED {\n+    b\n+}\n\n== R2.b R2.c\nf.rs\n\
                         -d\n-e\n+PLANTED(R2.b) || PLANTED(R2.c)\n+ d\n";

    fn changed(table: &str, text: &str) -> Result<Mutated, Vec<String>> {
        let mutations = parse("t.txt", table).unwrap();
        let mut changes = Vec::new();
        for mutation in &mutations {
            changes.extend(mutation.changes.iter().map(|change| (mutation, change)));
        }
        change_file(text, &changes)
    }

    #[test]
    fn changes_what_it_finds_once() {
        let mutated = changed(TABLE, "a\nb\nc\nd\ne\n").unwrap();
        let asks = |name: &str| format!("adamant_wire::mutants::is_planted(\"{name}\")");
        let (a, b, c) = (asks("R1.a"), asks("R2.b"), asks("R2.c"));
        assert_eq!(mutated.text, format!("a\nif !{a} {{\n    b\n}}\nc\n{b} || {c}\n d\n"));
        let lines: Vec<usize> = (1..=7).map(|line| mutated.source_line(line)).collect();
        assert_eq!(lines, [1, 2, 2, 2, 3, 5, 4]);
    }

    #[test]
    fn says_what_does_not_fit() {
        for text in ["a\nb\nc\n", "a\nb\nd\ne\nd\ne\n"] {
            let problems = changed(TABLE, text).unwrap_err();
            let [problem] = &problems[..] else { panic!("{problems:?}") };
            assert!(problem.starts_with("t.txt:9: R2.b R2.c: expected"), "{problem}");
        }
        let twice = "== R1.a\nf.rs\n a\n+PLANTED\n== R1.b\nf.rs\n a\n+PLANTED\n";
        assert!(changed(twice, "a\n").unwrap_err()[0].contains("change the same lines"));
    }

    #[test]
    fn says_what_is_wrong_in_a_table() {
        let wrong = [
            "f.rs\n",
            "== R1.a\n-a\n",
            "== R1.a\nf.rs\n-a\n+b\n",
            "== R1.a R1.b\nf.rs\n-a\n+PLANTED\n",
            "== R1.a R1.b\nf.rs\n-a\n+PLANTED(R1.a)\n",
            "== R1.a\nf.rs\n-a\n+PLANTED(R1.b)\n",
            "== R1.a\nf.rs\n+PLANTED\n",
            "== R1.a\n",
        ];
        for table in wrong {
            assert!(parse("t.txt", table).is_err(), "{table}");
        }
    }
}
