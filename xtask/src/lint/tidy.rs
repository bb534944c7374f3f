//! `cargo xtask tidy`: checks of the sources, and the longest files and functions.
//!
//! Fails on serialisation that depends on the machine, an `unsafe` without its proof or in a crate
//! that needs none, a layout without its page of docs/format, characters that are not ASCII,
//! unfinished work, prose of more than 100 columns, comments and documents that name missing source
//! files or functions, mutations that no longer fit the sources, and a table of methods by handle
//! that is out of date or has a gap without a reason; in Python sources on such characters, and on
//! paths of a machine. Lengths are only printed.

use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::lint::named::Files;
use crate::lint::{methods, proofs, prose, ways, words};
use crate::source::mutations;
use crate::source::sources;
use crate::source::workspace::Workspace;

/// Folders of crates that may have unsafe code; each of the others forbids it.
const UNSAFE_FOLDERS: [&str; 5] =
    ["base/slice", "base/medium", "base/heap", "interfaces/capi", "interfaces/python"];
/// Folders of crates that implement the storage backend's `File`. Its `map_private` is an unsafe
/// function, so they cannot forbid unsafe code; they need a proof for each use like all others.
const FILE_FOLDERS: [&str; 1] = ["testing/sim"];

/// Folders of a particular machine that no source may name.
const MACHINE_FOLDERS: [&str; 3] = ["/home/", "/root/", "/tmp/"];
/// Maximum columns of Python. rustfmt limits those of Rust.
const SCRIPT_WIDTH: usize = 110;

/// How many of the longest files and functions are printed.
const LONGEST_COUNT: usize = 8;

/// A length in lines, and its object.
type Length = (usize, String);

