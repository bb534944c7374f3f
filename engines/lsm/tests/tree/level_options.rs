//! Options that change while a tree has tables of other options: merges end, and nothing is lost.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Compression, Error, LevelCompression, NEWEST, Options, TreeOptions};

use crate::store::{Model, Store, small_options};

fn one(random: &mut fastrand::Rng) -> Compression {
    let all = [Compression::None, Compression::Lz4, Compression::zstd(), Compression::Zstd(19)];
    let built: Vec<_> = all.into_iter().filter(|compression| compression.is_built()).collect();
    built[random.usize(..built.len())]
}

/// Options of all kinds: some at their limits, some that put every value into a blob file.
fn options(random: &mut fastrand::Rng) -> TreeOptions {
    let levels: Vec<_> =
        (0..random.usize(1..=LevelCompression::LEVELS)).map(|_| one(random)).collect();
    let levels = LevelCompression::new(&levels).unwrap();
    let mut own = TreeOptions::default();
    own.compression = random.bool().then(|| levels.bottommost(one(random)));
    own.block_bytes = random.choice([None, Some(64), Some(300), Some(8 << 20)]).unwrap();
    own.filter_bits_per_key = random.choice([None, Some(0), Some(1), Some(30)]).unwrap();
    own.hash_index = random.choice([None, Some(true), Some(false)]).unwrap();
    let least = [None, Some(None), Some(Some(0)), Some(Some(1)), Some(Some(100))];
    own.blob_bytes_min = random.choice(least).unwrap();
    own
}

struct User {
    store: Store,
    model: Model,
    random: fastrand::Rng,
}

impl User {
    fn new(seed: u64, options: Options) -> Self {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let store = Store::open(&directory, options).unwrap();
        Self { store, model: Model::new(), random: fastrand::Rng::with_seed(seed) }
    }

    fn seen(&self) -> impl Fn() -> Result<u64, Error> + use<> {
        let context = Arc::clone(&self.store.context);
        move || Ok(context.sequences().visible())
    }

    fn pair(&mut self) -> (Vec<u8>, Vec<u8>) {
        let key = format!("key {:04}", self.random.u32(..2_000)).into_bytes();
        let bytes = [0, 1, 20, 90, 400][self.random.usize(..5)];
        (key, vec![self.random.u8(b'a'..b'e'); bytes])
    }

    fn write(&mut self) {
        let tree = Arc::clone(&self.store.tree);
        for _ in 0..60 {
            let (key, value) = self.pair();
            let is_removed = self.random.u8(..6) == 0;
            let value = (!is_removed).then_some(value);
            let change = [(&key[..], value.as_deref())];
            let durability = Durability::Buffered;
            self.store.heap.transaction(durability, |tx| tree.write(tx, change)).unwrap();
            match value {
                Some(value) => drop(self.model.insert(key, value)),
                None => drop(self.model.remove(&key)),
            }
        }
    }

    /// Behind all keys: its tables go to the last level.
    fn load(&mut self, round: usize) {
        let pair = |number: usize| (format!("load {round:03} {number:02}"), vec![b'l'; 3 * number]);
        let pairs: Vec<_> = (0..self.random.usize(1..60)).map(pair).collect();
        let load = self.store.tree.prepare_load(&pairs, self.random.usize(1..5)).unwrap().unwrap();
        self.store.heap.transaction(Durability::Buffered, |tx| load.commit(tx)).unwrap();
        self.model.extend(pairs.into_iter().map(|(key, value)| (key.into_bytes(), value)));
    }

    fn flush(&self) {
        self.store.tree.rotate(&self.store.heap).unwrap();
        while self.store.tree.flush(&self.store.heap, &self.seen(), &|_| Ok(())).unwrap() {}
    }

    /// Merges until nothing is left to be done; panics if that does not end.
    fn settle(&self) {
        let (tree, heap) = (&self.store.tree, &self.store.heap);
        let tables: usize = tree.levels().iter().map(Vec::len).sum();
        let mut merges = 0;
        let mut count = |is_done: bool| {
            merges += usize::from(is_done);
            assert!(merges <= 20 * (tables + 1), "{tables} tables, {merges} merges");
            is_done
        };
        while count(tree.compact_once(heap, &self.seen(), &|_| Ok(())).unwrap()) {}
        while tree.wants_rest() {
            let at_rest = tree.compact_at_rest(heap, &self.seen(), &|_| Ok(())).unwrap();
            assert!(count(at_rest), "there is work");
        }
        assert!(!tree.compact_once(heap, &self.seen(), &|_| Ok(())).unwrap());
    }

    fn assert_holds(&mut self) {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let forward = self.random.bool();
        let mut found = self.store.scan(all, forward, NEWEST, 64).unwrap();
        if !forward {
            found.reverse();
        }
        assert!(found.into_iter().eq(self.model.clone()), "the content");
        for _ in 0..50 {
            let (key, _) = self.pair();
            let value = self.store.get(&key, NEWEST).unwrap();
            assert_eq!(value.as_deref(), self.model.get(&key).map(|value| &value[..]));
        }
        let report = self.store.check();
        assert!(report.is_clean(), "{:#?}", report.findings);
    }
}

#[test]
fn merges_end_and_keep_all_whatever_options_follow_each_other() {
    for seed in 0..6 {
        let mut user = User::new(seed, small_options());
        for round in 0..25 {
            match user.random.u8(..8) {
                0 => user.load(round),
                1 => {
                    let own = options(&mut user.random);
                    user.store.tree.set_options(&own).unwrap();
                }
                2 => user.settle(),
                3 => {
                    let (tree, heap) = (&user.store.tree, &user.store.heap);
                    tree.compact_all(heap, &user.seen(), &|_| Ok(())).unwrap();
                    let of_upper: usize = tree.levels()[..6].iter().map(Vec::len).sum();
                    assert_eq!(of_upper, 0);
                }
                _ => {
                    user.write();
                    user.flush();
                }
            }
            user.assert_holds();
        }
        user.settle();
        user.assert_holds();
    }
}

/// A regression: a table ended by what its entries took before compression. Where a block is as
/// large as a table, or an entry is, that was less than a quarter of the table's maximum, and eight
/// such neighbours were merged to such tables again, for ever.
#[test]
fn blocks_as_large_as_tables_are_not_merged_for_ever() {
    for (block_bytes, value_bytes) in [(8 << 20, 500), (64, 20_000)] {
        let mut options = Options::default();
        options.table_bytes_max = 16 << 10;
        options.blob_bytes_min = None;
        options.block_bytes = block_bytes;
        let mut user = User::new(1, options);
        let pair = |number: usize| (format!("{number:04}"), vec![b'v'; value_bytes]);
        let pairs: Vec<_> = (0..(1 << 20) / value_bytes).map(pair).collect();
        let load = user.store.tree.prepare_load(&pairs, 1).unwrap().unwrap();
        user.store.heap.transaction(Durability::Buffered, |tx| load.commit(tx)).unwrap();
        user.model.extend(pairs.into_iter().map(|(key, value)| (key.into_bytes(), value)));
        user.settle();
        user.assert_holds();
        let tables = user.store.tree.levels()[6].len();
        assert!(tables < 8, "{tables} tables of 1 MiB of one byte");
    }
}
