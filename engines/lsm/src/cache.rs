//! The block cache and the table cache of a store.
//!
//! Purpose: one cache of blocks, bounded in bytes, and one of open files, bounded in number, for
//! all keyspaces; and a limit of what tables pin beside it. Both are Clock-PRO (`quick_cache`): an
//! entry that is used once, as by a scan, is evicted before one that is used often.
//! Invariants: a block is verified before it is cached, and never changes. File numbers are never
//! used again, so no cached entry is ever wrong.
//! Thread safety: shared freely. A block that several threads miss is read once.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_medium::storage::{Directory, File};
use adamant_slice::Slice;
use quick_cache::sync::{Cache as QuickCache, DefaultLifecycle};
use quick_cache::{UnitWeighter, Weighter};

use crate::block::EntryBlock;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::file::{FileFormat, FileKind, Identity};

/// Bytes of overhead of a cached block.
const OVERHEAD_BYTES: u64 = 100;
/// Approximate bytes of a block; only for the initial size of a hash table.
const BLOCK_BYTES_GUESS: u64 = 4096;

/// The capacity of a [`Cache`].
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Bytes of blocks.
    pub block_bytes: u64,
    /// Bytes of indexes and filters that open tables pin beside the cached blocks.
    pub pinned_bytes: u64,
    /// Open files.
    pub file_count: usize,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { block_bytes: 64 << 20, pinned_bytes: 64 << 20, file_count: 256 }
    }
}

/// A file in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    pub(crate) kind: FileKind,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockKey {
    file: FileKey,
    offset: u64,
}

impl std::hash::Hash for BlockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two words, for a hasher that takes words.
        state.write_u64(self.file.number << 1 | self.file.kind as u64);
        state.write_u64(self.offset);
    }
}

/// Index of the counter of blocks that were found.
const HITS: usize = 0;
/// The same of those that were not.
const MISSES: usize = 1;

/// How the files of one tree use the cache.
#[derive(Debug, Default)]
pub struct BlockUse {
    counts: Counters<2>,
    /// Whether data stays out of the cache.
    is_passing: AtomicBool,
}

impl BlockUse {
    /// Blocks that were found in the cache, and those that were not, since the tree was opened.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let [hits, misses] = self.counts.sums();
        (hits, misses)
    }

    /// Whether data blocks and values of blob files stay in the cache after they were read.
    pub(crate) fn set_caches_data(&self, caches_data: bool) {
        self.is_passing.store(!caches_data, Ordering::Relaxed);
    }
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Entries of a tree, or a value.
    Data,
    /// What leads to them: parts of an index, filters.
    Index,
}

/// A block in memory.
#[derive(Clone, Debug)]
pub(crate) enum CachedBlock {
    /// A payload of entries.
    Entries(EntryBlock),
    /// Another payload, or a value.
    Bytes(Slice),
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<BlockKey, CachedBlock> for ByBytes {
    fn weight(&self, _key: &BlockKey, block: &CachedBlock) -> u64 {
        let bytes = match block {
            CachedBlock::Entries(block) => block.bytes().len(),
            CachedBlock::Bytes(bytes) => bytes.len(),
        };
        bytes as u64 + OVERHEAD_BYTES
    }
}

/// Hashes words by one multiplication each; no attacker chooses the keys, which are numbers.
#[derive(Clone, Debug, Default)]
struct Mixing;

struct Mixer(u64);

impl BuildHasher for Mixing {
    type Hasher = Mixer;

