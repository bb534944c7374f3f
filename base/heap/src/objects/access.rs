//! What an engine may do with a heap: read blocks, and in a transaction write, reserve and free.
//!
//! Purpose: the two traits that data structures are written against, so that the same code finds
//! a key under a reader's view and within a transaction.
//! Thread safety: a `Read` holds the heap's shared lock, a `Write` its exclusive one (S1).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};
use crate::ptr::Ptr;

/// Reading blocks.
pub trait Read {
    /// All bytes of the block that starts at heap offset `block`: at least as many as were
    /// reserved, at most what its class holds; those beyond what was written are unspecified.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless a block starts there (S3). O(1).
    fn block(&self, block: u64) -> Result<&[u8]>;

    /// Bytes `at..at + len` of a block. Who reads what is left of a damaged heap gets them also where
    /// others of the block are lost.
    ///
    /// # Errors
    /// As [`Read::block`], also when the block has fewer bytes.
    #[inline]
    fn part(&self, block: u64, at: usize, len: usize) -> Result<&[u8]> {
        part_of(self.block(block)?, block, at, len)
    }

    /// The object at `ptr`.
    ///
    /// # Errors
    /// As [`Read::block`], also when the block is smaller than `T`.
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T>;

    /// Asks the processor to load the cache line at heap offset `offset`. Never fails.
    fn prefetch(&self, offset: u64);
}

/// Bytes `at..at + len` of those of a block.
#[inline]
pub(crate) fn part_of(bytes: &[u8], block: u64, at: usize, len: usize) -> Result<&[u8]> {
    let what = "is a block that ends before what is to be read of it";
    let part = bytes.get(at..).and_then(|bytes| bytes.get(..len));
    part.ok_or(Error::InvalidPointer { offset: block, what })
}

/// Writing blocks: what only a transaction can do.
pub trait Write: Read {
    /// Reserves a block of at least `bytes` bytes (1 to 2^40) and returns its heap offset.
    /// Its contents are unspecified until written. It is published by the commit.
    ///
    /// # Errors
    /// One of which `is_out_of_space` holds when the pool cannot grow; the transaction is still
    /// whole.
    fn reserve(&mut self, bytes: u64) -> Result<u64>;

    /// As [`Write::reserve`], with the first `bytes` bytes zero.
    ///
    /// # Errors
    /// As [`Write::reserve`]; `Error::TooLarge` also for what does not fit into memory.
    fn reserve_zeroed(&mut self, bytes: u64) -> Result<u64> {
        let too_large = |_| Error::TooLarge { bytes, bytes_max: usize::MAX as u64 };
        let len = usize::try_from(bytes).map_err(too_large)?;
        let block = self.reserve(bytes)?;
        self.write(block, 0, len)?.fill(0);
        Ok(block)
    }

    /// As [`Write::reserve`], a buffer that is to be freed again before long: what
    /// commits write to it is in the log, and not taken from there to the pool file as long as the log
    /// has room for it ([`Options::log_held_bytes_max`](crate::Options::log_held_bytes_max);
    /// [`JournalStats::log_held_bytes`](crate::JournalStats::log_held_bytes) says how much it is). If the buffer is freed by then, its bytes are never written there. It makes no
    /// difference to what is read, nor after a crash. Blocks of at most 40 KiB
    /// are as any others.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn reserve_held(&mut self, bytes: u64) -> Result<u64> {
        self.reserve(bytes)
    }

    /// Has the log be so large that [`Heap::give_back_log`](crate::Heap::give_back_log) would give
    /// about so many bytes of the device, as far as
    /// [`Options::log_bytes_max`](crate::Options::log_bytes_max) allows: room for who is to write
    /// elsewhere what commits wrote to blocks, before these can be freed. Nothing where there is no
    /// log.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn keep_log(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Bytes `at..at + len` of a block, to be overwritten in full by the caller. In a block
    /// that this transaction reserved nothing is saved, and all bytes up to the highest one
    /// asked for are made durable once, by the commit. In another block the old bytes are saved
    /// (each once) and exactly the bytes asked for go into the record. O(len).
    ///
    /// # Errors
    /// `Error::InvalidPointer` when the block or the range in it does not exist.
    fn write(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]>;

    /// As [`Write::write`], of bytes that hold nothing: such as the rest of a buffer to which entries
    /// are appended, behind a word that says how much of it is in use. They are durable with the commit,
    /// but what was there is not saved, so that appending costs little more than the entry: if the
    /// transaction, or a savepoint around the call, is undone, they may hold anything. So nobody may
    /// read them as they were before the transaction, nor as they were before any savepoint around. In
    /// a block that this transaction reserved it is `write`. O(1), and `len` for the commit.
    ///
    /// # Errors
    /// As [`Write::write`].
    fn write_unused(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        self.write(block, at, len)
    }

    /// As [`Write::write`], unless a slice of the block is lent: then `None`, and nothing was done. So
    /// what is set to something of the same length is written where it lies if that may be, else to a
    /// new block. The caller reads what it needs of the old bytes before.
    ///
    /// # Errors
    /// As [`Write::write`], but for a block that is lent.
    fn overwrite(&mut self, block: u64, at: usize, len: usize) -> Result<Option<&mut [u8]>> {
        self.write(block, at, len).map(Some)
    }

    /// Bytes of the block that [`Write::reserve`] gives for so many: what is overwritten by something of
    /// another length may stay where it lies if a new block would be no shorter and no longer. O(1).
    fn reserved_bytes(&self, bytes: u64) -> u64 {
        bytes
    }

    /// The object at `ptr`, for writing; all of it goes into the record.
    ///
    /// # Errors
    /// As [`Write::write`].
    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> Result<&mut T>;

    /// Sets the little-endian word at byte `at` of a block. Only the bytes that differ go into
    /// the record, so the word must have been written before (in this or an earlier commit).
    ///
    /// # Errors
    /// As [`Write::write`].
    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> Result<()>;

    /// Frees a block: at the commit, not before. Freeing a block twice is an error.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when no allocated block starts there.
    fn free(&mut self, block: u64) -> Result<()>;
}
