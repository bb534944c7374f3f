//! The small trees of `splits` are what they say: against a model, through reopening, after a power
//! cut at any store, on a full disk, and in a damaged heap. A small run of the command writes its
//! page.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use adamant_bench::commands::splits::leaves::Leaves;
use adamant_bench::commands::splits::strategy::Strategy;
use adamant_bench::commands::splits::{Copied, Slots, Swapped, SwappedWide};
use adamant_bench::harness::error::Result;
use adamant_heap::{Directory, Durability, Heap, MemoryDirectory, Options, Write};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};

use crate::program;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The root that counts commits.
const COMMIT_ROOT: usize = 1;

fn open(directory: Arc<dyn Directory>) -> Heap {
    let mut options = Options::default();
    options.address_bytes_max = 256 << 20;
    options.background = false;
    Heap::open(directory, options).expect("opens").0
}

/// A pair whose strings are short or long.
fn pair(random: &mut fastrand::Rng, keys: u64) -> (Vec<u8>, Vec<u8>) {
    let number = random.u64(..keys);
    let key =
        if number.is_multiple_of(2) { format!("{number:04}") } else { format!("{number:030}") };
    let len = if random.bool() { random.usize(..16) } else { random.usize(16..200) };
    (key.into_bytes(), std::iter::repeat_with(|| random.u8(..)).take(len).collect())
}

/// Panics unless the heap holds exactly this, and no block besides.
fn verify<S: Strategy>(heap: &Heap, tree: &Leaves<S>, model: &Map) {
    let view = heap.view().expect("this is no fork");
    let mut expected = model.iter();
    let visited = tree.visit(&view, |key, value| {
        assert_eq!(expected.next().map(|(key, value)| (&key[..], &value[..])), Some((key, value)));
        Ok(())
    });
    let blocks = visited.expect("can be read");
    assert_eq!(expected.next(), None);
    for (key, value) in model {
        assert_eq!(tree.get(&view, key).expect("can be read"), Some(&value[..]));
        assert_eq!(tree.get(&view, &[&key[..], b"."].concat()).expect("can be read"), None);
    }
    drop(view);
    let check = heap.check().expect("can be checked");
    assert!(check.is_clean(), "{:?}", check.findings);
    assert_eq!(check.blocks, blocks, "no block is lost");
}

fn put<S: Strategy>(
    heap: &Heap,
    tree: &mut Leaves<S>,
    model: &mut Map,
    (key, value): (Vec<u8>, Vec<u8>),
    commit: u64,
) -> bool {
    let done = tree
        .insert(heap, Durability::Sync, (&key, &value), |tx| Ok(tx.set_root(COMMIT_ROOT, commit)?));
    let done = done.expect("nothing fails");
    assert_eq!(done.replaced, model.insert(key, value).is_some());
    done.split.is_some()
}

fn against_a_model<S: Strategy>() {
    let directory = Arc::new(MemoryDirectory::new());
    let mut heap = open(directory.clone());
    let mut tree = Leaves::<S>::create(&heap, Durability::Sync).expect("room");
    let (mut model, mut random) = (Map::new(), fastrand::Rng::with_seed(seed(71)));
    for commit in 1..=4_000 {
        put(&heap, &mut tree, &mut model, pair(&mut random, 2_000), commit);
        if commit % 1_000 == 0 {
            verify(&heap, &tree, &model);
            heap.close().expect("closes");
            heap = open(directory.clone());
            tree = Leaves::open(&heap).expect("is there");
            verify(&heap, &tree, &model);
        }
    }
    assert!(tree.leaf_count() > 30, "many splits");
}

fn every_crash_point<S: Strategy>(number: u64) {
    let disk = SimDisk::new(seed(number));
    let heap = open(Arc::new(SimDirectory::root(&disk)));
    let mut tree = Leaves::<S>::create(&heap, Durability::Sync).expect("room");
    let (mut model, mut random) = (Map::new(), fastrand::Rng::with_seed(seed(number)));
    let mut commit = 0;
    // Crash points before the leaf is nearly full are those of any map.
    while model.len() < 44 {
        commit += 1;
        put(&heap, &mut tree, &mut model, pair(&mut random, 800), commit);
    }
    heap.close().expect("closes");
    drop(heap);
    disk.begin_history();
    let heap = open(Arc::new(SimDirectory::root(&disk)));
    let mut tree = Leaves::<S>::open(&heap).expect("is there");
    Mark::Durable.put(&disk, commit);
    let first = commit;
    let mut states = vec![model.clone()];
    let mut splits = 0;
    for _ in 0..90 {
        commit += 1;
        Mark::Begun.put(&disk, commit);
        splits += u32::from(put(&heap, &mut tree, &mut model, pair(&mut random, 800), commit));
        Mark::Durable.put(&disk, commit);
        states.push(model.clone());
    }
    assert!(splits >= 2, "{splits} splits");
    drop(heap);
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 3, |crashed, promise| {
        if !promise.created {
            return;
        }
        let heap = open(Arc::new(SimDirectory::root(&crashed)));
        let commit = heap.view().expect("this is no fork").root(COMMIT_ROOT);
        assert!((promise.least..=promise.most).contains(&commit), "{commit} of {promise:?}");
        let tree = Leaves::<S>::open(&heap).expect("is there");
        verify(&heap, &tree, &states[(commit - first) as usize]);
    });
    assert!(tally.points > 90, "each commit has crash points");
    tally.print(S::NAME);
}

