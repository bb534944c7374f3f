//! A doubly linked list on the bare heap: add, remove, iterate, and nothing leaks.
//!
//! `cargo run -p adamant-examples --example list`

use std::sync::Arc;

use adamant_heap::{
    Durability, Heap, Options, OsDirectory, Persistent, Ptr, Result, Text, Trace, Tracer,
    TypedRead, TypedWrite, Types,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The list: a named root of the pool.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct List {
    first: Ptr<Node>,
    last: Ptr<Node>,
    len: u64,
}

/// An entry.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Node {
    text: Text,
    next: Ptr<Node>,
    before: Ptr<Node>,
}

impl Persistent for List {
    const NAME: &'static str = "example.list";
    const VERSION: u32 = 1;
}

impl Persistent for Node {
    const NAME: &'static str = "example.list.node";
    const VERSION: u32 = 1;
}

// Each node is owned by the one before it, and the first by the list.
impl Trace for List {
    fn trace(&self, tracer: &mut Tracer) {
        self.first.trace(tracer);
    }
}

impl Trace for Node {
    fn trace(&self, tracer: &mut Tracer) {
        self.text.trace(tracer);
        self.next.trace(tracer);
    }
}

/// Adds an entry at the end.
fn push(tx: &mut impl TypedWrite, list: Ptr<List>, text: &str) -> Result<Ptr<Node>> {
    let before = tx.get(list)?.last;
    let text = tx.create_text(text)?;
    let node = tx.create(Node { text, next: Ptr::NULL, before })?;
    match before.is_null() {
        true => tx.get_mut(list)?.first = node,
        false => tx.get_mut(before)?.next = node,
    }
    let list = tx.get_mut(list)?;
    list.last = node;
    list.len += 1;
    Ok(node)
}

/// Takes an entry out and destroys it with its text.
fn remove(tx: &mut impl TypedWrite, list: Ptr<List>, node: Ptr<Node>) -> Result<()> {
    let Node { text, next, before } = *tx.get(node)?;
    match before.is_null() {
        true => tx.get_mut(list)?.first = next,
        false => tx.get_mut(before)?.next = next,
    }
    match next.is_null() {
        true => tx.get_mut(list)?.last = before,
        false => tx.get_mut(next)?.before = before,
    }
    tx.get_mut(list)?.len -= 1;
    tx.destroy(text)?;
    tx.destroy(node)
}

/// All entries, in a view as in a transaction; no more than the list says that it has.
fn iterate(
    read: &impl TypedRead,
    list: Ptr<List>,
) -> Result<impl Iterator<Item = Result<(Ptr<Node>, &str)>>> {
    let List { first, len, .. } = *read.get(list)?;
    let mut next = first;
    let entries = (0..len).map(move |_| {
        let (here, node) = (next, read.get(next)?);
        next = node.next;
        Ok((here, read.text(node.text)?))
    });
    Ok(entries)
}

fn texts(heap: &Heap, list: Ptr<List>) -> Result<Vec<String>> {
    let view = heap.view()?;
    iterate(&view, list)?.map(|entry| Ok(entry?.1.to_owned())).collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let open = || Heap::open(Arc::new(OsDirectory::open(directory.path())?), Options::default());

    let (heap, _) = open()?;
    let list = heap.transaction(Durability::Sync, |tx| {
        let list = tx.named_root_or_create("shopping", |_| Ok(List::default()))?;
        for text in ["bread", "cheese", "olives", "salt"] {
            push(tx, list, text)?;
        }
        adamant_heap::Result::Ok(list)
    })?;
    assert_eq!(texts(&heap, list)?, ["bread", "cheese", "olives", "salt"]);

    // What fails leaves no trace, also of what it did before.
    let failed = heap.transaction(Durability::Sync, |tx| {
        push(tx, list, "truffles")?;
        remove(tx, list, Ptr::NULL)
    });
    println!("undone: {}", failed.unwrap_err());

    heap.transaction(Durability::Sync, |tx| {
        let all: Result<Vec<_>> = iterate(tx, list)?.collect();
        let found = all?.into_iter().find(|(_, text)| *text == "cheese").map(|(node, _)| node);
        remove(tx, list, found.expect("is on the list"))?;
        push(tx, list, "apples").map(drop)
    })?;
    heap.close()?;

    let (heap, _) = open()?;
    let list = heap.view()?.named_root::<List>("shopping")?.expect("was stored");
    for text in texts(&heap, list)? {
        println!("{text}");
    }
    assert_eq!(texts(&heap, list)?, ["bread", "olives", "salt", "apples"]);
    // The directory of named roots, the list, four nodes and their texts: nothing else is there.
    let report = heap.leaks(&Types::new().with::<List>())?;
    assert!(report.is_clean());
    assert_eq!(report.blocks, 10);
    heap.close()?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
