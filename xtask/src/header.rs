//! `cargo xtask header`: generates the header of the C interface.
//!
//! Purpose: `interfaces/capi/include/adamant.h` by cbindgen. The types of arguments there say what
//! C guarantees, and are transparent over pointers; cbindgen would show them under names of its
//! own, so it gets sources in which the pointers replace them.
//! Invariants: the header is a function of the sources; `--check` fails if it is out of date.

use std::path::{Path, PathBuf};

use crate::source::sources;
use crate::source::workspace::Workspace;

const FOLDER: &str = "interfaces/capi";
/// Types over pointers, and the pointers.
const POINTERS: [(&str, &str); 4] =
    [("In", "*const"), ("Changed", "*mut"), ("Out", "*mut"), ("Taken", "*mut")];
/// Types over other types, and these.
const OTHERS: [(&str, &str); 3] =
    [("Lent", "Slice"), ("Buffer", "*mut c_void"), ("Context", "*mut c_void")];

/// Writes the header, or checks whether it is up to date.
pub(crate) fn run(is_check: bool) -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let path = root.join(FOLDER).join("include/adamant.h");
    let made = make(&root)?;
    if is_check {
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if found != made {
            eprintln!(
                "header: {} is not what the sources make; `cargo xtask header`",
                path.display()
            );
        }
        return Ok(found == made);
    }
    std::fs::write(&path, made)
        .map_err(|error| format!("could not write {}: {error}", path.display()))?;
    println!("header: {}", path.display());
    Ok(true)
}

fn make(root: &Path) -> Result<String, String> {
    let folder = root.join(FOLDER);
    let scratch = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for (index, source) in modules(&folder.join("src"), "lib.rs")?.iter().enumerate() {
        let copy = scratch.path().join(format!("{index}.rs"));
        std::fs::write(&copy, plain(&sources::read(source)?))
            .map_err(|error| format!("could not write {}: {error}", copy.display()))?;
        builder = builder.with_src(copy);
    }
    let bindings = builder.generate().map_err(|error| format!("cbindgen: {error}"))?;
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header);
    Ok(whole_numbers(&header.map_err(|_| "cbindgen: the header is no UTF-8".to_owned())?))
}

/// The files of the modules that a file in `folder` lists, in its order, with those below them.
fn modules(folder: &Path, list: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let list = sources::read(&folder.join(list))?;
    for module in list.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        match folder.join(module) {
            below if below.is_dir() => files.extend(modules(&below, "mod.rs")?),
            file => files.push(file.with_extension("rs")),
        }
    }
    Ok(files)
}

/// The header with parentheses around negative numbers, which otherwise combine with the text
/// before the name of one.
fn whole_numbers(header: &str) -> String {
    let lines = header.lines().map(|line| match line.split_once(" -") {
        Some((name, number)) if line.starts_with("#define ") => format!("{name} (-{number})\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// The same source with pointers in place of the types over them.
fn plain(source: &str) -> String {
    let mut made = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find(|sign: char| sign.is_ascii_alphabetic()) {
        made.push_str(&rest[..start]);
        // After the name of an argument, and before the return type.
        let is_type = made.ends_with(": ") || made.ends_with("-> ");
        rest = &rest[start..];
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let end = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let (word, behind) = match is_type {
            true => replaced(word, behind),
            false => (word.to_owned(), behind),
        };
        made.push_str(&word);
        rest = behind;
    }
    made.push_str(rest);
    made
}

/// The replacement of a word, and the rest.
fn replaced<'a>(word: &str, behind: &'a str) -> (String, &'a str) {
    let of = |pairs: &[(&str, &'static str)]| {
        pairs.iter().find(|(name, _)| *name == word).map(|(_, other)| *other)
    };
    // None of them is of a type with parts of its own in angle brackets.
    if let Some(pointer) = of(&POINTERS)
        && let Some((of, behind)) = behind.strip_prefix('<').and_then(|rest| rest.split_once('>'))
    {
        return (format!("{pointer} {of}"), behind);
    }
    (of(&OTHERS).unwrap_or(word).to_owned(), behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_whole() {
        let found = whole_numbers("#define A 1\n#define B -2\n a - b\n");
        assert_eq!(found, "#define A 1\n#define B (-2)\n a - b\n");
    }

    #[test]
    fn pointers_stand_in_their_places() {
        let found = plain(
            "fn f(path: In<c_char>, at: Changed<Store>, made: Out<*mut Store>, it: Context) -> Lent {}",
        );
        let expected = "fn f(path: *const c_char, at: *mut Store, made: *mut *mut Store, it: *mut c_void) -> Slice {}";
        assert_eq!(found, expected);
        let source = "pub struct In<T>(*const T); use a::Lent; b: InOut<u8>, c: Lenty, d: _Lent; 7";
        assert_eq!(plain(source), source);
    }
}
