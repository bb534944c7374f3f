//! `cargo xtask methods`: the table of methods by handle, `docs/guide/methods.md`.
//!
//! Purpose: the handles of the store share one set of methods. The table is made from the sources,
//! and what a handle lacks has its reason in `gaps.rs`; a method that is missing without one is an
//! error, and so is a reason for a method that is there.
//! Invariants: the page is a function of the sources; `tidy` fails if it is out of date.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::{ImplItem, Item, Type, Visibility};

use crate::lint::gaps::{GAPS, OTHER_NAMES, OWN};
use crate::source::sources;
use crate::source::workspace::Workspace;

/// The generated page.
const PAGE: &str = "docs/guide/methods.md";
/// Maximum characters of a line of its text.
const COLUMNS_MAX: usize = 100;
/// The crate of the handles.
const ENTRY: &str = "store/src/lib.rs";

/// A handle, and its title.
type Handle = (&'static str, &'static str);

/// The handles of entries, in the order of the columns, and their titles.
pub(crate) const HANDLES: [Handle; 10] = [
    ("Keyspace", "keyspace"),
    ("TypedKeyspace", "typed keyspace"),
    ("Expiring", "expiring keyspace"),
    ("Snapshot", "snapshot"),
    ("TypedSnapshot", "typed snapshot"),
    ("ExpiringSnapshot", "expiring snapshot"),
    ("Transaction", "transaction"),
    ("TypedTransaction", "typed transaction"),
    ("ExpiringTransaction", "expiring transaction"),
    ("Batch", "batch"),
];

/// The handles of typed expiring keyspaces, beside those of bytes.
const TYPED_EXPIRING: [Handle; 4] = [
    ("Expiring", "expiring keyspace"),
    ("TypedExpiring", "typed expiring keyspace"),
    ("TypedExpiringSnapshot", "typed in a snapshot"),
    ("TypedExpiringTransaction", "typed in a transaction"),
];

/// The handles of multimaps.
const MULTIMAPS: [Handle; 3] = [
    ("Multimap", "multimap"),
    ("MultimapSnapshot", "multimap in a snapshot"),
    ("MultimapTransaction", "multimap in a transaction"),
];

const HEAD: &str = "\
# Methods by handle

Made from the sources by `cargo xtask methods`. A keyspace, plain, typed or with entries that
expire, has one set of methods, by itself, as a snapshot sees it, and within a transaction; an
exclusive transaction has those of a transaction. A batch takes typed entries by the methods of the
typed keyspace that are named in its column; its `len` is that of its operations. A number is that
of the reason below why a handle does not have a method. Methods of only one kind of handle, such as
`commit`, are left out.

";

const TYPED_EXPIRING_HEAD: &str = "
A typed expiring keyspace, its snapshots and its transactions.

";

const MULTIMAPS_HEAD: &str = "
A multimap has methods of its own, for keys, values and pairs of both. A batch takes pairs by its
methods `put_into` and `delete_from`.

";

/// All handles.
fn handles() -> impl Iterator<Item = Handle> {
    HANDLES.into_iter().chain(TYPED_EXPIRING.into_iter().skip(1)).chain(MULTIMAPS)
}

/// The public methods of each handle.
type Methods = BTreeMap<String, BTreeSet<String>>;

/// Writes the page. True if each gap has its reason.
pub(crate) fn run() -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let (page, problems) = make(&methods(&root)?);
    for problem in &problems {
        eprintln!("methods: {problem}");
    }
    let path = root.join(PAGE);
    std::fs::write(&path, page)
        .map_err(|error| format!("could not write {}: {error}", path.display()))?;
    println!("methods: {}", path.display());
    Ok(problems.is_empty())
}

/// What is wrong with the page in the tree, and with the reasons.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let (page, mut problems) = make(&methods(root)?);
    if sources::read(&root.join(PAGE)).unwrap_or_default() != page {
        problems.push("not what the sources make; `cargo xtask methods`".to_owned());
    }
    Ok(problems.into_iter().map(|problem| format!("{PAGE}: {problem}")).collect())
}

/// Reads the sources.
fn methods(root: &Path) -> Result<Methods, String> {
    let mut methods = Methods::new();
    for module in sources::tree(&root.join(ENTRY))? {
        for item in &module.items {
            let Item::Impl(block) = item else { continue };
            let Type::Path(path) = &*block.self_ty else { continue };
            let Some(name) = path.path.segments.last().map(|last| last.ident.to_string()) else {
                continue;
            };
            if block.trait_.is_some() || handles().all(|(handle, _)| handle != name) {
                continue;
            }
            let public = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
                    Some(function.sig.ident.to_string())
                }
                _ => None,
            });
            methods.entry(name).or_default().extend(public);
        }
    }
    Ok(methods)
}

