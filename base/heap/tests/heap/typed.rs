//! Objects, arrays, texts and named roots: they are found again by their type and by no other, and
//! the leak scan finds unreachable blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::layout::{DIRECTORY_ROOT, NAMED_ROOT_COUNT_MAX};
use adamant_heap::{
    AnyPtr, Array, Bytes, Directory, Durability, Error, Heap, LeakFinding, MemoryDirectory,
    Persistent, Ptr, Text, Trace, Tracer, Transaction, TypedRead, TypedWrite, Types,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Node {
    name: Text,
    data: Bytes,
    children: Array<Ptr<Node>>,
    other: AnyPtr,
    weight: u64,
}

impl Persistent for Node {
    const NAME: &'static str = "test.node";
    const VERSION: u32 = 2;
}

impl Trace for Node {
    fn trace(&self, tracer: &mut Tracer) {
        self.name.trace(tracer);
        self.data.trace(tracer);
        self.children.trace(tracer);
        self.other.trace(tracer);
    }
}

/// The previous version, which had only a weight.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OldNode {
    weight: u64,
}

impl Persistent for OldNode {
    const NAME: &'static str = "test.node";
    const VERSION: u32 = 1;
}

/// As `Node`, but changed without a new version.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ChangedNode {
    weight: u64,
    height: u64,
}

impl Persistent for ChangedNode {
    const NAME: &'static str = "test.node";
    const VERSION: u32 = 2;
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn new_heap() -> Heap {
    open(&(Arc::new(MemoryDirectory::new()) as Arc<dyn Directory>))
}

/// A transaction that succeeds.
fn run<T>(heap: &Heap, work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>) -> T {
    heap.transaction(Durability::Sync, work).expect("succeeds")
}

/// The error of a transaction that fails.
fn refused<T: std::fmt::Debug>(
    heap: &Heap,
    work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>,
) -> Error {
    heap.transaction(Durability::Sync, work).expect_err("refused")
}

fn node(tx: &mut Transaction<'_>, weight: u64) -> Result<Node, Error> {
    Ok(Node {
        name: tx.create_text(&format!("node {weight}"))?,
        data: tx.create_bytes(&vec![weight as u8; weight as usize % 9000])?,
        children: Array::EMPTY,
        other: AnyPtr::NULL,
        weight,
    })
}

fn types() -> Types {
    Types::new().with::<Node>().with::<u64>()
}

fn assert_clean(heap: &Heap, blocks: u64) {
    let report = heap.leaks(&types()).expect("can be scanned");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.blocks, report.reachable), (blocks, blocks));
    let check = heap.check().expect("can be checked");
    assert!(check.is_clean(), "{:?}", check.findings);
    assert_eq!((check.blocks, check.block_bytes), (report.blocks, report.block_bytes));
}

#[test]
fn what_is_stored_is_found_after_reopening() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    run(&heap, |tx| {
        let root = tx.named_root_or_create("tree", |tx| node(tx, 5000))?;
        let mut children = Vec::new();
        for weight in 0..1000 {
            let child = node(tx, weight)?;
            children.push(tx.create(child)?);
        }
        let children = tx.create_array(&children)?;
        let other = tx.create(77_u64)?;
        let node = tx.get_mut(root)?;
        (node.children, node.other) = (children, other.into());
        Ok(())
    });
    heap.close().expect("closes");
    let heap = open(&directory);
    {
        let view = heap.view().expect("ours");
        let root = view.named_root::<Node>("tree").expect("its type").expect("is there");
        let node = view.get(root).expect("a node");
        assert_eq!(view.text(node.name).expect("text"), "node 5000");
        assert_eq!(view.bytes(node.data).expect("bytes"), vec![136; 5000]);
        assert_eq!(*view.get(node.other.downcast::<u64>().expect("a number")).expect("one"), 77);
        assert_eq!(node.children.len(), 1000);
        for (weight, child) in (0..).zip(view.array(node.children).expect("children")) {
            assert_eq!(view.get(*child).expect("a node").weight, weight);
        }
        let last = view.element(node.children, 999).expect("the last");
        assert_eq!(view.get(*last).expect("a node").weight, 999);
    }
    // The directory, the root with its text, bytes, children and number; of the children each has
    // a text and all but the first have bytes.
    assert_clean(&heap, 1 + 5 + 1000 * 3 - 1);
    heap.close().expect("closes");
}

