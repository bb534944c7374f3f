//! Forbidden words: serialisation that depends on the machine, and leftovers of unfinished work.
//!
//! Purpose: reads tokens, not text, so that comments and strings may mention them. The type of an
//! expression is not known here: clippy.toml also forbids `usize::to_le_bytes` by type.

use proc_macro2::{TokenStream, TokenTree};

/// Names that are wrong everywhere.
const FORBIDDEN: [(&str, &str); 8] = [
    ("to_ne_bytes", "host-endian serialisation"),
    ("from_ne_bytes", "host-endian serialisation"),
    ("native_endian", "host-endian serialisation"),
    ("NativeEndian", "host-endian serialisation"),
    ("to_be_bytes", "big-endian serialisation"),
    ("from_be_bytes", "big-endian serialisation"),
    ("Usize", "a usize among persistent bytes"),
    ("Isize", "an isize among persistent bytes"),
];

/// Macros of unfinished work.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// The problems with their lines.
pub(crate) fn check(tokens: TokenStream) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    walk(tokens, &mut problems);
    problems
}

fn walk(tokens: TokenStream, problems: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => walk(group.stream(), problems),
            TokenTree::Ident(name) => {
                let line = name.span().start().line;
                let name = name.to_string();
                if let Some((_, why)) = FORBIDDEN.iter().find(|(word, _)| *word == name) {
                    problems.push((line, format!("`{name}` is {why}")));
                }
                if UNFINISHED.contains(&name.as_str()) && is_punct(&tokens, at + 1, '!') {
                    problems.push((line, format!("`{name}!` is unfinished work")));
                }
                if let Some(method) = machine_word(&tokens, at, &name) {
                    problems.push((
                        line,
                        format!("`{name}::{method}` depends on the machine; convert to u64 first"),
                    ));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// `usize::to_le_bytes`, `usize::from_le_bytes` and the like.
fn machine_word(tokens: &[TokenTree], at: usize, name: &str) -> Option<String> {
    let path = matches!(name, "usize" | "isize")
        && is_punct(tokens, at + 1, ':')
        && is_punct(tokens, at + 2, ':');
    match tokens.get(at + 3) {
        Some(TokenTree::Ident(method)) if path && method.to_string().ends_with("_bytes") => {
            Some(method.to_string())
        }
        _ => None,
    }
}

fn is_punct(tokens: &[TokenTree], at: usize, sign: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        check(text.parse().unwrap()).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn finds_words_in_code_and_in_macros() {
        assert_eq!(lines("fn f() {\n 1u32.to_ne_bytes();\n}"), [2]);
        assert_eq!(lines("vec![\nu64::from_ne_bytes(b)]"), [2]);
        assert_eq!(lines("use zerocopy::native_endian::U32;"), [1]);
        assert_eq!(lines("usize::to_le_bytes(1)"), [1]);
        assert_eq!(lines("fn f() { todo!() }\nfn g() { dbg!(1); }"), [1, 2]);
    }

    #[test]
    fn comments_strings_and_longer_words_are_free() {
        assert_eq!(lines("// to_ne_bytes\nconst A: &str = \"to_ne_bytes\";"), NONE);
        assert_eq!(lines("fn todo_list() { u64::to_le_bytes(1); usize::MAX; }"), NONE);
    }
}
