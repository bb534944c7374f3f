//! A tree against ordered maps, one for each sequence number that is read: random changes in
//! transactions that commit or are undone, with flushes, compactions and reopenings in between;
//! with and without operands of a merge operator.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory, Transaction};
use adamant_lsm::{BuiltIn, Error, MergeOperator, NEWEST, NamedOperator, Options, built_in};
use adamant_slice::Slice;

use crate::store::{Model, Pair, Store, small_options};

fn options(random: &mut fastrand::Rng) -> Options {
    let mut options = small_options();
    options.blob_bytes_min = random.bool().then_some(60);
    options
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let number = random.u32(0..120);
    match number % 3 {
        0 => format!("{number:03}").into_bytes(),
        1 => format!("common/prefix/of/keys/{number:04}").into_bytes(),
        _ => vec![b'x'; number as usize % 8],
    }
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(0..8) == 0 { random.usize(50..400) } else { random.usize(0..40) };
    vec![random.u8(..); len]
}

/// Merges operands with some of the next keys, some of them twice in a row.
fn merge(
    store: &Store,
    transaction: &mut Transaction<'_>,
    model: &mut Model,
    (operator, random): (BuiltIn, &mut fastrand::Rng),
) -> Result<(), Error> {
    let mut operands: Vec<Pair> =
        (0..random.usize(1..4)).map(|_| (key(random), value(random))).collect();
    operands.sort_by(|(one, _), (other, _)| one.cmp(other));
    if random.bool() {
        operands.push(operands[operands.len() - 1].clone());
    }
    let merged = operands.iter().map(|(key, operand)| (&key[..], &operand[..]));
    store.tree.merge(transaction, merged)?;
    for (key, operand) in operands {
        let mut value = Vec::new();
        match model.get(&key) {
            Some(older) => operator.merge(&key, older, &operand, &mut value).unwrap(),
            None => value = operand,
        }
        model.insert(key, value);
    }
    Ok(())
}