#[test]
fn a_root_is_found_by_its_type_and_version_only() {
    let heap = new_heap();
    run(&heap, |tx| tx.named_root_or_create("node", |tx| node(tx, 1)));
    let message = |error: Error| {
        assert!(matches!(error, Error::WrongLayout { .. }), "{error:?}");
        error.to_string()
    };
    let old = message(refused(&heap, |tx| tx.named_root::<OldNode>("node")));
    for part in ["root \"node\"", "test.node version 1 of 8", "found test.node version 2 of 72"] {
        assert!(old.contains(part), "{old}");
    }
    assert!(old.contains("newer version of the program"), "{old}");
    let changed = message(refused(&heap, |tx| tx.named_root::<ChangedNode>("node")));
    assert!(changed.contains("changed without a new version"), "{changed}");
    let number = message(refused(&heap, |tx| tx.named_root_or_create("node", |_| Ok(1_u64))));
    assert!(number.contains("expected u64 version 1"), "{number}");
    let other = refused(&heap, |tx| {
        let number = tx.create(1_u64)?;
        tx.set_named_root("node", number)
    });
    assert!(message(other).contains("use another name"));
    let other = refused(&heap, |tx| tx.remove_named_root::<u64>("node"));
    assert!(message(other).contains("use another name"));
    // Pointers to different types differ, though their bytes look the same.
    run(&heap, |tx| tx.named_root_or_create("pointer", |_| Ok(Ptr::<u64>::NULL)));
    let inner = message(refused(&heap, |tx| tx.named_root::<Ptr<Node>>("pointer")));
    assert!(inner.contains("type within it"), "{inner}");
}

#[test]
fn an_old_version_is_replaced_by_a_new_one() {
    let heap = new_heap();
    run(&heap, |tx| tx.named_root_or_create("node", |_| Ok(OldNode { weight: 8 })));
    let error = refused(&heap, |tx| tx.named_root::<Node>("node")).to_string();
    assert!(error.contains("read it as its old version"), "{error}");
    run(&heap, |tx| {
        let old = tx.remove_named_root::<OldNode>("node")?.expect("is there");
        let weight = tx.get(old)?.weight;
        tx.destroy(old)?;
        let new = node(tx, weight)?;
        let new = tx.create(new)?;
        tx.set_named_root("node", new)
    });
    let view = heap.view().expect("ours");
    let node = view.named_root::<Node>("node").expect("its type").expect("is there");
    assert_eq!(view.get(node).expect("a node").weight, 8);
    drop(view);
    assert_clean(&heap, 4);
}

#[test]
fn named_roots_are_what_a_map_would_be() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut heap = open(&directory);
    let mut model = BTreeMap::<String, u64>::new();
    let mut random = fastrand::Rng::with_seed(4);
    for round in 0..300_u64 {
        let name = format!("{}", random.u32(..40)).repeat(random.usize(1..4));
        let fails = random.u32(..4) == 0;
        let mut changed = model.clone();
        let outcome = heap.transaction(Durability::Buffered, |tx| {
            let before = if random.bool() {
                let value = tx.create(round)?;
                let before = tx.set_named_root(&name, value)?;
                let before_value = before.map(|ptr| tx.get(ptr).copied()).transpose()?;
                assert_eq!(before_value, changed.insert(name.clone(), round));
                before
            } else {
                let before = tx.remove_named_root::<u64>(&name)?;
                assert_eq!(before.is_some(), changed.remove(&name).is_some());
                before
            };
            if let Some(before) = before {
                tx.destroy(before)?;
            }
            if fails { Err(Error::Misuse { what: "planned" }) } else { Ok(()) }
        });
        assert_eq!(outcome.is_err(), fails, "{outcome:?}");
        if !fails {
            model = changed;
        }
        if round % 50 == 0 {
            drop(heap);
            heap = open(&directory);
        }
        let view = heap.view().expect("ours");
        let found = view.named_roots().expect("whole").into_iter().map(|root| root.name);
        assert!(found.eq(model.keys().cloned()), "seed 4, round {round}");
        for (name, value) in &model {
            let ptr = view.named_root::<u64>(name).expect("a number").expect("is there");
            assert_eq!(view.get(ptr).expect("a number"), value, "seed 4, round {round}");
        }
        drop(view);
        assert_clean(&heap, model.len() as u64 + u64::from(!model.is_empty()));
    }
}

#[test]
fn names_and_their_number_have_limits() {
    let heap = new_heap();
    for name in ["", &"n".repeat(256)] {
        let error = refused(&heap, |tx| tx.named_root_or_create(name, |_| Ok(1_u64)));
        assert!(error.to_string().contains("1 to 255 bytes"), "{error}");
        assert!(heap.view().expect("ours").named_root::<u64>(name).is_err());
    }
    run(&heap, |tx| {
        let shared = tx.named_root_or_create(&"n".repeat(255), |_| Ok(1_u64))?;
        for number in 1..NAMED_ROOT_COUNT_MAX {
            tx.set_named_root(&format!("{number:0>200}"), shared)?;
        }
        let error = tx.set_named_root("one more", shared).expect_err("too many");
        assert!(error.to_string().contains("at most 1024 named roots"), "{error}");
        Ok(())
    });
    assert_eq!(heap.leaks(&types()).expect("scans").shared, NAMED_ROOT_COUNT_MAX as u64 - 1);
    let error = refused(&heap, |tx| tx.set_root(DIRECTORY_ROOT, 8192));
    assert!(error.to_string().contains("directory of named roots"), "{error}");
}