    #[inline]
    fn build_hasher(&self) -> Mixer {
        Mixer(0)
    }
}

impl Hasher for Mixer {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9E37_79B9_7F4A_7C15)
            * u128::from(0xD6E8_FEB8_6659_FD93_u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Blocks and open files of a store.
pub struct Cache {
    blocks: QuickCache<BlockKey, CachedBlock, ByBytes, Mixing>,
    files: QuickCache<FileKey, Arc<dyn File>>,
    pinned_bytes: AtomicU64,
    pinned_bytes_max: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(options: CacheOptions) -> Self {
        let block_count = usize::try_from(options.block_bytes / BLOCK_BYTES_GUESS).unwrap_or(0);
        let blocks = QuickCache::with(
            block_count.max(1),
            options.block_bytes,
            ByBytes,
            Mixing,
            DefaultLifecycle::default(),
        );
        let file_count = options.file_count.max(1);
        let files = QuickCache::with(
            file_count,
            file_count as u64,
            UnitWeighter,
            Default::default(),
            DefaultLifecycle::default(),
        );
        let pinned_bytes_max = options.pinned_bytes;
        Self { blocks, files, pinned_bytes: AtomicU64::new(0), pinned_bytes_max }
    }

    /// Closes a file that is about to be removed. Its blocks are evicted in time.
    pub(crate) fn forget_file(&self, key: FileKey) {
        self.files.remove(&key);
    }

    /// Whether a table may pin another part.
    #[inline]
    pub(crate) fn can_pin(&self) -> bool {
        self.pinned_bytes() < self.pinned_bytes_max
    }

    /// Counts bytes that a table has pinned, or has given back.
    pub(crate) fn pin(&self, bytes: u64) {
        self.pinned_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn unpin(&self, bytes: u64) {
        self.pinned_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that open tables have pinned.
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes.load(Ordering::Relaxed)
    }

    /// Drops all blocks and files.
    pub(crate) fn clear(&self) {
        self.blocks.clear();
        self.files.clear();
    }

    /// Bytes of the cached blocks, with their overhead.
    pub fn block_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Number of open files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("block_bytes", &self.block_bytes())
            .field("file_count", &self.file_count())
            .finish()
    }
}

/// A file of a tree that is read through the cache: its descriptor, and its blocks.
#[derive(Debug)]
pub(crate) struct CachedFile {
    /// The seed of the checksums in the file.
    pub(crate) seed: u32,
    pub(crate) path: Box<Path>,
    identity: Identity,
    key: FileKey,
    format: FileFormat,
    directory: Arc<dyn Directory>,
    cache: Arc<Cache>,
    used: Arc<BlockUse>,
}

impl CachedFile {
    /// Opens the file with that identity in the directory of its kind, of a tree that uses the
    /// cache like this.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub(crate) fn open(
        directory: &Arc<dyn Directory>,
        (kind, format): (FileKind, FileFormat),
        identity: Identity,
        (cache, used): (&Arc<Cache>, &Arc<BlockUse>),
    ) -> Result<(Self, Arc<dyn File>)> {
        let key = FileKey { kind, number: identity.number };
        let open = || identity.open_for_blocks(&**directory, format);
        let file = cache.files.get_or_insert_with(&key, open)?;
        let (seed, path) = (identity.seed(), file.path().into());
        let (cache, used) = (Arc::clone(cache), Arc::clone(used));
        let directory = Arc::clone(directory);
        Ok((Self { seed, path, identity, key, format, directory, cache, used }, file))
    }

    /// The descriptor; the file is opened again if the cache has none.
    ///
    /// # Errors
    /// As [`CachedFile::open`].
    pub(crate) fn file(&self) -> Result<Arc<dyn File>> {
        let open = || self.identity.open_for_blocks(&*self.directory, self.format);
        self.cache.files.get_or_insert_with(&self.key, open)
    }

    /// The block at `offset`; loaded by `load` on a miss.
    ///
    /// # Errors
    /// Those of `load`; then nothing is cached.
    #[inline]
    pub(crate) fn block(
        &self,
        holds: Holds,
        offset: u64,
        load: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<CachedBlock> {
        let Self { cache, used, .. } = self;
        match self.known_block(offset) {
            Some(block) => Ok(block),
            None if holds == Holds::Data && used.is_passing.load(Ordering::Relaxed) => load(),
            None => cache.blocks.get_or_insert_with(&self.block_key(offset), load),
        }
    }

    /// The block at `offset`, if it is cached.
    #[inline]
    pub(crate) fn known_block(&self, offset: u64) -> Option<CachedBlock> {
        let found = self.cache.blocks.get(&self.block_key(offset));
        self.used.counts.add(if found.is_some() { HITS } else { MISSES }, 1);
        found
    }

    fn block_key(&self, offset: u64) -> BlockKey {
        BlockKey { file: self.key, offset }
    }

    /// The error for unexpected bytes at `offset`.
    pub(crate) fn damaged(&self, offset: u64, what: impl ToString) -> Error {
        Error::damaged(&self.path, offset, what.to_string())
    }
}