/// Checks every source file below the root. True if there are no problems.
pub(crate) fn run() -> Result<bool, String> {
    let workspace = Workspace::with_services()?;
    let mut problems = Vec::new();
    let mut files = Vec::new();
    let mut functions = Vec::new();
    let paths = sources::rust_files(&workspace.root)?;
    for path in &paths {
        let name = relative(&workspace.root, path);
        let text = sources::read(path)?;
        files.push((text.lines().count(), name.clone()));
        let found = check_file(path, &name, &text, &workspace.root, &mut functions)?;
        problems.extend(found.into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    let scripts = python_files(&workspace.root)?;
    for path in &scripts {
        let name = relative(&workspace.root, path);
        let text = sources::read(path)?;
        let found = check_script(&text);
        problems.extend(found.into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    let (found, pronouns) = check_texts(&workspace, &paths)?;
    problems.extend(found);
    let mutated = mutations::apply(&workspace.root, &mutations::load(&workspace.root)?);
    problems.extend(mutated.err().unwrap_or_default());
    problems.extend(methods::check(&workspace.root)?);
    for package in &workspace.packages {
        for entry in &package.entries {
            let forbids = sources::read(entry)?.contains("#![forbid(unsafe_code)]");
            let folder = package.folder.as_str();
            if !forbids && !UNSAFE_FOLDERS.contains(&folder) && !FILE_FOLDERS.contains(&folder) {
                let name = relative(&workspace.root, entry);
                problems.push(format!("{name}:1: needs `#![forbid(unsafe_code)]`"));
            }
        }
    }
    print_longest("files", &mut files);
    print_longest("functions", &mut functions);
    for problem in &problems {
        eprintln!("tidy: {problem}");
    }
    println!("lines of prose with whoever, nobody, somebody or anybody: {pronouns}");
    println!("tidy: {} files, {} wrong", paths.len() + scripts.len(), problems.len());
    Ok(problems.is_empty())
}

/// What is wrong in the comments of sources, and in documents: names of files and functions, and
/// prose. Also how many of their lines have a vague pronoun.
fn check_texts(workspace: &Workspace, sources: &[PathBuf]) -> Result<(Vec<String>, usize), String> {
    let root = &workspace.root;
    let name_of = |path: &PathBuf| relative(root, path);
    let crates = sources::files(root, "Cargo.toml")?;
    let crates = crates.iter().map(|path| name_of(path).replace("/Cargo.toml", "")).collect();
    let files = Files::new(sources.iter().map(name_of).collect(), crates);
    let documents = sources::files(root, ".md")?;
    let is_history = |name: &str| name.starts_with("docs/decisions/") || name == "CHANGELOG.md";
    let (mut problems, mut pronouns) = (Vec::new(), 0);
    for path in sources.iter().chain(&documents) {
        let (name, text) = (name_of(path), sources::read(path)?);
        let (mut found, vague) = prose::check(&name, &text);
        pronouns += vague;
        found.extend(ways::check(root, &name, &text));
        if !is_history(&name) {
            found.extend(files.check(&name, &text));
        }
        problems.extend(found.into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    Ok((problems, pronouns))
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// The problems of one file, by line. Adds its functions to `functions`.
fn check_file(
    path: &Path,
    name: &str,
    text: &str,
    root: &Path,
    functions: &mut Vec<Length>,
) -> Result<Vec<(usize, String)>, String> {
    let file = sources::parse(path, text)?;
    let tokens = text.parse().map_err(|error| format!("{name}: {error}"))?;
    let mut problems = words::check(tokens);
    problems.extend(proofs::check(text, &file));
    problems.extend(check_characters(text));
    if name.ends_with("/layout.rs") {
        let read = |page: &str| std::fs::read_to_string(root.join(page));
        problems.extend(check_pages(name, text, read).into_iter().map(|what| (1, what)));
    }
    let mut lengths = Lengths { file: name, functions };
    lengths.visit_file(&file);
    problems.sort();
    Ok(problems)
}

/// Characters that are not ASCII, by line.
fn check_characters(text: &str) -> Vec<(usize, String)> {
    let first = |line: &str| line.chars().find(|character| !character.is_ascii());
    let found = text.lines().enumerate().filter_map(|(line, words)| Some((line, first(words)?)));
    found
        .map(|(line, found)| (line + 1, format!("{found:?} is no ASCII; write an escape")))
        .collect()
}

/// Sources of Python: modules and stubs.
fn python_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = sources::files(root, ".py")?;
    files.extend(sources::files(root, ".pyi")?);
    Ok(files)
}

/// The problems of a Python source, by line.
fn check_script(text: &str) -> Vec<(usize, String)> {
    let mut problems = check_characters(text);
    for (line, content) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS.iter().filter(|folder| content.contains(**folder)) {
            problems.push((line + 1, format!("{folder} is a path of some machine; pass it in")));
        }
        if content.chars().count() > SCRIPT_WIDTH {
            problems.push((line + 1, format!("longer than {SCRIPT_WIDTH} characters")));
        }
    }
    problems
}

/// Verifies that a layout names its pages of docs/format, and that each of them names the layout.
fn check_pages(
    name: &str,
    text: &str,
    read: impl Fn(&str) -> std::io::Result<String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut page_count = 0;
    for (at, _) in text.match_indices("docs/format/") {
        let page: String = text[at..]
            .chars()
            .take_while(|&sign| sign.is_ascii_alphanumeric() || "/-_.".contains(sign))
            .collect();
        let page = page.trim_end_matches('.');
        page_count += 1;
        match read(page) {
            Ok(words) if words.contains(name) => {}
            Ok(_) => problems.push(format!("{page} does not link back to {name}")),
            Err(error) => problems.push(format!("could not read {page}: {error}")),
        }
    }
    if page_count == 0 {
        problems.push("a layout must name its page of docs/format".to_owned());
    }
    problems
}

/// Collects the lengths of functions.
struct Lengths<'a> {
    file: &'a str,
    functions: &'a mut Vec<Length>,
}

impl Lengths<'_> {
    fn add(&mut self, name: &syn::Ident, body: proc_macro2::Span) {
        let start = name.span().start().line;
        let lines = body.end().line + 1 - start;
        self.functions.push((lines, format!("{}:{start} {name}", self.file)));
    }
}

impl<'ast> Visit<'ast> for Lengths<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig.ident, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig.ident, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }
}

fn print_longest(what: &str, lengths: &mut [Length]) {
    lengths.sort_by(|a, b| b.cmp(a));
    println!("longest {what}, in lines:");
    for (lines, name) in lengths.iter().take(LONGEST_COUNT) {
        println!("{lines:7}  {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_needs_its_page() {
        let read = |page: &str| match page {
            "docs/format/pool.md" => Ok("Code: base/heap/src/layout.rs".to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        let problems = |name, text| check_pages(name, text, read).len();
        assert_eq!(problems("base/heap/src/layout.rs", "//! See `docs/format/pool.md`."), 0);
        assert_eq!(problems("engines/trees/src/layout.rs", "//! See docs/format/pool.md."), 1);
        assert_eq!(problems("base/heap/src/layout.rs", "//! See docs/format/other.md."), 1);
        assert_eq!(problems("base/heap/src/layout.rs", "//! Bytes."), 1);
    }

    #[test]
    fn finds_what_is_wrong_in_python() {
        assert_eq!(check_script("a = 1\nopen(path)\n").len(), 0);
        let text =
            format!("a = '\u{e9}'\nb = '{}home/me/x'\nc = {}\n", "/", "1".repeat(SCRIPT_WIDTH));
        let lines: Vec<usize> = check_script(&text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn finds_what_is_no_ascii() {
        let mut functions = Vec::new();
        let text = "fn f() {}\nconst A: &str = \"\u{e9}\";\n";
        let path = Path::new("a.rs");
        let problems = check_file(path, "a.rs", text, path, &mut functions).unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].0, 2);
        assert_eq!(functions, [(1, "a.rs:1 f".to_owned())]);
    }
}
