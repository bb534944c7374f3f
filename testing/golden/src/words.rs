//! A heap with typed maps of words: no store, but what whoever uses the heap directly writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Durability, Heap, Options, OsDirectory, Read};
use adamant_trees::{Btree, Cursor, Error, Map, OrderedMap, Redblack, Result};

/// The folder of its images.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1/words")
}

/// Opens or makes such a heap.
///
/// # Errors
/// Those of the heap.
pub fn open(path: &Path) -> Result<Heap> {
    let mut options = Options::default();
    options.background = false;
    Ok(Heap::open(
        Arc::new(OsDirectory::create(path).map_err(adamant_heap::Error::from)?),
        options,
    )?
    .0)
}

/// Puts a map of each tree that holds words into an empty heap, as roots 0 and 1: enough pairs for
/// several levels, and what removing and replacing leaves.
///
/// # Errors
/// Those of the heap.
pub fn fill(heap: &Heap) -> Result<()> {
    fill_map::<Btree>(heap, 0)?;
    fill_map::<Redblack>(heap, 1)
}

fn fill_map<T: OrderedMap>(heap: &Heap, root: usize) -> Result<()> {
    let map = heap.transaction(Durability::Sync, |tx| {
        let map = Map::<u64, i64, T>::create(tx)?;
        let head = map.tree(tx)?.head();
        tx.set_root(root, head)?;
        Ok::<_, Error>(map)
    })?;
    heap.transaction(Durability::Sync, |tx| {
        for number in 0..300_u64 {
            map.insert(tx, &(number * 77 % 300 * 1_000_003), &-(number as i64))?;
        }
        for number in (0..300_u64).step_by(3) {
            map.remove(tx, &(number * 1_000_003))?;
            map.insert(tx, &((number + 1) * 1_000_003), &(number as i64))?;
        }
        Ok(())
    })
}

/// All pairs: root, key and value as they are stored, in hexadecimal, one a line, in order.
///
/// # Errors
/// Those of reading the maps.
pub fn describe(heap: &Heap) -> Result<String> {
    let view = heap.view()?;
    let mut text = String::new();
    describe_tree(&view, &Btree::open(&view, view.root(0))?, 0, &mut text)?;
    describe_tree(&view, &Redblack::open(&view, view.root(1))?, 1, &mut text)?;
    Ok(text)
}

fn describe_tree<T: OrderedMap>(
    read: &impl Read,
    tree: &T,
    root: usize,
    text: &mut String,
) -> Result<()> {
    tree.check(read)?;
    let mut cursor = tree.cursor(read);
    while let Some((key, value)) = cursor.next()? {
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        writeln!(text, "{root} {:016x} {:016x}", word(key), word(value))
            .expect("a String takes all");
    }
    Ok(())
}