/// The page, and what is wrong with the reasons.
fn make(methods: &Methods) -> (String, Vec<String>) {
    let has = |handle: &str, method: &str| {
        methods.get(handle).is_some_and(|methods| methods.contains(method))
    };
    let mut problems = Vec::new();
    for own in OWN.iter().filter(|own| handles().all(|(handle, _)| !has(handle, own))) {
        problems.push(format!("no handle has {own}; take it out of the list"));
    }
    for (.., name) in OTHER_NAMES.iter().filter(|(.., name)| !has("TypedKeyspace", name)) {
        problems.push(format!("no typed keyspace has {name}; take it out of the list"));
    }
    let mut gaps = BTreeSet::new();
    let mut page = HEAD.to_owned();
    page.push_str(&table(&HANDLES, methods, &mut gaps, &mut problems));
    page.push_str(TYPED_EXPIRING_HEAD);
    page.push_str(&table(&TYPED_EXPIRING, methods, &mut gaps, &mut problems));
    page.push_str(MULTIMAPS_HEAD);
    page.push_str(&table(&MULTIMAPS, methods, &mut gaps, &mut problems));
    page.push('\n');
    for (index, gap) in GAPS.iter().enumerate() {
        page.push_str(&wrapped(&format!("{}. {}", index + 1, gap.reason)));
        let unused =
            gap.pairs().filter(|(method, handle)| !gaps.contains(&(index, *method, *handle)));
        problems.extend(
            unused.map(|(method, handle)| format!("a reason is left over: {method} of {handle}")),
        );
    }
    (page, problems)
}

/// A reason by its index, the method and the handle.
type Reason<'m> = (usize, &'m str, &'static str);

/// The table of some handles, the reasons that it refers to, and what is wrong with those.
fn table<'m>(
    handles: &[Handle],
    methods: &'m Methods,
    gaps: &mut BTreeSet<Reason<'m>>,
    problems: &mut Vec<String>,
) -> String {
    let of = |handle: &str| methods.get(handle).into_iter().flatten().map(String::as_str);
    let is_row = |method: &&str| {
        !OWN.contains(method) && OTHER_NAMES.iter().all(|(.., name)| name != method)
    };
    let rows: BTreeSet<&str> =
        handles.iter().flat_map(|(handle, _)| of(handle)).filter(is_row).collect();
    let titles: Vec<&str> = handles.iter().map(|(_, title)| *title).collect();
    let mut table = format!("| method | {} |\n", titles.join(" | "));
    table.push_str(&format!("|---|{}\n", ":-:|".repeat(handles.len())));
    for method in rows {
        table.push_str(&format!("| `{method}` |"));
        for (handle, _) in handles {
            let has = of(handle).any(|found| found == method);
            let reason = GAPS.iter().position(|gap| gap.covers(handle, method));
            let cell = match (has, reason) {
                (true, None) => there(handle, method),
                (false, Some(reason)) => {
                    gaps.insert((reason, method, handle));
                    (reason + 1).to_string()
                }
                (true, Some(_)) => {
                    problems.push(format!("{handle} has {method}; take its reason out"));
                    there(handle, method)
                }
                (false, None) => {
                    problems.push(format!("{handle} has no {method}, and no reason says why"));
                    "?".to_owned()
                }
            };
            table.push_str(&format!(" {cell} |"));
        }
        table.push('\n');
    }
    table
}

/// The cell of a method that a handle has.
fn there(handle: &str, method: &str) -> String {
    match OTHER_NAMES.iter().find(|other| (other.0, other.1) == (handle, method)) {
        Some((.., name)) => format!("yes, `{name}`"),
        None => "yes".to_owned(),
    }
}

/// An item of a list, in lines of at most 100 columns.
fn wrapped(item: &str) -> String {
    let (mut text, mut columns) = (String::new(), 0);
    for word in item.split(' ') {
        if columns + 1 + word.len() > COLUMNS_MAX {
            text.push_str("\n   ");
            columns = 3;
        } else if !text.is_empty() {
            text.push(' ');
            columns += 1;
        }
        text.push_str(word);
        columns += word.len();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_needs_a_reason_and_a_reason_a_gap() {
        let none = BTreeSet::new();
        let mut methods: Methods =
            HANDLES.iter().map(|(handle, _)| ((*handle).to_owned(), none.clone())).collect();
        let about = |methods: &Methods, words: &str| {
            make(methods).1.iter().filter(|problem| problem.contains(words)).count()
        };
        assert_eq!(about(&methods, "no reason says why"), 0);
        assert!(about(&methods, "a reason is left over") > 100);
        let keyspace = methods.get_mut("Keyspace").unwrap();
        keyspace.extend(["get".to_owned(), "fly".to_owned()]);
        // `get` is missing in all others, with a reason for the batch, and `fly` in all others.
        assert_eq!(about(&methods, "no reason says why"), 8 + 9);
        methods.get_mut("Batch").unwrap().insert("get".to_owned());
        assert_eq!(about(&methods, "Batch has get"), 1);
    }

    #[test]
    fn long_reasons_are_wrapped() {
        let lines = wrapped(&format!("1. {}", "word ".repeat(30).trim_end()));
        assert!(lines.lines().all(|line| line.len() <= COLUMNS_MAX));
        assert_eq!(lines.split_whitespace().count(), 31);
    }
}