#[test]
fn arrays_are_checked_at_their_ends() {
    let heap = new_heap();
    let (array, large) = run(&heap, |tx| {
        let array = tx.create_array_with(5, |index| index * 10)?;
        let large = tx.create_array_with(100_000, |index| index as u32)?;
        tx.element_mut(large, 50_000).map(|value| *value = 1)?;
        tx.array_mut(array)?[4] = 1;
        Ok((array, large))
    });
    // In a later transaction, where they are no longer newly allocated.
    run(&heap, |tx| {
        *tx.element_mut(array, 3)? = 2;
        *tx.element_mut(large, 99_999)? = 2;
        assert!(matches!(tx.element_mut(array, 5), Err(Error::Misuse { .. })));
        assert!(matches!(tx.element(array, u64::MAX), Err(Error::Misuse { .. })));
        // Lengths that no block can hold.
        for len in [6, u64::MAX / 8 + 2, u64::MAX] {
            let beyond = Array::<u64>::new(array.offset(), len);
            assert!(tx.array(beyond).is_err(), "{len}");
            assert!(tx.array_mut(beyond).is_err(), "{len}");
            assert!(tx.element_mut(beyond, len - 1).is_err(), "{len}");
        }
        assert!(matches!(tx.create_array_with(u64::MAX, |_| 0_u64), Err(Error::TooLarge { .. })));
        assert_eq!(tx.create_array::<u64>(&[])?, Array::EMPTY);
        assert!(tx.array(Array::<u64>::EMPTY)?.is_empty());
        assert!(tx.array_mut(Array::<u64>::EMPTY)?.is_empty());
        tx.destroy(Array::<u64>::EMPTY)?;
        tx.destroy(Text::EMPTY)?;
        Ok(())
    });
    let view = heap.view().expect("ours");
    assert_eq!(view.array(array).expect("whole"), [0, 10, 20, 2, 1]);
    let large = view.array(large).expect("whole");
    assert_eq!((large[49_999], large[50_000], large[99_999]), (49_999, 1, 2));
}

#[test]
fn pointers_that_lie_are_errors() {
    let heap = new_heap();
    let (small, text) = run(&heap, |tx| Ok((tx.create(1_u64)?, tx.create_bytes(&[0xFF; 9])?)));
    run(&heap, |tx| {
        let large = Ptr::<Node>::new(small.offset());
        assert!(matches!(tx.get(large), Err(Error::InvalidPointer { .. })));
        assert!(matches!(tx.get_mut(large), Err(Error::InvalidPointer { .. })));
        for offset in [1, 4096, small.offset() + 4, 1 << 40, 1 << 46, u64::MAX] {
            let wild = Ptr::<u64>::new(offset);
            assert!(matches!(tx.get(wild), Err(Error::InvalidPointer { .. })), "{offset}");
            assert!(matches!(tx.get_mut(wild), Err(Error::InvalidPointer { .. })), "{offset}");
            assert!(matches!(tx.destroy(wild), Err(Error::InvalidPointer { .. })), "{offset}");
            assert!(tx.set_named_root("wild", wild).is_err(), "{offset}");
        }
        assert!(matches!(tx.get(Ptr::<u64>::NULL), Err(Error::Misuse { .. })));
        assert!(matches!(tx.get_mut(Ptr::<u64>::NULL), Err(Error::Misuse { .. })));
        assert!(matches!(tx.destroy(Ptr::<u64>::NULL), Err(Error::Misuse { .. })));
        assert!(matches!(tx.destroy(AnyPtr::NULL), Err(Error::Misuse { .. })));
        let error = tx.text(Text(text.0)).expect_err("no text").to_string();
        assert!(error.contains("UTF-8"), "{error}");
        tx.destroy(small)?;
        assert!(matches!(tx.destroy(small), Err(Error::InvalidPointer { .. })));
        Ok(())
    });
}

