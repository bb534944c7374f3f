use std::cell::RefCell;

use super::*;
use crate::layout::descriptor_offset;

const PAGE: u64 = PAGE_BYTES;

/// What is copied when some pages are stored to.
fn copied(pages: &Pages, first: u64, count: u64) -> Vec<(u64, u64)> {
    let seen = RefCell::new(Vec::new());
    let copy = |offset: u64, len: u64| seen.borrow_mut().push((offset / PAGE, len / PAGE));
    pages.touch(first * PAGE, count * PAGE, &copy);
    seen.into_inner()
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
        let is_judged = std::cell::Cell::new(false);
        // A page that is refused stays what it was.
        let refuse = |_| {
            is_judged.set(true);
            Err(crate::Error::Misuse { what: "is refused" })
        };
        assert_eq!(pages.verify(offset, 1, refuse).is_err(), is_judged.get());
        !is_judged.get()
    };
    for (index, offset) in offsets.iter().enumerate() {
        assert!(!is_verified(*offset), "{offset:#x}");
        if index % 2 == 0 {
            pages.touch(*offset, 1, &|_, _| ());
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
    let touch = |page: u64| pages.touch(page * PAGE, 1, &|_, _| ());
    touch(3);
    touch(3);
    touch(4);
    pages.touch(TABLE_BASE, 8, &|_, _| ());
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
