//! The access traits of a heap: read blocks, and in a transaction write, reserve and free.
//!
//! Purpose: data structures are written against these two traits, so that the same code finds a key
//! under a reader's view and within a transaction.
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

    /// Bytes `at..at + len` of a block. On a damaged heap this works even if other bytes of the
    /// block are lost.
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
    #[inline]
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        let offset = ptr.offset();
        match T::ref_from_prefix(self.block(offset)?) {
            Ok((object, _)) => Ok(object),
            Err(_) => Err(Error::InvalidPointer {
                offset,
                what: "is too small or misaligned for its type",
            }),
        }
    }

    /// Hints the processor to load the cache line at heap offset `offset`. Never fails.
    fn prefetch(&self, offset: u64);
}

/// Bytes `at..at + len` of the bytes of a block.
#[inline]
pub(crate) fn part_of(bytes: &[u8], block: u64, at: usize, len: usize) -> Result<&[u8]> {
    let what = "is a block that ends before what is to be read of it";
    let part = bytes.get(at..).and_then(|bytes| bytes.get(..len));
    part.ok_or(Error::InvalidPointer { offset: block, what })
}

/// Writing blocks: only a transaction can do it.
pub trait Write: Read {
    /// Reserves a block of at least `bytes` bytes (1 to 2^40) and returns its heap offset. Its
    /// contents are unspecified until written. The commit publishes it.
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

    /// As [`Write::reserve`], for a buffer that will be freed before long. Writes to it are in the
    /// log, and are not copied to the pool file as long as the log has room for it
    /// ([`Options::log_held_bytes_max`](crate::Options::log_held_bytes_max);
    /// [`JournalStats::log_held_bytes`](crate::JournalStats::log_held_bytes) tells how much it is).
    /// If the buffer is freed by then, its bytes are never written there. It makes no difference to
    /// reads, nor after a crash. Blocks of at most 40 KiB are treated as any others.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn reserve_held(&mut self, bytes: u64) -> Result<u64> {
        self.reserve(bytes)
    }

    /// Makes the log so large that [`Heap::lend_log_space`](crate::Heap::lend_log_space) would free
    /// about `bytes` bytes of the device, as far as
    /// [`Options::log_bytes_max`](crate::Options::log_bytes_max) allows: room for a caller that
    /// will write the contents of blocks elsewhere before it can free the blocks. Does nothing
    /// where there is no log.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn keep_log(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Bytes `at..at + len` of a block; the caller overwrites them in full. In a block that this
    /// transaction reserved nothing is saved, and the commit makes all bytes up to the highest one
    /// asked for durable once. In another block the old bytes are saved (each once) and exactly the
    /// bytes asked for go into the record. O(len).
    ///
    /// # Errors
    /// `Error::InvalidPointer` when the block or the range in it does not exist.
    fn write(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]>;

    /// As [`Write::write`], for unused bytes: such as the rest of a buffer to which entries are
    /// appended, behind a word that says how much of it is in use. They are durable with the
    /// commit, but their old contents are not saved, so that appending costs little more than the
    /// entry: if the transaction, or a savepoint around the call, is undone, they may hold
    /// anything. So no code may rely on their contents from before the transaction, nor from before
    /// any savepoint around the call. In a block that this transaction reserved it is `write`.
    /// O(1), and `len` for the commit.
    ///
    /// # Errors
    /// As [`Write::write`].
    fn write_unused(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        self.write(block, at, len)
    }

    /// As [`Write::write`], unless the block is borrowed as a slice: then `None`, and nothing was
    /// done. A value of the same length is written in place if that is allowed, else to a new
    /// block. The caller reads what it needs of the old bytes first.
    ///
    /// # Errors
    /// As [`Write::write`], except that a borrowed block is no error.
    fn overwrite(&mut self, block: u64, at: usize, len: usize) -> Result<Option<&mut [u8]>> {
        self.write(block, at, len).map(Some)
    }

    /// Bytes of the block that [`Write::reserve`] gives for `bytes`: a value that replaces one of
    /// another length may stay in its block if a new block would be no shorter and no longer. O(1).
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

    /// Sets the little-endian word at byte `at` of a block. Only the bytes that differ go into the
    /// record, so the word must have been written before (in this or an earlier commit).
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