#[test]
fn a_wrong_cast_is_an_error() {
    let heap = new_heap();
    run(&heap, |tx| {
        let number = tx.create(3_u64)?;
        let mixed = [AnyPtr::from(number), AnyPtr::from(tx.create(OldNode { weight: 9 })?)];
        let mixed = tx.create_array(&mixed)?;
        let mut sum = 0;
        for index in 0..mixed.len() {
            let any = *tx.element(mixed, index)?;
            assert!(!any.is::<Node>() && !any.is_null());
            let error = any.downcast::<Node>().expect_err("another version").to_string();
            assert!(error.contains("expected test.node version 2 of 72 bytes"), "{error}");
            sum += match any.downcast::<u64>() {
                Ok(number) => *tx.get(number)?,
                Err(_) => tx.get(any.downcast::<OldNode>()?)?.weight,
            };
        }
        assert_eq!(sum, 12);
        assert_eq!(AnyPtr::from(Ptr::<u64>::NULL), AnyPtr::NULL);
        assert!(AnyPtr::NULL.downcast::<u64>().is_err());
        Ok(())
    });
}

#[test]
fn what_nothing_reaches_is_found() {
    let heap = new_heap();
    let (root, lost) = run(&heap, |tx| {
        let root = tx.named_root_or_create("tree", |tx| node(tx, 10))?;
        let lost = node(tx, 20_000)?;
        Ok((root, (tx.create(lost)?, lost)))
    });
    let mut expected = [lost.0.offset(), lost.1.name.0.offset(), lost.1.data.0.offset()];
    expected.sort_unstable();
    let report = heap.leaks(&types()).expect("scans");
    let found: Vec<u64> = report.leaks.iter().map(|leak| leak.offset).collect();
    assert_eq!(found, expected);
    assert_eq!((report.blocks, report.reachable), (7, 4));
    assert!(report.findings.is_empty(), "{report:?}");

    // A child that is destroyed but still pointed to, a text that is taken for a child and too
    // short for one, a child that is owned twice, and a number that is too short.
    run(&heap, |tx| {
        let gone = tx.create(Node { weight: 1, ..*tx.get(root)? })?;
        let (name, short) = (tx.get(root)?.name, tx.create(1_u64)?);
        let children = tx.create_array(&[
            gone,
            Ptr::new(name.0.offset()),
            lost.0,
            lost.0,
            Ptr::new(short.offset()),
        ])?;
        tx.get_mut(root)?.children = children;
        tx.get_mut(root)?.other = tx.create(OldNode { weight: 1 })?.into();
        tx.destroy(gone)
    });
    let report = heap.leaks(&types()).expect("scans");
    let shows = |what: fn(&LeakFinding) -> bool| report.findings.iter().filter(|f| what(f)).count();
    assert_eq!(shows(|f| matches!(f, LeakFinding::Dangling { .. })), 1, "{report:?}");
    assert_eq!(shows(|f| matches!(f, LeakFinding::Mismatch { .. })), 1, "{report:?}");
    assert_eq!(shows(|f| matches!(f, LeakFinding::Short { .. })), 2, "{report:?}");
    assert_eq!(shows(|f| matches!(f, LeakFinding::Unknown { .. })), 1, "{report:?}");
    assert_eq!((report.findings.len(), report.shared), (5, 1), "{report:?}");
    assert!(report.leaks.is_empty(), "{report:?}");
    let all: Vec<String> = report.findings.iter().map(LeakFinding::to_string).collect();
    assert!(all.iter().any(|what| what.contains("found no allocated block")), "{all:?}");

    // A root of an unknown type, and a root word without a type.
    run(&heap, |tx| {
        tx.named_root_or_create("old", |_| Ok(OldNode { weight: 2 }))?;
        let raw = tx.create(3_u64)?;
        tx.set_root(3, raw.offset())
    });
    let report = heap.leaks(&types()).expect("scans");
    assert_eq!((report.findings.len(), &report.untraced_roots[..]), (6, &[3][..]), "{report:?}");
    let error = refused(&heap, |_| heap.leaks(&types()));
    assert!(matches!(error, Error::Misuse { .. }), "{error:?}");
}

#[test]
fn a_ring_of_a_million_does_not_exhaust_the_stack() {
    #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(transparent)]
    struct Link(Ptr<Link>);
    impl Persistent for Link {
        const NAME: &'static str = "test.link";
        const VERSION: u32 = 1;
    }
    impl Trace for Link {
        fn trace(&self, tracer: &mut Tracer) {
            self.0.trace(tracer);
        }
    }
    let heap = new_heap();
    run(&heap, |tx| {
        let first = tx.named_root_or_create("ring", |_| Ok(Link(Ptr::NULL)))?;
        let mut next = first;
        for _ in 1..1_000_000 {
            next = tx.create(Link(next))?;
        }
        tx.get_mut(first)?.0 = next;
        Ok(())
    });
    let report = heap.leaks(&Types::new().with::<Link>()).expect("scans");
    assert_eq!((report.reachable, report.shared), (1_000_001, 1));
    assert!(report.is_clean());
}
