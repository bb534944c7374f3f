//! Forged directories of named roots and forged objects, under page checksums that match: errors,
//! findings or wrong numbers, but no panic and no scan without end.

use std::sync::Arc;

use adamant_heap::layout::{
    DIRECTORY_ROOT, PAGE_BYTES, ROOT_OFFSET, ROOT_WORDS, checksum_file_offset, file_offset,
};
use adamant_heap::{
    AnyPtr, Array, Directory, Durability, Error, Heap, MemoryDirectory, Options, Persistent, Ptr,
    Text, Trace, Tracer, TypedRead, TypedWrite, Types,
};
use adamant_wire::checksum::{crc32c, page_checksum};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Node {
    name: Text,
    next: Ptr<Node>,
    all: Array<Ptr<Node>>,
    any: AnyPtr,
}

impl Persistent for Node {
    const NAME: &'static str = "test.node";
    const VERSION: u32 = 1;
}

impl Trace for Node {
    fn trace(&self, tracer: &mut Tracer) {
        self.name.trace(tracer);
        self.next.trace(tracer);
        self.all.trace(tracer);
        self.any.trace(tracer);
    }
}

fn open(directory: Arc<dyn Directory>) -> Result<Heap, Error> {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    Heap::open(directory, options).map(|(heap, _)| heap)
}

/// The pool of a closed heap with some named roots, and the offset and length of the directory and
/// of other targets for damage.
fn pool() -> (Vec<u8>, Vec<(u64, usize)>) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(Arc::clone(&directory)).expect("opens");
    let mut places = heap
        .transaction(Durability::Sync, |tx| {
            let mut places = Vec::new();
            for name in ["one", "two", "three"] {
                let node = tx.named_root_or_create(name, |tx| {
                    let (name, inner) = (tx.create_text(name)?, tx.create(7_u64)?);
                    Ok(Node { name, next: Ptr::NULL, all: Array::EMPTY, any: inner.into() })
                })?;
                let all = tx.create_array(&[node, Ptr::NULL, Ptr::NULL])?;
                let node = (node, tx.get_mut(node)?);
                (node.1.next, node.1.all) = (node.0, all);
                places.push((node.0.offset(), size_of::<Node>()));
                places.push((all.offset(), 24));
            }
            Ok::<_, Error>(places)
        })
        .expect("room");
    let view = heap.view().expect("ours");
    let (directory_block, roots) = (view.root(DIRECTORY_ROOT), view.named_roots().expect("whole"));
    let bytes =
        24 + roots.iter().map(|root| 32 + root.name.len() + root.type_name.len()).sum::<usize>();
    places.insert(0, (directory_block, bytes));
    // The word that points to the directory.
    places.push((ROOT_OFFSET + ROOT_WORDS + 8 * DIRECTORY_ROOT as u64, 8));
    drop(view);
    heap.close().expect("nothing fails");
    let file = directory.open("pool").expect("in memory").expect("is there");
    let mut bytes = vec![0; file.len().expect("in memory") as usize];
    file.read_at(&mut bytes, 0).expect("in memory");
    (bytes, places)
}

/// Opens the heap and reads everything that is named. The results do not matter.
fn exercise(pool: &[u8]) -> bool {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    directory.create("pool").expect("new").write_at(pool, 0).expect("in memory");
    let Ok(heap) = open(directory) else { return false };
    let leaks = heap.leaks(&Types::new().with::<Node>().with::<u64>());
    let check = heap.check().expect("can be checked");
    for name in ["one", "two", "three", "four"] {
        let Ok(view) = heap.view() else { continue };
        if let Ok(Some(ptr)) = view.named_root::<Node>(name)
            && let Ok(node) = view.get(ptr)
        {
            let _ = (view.text(node.name), view.get(node.next).map(|next| next.any));
            let _ = view.array(node.all).map(|all| all.iter().map(|ptr| ptr.offset()).max());
            let _ = node.any.downcast::<u64>().and_then(|number| view.get(number).copied());
        }
        drop(view);
        let _ = heap.transaction(Durability::Buffered, |tx| {
            if let Some(ptr) = tx.remove_named_root::<Node>(name)? {
                let (name, all) = (tx.get(ptr)?.name, tx.get(ptr)?.all);
                tx.destroy(name)?;
                tx.array_mut(all)?.fill(Ptr::NULL);
                tx.destroy(ptr)?;
            }
            tx.named_root_or_create(name, |_| Ok(1_u64))
        });
    }
    let _ = (heap.leaks(&Types::new()), heap.close());
    check.is_clean() && leaks.is_ok_and(|report| report.is_clean())
}

#[test]
fn hostile_roots_and_objects_are_no_panic() {
    let (pool, places) = pool();
    // Each node is owned by its root, by itself and by its array, which is no error.
    assert!(exercise(&pool), "the sound pool");
    let mut noticed = 0;
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pool = pool.clone();
        // The directory in two of three.
        let place = if random.u32(..3) > 0 { 0 } else { random.usize(1..places.len()) };
        let (offset, len) = places[place];
        let start = file_offset(offset) as usize;
        for _ in 0..random.usize(1..4) {
            let at = start + random.usize(..len);
            let word = [0, u64::MAX, offset, 8192, random.u64(..)][random.usize(..5)].to_le_bytes();
            let count = random.usize(1..=8).min(start + len - at);
            pool[at..at + count].copy_from_slice(&word[..count]);
        }
        if place == 0 && random.u32(..8) > 0 {
            let block = &mut pool[start..start + 4096.min(len)];
            let said = u32::from_le_bytes(block[8..12].try_into().expect("four")) as usize;
            let crc = crc32c(crc32c(0, &block[..20]), &block[24..said.clamp(24, len)]);
            block[20..24].copy_from_slice(&crc.to_le_bytes());
        }
        let page = offset / PAGE_BYTES * PAGE_BYTES;
        let crc = page_checksum(&pool[file_offset(page) as usize..][..PAGE_BYTES as usize]);
        pool[checksum_file_offset(page) as usize..][..4].copy_from_slice(&crc.to_le_bytes());
        println!("seed {seed}");
        noticed += u32::from(!exercise(&pool));
    }
    // Some change nothing, or turn a name into another.
    assert!(noticed > 1000, "only {noticed} of 1500 were noticed");
}
