//! Named roots and the objects that they own on a disk that crashes: after each power cut names,
//! types and objects are those of one commit, and nothing leaks. On a full disk a transaction is
//! refused whole, and removing still works.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::{
    Array, Durability, Error, Heap, Options, Persistent, Ptr, Result, Text, Trace, Tracer,
    Transaction, TypedRead, TypedWrite, Types,
};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDirectory, SimDisk, Tally};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A stack under a name.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Stack {
    top: Ptr<Entry>,
    name: Text,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Entry {
    below: Ptr<Entry>,
    values: Array<u64>,
}

impl Persistent for Stack {
    const NAME: &'static str = "test.stack";
    const VERSION: u32 = 1;
}

impl Persistent for Entry {
    const NAME: &'static str = "test.entry";
    const VERSION: u32 = 1;
}

impl Trace for Stack {
    fn trace(&self, tracer: &mut Tracer) {
        self.top.trace(tracer);
        self.name.trace(tracer);
    }
}

impl Trace for Entry {
    fn trace(&self, tracer: &mut Tracer) {
        self.below.trace(tracer);
        self.values.trace(tracer);
    }
}

/// The lengths of the entries' arrays by name, the top last.
type Model = BTreeMap<String, Vec<u64>>;

fn open(disk: &SimDisk) -> Result<Heap> {
    let mut options = Options::default();
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 256 << 20;
    options.background = false;
    Heap::open(Arc::new(SimDirectory::root(disk)), options).map(|(heap, _)| heap)
}

fn push(tx: &mut Transaction<'_>, name: &str, len: u64) -> Result<()> {
    let stack = tx.named_root_or_create(name, |tx| {
        Ok(Stack { top: Ptr::NULL, name: tx.create_text(name)? })
    })?;
    let values = tx.create_array_with(len, |index| index * len)?;
    let below = tx.get(stack)?.top;
    let top = tx.create(Entry { below, values })?;
    tx.get_mut(stack)?.top = top;
    Ok(())
}

/// Pops the top entry; with the last one the stack and its name are removed.
fn pop(tx: &mut Transaction<'_>, name: &str) -> Result<()> {
    let Some(stack) = tx.named_root::<Stack>(name)? else { return Ok(()) };
    let Stack { top, name: text } = *tx.get(stack)?;
    let Entry { below, values } = *tx.get(top)?;
    tx.destroy(values)?;
    tx.destroy(top)?;
    if below.is_null() {
        tx.remove_named_root::<Stack>(name)?;
        tx.destroy(text)?;
        return tx.destroy(stack);
    }
    tx.get_mut(stack)?.top = below;
    Ok(())
}

/// The contents of the heap.
fn contents(heap: &Heap) -> Result<Model> {
    let view = heap.view()?;
    let mut model = Model::new();
    for root in view.named_roots()? {
        let stack = view.named_root::<Stack>(&root.name)?.expect("is listed");
        let Stack { top, name } = *view.get(stack)?;
        assert_eq!(view.text(name)?, root.name);
        let (mut lens, mut next) = (Vec::new(), top);
        while !next.is_null() {
            let Entry { below, values } = *view.get(next)?;
            let len = values.len();
            assert!(view.array(values)?.iter().copied().eq((0..len).map(|index| index * len)));
            lens.insert(0, len);
            next = below;
        }
        model.insert(root.name, lens);
    }
    Ok(model)
}

fn assert_whole(heap: &Heap, expected: &Model) {
    assert_eq!(&contents(heap).expect("whole"), expected);
    let report = heap.leaks(&Types::new().with::<Stack>()).expect("can be scanned");
    assert!(report.is_clean(), "{report:?}");
    let check = heap.check().expect("can be checked");
    assert!(check.is_clean(), "{:?}", check.findings);
}

/// One transaction on heap and model; returns whether it was refused for want of space.
fn step(heap: &Heap, random: &mut fastrand::Rng, model: &mut Model, len_max: u64) -> bool {
    let name = format!("stack {}", random.u32(..4));
    let (pops, len) = (random.u32(..3) == 0, random.u64(1..len_max));
    let durability = [Durability::Sync, Durability::Buffered][random.usize(..2)];
    let outcome = heap.transaction(durability, |tx| match pops {
        true => pop(tx, &name),
        false => push(tx, &name, len),
    });
    if let Err(error) = outcome {
        assert!(error.is_out_of_space() && !pops, "{error:?}");
        return true;
    }
    match (pops, model.get_mut(&name)) {
        (false, _) => model.entry(name).or_default().push(len),
        (true, Some(lens)) if lens.len() > 1 => drop(lens.pop()),
        (true, _) => drop(model.remove(&name)),
    }
    false
}

#[test]
fn every_crash_point_leaves_one_commit_whole() {
    let disk = SimDisk::new(seed(1));
    let heap = open(&disk).expect("opens");
    let mut random = fastrand::Rng::with_seed(seed(1));
    let mut models = vec![Model::new()];
    for number in 1..=40 {
        let mut model = models[number - 1].clone();
        Mark::Begun.put(&disk, number as u64);
        assert!(!step(&heap, &mut random, &mut model, 300));
        models.push(model);
        if number % 10 == 0 {
            heap.checkpoint().expect("nothing fails");
        }
        if number % 4 == 0 {
            heap.sync().expect("nothing fails");
            Mark::Durable.put(&disk, number as u64);
        }
    }
    assert_whole(&heap, &models[40]);
    drop(heap);
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 6, |crashed, promise: Promise| {
        let heap = open(&crashed).expect("recovers");
        let found = contents(&heap).expect("whole");
        // A model may come back later; at least one of those promised is there.
        let promised = promise.least as usize..=promise.most as usize;
        let model = models[promised].iter().find(|model| **model == found);
        assert_whole(&heap, model.unwrap_or_else(|| panic!("{found:?} is none of {promise:?}")));
    });
    tally.print("typed objects");
}

#[test]
fn a_full_disk_refuses_whole_transactions() -> std::result::Result<(), Error> {
    let disk = SimDisk::new(seed(2));
    let heap = open(&disk)?;
    let mut random = fastrand::Rng::with_seed(seed(2));
    let mut model = Model::new();
    disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
    let refused = (0..300).filter(|_| step(&heap, &mut random, &mut model, 20_000)).count();
    assert!(refused > 20, "only {refused} transactions were refused");
    assert_whole(&heap, &model);
    for name in model.keys() {
        for _ in &model[name] {
            heap.transaction(Durability::Sync, |tx| pop(tx, name))?;
        }
    }
    assert_whole(&heap, &Model::new());
    disk.set_space_bytes(None);
    heap.transaction(Durability::Sync, |tx| push(tx, "again", 20_000))?;
    heap.close()
}