/// Inserts until the disk is full: what fails changes nothing, in memory and after reopening.
fn a_full_disk<S: Strategy>(number: u64) {
    let disk = SimDisk::new(seed(number));
    let heap = open(Arc::new(SimDirectory::root(&disk)));
    let mut tree = Leaves::<S>::create(&heap, Durability::Sync).expect("room");
    disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
    let (mut model, mut random) = (Map::new(), fastrand::Rng::with_seed(seed(number)));
    let mut refused = 0;
    for index in 0..100_000_u64 {
        let (mut key, mut value) = pair(&mut random, u64::MAX / 2);
        key.extend(index.to_le_bytes());
        value.resize(3_000, 7);
        match tree.insert(&heap, Durability::Sync, (&key, &value), |_| Ok(())) {
            Ok(done) => assert_eq!(done.replaced, model.insert(key, value).is_some()),
            Err(_) => refused += 1,
        }
        if refused == 20 {
            break;
        }
    }
    assert_eq!(refused, 20, "the disk is full");
    verify(&heap, &tree, &model);
    heap.close().expect("closes");
    let heap = open(Arc::new(SimDirectory::root(&disk)));
    verify(&heap, &Leaves::<S>::open(&heap).expect("is there"), &model);
}

/// Whatever a leaf holds, reading it ends, with an error or with other pairs.
fn damaged_leaves<S: Strategy>(number: u64) {
    let heap = open(Arc::new(MemoryDirectory::new()));
    let mut tree = Leaves::<S>::create(&heap, Durability::Sync).expect("room");
    let (mut model, mut random) = (Map::new(), fastrand::Rng::with_seed(seed(number)));
    for commit in 1..=300 {
        put(&heap, &mut tree, &mut model, pair(&mut random, 400), commit);
    }
    let first = heap.view().expect("this is no fork").root(0);
    let mut errors = 0;
    for _ in 0..300 {
        let at = random.usize(..S::LEAF_BYTES);
        let damage = |tx: &mut adamant_heap::Transaction<'_>| -> Result<()> {
            tx.write(first, at, 1)?[0] = random.u8(..);
            Ok(())
        };
        heap.transaction(Durability::Sync, damage).expect("nothing fails");
        match Leaves::<S>::open(&heap) {
            Ok(tree) => {
                let view = heap.view().expect("this is no fork");
                errors += u32::from(tree.visit(&view, |_, _| Ok(())).is_err());
            }
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 0, "some damage is noticed");
}

macro_rules! strategies {
    ($($module:ident $strategy:ty, $number:literal;)*) => {$(
        mod $module {
            use super::*;

            #[test]
            fn is_a_map() {
                against_a_model::<$strategy>();
            }

            #[test]
            fn survives_power_cuts() {
                every_crash_point::<$strategy>($number);
            }

            #[test]
            fn survives_a_full_disk() {
                a_full_disk::<$strategy>($number + 1);
            }

            #[test]
            fn survives_damage() {
                damaged_leaves::<$strategy>($number + 2);
            }
        }
    )*};
}

strategies! {
    copied Copied, 301;
    swapped Swapped, 311;
    swapped_wide SwappedWide, 331;
    slots Slots, 321;
}

#[test]
fn a_small_run_writes_its_page() {
    const MEMORY: &str = "/dev/shm";
    if !Path::new(MEMORY).is_dir() {
        return;
    }
    let work = tempfile::tempdir_in(MEMORY).unwrap();
    let pages = tempfile::tempdir().unwrap();
    let page = pages.path().join("splits.md");
    let output = program()
        .args(["splits", "--pairs", "3000", "--rounds", "2", "--path"])
        .arg(work.path())
        .arg("--markdown")
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0, "temporary data is removed");
    let text = std::fs::read_to_string(page).unwrap();
    assert!(text.is_ascii());
    assert!(text.contains("| total time, 20 + 800 B | -37 % |"), "{text}");
}
