//! An owner lives exactly as long as its bytes are used.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use adamant_slice::Slice;

/// Counts its drops; its bytes lie inside it, so they must not move.
struct Owner {
    bytes: [u8; 64],
    drops: Arc<AtomicUsize>,
    panics_in_as_ref: bool,
}

impl Owner {
    fn new(drops: &Arc<AtomicUsize>) -> Self {
        let bytes = std::array::from_fn(|index| index as u8);
        Self { bytes, drops: Arc::clone(drops), panics_in_as_ref: false }
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        assert!(!self.panics_in_as_ref, "asked to");
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.bytes.fill(0xEE);
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_last_slice_drops_the_owner() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slice = Slice::from_owner(Owner::new(&drops), 10..60).unwrap();
    let clone = slice.clone();
    let part = clone.slice(5..40);
    drop(slice);
    drop(clone);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    assert_eq!(part, (15..50).collect::<Vec<u8>>());
    let small = part.slice(..4);
    drop(part);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(small, [15, 16, 17, 18]);
}

#[test]
fn an_owner_that_is_not_needed_is_dropped_at_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let inline = Slice::from_owner(Owner::new(&drops), 3..9).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(inline, [3, 4, 5, 6, 7, 8]);
    assert!(Slice::from_owner(Owner::new(&drops), 60..65).is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 2);
    let mut panicking = Owner::new(&drops);
    panicking.panics_in_as_ref = true;
    let result = catch_unwind(AssertUnwindSafe(|| Slice::from_owner(panicking, ..)));
    assert!(result.is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

#[test]
fn into_vec_of_an_owner_copies_and_lets_go() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slice = Slice::from_owner(Owner::new(&drops), ..).unwrap();
    assert_eq!(slice.into_vec(), (0..64).collect::<Vec<u8>>());
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn threads_clone_read_and_drop_at_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let owned = Slice::from_owner(Owner::new(&drops), ..).unwrap();
    let block = Slice::from((0..200).collect::<Vec<u8>>());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (owned, block) = (owned.clone(), block.clone());
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let mut held = Vec::new();
                for _ in 0..10_000 {
                    let start = random.usize(..40);
                    held.push((start, owned.slice(start..), block.slice(start..start + 150)));
                    if held.len() > 20 {
                        let (start, owned, block) = held.swap_remove(random.usize(..held.len()));
                        assert_eq!(usize::from(owned[0]), start);
                        assert_eq!(usize::from(block[149]), start + 149);
                    }
                }
            })
        })
        .collect();
    drop(owned);
    drop(block);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}