/// A transaction of some changes, half of them within savepoints that may fail.
fn change(
    store: &Store,
    model: &mut Model,
    (operator, random): (Option<BuiltIn>, &mut fastrand::Rng),
) -> Result<(), Error> {
    let before = model.clone();
    let is_undone = random.u8(0..5) == 0;
    let result = store.heap.transaction(Durability::Buffered, |transaction| {
        for _ in 0..random.usize(1..12) {
            match random.u8(0..20) {
                0 => {
                    let (one, other) = (key(random), key(random));
                    let (start, end) = (one.clone().min(other.clone()), one.max(other));
                    if start < end {
                        store.tree.remove_range(transaction, &start, &end)?;
                        model.retain(|key, _| *key < start || *key >= end);
                    }
                }
                1 => {
                    let saved = model.clone();
                    let (key, value) = (key(random), value(random));
                    let fails = random.bool();
                    let done = transaction.savepoint(|transaction| {
                        store.tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                        model.insert(key.clone(), value.clone());
                        if fails {
                            Err(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
                        } else {
                            Ok(())
                        }
                    });
                    if done.is_err() {
                        *model = saved;
                    }
                }
                2..6 => {
                    let key = key(random);
                    store.tree.write(transaction, [(&key[..], None)])?;
                    model.remove(&key);
                }
                6..14 if operator.is_some() => {
                    let Some(operator) = operator else { continue };
                    merge(store, transaction, model, (operator, random))?;
                }
                14 if operator.is_some() => {
                    let (saved, Some(operator)) = (model.clone(), operator) else { continue };
                    let undone = transaction.savepoint(|transaction| {
                        merge(store, transaction, model, (operator, random))?;
                        Err::<(), _>(Error::TransactionTooLarge)
                    });
                    assert!(matches!(undone, Err(Error::TransactionTooLarge)));
                    *model = saved;
                }
                _ => {
                    let (key, value) = (key(random), value(random));
                    store.tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                    model.insert(key, value);
                }
            }
            let key = key(random);
            let seen = store.tree.look(transaction, &key, NEWEST)?.finish(&key)?;
            assert_eq!(seen.as_deref(), model.get(&key).map(|value| &value[..]), "own writes");
        }
        if is_undone { Err(Error::KeyTooLong { bytes: 0, bytes_max: 0 }) } else { Ok(()) }
    });
    match result {
        Err(Error::KeyTooLong { .. }) if is_undone => *model = before,
        other => other?,
    }
    Ok(())
}

fn compare(store: &Store, model: &Model, sequence: u64, random: &mut fastrand::Rng, of: &str) {
    for _ in 0..4 {
        let key = key(random);
        let found = store.get(&key, sequence).unwrap();
        assert_eq!(found.as_deref(), model.get(&key).map(|value| &value[..]), "{of}: {key:?}");
    }
    let (one, other) = (key(random), key(random));
    let bounds = match random.u8(0..4) {
        0 => (Bound::Unbounded, Bound::Unbounded),
        1 => (Bound::Excluded(one.clone().min(other.clone())), Bound::Included(one.max(other))),
        2 => (Bound::Included(one), Bound::Unbounded),
        _ => (Bound::Unbounded, Bound::Excluded(one)),
    };
    if matches!(&bounds, (Bound::Excluded(a), Bound::Included(b)) if a >= b) {
        return;
    }
    let slices = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| Slice::new(key));
    let forward = random.bool();
    let range = (slices(&bounds.0), slices(&bounds.1));
    let entries_max = random.usize(1..30);
    let keys = store.keys(range.clone(), forward, sequence, entries_max).unwrap();
    let found = store.scan(range, forward, sequence, entries_max).unwrap();
    assert!(keys.iter().eq(found.iter().map(|(key, _)| key)), "{of}, forward {forward}");
    let mut expected: Vec<_> =
        model.range(bounds).map(|(key, value)| (key.clone(), value.clone())).collect();
    if !forward {
        expected.reverse();
    }
    let text = |pairs: &[Pair]| {
        let pairs =
            pairs.iter().map(|(key, value)| format!("{}={}", key.escape_ascii(), value.len()));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let (found, expected) = (text(&found), text(&expected));
    assert_eq!(found, expected, "{of}, forward {forward}");
}

fn run(seed: u64, operator: Option<BuiltIn>) {
    // While none is registered keys with operands cannot be read, and nothing is lost.
    let register = |store: &Store, is_there: bool| {
        let Some(name) = operator.map(BuiltIn::name) else { return };
        let found = built_in(name).filter(|_| is_there);
        store.tree.set_operator(NamedOperator::new(name, found));
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut store = Store::open(&directory, options(&mut random)).unwrap();
    register(&store, true);
    let mut model = Model::new();
    let mut moments: Vec<(u64, Model)> = Vec::new();
    for step in 0..400 {
        let of = format!("seed {seed}, step {step}");
        change(&store, &mut model, (operator, &mut random)).unwrap();
        register(&store, random.u8(0..8) > 0);
        let visible = store.context.sequences().visible();
        let oldest = moments.first().map_or(visible, |(sequence, _)| *sequence);
        let seen = || Ok(oldest);
        match random.u8(0..40) {
            0..4 if store.tree.is_full() => store.tree.rotate(&store.heap).unwrap(),
            4..6 => {
                store.tree.flush_least(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            6..8 => {
                store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            8..16 => {
                store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            25..28 => {
                store.tree.reclaim(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            16 => store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap(),
            17..20 if moments.len() < 4 => moments.push((visible, model.clone())),
            20..23 if !moments.is_empty() => {
                moments.remove(random.usize(0..moments.len()));
            }
            23 => {
                moments.clear();
                store.heap.close().unwrap();
                drop(store);
                store = Store::open(&directory, options(&mut random)).unwrap();
            }
            24 => {
                let pairs: Vec<(Slice, Slice)> = (0..random.u32(1..20))
                    .map(|at| (format!("load/{step:03}/{at:02}"), value(&mut random)))
                    .map(|(key, value)| (Slice::new(key.as_bytes()), Slice::new(&value)))
                    .collect();
                assert!(store.load(Durability::Buffered, &pairs).unwrap(), "{of}");
                model.extend(pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
            }
            _ => {}
        }
        register(&store, true);
        let held = moments.iter().map(|(sequence, _)| *sequence);
        store.context.sequences().hold(held);
        compare(&store, &model, store.context.sequences().visible(), &mut random, &of);
        if step % 20 == 0 {
            let report = store.check();
            assert!(report.is_clean(), "{of}: {:#?}", report.findings);
            let stats = store.tree.stats();
            let entries: u64 = stats.memtables.iter().map(|memtable| memtable.entries).sum();
            let of_tables: u64 = stats.levels.iter().map(|level| level.entries).sum();
            assert_eq!(entries + of_tables, report.entries, "{of}");
        }
        if !moments.is_empty() {
            let (sequence, then) = &moments[random.usize(0..moments.len())];
            compare(&store, then, *sequence, &mut random, &format!("{of}, at {sequence}"));
        }
    }
}

#[test]
fn it_agrees_with_maps() {
    for seed in 0..30 {
        run(seed, None);
    }
}

#[test]
fn merged_values_agree_with_maps() {
    for seed in 0..60 {
        run(seed, Some(if seed % 3 == 0 { BuiltIn::Or } else { BuiltIn::Append }));
    }
}
