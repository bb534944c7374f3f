//! Tests of what is kept for readers, and for how long.

use adamant_medium::memory::MemoryDirectory;

use super::*;
use crate::journal::checkpoints::table::Name;
use crate::journal::readers::{Place, Registration};
use crate::layout::TABLE_BASE;

const PAGES: u64 = 16;

/// A store of some pages, and a keeper of room for some copies of them.
fn store(copies: u64) -> (Arc<dyn Directory>, PoolFile, Keeper) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let file = directory.create("pool").expect("a file");
    let page = [0; PAGE_BYTES as usize];
    let initial = [(0, &page[..]), (TABLE_BASE, &page[..])];
    let pool = PoolFile::create(file, [5; 16], PAGES, &initial, 0);
    let keeper = Keeper::new(&directory, copies * (PAGE_BYTES + 1000));
    (directory, pool.expect("a pool"), keeper)
}

fn id(number: u64) -> BatchId {
    BatchId { number, batch: 0 }
}

/// A batch that overwrites a page.
fn keep_page(pool: &PoolFile, keeper: &Keeper, number: u64, page: u64) {
    let (name, page) = (Name { number, batch: 0, durable: 7 }, page * PAGE_BYTES);
    table::write(pool, name, &[table::entry(page, 1, 2)]).expect("written");
    keeper.keep(pool, id(number), &[page], &[1]).expect("kept");
}

fn keep(pool: &PoolFile, keeper: &Keeper, number: u64) {
    keep_page(pool, keeper, number, 0);
}

fn files(directory: &Arc<dyn Directory>) -> Vec<BatchId> {
    let readers = Readers::of(directory.as_ref()).expect("listed").expect("is there");
    side_files(readers.directory().as_ref()).expect("listed")
}

/// A regression: one that is being opened seemed to need all that was kept before it came, for
/// which all others were overtaken.
#[test]
fn a_reader_that_is_being_opened_needs_nothing_from_before() {
    let (directory, pool, keeper) = store(3);
    let stay = |number| {
        let reader = Registration::new(directory.as_ref()).expect("registered");
        reader.set(Place { moment: 5, known: id(number) }).expect("set");
        reader
    };
    let old = stay(0);
    // Another page each.
    let follower = stay(0);
    for number in 1..=3 {
        keep_page(&pool, &keeper, number, number);
        follower.set(Place { moment: 5, known: id(number) }).expect("set");
    }
    assert_eq!(files(&directory), [id(1), id(2), id(3)]);
    let opening = Registration::new(directory.as_ref()).expect("registered");
    keep_page(&pool, &keeper, 4, 4);
    assert!(old.is_overtaken().expect("looked at"));
    for reader in [&follower, &opening] {
        assert!(!reader.is_overtaken().expect("looked at"));
    }
    assert_eq!(files(&directory), [id(4)]);
    // It needs what was kept since it came.
    follower.set(Place { moment: 5, known: id(4) }).expect("set");
    keep_page(&pool, &keeper, 5, 5);
    assert_eq!(files(&directory), [id(4), id(5)]);
    // Nothing of it is known to another process.
    let later = Keeper::new(&directory, 1 << 20);
    later.tidy();
    assert_eq!(files(&directory), [id(4), id(5)]);
}

/// A reader that stays takes the first copy: others of the same pages go with those that need
/// them.
#[test]
fn copies_between_readers_go() {
    let (directory, pool, keeper) = store(100);
    let stay = |number| {
        let reader = Registration::new(directory.as_ref()).expect("registered");
        reader.set(Place { moment: 5, known: id(number) }).expect("set");
        reader
    };
    let (old, follower) = (stay(0), stay(0));
    for number in 1..=20 {
        keep(&pool, &keeper, number);
        follower.set(Place { moment: 5, known: id(number) }).expect("set");
    }
    keeper.tidy();
    assert_eq!(files(&directory), [id(1)]);
    // One between them, while the follower moves.
    let between = stay(20);
    keep(&pool, &keeper, 21);
    follower.set(Place { moment: 0, known: id(20) }).expect("set");
    keep(&pool, &keeper, 22);
    assert_eq!(files(&directory), [id(1), id(21), id(22)]);
    follower.set(Place { moment: 5, known: id(22) }).expect("set");
    keeper.tidy();
    assert_eq!(files(&directory), [id(1), id(21)]);
    drop(between);
    keeper.tidy();
    assert_eq!(files(&directory), [id(1)]);
    drop(old);
    keeper.tidy();
    assert!(files(&directory).is_empty());
}

/// Memory does not stay for readers that have gone.
#[test]
fn what_is_kept_is_forgotten_with_its_readers() {
    let (directory, pool, keeper) = store(3);
    let reader = Registration::new(directory.as_ref()).expect("registered");
    keep(&pool, &keeper, 1);
    assert_eq!(keeper.kept.lock().pages.len(), 1);
    drop(reader);
    keep(&pool, &keeper, 2);
    assert!(keeper.kept.lock().pages.is_empty());
    assert!(files(&directory).is_empty());
}
