use std::cell::RefCell;

use super::*;
use crate::layout::descriptor_offset;

const PAGE: u64 = PAGE_BYTES;

/// Memory that records the copied ranges, and whose pages are all valid.
#[derive(Default)]
struct Seen(RefCell<Vec<(u64, u64)>>);

impl Memory for Seen {
    fn verify(&self, pages: Range<u64>, whole: &mut dyn FnMut(u64)) -> Result<()> {
        pages.for_each(whole);
        Ok(())
    }

    fn copy(&self, offset: u64, len: u64) {
        self.0.borrow_mut().push((offset / PAGE, len / PAGE));
    }
}

/// Memory of which no page is valid.
struct Refusing;

impl Memory for Refusing {
    fn verify(&self, _pages: Range<u64>, _whole: &mut dyn FnMut(u64)) -> Result<()> {
        Err(crate::Error::Misuse { what: "is refused" })
    }

    fn copy(&self, _offset: u64, _len: u64) {}
}

/// The ranges that are copied when some pages are stored to.
fn copied(pages: &Pages, first: u64, count: u64) -> Vec<(u64, u64)> {
    let seen = Seen::default();
    pages.touch(first * PAGE, count * PAGE, &seen).expect("they are whole");
    seen.0.into_inner()
}

#[test]
fn the_second_page_of_a_group_brings_the_others_but_the_first() {
    let pages = Pages::new(100, 100);
    assert_eq!(copied(&pages, 21, 1), []);
    assert_eq!(copied(&pages, 21, 1), [], "the same");
    assert_eq!(copied(&pages, 16, 1), [(16, 5), (22, 10)]);
    assert_eq!(copied(&pages, 16, 16), []);
    assert_eq!(copied(&pages, 0, 1), []);
    assert_eq!(copied(&pages, 15, 1), [(1, 15)]);
}

#[test]
fn a_store_over_several_pages_brings_their_groups() {
    let pages = Pages::new(100, 100);
    assert_eq!(copied(&pages, 35, 2), [(32, 16)]);
    assert_eq!(copied(&pages, 31, 35), [(48, 16), (64, 16)], "one page of the first group");
    assert_eq!(copied(&pages, 30, 1), [(16, 15)]);
}

#[test]
fn what_is_not_the_files_is_left_alone() {
    let pages = Pages::new(300, 100);
    assert_eq!(copied(&pages, 96, 4), [], "no whole group");
    assert_eq!(copied(&pages, 200, 40), []);
    pages.cut(50, 100);
    assert_eq!(copied(&pages, 48, 2), []);
    assert_eq!(copied(&pages, 0, 20), [(0, 16), (16, 16)]);
    assert_eq!(copied(&Pages::new(100, 0), 0, 20), [], "where memory is bounded");
}

#[test]
fn no_more_is_copied_than_is_said() {
    let groups = COPIED_BYTES_MAX / (GROUP_PAGES * PAGE);
    let pages = (groups + 9) * GROUP_PAGES;
    let pages = Pages::new(pages, pages);
    for group in 0..groups {
        assert_eq!(copied(&pages, group * GROUP_PAGES, 2).len(), 1, "{group}");
    }
    assert_eq!(copied(&pages, groups * GROUP_PAGES, 2), []);
    assert_eq!(copied(&pages, 3, 1), []);
}

#[test]
fn each_page_has_a_word_of_its_own() {
    let pages = Pages::new(3 * ZONE_PAGES, 0);
    let offsets = [
        0,
        PAGE,
        (PIECE_PAGES - 1) * PAGE,
        PIECE_PAGES * PAGE,
        (ZONE_PAGES - 1) * PAGE,
        ZONE_PAGES * PAGE,
        2 * ZONE_PAGES * PAGE,
        descriptor_offset(0),
        descriptor_offset(512),
        descriptor_offset(ZONE_PAGES - 1),
        descriptor_offset(ZONE_PAGES),
    ];
    let is_verified = |offset: u64| {
        // A refused page stays unverified.
        pages.verify(offset, 1, &Refusing).is_ok()
    };
    for (index, offset) in offsets.iter().enumerate() {
        assert!(!is_verified(*offset), "{offset:#x}");
        if index % 2 == 0 {
            pages.touch(*offset, 1, &Seen::default()).expect("it is whole");
        } else {
            pages.note_verified(*offset, 1);
        }
        for (other, after) in offsets.iter().enumerate() {
            assert_eq!(is_verified(*after), other <= index, "{after:#x}");
        }
    }
    pages.note_verified(PAGE * 10 - 1, 2);
    assert!(is_verified(PAGE * 9) && is_verified(PAGE * 10));
}

#[test]
fn an_epoch_rises_until_the_page_is_dropped_and_memory_is_counted() {
    let pages = Pages::new(2 * PIECE_PAGES, 0);
    let touch = |page: u64| pages.touch(page * PAGE, 1, &Seen::default()).expect("it is whole");
    touch(3);
    touch(3);
    touch(4);
    pages.touch(TABLE_BASE, 8, &Seen::default()).expect("it is whole");
    assert_eq!((pages.epoch_of(3), pages.epoch_of(4), pages.epoch_of(5)), (1, 1, 0));
    assert_eq!(pages.own_bytes(), 2 * PAGE, "descriptors do not count");
    assert_eq!(pages.end_epoch(), Some(1));
    touch(4);
    assert_eq!((pages.epoch_of(3), pages.epoch_of(4)), (1, 2));
    assert_eq!(
        (pages.next_stored(0, PIECE_PAGES), pages.next_stored(1, PIECE_PAGES)),
        (Some(0), None)
    );
    assert_eq!(pages.epoch_of_oldest(2, PAGE, PIECE_PAGES), 1);
    pages.forget(3, 4);
    assert_eq!((pages.epoch_of(3), pages.own_bytes()), (0, PAGE));
    pages.note_anonymous(0, 1);
    assert_eq!(pages.own_bytes(), PIECE_PAGES * PAGE);
    pages.hold(5 * PAGE, 1);
    assert!(pages.start_dropping(0).is_none(), "somebody may store to it");
    pages.let_go(5 * PAGE, 1);
    let dropping = pages.start_dropping(0).expect("nobody holds it");
    pages.forget_piece(&dropping);
    assert_eq!((pages.own_bytes(), pages.newest_in(0)), (0, 0));
}

#[test]
fn dirty_pages_are_found_in_order_and_a_copy_ends_that() {
    let pages = Pages::new(3 * ZONE_PAGES, 0);
    assert_eq!(pages.next_dirty(0), None);
    let mut dirty = vec![0, 1, 511, 512, 700, ZONE_PAGES - 1, ZONE_PAGES, 2 * ZONE_PAGES + 9];
    dirty.extend([TABLE_PAGE, TABLE_PAGE + ZONE_TABLE_PAGES - 1, TABLE_PAGE + ZONE_TABLE_PAGES]);
    dirty.iter().rev().for_each(|page| pages.note_dirty(*page..page + 1));
    let found = |from| {
        let next = |page: &u64| pages.next_dirty(page + 1);
        std::iter::successors(pages.next_dirty(from), next).collect::<Vec<_>>()
    };
    assert_eq!(found(0), dirty);
    for (index, page) in dirty.iter().enumerate() {
        assert_eq!(found(*page), dirty[index..]);
    }
    pages.note_copied(512, Some(7));
    assert_eq!((pages.is_dirty(512), pages.epoch_of(512)), (false, 7));
    pages.note_clean(0..PIECE_PAGES);
    assert_eq!(found(0), dirty[4..]);
}
