//! Plans: the change of one commit, and its effect on the content.

use std::sync::Arc;

use adamant::{
    Compression, Durability, Engine, Keyspace, KeyspaceOptions, Result, Store, ValueCompression,
};

use crate::crashes::model::{Content, Map};

/// A change of one entry; no value removes it.
#[derive(Clone, Debug)]
pub struct Change {
    /// The keyspace.
    pub name: String,
    /// The key.
    pub key: Vec<u8>,
    /// The new value.
    pub value: Option<Vec<u8>>,
}

/// A plan of one commit.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Creates a keyspace of an engine, with a compression of values.
    Create(&'static str, Engine, Option<ValueCompression>),
    /// Has a keyspace store values in another way: one of [`packing`].
    Compress(&'static str, u8),
    /// Drops a keyspace.
    Drop(&'static str),
    /// Converts a keyspace to another engine.
    Convert(&'static str, Engine),
    /// Renames a keyspace to an unused name.
    Rename(&'static str, &'static str),
    /// Two keyspaces exchange their names.
    Exchange(&'static str, &'static str),
    /// Removes all entries of a keyspace.
    Clear(&'static str),
    /// Changes one entry.
    Single(Change),
    /// Removes one entry and returns its value.
    Take {
        /// The keyspace.
        name: String,
        /// The key.
        key: Vec<u8>,
    },
    /// Removes the first entry, or the last one, and returns it.
    Pop {
        /// The keyspace.
        name: String,
        /// Whether it is the first one.
        is_first: bool,
    },
    /// Keeps, of the entries from a key on, those that [`is_kept`] keeps.
    Retain {
        /// The keyspace.
        name: String,
        /// The lowest key that may be removed.
        start: Vec<u8>,
    },
    /// Removes the entries from a key on, up to another or to the end.
    RemoveRange {
        /// The keyspace.
        name: String,
        /// The lowest removed key.
        start: Vec<u8>,
        /// The first key after the range, if there is an end.
        end: Option<Vec<u8>>,
    },
    /// Changes entries of any keyspaces.
    Batch(Vec<Change>),
    /// Appends values to those of entries, of any keyspaces: by a single call if it is one, else in
    /// a batch.
    Merge(Vec<Change>),
    /// Changes entries of any keyspaces, in a transaction, with values in reserved room.
    Reserved(Vec<Change>),
    /// Moves values: by a single call if it is one, else in a batch.
    Moves(Vec<Move>),
    /// Loads a few entries.
    Load {
        /// The keyspace.
        name: String,
        /// Keys and values, in any order, possibly with duplicates.
        entries: Vec<(Vec<u8>, Vec<u8>)>,
    },
}

/// A value that moves from a key of a keyspace to another, or is swapped with that of another.
#[derive(Clone, Debug)]
pub struct Move {
    /// Whether it is a swap.
    pub is_swap: bool,
    /// The source keyspace and key.
    pub source: (String, Vec<u8>),
    /// The target.
    pub target: (String, Vec<u8>),
}

impl Plan {
    /// Whether it is possible with that content: shrunk workloads leave steps out.
    pub fn fits(&self, content: &Content) -> bool {
        let has = |name: &str| content.keyspaces.contains_key(name);
        match self {
            Plan::Create(name, ..) => !has(name),
            Plan::Rename(name, new_name) => has(name) && !has(new_name),
            Plan::Exchange(name, other_name) => has(name) && has(other_name),
            Plan::Drop(name)
            | Plan::Convert(name, _)
            | Plan::Compress(name, _)
            | Plan::Clear(name) => has(name),
            Plan::Single(Change { name, .. })
            | Plan::Pop { name, .. }
            | Plan::Retain { name, .. }
            | Plan::RemoveRange { name, .. }
            | Plan::Take { name, .. }
            | Plan::Load { name, .. } => has(name),
            Plan::Batch(changes) | Plan::Merge(changes) | Plan::Reserved(changes) => {
                changes.iter().all(|change| has(&change.name))
            }
            Plan::Moves(moves) => moves.iter().all(|it| has(&it.source.0) && has(&it.target.0)),
        }
    }

    /// The content after it.
    ///
    /// # Panics
    /// Unless it is possible.
    pub fn applied(&self, content: &Content) -> Content {
        let mut content = content.clone();
        match self {
            Plan::Create(name, ..) => {
                content.keyspaces.insert((*name).into(), Arc::default());
            }
            Plan::Drop(name) => {
                content.keyspaces.remove(*name);
            }
            Plan::Convert(..) | Plan::Compress(..) => {}
            Plan::Rename(name, new_name) => {
                let map = content.keyspaces.remove(*name).expect("the keyspace exists");
                content.keyspaces.insert((*new_name).into(), map);
            }
            Plan::Exchange(name, other_name) => {
                let found = |name: &str| Arc::clone(&content.keyspaces[name]);
                let (one, other) = (found(name), found(other_name));
                content.keyspaces.insert((*name).into(), other);
                content.keyspaces.insert((*other_name).into(), one);
            }
            Plan::Clear(name) => content.map(name).clear(),
            Plan::Take { name, key } => {
                content.map(name).remove(key.as_slice());
            }
            Plan::Pop { name, is_first: true } => drop(content.map(name).pop_first()),
            Plan::Pop { name, is_first: false } => drop(content.map(name).pop_last()),
            Plan::Retain { name, start } => {
                content.map(name).retain(|key, _| key[..] < start[..] || is_kept(key));
            }
            Plan::RemoveRange { name, start, end } => content.map(name).retain(|key, _| {
                key[..] < start[..] || end.as_ref().is_some_and(|end| key[..] >= end[..])
            }),
            Plan::Single(change) => apply(&mut content, change),
            Plan::Batch(changes) | Plan::Reserved(changes) => {
                changes.iter().for_each(|change| apply(&mut content, change));
            }
            Plan::Merge(changes) => {
                changes.iter().for_each(|change| apply_merge(&mut content, change));
            }
            Plan::Moves(moves) => {
                for change in moves {
                    apply_move(&mut content, change);
                }
            }
            Plan::Load { name, entries } => {
                let entry = |(key, value): &(Vec<u8>, Vec<u8>)| {
                    (Arc::from(key.as_slice()), Arc::from(value.as_slice()))
                };
                content.map(name).extend(entries.iter().map(entry));
            }
        }
        content
    }

    /// Commits it to a store that holds `before`, and verifies the results of the calls.
    ///
    /// # Errors
    /// Those of the calls.
    ///
    /// # Panics
    /// If a call returns an unexpected result.
    pub fn run(&self, store: &Store, before: &Content, durability: Durability) -> Result<()> {
        let had = |name: &str, key: &[u8]| before.keyspaces[name].get(key);
        let keyspace = |name: &str| -> Result<Keyspace> {
            Ok(store.open_keyspace(name)?.with_durability(durability))
        };
        match self {
            Plan::Create(name, engine, values) => create(store, name, *engine, *values)?,
            Plan::Compress(name, number) => {
                let (values, dictionary) = packing(*number);
                store.compress_values(name, values, dictionary)?;
            }
            Plan::Convert(name, engine) => {
                store.convert_keyspace(name, *engine)?;
            }
            Plan::Rename(name, new_name) => store.rename_keyspace(name, new_name)?,
            Plan::Exchange(name, other_name) => store.swap_keyspaces(name, other_name)?,
            Plan::Clear(name) => keyspace(name)?.clear()?,
            Plan::Drop(name) => assert!(store.drop_keyspace(name)?, "{name:?} exists"),
            Plan::Take { name, key } => {
                let taken = keyspace(name)?.take(key)?;
                assert_eq!(taken.as_deref(), had(name, key).map(Arc::as_ref));
            }
            Plan::Pop { name, is_first } => {
                run_pop(&keyspace(name)?, &before.keyspaces[name], *is_first)?;
            }
            Plan::Retain { name, start } => {
                let deleted = keyspace(name)?.retain(&start[..].., |key, _| is_kept(key))?;
                let left = self.applied(before).keyspaces[name].len() as u64;
                assert_eq!(deleted + left, before.keyspaces[name].len() as u64);
            }
            Plan::RemoveRange { name, start, end: Some(end) } => {
                keyspace(name)?.delete_range(&start[..]..&end[..])?;
            }
            Plan::RemoveRange { name, start, end: None } => {
                keyspace(name)?.delete_range(&start[..]..)?;
            }
            Plan::Single(Change { name, key, value: Some(value) }) => {
                let replaced = keyspace(name)?.insert(key, value)?;
                assert_eq!(replaced, had(name, key).is_some());
            }
            Plan::Single(Change { name, key, value: None }) => {
                assert_eq!(keyspace(name)?.remove(key)?, had(name, key).is_some());
            }
            Plan::Batch(changes) => {
                let mut batch = store.batch();
                batch.durability(durability);
                let mut open: Vec<Keyspace> = Vec::new();
                for Change { name, key, value } in changes {
                    if !open.iter().any(|keyspace| keyspace.name() == name) {
                        open.push(store.open_keyspace(name)?);
                    }
                    let keyspace = open.iter().find(|keyspace| keyspace.name() == name);
                    let keyspace = keyspace.expect("it was just opened");
                    match value {
                        Some(value) => batch.put(keyspace, key, value)?,
                        None => batch.delete(keyspace, key)?,
                    }
                }
                batch.commit()?;
            }
            Plan::Merge(changes) => run_merge(store, changes, durability)?,
            Plan::Reserved(changes) => run_reserved(store, changes, durability)?,
            Plan::Moves(moves) => run_moves(store, before, moves, durability)?,
            Plan::Load { name, entries } => {
                let loaded =
                    keyspace(name)?.extend(entries.iter().map(|(key, value)| (key, value)))?;
                assert_eq!(loaded.entries, entries.len() as u64);
                let after = self.applied(before).keyspaces[name].len();
                let added = (after - before.keyspaces[name].len()) as u64;
                assert_eq!(loaded.replaced, loaded.entries - added);
            }
        }
        Ok(())
    }

    /// The durability that it has regardless of the requested one.
    pub fn fixed_durability(&self) -> Option<Durability> {
        let changes_list = matches!(
            self,
            Plan::Create(..)
                | Plan::Compress(..)
                | Plan::Drop(_)
                | Plan::Convert(..)
                | Plan::Rename(..)
                | Plan::Exchange(..)
        );
        changes_list.then_some(Durability::Sync)
    }
}

fn create(
    store: &Store,
    name: &str,
    engine: Engine,
    values: Option<ValueCompression>,
) -> Result<()> {
    let options = KeyspaceOptions::new().engine(engine).merge_operator("append");
    let options = values.into_iter().fold(options, KeyspaceOptions::value_compression);
    store.create_keyspace_with(name, options).map(drop)
}

/// Ways to store values: plain, and by each method.
pub fn packing(number: u8) -> (ValueCompression, Option<&'static [u8]>) {
    let (compression, dictionary) = match number % 5 {
        0 => (Compression::None, None),
        1 => (Compression::Lz4, None),
        2 => (Compression::Zstd(1), None),
        3 => (Compression::Zstd(1), Some(&b"what values have in common, a page 7 777"[..])),
        _ => (Compression::Zstd(3), Some(&b"another dictionary, shorter than a page"[..])),
    };
    (ValueCompression::from(compression).with_bytes_min(8), dictionary)
}

fn run_pop(keyspace: &Keyspace, model: &Map, is_first: bool) -> Result<()> {
    let (popped, expected) = match is_first {
        true => (keyspace.pop_first()?, model.first_key_value()),
        false => (keyspace.pop_last()?, model.last_key_value()),
    };
    let expected = expected.map(|(key, value)| (&key[..], &value[..]));
    assert_eq!(popped.as_ref().map(|(key, value)| (&key[..], &value[..])), expected);
    Ok(())
}

/// Whether [`Plan::Retain`] keeps an entry: about half of them.
pub fn is_kept(key: &[u8]) -> bool {
    key.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).is_multiple_of(2)
}

fn apply(content: &mut Content, change: &Change) {
    let map = content.map(&change.name);
    match &change.value {
        Some(value) => drop(map.insert(change.key.as_slice().into(), value.as_slice().into())),
        None => drop(map.remove(change.key.as_slice())),
    }
}

fn apply_merge(content: &mut Content, change: &Change) {
    let map = content.map(&change.name);
    let operand = change.value.as_deref().unwrap_or_default();
    let older = map.get(change.key.as_slice()).map(|value| &value[..]).unwrap_or_default();
    let value = [older, operand].concat();
    map.insert(change.key.as_slice().into(), value.into());
}

fn run_merge(store: &Store, changes: &[Change], durability: Durability) -> Result<()> {
    let operand = |change: &Change| change.value.clone().unwrap_or_default();
    if let [change] = changes {
        let keyspace = store.open_keyspace(&change.name)?.with_durability(durability);
        return keyspace.merge(&change.key, operand(change));
    }
    let mut batch = store.batch();
    batch.durability(durability);
    for change in changes {
        batch.merge(&store.open_keyspace(&change.name)?, &change.key, operand(change))?;
    }
    batch.commit()
}

/// Moves a value, or swaps two; returns whether there was anything to do.
fn apply_move(content: &mut Content, change: &Move) -> bool {
    let (name, key) = &change.source;
    let (target, new_key) = &change.target;
    let Some(value) = content.map(name).get(key.as_slice()).cloned() else { return false };
    let other = content.map(target).get(new_key.as_slice()).cloned();
    match (change.is_swap, other) {
        (true, None) => return false,
        (true, Some(other)) => drop(content.map(name).insert(key.as_slice().into(), other)),
        (false, _) => drop(content.map(name).remove(key.as_slice())),
    }
    content.map(target).insert(new_key.as_slice().into(), value);
    true
}

fn run_reserved(store: &Store, changes: &[Change], durability: Durability) -> Result<()> {
    let mut transaction = store.begin()?;
    transaction.durability(durability);
    for Change { name, key, value } in changes {
        let keyspace = store.open_keyspace(name)?;
        match value {
            Some(value) => {
                let mut room = store.reserve(value.len())?;
                room.copy_from_slice(value);
                transaction.put_reserved(&keyspace, key, room)?;
            }
            None => transaction.delete(&keyspace, key)?,
        }
    }
    transaction.commit()
}

fn run_moves(
    store: &Store,
    before: &Content,
    moves: &[Move],
    durability: Durability,
) -> Result<()> {
    if let [Move { is_swap, source: (name, key), target: (target, new_key) }] = moves {
        let keyspace = store.open_keyspace(name)?.with_durability(durability);
        let target = store.open_keyspace(target)?;
        let done = if *is_swap {
            keyspace.swap(key, &target, new_key)?
        } else {
            keyspace.move_to(key, &target, new_key)?.is_moved()
        };
        assert_eq!(done, apply_move(&mut before.clone(), &moves[0]));
        return Ok(());
    }
    let mut batch = store.batch();
    batch.durability(durability);
    for Move { is_swap, source: (name, key), target: (target, new_key) } in moves {
        let (source, target) = (store.open_keyspace(name)?, store.open_keyspace(target)?);
        if *is_swap {
            batch.swap(&source, key, &target, new_key)?;
        } else {
            batch.move_to(&source, key, &target, new_key)?;
        }
    }
    batch.commit()
}
