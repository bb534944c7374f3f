//! The root page of a heap and its class table: their first contents, and reading them.
//!
//! Invariants: the root page says how many classes the table has.
//! Thread safety: free functions. See `docs/format/heap.md`.

use std::path::Path;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::image::class::{ClassTable, initial_classes};
use crate::image::mapping::Image;
use crate::layout::{
    CLASS_TABLE_OFFSET, Descriptor, FIRST_PAGE, HeapRoot, KIND_SYSTEM, PAGE_BYTES, ROOT_COUNT,
    ROOT_MAGIC, ROOT_OFFSET, descriptor_offset, file_offset,
};

/// The pages of a new heap: root, class table, and the descriptors of these two.
pub(crate) fn initial_pages() -> [(u64, Vec<u8>); 3] {
    let classes = initial_classes();
    let root = HeapRoot {
        magic: ROOT_MAGIC,
        pages_end: U64::new(FIRST_PAGE),
        class_count: U64::new(classes.len() as u64),
        roots: [U64::new(0); ROOT_COUNT],
    };
    let system =
        Descriptor { kind: KIND_SYSTEM, flags: 0, class: U16::new(0), argument: U32::new(0) };
    [
        (ROOT_OFFSET, page_of(root.as_bytes())),
        (CLASS_TABLE_OFFSET, page_of(classes.as_bytes())),
        (descriptor_offset(0), page_of([system; FIRST_PAGE as usize].as_bytes())),
    ]
}

fn page_of(bytes: &[u8]) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES as usize];
    page[..bytes.len()].copy_from_slice(bytes);
    page
}

/// Reads the root page and the class table.
///
/// # Errors
/// `Error::Damaged` for what is neither.
pub(crate) fn read_root(image: &Image, file: &Path) -> Result<(HeapRoot, ClassTable)> {
    let root = image.bytes(ROOT_OFFSET, size_of::<HeapRoot>() as u64)?;
    let Ok(root) = HeapRoot::read_from_bytes(root) else {
        let what = "is not the root page";
        return Err(Error::InvalidPointer { offset: ROOT_OFFSET, what });
    };
    if root.magic != ROOT_MAGIC {
        let what = format!("expected the root page of a heap, found {:?}", root.magic);
        return Err(Error::Damaged { file: file.into(), offset: file_offset(ROOT_OFFSET), what });
    }
    let table = image.bytes(CLASS_TABLE_OFFSET, PAGE_BYTES)?;
    Ok((root, ClassTable::load(table, root.class_count.get(), file)?))
}
