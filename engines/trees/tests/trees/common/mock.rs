//! A mock heap: a map from offsets to blocks, stricter than a real heap. A freed block is gone at
//! once, a new one holds garbage, and every byte that would be logged is counted.

use std::cell::Cell;
use std::collections::BTreeMap;

use adamant_heap::access::{Read, Write};
use adamant_heap::error::{Error, Result};
use adamant_heap::ptr::Ptr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One block of the mock.
#[derive(Clone)]
struct Block {
    bytes: Vec<u8>,
    /// The highest byte requested, while the block is new.
    fresh_bytes: Option<usize>,
}

/// The mock: transaction and view in one.
#[derive(Clone)]
pub(crate) struct Mock {
    blocks: BTreeMap<u64, Block>,
    /// Blocks reserved since the last commit, freed or not.
    fresh: Vec<u64>,
    next: u64,
    logged_bytes: u64,
    /// Blocks that may still be reserved before the device is full.
    pub(crate) reserves_left: u64,
    /// Calls of `block` and `read`, so that tests can bound work in damaged trees.
    pub(crate) reads: Cell<u64>,
}

impl Mock {
    pub(crate) fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            fresh: Vec::new(),
            next: 8192,
            logged_bytes: 0,
            reserves_left: u64::MAX,
            reads: Cell::new(0),
        }
    }

    /// Ends a transaction: new blocks are old from now on. Returns the bytes that it logged.
    pub(crate) fn commit(&mut self) -> u64 {
        let mut bytes = std::mem::take(&mut self.logged_bytes);
        for block in self.fresh.drain(..) {
            let fresh_bytes = self.blocks.get_mut(&block).and_then(|it| it.fresh_bytes.take());
            bytes += fresh_bytes.unwrap_or(0) as u64;
        }
        bytes
    }

    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes written since the last commit to new blocks of at least `bytes_min` bytes.
    pub(crate) fn fresh_bytes_of(&self, bytes_min: usize) -> usize {
        let blocks = self.fresh.iter().filter_map(|block| self.blocks.get(block));
        let large = blocks.filter(|block| block.bytes.len() >= bytes_min);
        large.filter_map(|block| block.fresh_bytes).sum()
    }

    pub(crate) fn offsets(&self) -> Vec<u64> {
        self.blocks.keys().copied().collect()
    }

    /// The bytes of a block, to be damaged.
    pub(crate) fn bytes_mut(&mut self, block: u64) -> &mut Vec<u8> {
        &mut self.blocks.get_mut(&block).expect("a block").bytes
    }
}

fn invalid(offset: u64, what: &'static str) -> Error {
    Error::InvalidPointer { offset, what }
}

impl Read for Mock {
    fn block(&self, block: u64) -> Result<&[u8]> {
        self.reads.set(self.reads.get() + 1);
        let found = self.blocks.get(&block).ok_or(invalid(block, "is no block"))?;
        Ok(&found.bytes)
    }

    fn prefetch(&self, _offset: u64) {}
}

impl Write for Mock {
    fn reserve(&mut self, bytes: u64) -> Result<u64> {
        if self.reserves_left == 0 {
            return Err(Error::TooLarge { bytes, bytes_max: 0 });
        }
        self.reserves_left -= 1;
        let class_bytes = if bytes <= 128 { 8 } else { 64 };
        let bytes = bytes.next_multiple_of(class_bytes);
        let offset = self.next;
        self.next += bytes;
        let block = Block { bytes: vec![0xa5; bytes as usize], fresh_bytes: Some(0) };
        self.blocks.insert(offset, block);
        self.fresh.push(offset);
        Ok(offset)
    }

    fn write(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        let found = self.blocks.get_mut(&block).ok_or(invalid(block, "is no block"))?;
        let bytes = found.bytes.get_mut(at..at + len).ok_or(invalid(block, "is shorter"))?;
        match &mut found.fresh_bytes {
            Some(fresh_bytes) => *fresh_bytes = (*fresh_bytes).max(at + len),
            None => self.logged_bytes += len as u64,
        }
        Ok(bytes)
    }

    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> Result<&mut T> {
        let bytes = self.write(ptr.offset(), 0, size_of::<T>())?;
        T::mut_from_bytes(bytes).map_err(|_| invalid(ptr.offset(), "is misaligned"))
    }

    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> Result<()> {
        let found = self.blocks.get_mut(&block).ok_or(invalid(block, "is no block"))?;
        let bytes = found.bytes.get_mut(at..at + 8).ok_or(invalid(block, "is shorter"))?;
        let new = value.to_le_bytes();
        let differing = bytes.iter().zip(new).filter(|(old, new)| **old != *new).count();
        match found.fresh_bytes {
            Some(fresh_bytes) => assert!(at + 8 <= fresh_bytes, "the word was written before"),
            None => self.logged_bytes += differing as u64,
        }
        bytes.copy_from_slice(&new);
        Ok(())
    }

    fn free(&mut self, block: u64) -> Result<()> {
        self.blocks.remove(&block).map(drop).ok_or(invalid(block, "is no block"))
    }
}
