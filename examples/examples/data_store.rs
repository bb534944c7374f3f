//! Objects of several types in an ordered map on the bare heap, by whatever tree: two inserts in
//! the transaction that creates the map, a look at all in order, a remove outside of it, a check of
//! types, and an end that leaves nothing.
//!
//! `cargo run -p adamant-examples --example data_store -- [bplus|btree|critbit|redblack]`

use std::path::Path;
use std::sync::Arc;

use adamant_heap::{
    AnyPtr, Durability, Heap, Options, OsDirectory, Persistent, Ptr, Transaction, TypedRead,
    TypedWrite,
};
use adamant_trees::{Bplus, Btree, Critbit, Error, Map, OrderedMap, Redblack, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thing with a price.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Item {
    cents: u64,
    stock: u64,
}

/// Somebody who buys it.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Customer {
    name: [u8; 16],
}

impl Persistent for Item {
    const NAME: &'static str = "example.data_store.item";
    const VERSION: u32 = 1;
}

impl Persistent for Customer {
    const NAME: &'static str = "example.data_store.customer";
    const VERSION: u32 = 1;
}

/// By number, whatever it is.
type Store<T> = Map<u64, AnyPtr, T>;

const ROOT: &str = "store";

/// Makes an object and puts it under a number; what was there before goes.
fn put<T: OrderedMap, O: Persistent>(
    tx: &mut Transaction<'_>,
    store: Store<T>,
    number: u64,
    object: O,
) -> Result<Ptr<O>> {
    take(tx, store, number)?;
    let object = tx.create(object)?;
    store.insert(tx, &number, &object.into())?;
    Ok(object)
}

/// Takes an object out and destroys it; whether there was one.
fn take<T: OrderedMap>(tx: &mut Transaction<'_>, store: Store<T>, number: u64) -> Result<bool> {
    match store.remove(tx, &number)? {
        Some(object) => tx.destroy(object).map(|()| true).map_err(Error::from),
        None => Ok(false),
    }
}

/// What is in the store, in order of numbers: each object is looked at as what it is.
fn list<T: OrderedMap>(heap: &Heap, store: Store<T>) -> Result<Vec<String>> {
    let view = heap.view()?;
    let mut lines = Vec::new();
    for entry in store.entries(&view, ..)? {
        let (number, object) = entry?;
        lines.push(if object.is::<Item>() {
            let Item { cents, stock } = view.get(object.downcast::<Item>()?)?;
            format!("{number}: an item of {cents} cents, {stock} in stock")
        } else {
            let customer = view.get(object.downcast::<Customer>()?)?;
            let name = String::from_utf8_lossy(&customer.name);
            format!("{number}: the customer {}", name.trim_end_matches('\0'))
        });
    }
    Ok(lines)
}

fn open(path: &Path) -> Result<Heap> {
    let directory = OsDirectory::create(path).map_err(adamant_heap::Error::from)?;
    Ok(Heap::open(Arc::new(directory), Options::default())?.0)
}

fn run<T: OrderedMap>(path: &Path) -> Result<()> {
    let heap = open(path)?;
    let blocks = heap.check()?.blocks;
    // The map, its name and two objects: all of it, or none.
    let (root, store) = heap.transaction(Durability::Sync, |tx| {
        let store = Store::<T>::create(tx)?;
        put(tx, store, 7, Item { cents: 250, stock: 12 })?;
        put(tx, store, 3, Customer { name: *b"Ada\0\0\0\0\0\0\0\0\0\0\0\0\0" })?;
        let root = tx.create(store)?;
        tx.set_named_root(ROOT, root)?;
        Ok::<_, Error>((root, store))
    })?;
    heap.close()?;

    let heap = open(path)?;
    let found = heap.view()?.named_root::<Store<T>>(ROOT)?;
    assert_eq!(found, Some(root));
    let lines = list(&heap, store)?;
    lines.iter().for_each(|line| println!("{}: {line}", T::NAME));
    assert_eq!(lines, ["3: the customer Ada", "7: an item of 250 cents, 12 in stock"]);
    // A wrong cast is an error, and says what was expected.
    {
        let view = heap.view()?;
        let object = store.get(&view, &3)?.expect("the customer is there");
        assert!(object.downcast::<Item>().is_err());
    }
    assert!(heap.transaction(Durability::Sync, |tx| take(tx, store, 3))?);
    assert_eq!(list(&heap, store)?.len(), 1);

    // The end: what the map refers to, then the map, then its name.
    heap.transaction(Durability::Sync, |tx| {
        let objects: Vec<AnyPtr> =
            store.entries(tx, ..)?.map(|entry| Ok(entry?.1)).collect::<Result<_>>()?;
        for object in objects {
            tx.destroy(object)?;
        }
        store.destroy(tx)?;
        tx.remove_named_root::<Store<T>>(ROOT)?;
        Ok::<_, Error>(tx.destroy(root)?)
    })?;
    assert_eq!(heap.check()?.blocks, blocks, "nothing is left");
    Ok(heap.close()?)
}

/// What does it all by one kind of tree, in a folder.
type Run = fn(&Path) -> Result<()>;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let trees: [(&str, Run); 4] = [
        (Bplus::NAME, run::<Bplus>),
        (Btree::NAME, run::<Btree>),
        (Critbit::NAME, run::<Critbit>),
        (Redblack::NAME, run::<Redblack>),
    ];
    for (name, run) in trees {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            run(&tempfile::tempdir()?.path().join("heap"))?;
        }
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
