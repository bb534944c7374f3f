//! Regions keep their base address and commit pages on demand.

use adamant_medium::address::region::Region;
use adamant_medium::error::Error;
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

fn byte(region: &mut Region, offset: u64) -> &mut u8 {
    // SAFETY: the tests stay within the range that they committed.
    let mut byte = unsafe { region.base().add(offset as usize) };
    // SAFETY: as above, and they hold no two references at once.
    unsafe { byte.as_mut() }
}

#[test]
fn a_region_grows_without_moving() {
    let mut region = Region::reserve(1 << 40, 1 << 30).unwrap();
    assert!(region.bytes() >= 1 << 30);
    let base = region.base();
    assert_eq!(base.addr().get() % (2 << 20), 0);
    let mut offset = 0;
    for step in [4095, 1, 4096, 1 << 16, 3 << 20, 64 << 20] {
        region.commit(offset, step).unwrap();
        assert_eq!(*byte(&mut region, offset + step - 1), 0);
        *byte(&mut region, offset) = 1;
        *byte(&mut region, offset + step - 1) = 1;
        offset += step;
    }
    assert_eq!(region.base(), base);
    *byte(&mut region, 0) = 9;
    region.commit(0, offset).unwrap();
    assert_eq!(*byte(&mut region, 0), 9, "committing again keeps the bytes");
    region.prefetch(0);
    region.prefetch(u64::MAX);
}

#[test]
fn beyond_the_region_is_an_error() {
    let mut region = Region::reserve(3 << 20, 1).unwrap();
    assert_eq!(region.bytes(), 4 << 20, "rounded to huge pages");
    region.commit(0, region.bytes()).unwrap();
    let last = region.bytes() - 1;
    *byte(&mut region, last) = 1;
    region.commit(u64::MAX, 0).unwrap();
    for (offset, len) in
        [(region.bytes(), 1), (0, region.bytes() + 1), (u64::MAX, 5), (5, u64::MAX)]
    {
        assert!(matches!(region.commit(offset, len), Err(Error::AddressSpace { .. })));
    }
}

#[test]
fn a_reservation_too_large_is_an_error() {
    for bytes in [u64::MAX, 1 << 62] {
        let error = Region::reserve(bytes, bytes).unwrap_err();
        assert!(matches!(error, Error::AddressSpace { needed_bytes, .. } if needed_bytes == bytes));
    }
    let halved = Region::reserve(1 << 62, 1 << 20).unwrap();
    assert!(halved.bytes() >= 1 << 20);
}

#[test]
fn directories_are_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    assert!(OsDirectory::open(&path).is_err());
    OsDirectory::create(&path).unwrap().create("pool").unwrap();
    assert_eq!(OsDirectory::create(&path).unwrap().list().unwrap(), ["pool"]);
    assert!(OsDirectory::create(path.join("pool")).is_err(), "a file is no directory");
    assert!(OsDirectory::create(path.join("a/b")).is_err(), "parents are not created");
    assert!(OsDirectory::open(path.join("pool")).is_err());
}

/// Its contents stay in place, and the mapping behind it stays unchanged.
#[cfg(target_os = "linux")]
#[test]
fn a_region_becomes_longer_where_the_addresses_behind_are_free() {
    const BYTES: u64 = 64 << 20;
    let mut region = Region::reserve_growing(BYTES, BYTES).unwrap();
    region.commit(0, 1).unwrap();
    region.commit(BYTES - 4096, 4096).unwrap();
    *byte(&mut region, BYTES - 1) = 7;
    let base = region.base();
    region.extend(3 * BYTES).unwrap();
    assert_eq!((region.bytes(), region.base()), (3 * BYTES, base));
    region.extend(BYTES).unwrap();
    assert_eq!(region.bytes(), 3 * BYTES, "it never becomes shorter");
    region.commit(BYTES, 2 * BYTES).unwrap();
    *byte(&mut region, 3 * BYTES - 1) = 8;
    assert_eq!((*byte(&mut region, BYTES - 1), *byte(&mut region, BYTES)), (7, 0));
    region.extend(u64::MAX).unwrap_err();

    // Of two neighbours the lower one cannot grow beyond the other.
    let mut others = vec![region];
    while others.len() < 40 {
        let other = Region::reserve(BYTES, BYTES).unwrap();
        other.commit(0, 1).unwrap();
        others.push(other);
    }
    let stopped = others.iter_mut().filter(|other| other.extend(100 << 40).is_err()).count();
    assert!(stopped > 0, "no process has as many addresses");
    for other in &mut others {
        assert!(other.bytes() >= BYTES);
        assert!([0, 7].contains(byte(other, 0)), "nothing was replaced");
    }
    let bytes = others[0].bytes();
    assert_eq!((*byte(&mut others[0], BYTES - 1), bytes), (7, 3 * BYTES));
}
