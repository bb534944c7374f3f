//! File name check: source files that comments and documents name must exist.
//!
//! Purpose: a reference to another file outlives that file, or its name. In Rust a bare name is
//! that of a file of the same crate; one with folders before it is the end of the path of any file.
//! In Markdown it may be any file. Decisions and the list of changes describe the past, and are
//! skipped.

use std::collections::BTreeSet;

/// The end of a name of a source file.
const END: &str = ".rs";

/// The files of the sources, by their paths below the root.
pub(crate) struct Files {
    paths: Vec<String>,
    /// Folders of crates.
    crates: Vec<String>,
}

impl Files {
    pub(crate) fn new(paths: Vec<String>, crates: Vec<String>) -> Self {
        Self { paths, crates }
    }

    /// The names in a source or a document that do not exist, by line.
    pub(crate) fn check(&self, name: &str, text: &str) -> Vec<(usize, String)> {
        let is_source = name.ends_with(END);
        let mut problems = Vec::new();
        for (line, content) in text.lines().enumerate() {
            let words = match (is_source, content.find("//")) {
                (false, _) => content,
                (true, Some(start)) => &content[start..],
                (true, None) => continue,
            };
            for named in names(words) {
                if !self.is_there(name, is_source, named) {
                    let what = format!("names {named}, which is not there; name what is");
                    problems.push((line + 1, what));
                }
            }
        }
        problems
    }

    fn is_there(&self, name: &str, is_source: bool, named: &str) -> bool {
        let folder = self.crate_of(name);
        let ends = |path: &&String| {
            path.strip_suffix(named)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let is_near = |path: &String| self.crate_of(path) == folder;
        let is_anywhere = !is_source || named.contains('/');
        self.paths.iter().filter(ends).any(|path| is_anywhere || is_near(path))
    }

    /// The folder of the crate that a file is in.
    fn crate_of(&self, name: &str) -> Option<&String> {
        let holds = |folder: &&String| {
            name.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.crates.iter().filter(holds).max_by_key(|folder| folder.len())
    }
}

/// The names of source files in a text, without duplicates.
fn names(words: &str) -> BTreeSet<&str> {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || "_-./".contains(sign);
    let parts = words.split(|sign| !is_part(sign)).map(|part| part.trim_matches(['.', '/']));
    // A name that begins with a punctuation mark stands for any name, as in `*.rs`.
    let is_name = |part: &&str| part.len() > END.len() && part.ends_with(END);
    parts.filter(is_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_found_by_line() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let paths = owned(&["base/a/src/lib.rs", "base/a/src/deep/one.rs", "base/b/src/two.rs"]);
        let files = Files::new(paths, owned(&["base/a", "base/b"]));
        // Otherwise this file would name them, too.
        let check = |text: &str| {
            files.check("base/a/src/lib.rs", &text.replace('$', END).replace('#', "//"))
        };
        assert_eq!(check("#! See `one$`, deep/one$, b/src/two$ and ./lib$.\nlet x = no$;\n"), []);
        let found = check("fn f() {}\n# As `two$`, which is of another crate, and gone$ do.\n");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(line, _)| *line == 2), "{found:?}");
        assert!(found[0].1.contains("gone.rs") && found[1].1.contains("two.rs"), "{found:?}");
        let found = files.check("docs/page.md", "one.rs\n`src/two.rs` and `three.rs`\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 2 && found[0].1.contains("three.rs"), "{found:?}");
    }
}
