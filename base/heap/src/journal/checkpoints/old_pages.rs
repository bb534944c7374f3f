//! Side files of old pages: what pages of the pool were before a batch overwrote them, kept for
//! readers in other processes.
//!
//! Purpose: a checkpoint overwrites pages in place; a reader at an earlier moment takes them from
//! here. See docs/decisions/0133-readers-beside-the-writer.md.
//! Invariants: a side file is whole before the first page of its batch is written, and behind the
//! batch's table of doubt; it is not durable, as no reader outlives the system. A page is left out
//! of it if there is a copy that each reader takes before; it is removed when each reader knows its
//! batch, or takes earlier copies of all its pages. What cannot be kept is told to readers, and
//! fails no checkpoint.
//! Thread safety: one thread at a time writes; any process reads.
//!
//! A side file is a header, an entry for each page, and the pages, in the order of the entries.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use parking_lot::Mutex;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::table;
use crate::journal::readers::{BatchId, Reader, Readers};
use crate::journal::records::log_file::remove_if_there;
use crate::layout::{DOUBT_PAGES_MAX, PAGE_BYTES, file_offset};

/// What the name of a side file ends in, and that of one that is not whole yet.
const SUFFIX: &str = ".pages";
const NEW_SUFFIX: &str = ".new";
/// The first bytes of a side file.
const MAGIC: [u8; 8] = *b"ADMNTOLD";

/// Head of a side file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    number: U64,
    batch: U64,
    /// Entries that follow.
    count: U32,
    /// CRC32C of the pool's UUID, all bytes before this field, and the entries.
    checksum: U32,
}

/// An entry of a side file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    /// Heap offset of the page.
    page: U64,
    /// What the pool had as its checksum.
    checksum: U32,
}

impl Header {
    fn sum(&self, pool: &PoolFile, entries: &[u8]) -> u32 {
        let bytes = &self.as_bytes()[..size_of::<Self>() - size_of::<U32>()];
        crc32c(crc32c(crc32c(0, pool.uuid()), bytes), entries)
    }
}

fn name_of(id: BatchId) -> String {
    format!("{:016x}-{:016x}{SUFFIX}", id.number, id.batch)
}

/// The batch of a side file of that name.
fn batch_of(name: &str) -> Option<BatchId> {
    let (number, batch) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let number = u64::from_str_radix(number, 16).ok()?;
    Some(BatchId { number, batch: u64::from_str_radix(batch, 16).ok()? })
}

/// The side files of a registry, in order.
fn side_files(directory: &dyn Directory) -> Result<Vec<BatchId>> {
    let mut found: Vec<BatchId> =
        directory.list()?.iter().filter_map(|name| batch_of(name)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Keeps pages for the readers of a store.
#[derive(Clone, Debug)]
pub(in crate::journal) struct Keeper {
    store: Arc<dyn Directory>,
    /// A bound on the bytes of all that is kept.
    bytes_max: u64,
    kept: Arc<Mutex<Kept>>,
}

/// What this process knows of what it has kept, and for whom.
#[derive(Debug, Default)]
struct Kept {
    /// Heap offset of each page, and for which batch last.
    pages: HashMap<u64, BatchId>,
    /// Side files, each with the first batch that knows so much that it needs the file: one that
    /// knows less has an earlier copy of each of its pages. That of another file may be any.
    files: BTreeMap<BatchId, BatchId>,
    /// The last batch for which readers were listed.
    listed: Option<BatchId>,
    /// A batch that each reader knows, whatever it says: that for which readers were listed last
    /// when it was not there. It registered later, and then found that batch's table.
    readers: HashMap<String, BatchId>,
}

impl Kept {
    /// The readers that are alive, with what they know at least.
    fn list(&mut self, readers: &Readers, id: Option<BatchId>) -> Result<Vec<Reader>> {
        let mut registered = readers.list()?;
        let mut known = HashMap::with_capacity(registered.len());
        for reader in &mut registered {
            let first = self.readers.get(&reader.name).copied();
            let first = first.or(self.listed).unwrap_or_default();
            reader.place.known = reader.place.known.max(first);
            known.insert(reader.name.clone(), first);
        }
        self.readers = known;
        self.listed = id.or(self.listed);
        Ok(registered)
    }

    /// Whether some reader needs the side file of a batch. One that moves on needs all that come
    /// behind what it knows: it may know more by now.
    fn is_needed(&self, id: BatchId, registered: &[Reader]) -> bool {
        let first = self.files.get(&id).copied().unwrap_or_default();
        registered.iter().any(|reader| {
            let known = reader.place.known;
            known < id && (first <= known || !reader.is_still())
        })
    }

    /// Some pages are kept for a batch, while these readers are there.
    fn note(&mut self, id: BatchId, pages: &[(u64, u32)], registered: &[Reader]) {
        let earlier = |(page, _): &(u64, u32)| self.pages.get(page).copied().unwrap_or_default();
        let first = pages.iter().map(earlier).min().unwrap_or(id);
        self.files.insert(id, first);
        let needed = registered.iter().map(|reader| reader.place.known).min().unwrap_or(id);
        self.files.retain(|id, _| *id > needed);
        self.pages.retain(|_, last| *last > needed);
        self.pages.extend(pages.iter().map(|(page, _)| (*page, id)));
    }
}

impl Keeper {
    /// A keeper of at most some bytes for the readers of the store in a directory.
    pub(in crate::journal) fn new(store: &Arc<dyn Directory>, bytes_max: u64) -> Self {
        Self { store: Arc::clone(store), bytes_max, kept: Arc::default() }
    }

    /// Keeps the present contents of pages of the pool, by heap offset, and their checksums, for
    /// the readers that are registered; but for those that were kept since the last of them: each
    /// takes the oldest. One call if none ever was. What cannot be kept is told to readers in the
    /// head of the pool, and nothing else happens.
    ///
    /// # Errors
    /// Those of writing the pool.
    pub(in crate::journal) fn keep(
        &self,
        pool: &PoolFile,
        id: BatchId,
        pages: &[u64],
        checksums: &[u32],
    ) -> Result<()> {
        let kept = Readers::of(self.store.as_ref()).and_then(|readers| {
            let Some(readers) = readers else { return Ok(()) };
            let mut guard = self.kept.lock();
            let kept = &mut *guard;
            let mut registered = kept.list(&readers, Some(id))?;
            // One that moves on knows more than it says.
            let newest = match registered.iter().all(Reader::is_still) {
                true => registered.iter().map(|reader| reader.place.known).max(),
                false => None,
            };
            let is_missing = |page: u64| match (newest, kept.pages.get(&page)) {
                (Some(newest), Some(last)) => *last <= newest,
                _ => true,
            };
            let missing: Vec<(u64, u32)> = pages
                .iter()
                .zip(checksums)
                .filter(|(page, _)| is_missing(**page))
                .map(|(page, checksum)| (*page, *checksum))
                .collect();
            let room = self.bytes_max.saturating_sub(missing.len() as u64 * PAGE_BYTES);
            if clean(&readers, kept, &mut registered, room)? {
                write(readers.directory().as_ref(), pool, id, &missing)?;
                kept.note(id, &missing, &registered);
            } else {
                (kept.pages, kept.files) = (HashMap::new(), BTreeMap::new());
            }
            Ok(())
        });
        kept.or_else(|_| table::write_unkept(pool, id))
    }

    /// Removes what no reader needs any more. Best effort: the next batch does it again.
    pub(in crate::journal) fn tidy(&self) {
        if let Ok(Some(readers)) = Readers::of(self.store.as_ref()) {
            let mut kept = self.kept.lock();
            let registered = kept.list(&readers, None);
            let _ = registered
                .and_then(|mut registered| clean(&readers, &kept, &mut registered, self.bytes_max));
        }
    }

    /// Gives all space up that is kept for readers; whether there was any.
    pub(in crate::journal) fn give_up(&self) -> bool {
        let given = Readers::of(self.store.as_ref()).and_then(|readers| {
            let Some(readers) = readers else { return Ok(false) };
            let is_more = !side_files(readers.directory().as_ref())?.is_empty();
            let mut kept = self.kept.lock();
            let mut registered = kept.list(&readers, None)?;
            clean(&readers, &kept, &mut registered, 0).map(|_| is_more)
        });
        given.unwrap_or(false)
    }
}

/// Removes what no reader needs; overtakes those that know least until the rest is no more than
/// `bytes_max`, and removes them from the list. Whether a reader is left.
fn clean(
    readers: &Readers,
    kept: &Kept,
    registered: &mut Vec<Reader>,
    bytes_max: u64,
) -> Result<bool> {
    let directory = readers.directory().as_ref();
    registered.sort_unstable_by_key(Reader::age);
    for name in directory.list()?.iter().filter(|name| name.ends_with(NEW_SUFFIX)) {
        // Left by a failure: one thread at a time writes them.
        remove_if_there(directory, name)?;
    }
    let mut files = side_files(directory)?;
    let mut bytes = 0;
    for id in &files {
        bytes += directory.open(&name_of(*id))?.map_or(Ok(0), |file| file.len())?;
    }
    loop {
        let unneeded = |id: &mut BatchId| !kept.is_needed(*id, registered);
        for id in files.extract_if(.., unneeded) {
            let name = name_of(id);
            if let Some(file) = directory.open(&name)? {
                bytes -= file.len()?;
                remove_if_there(directory, &name)?;
            }
        }
        if bytes <= bytes_max || registered.is_empty() {
            return Ok(!registered.is_empty());
        }
        readers.overtake(&registered.remove(0))?;
    }
}

fn write(
    directory: &dyn Directory,
    pool: &PoolFile,
    id: BatchId,
    pages: &[(u64, u32)],
) -> Result<()> {
    let entry = |(page, checksum): &(u64, u32)| {
        let (page, checksum) = ((*page).into(), (*checksum).into());
        Entry { page, checksum }
    };
    let entries: Vec<Entry> = pages.iter().map(entry).collect();
    let mut header = Header {
        magic: MAGIC,
        number: id.number.into(),
        batch: id.batch.into(),
        count: (entries.len() as u32).into(),
        checksum: 0.into(),
    };
    header.checksum = header.sum(pool, entries.as_bytes()).into();
    let mut bytes = [header.as_bytes(), entries.as_bytes()].concat();
    let start = bytes.len();
    bytes.resize(start + pages.len() * PAGE_BYTES as usize, 0);
    let mut at = start;
    let follows = |one: &(u64, u32), other: &(u64, u32)| {
        file_offset(one.0) + PAGE_BYTES == file_offset(other.0)
    };
    for run in pages.chunk_by(follows) {
        let end = at + run.len() * PAGE_BYTES as usize;
        pool.file().read_at(&mut bytes[at..end], file_offset(run[0].0))?;
        at = end;
    }
    let (name, new_name) = (name_of(id), format!("{}{NEW_SUFFIX}", name_of(id)));
    remove_if_there(directory, &new_name)?;
    directory.create(&new_name)?.write_at(&bytes, 0)?;
    Ok(directory.rename(&new_name, &name)?)
}

/// Where a page was kept.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct OldPage {
    id: BatchId,
    offset: u64,
    /// What the pool had as its checksum.
    pub(in crate::journal) checksum: u32,
}

/// The pages that were kept after a batch, by heap offset: of each the oldest.
#[derive(Debug)]
pub(in crate::journal) struct OldPages {
    directory: Arc<dyn Directory>,
    known: BatchId,
    /// The last batch whose pages are in.
    last: BatchId,
    pages: BTreeMap<u64, OldPage>,
    /// The side file that was read last.
    file: Option<(BatchId, Arc<dyn File>)>,
}

impl OldPages {
    /// Those after a batch, in the directory of a registry; none are read in yet.
    pub(in crate::journal) fn after(known: BatchId, directory: Arc<dyn Directory>) -> Self {
        Self { directory, known, last: known, pages: BTreeMap::new(), file: None }
    }

    /// Those of a range of heap offsets, with these.
    pub(in crate::journal) fn range(&self, start: u64, end: u64) -> Vec<(u64, OldPage)> {
        self.pages.range(start..end).map(|(page, old)| (*page, *old)).collect()
    }

    /// Fills `bytes` from a page, from a byte of it on.
    ///
    /// # Errors
    /// Those of the medium; one of kind `NotFound` if it is not kept any more.
    pub(in crate::journal) fn read(
        &mut self,
        old: OldPage,
        bytes: &mut [u8],
        at: u64,
    ) -> Result<()> {
        if self.file.as_ref().is_none_or(|(id, _)| *id != old.id) {
            self.file = Some((old.id, self.open(old.id)?));
        }
        self.file.as_ref().map_or(Ok(()), |(_, file)| Ok(file.read_at(bytes, old.offset + at)?))
    }

    fn open(&self, id: BatchId) -> Result<Arc<dyn File>> {
        let name = name_of(id);
        let gone = || {
            let path = self.directory.path().join(&name);
            MediumError::io("find", &path, None, 0, ErrorKind::NotFound.into())
        };
        Ok(self.directory.open(&name)?.ok_or_else(gone)?)
    }

    /// The batch.
    pub(in crate::journal) fn known(&self) -> BatchId {
        self.known
    }

    /// Heap offsets of all of them that are in.
    pub(in crate::journal) fn pages(&self) -> Vec<u64> {
        self.pages.keys().copied().collect()
    }

    /// The last batch whose pages are in.
    pub(in crate::journal) fn last(&self) -> BatchId {
        self.last
    }

    /// Reads in the names of what was kept up to a batch. Returns false if something was not. That
    /// means nothing before the caller has seen that the reader was not overtaken.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn refresh(&mut self, pool: &PoolFile, begun: BatchId) -> Result<bool> {
        let last = self.last;
        let news = |id: &BatchId| last < *id && *id <= begun;
        for id in side_files(self.directory.as_ref())?.into_iter().filter(news) {
            // Its reader needs none of it, or was overtaken, which our caller looks at next.
            let Some(file) = self.directory.open(&name_of(id))? else { continue };
            let Some(entries) = read_entries(pool, id, &file)? else { return Ok(false) };
            let mut offset = (size_of::<Header>() + entries.len() * size_of::<Entry>()) as u64;
            for entry in &entries {
                let old = OldPage { id, offset, checksum: entry.checksum.get() };
                self.pages.entry(entry.page.get()).or_insert(old);
                offset += PAGE_BYTES;
            }
            self.last = id;
        }
        // Behind the look: the process that writes says so before it overwrites.
        Ok(table::unkept(pool)? <= self.known)
    }
}

/// The entries of the side file of a batch; `None` if it is none.
fn read_entries(pool: &PoolFile, id: BatchId, file: &Arc<dyn File>) -> Result<Option<Vec<Entry>>> {
    let mut bytes = [0; size_of::<Header>()];
    if file.len()? < bytes.len() as u64 {
        return Ok(None);
    }
    file.read_at(&mut bytes, 0)?;
    let Ok(header) = Header::read_from_bytes(&bytes) else { return Ok(None) };
    let count = header.count.get() as usize;
    let found = BatchId { number: header.number.get(), batch: header.batch.get() };
    let bytes_min = (bytes.len() + count * (size_of::<Entry>() + PAGE_BYTES as usize)) as u64;
    let is_whole = header.magic == MAGIC && count <= DOUBT_PAGES_MAX && found == id;
    if !is_whole || file.len()? < bytes_min {
        return Ok(None);
    }
    let mut entries = vec![0; count * size_of::<Entry>()];
    file.read_at(&mut entries, size_of::<Header>() as u64)?;
    if header.checksum.get() != header.sum(pool, &entries) {
        return Ok(None);
    }
    Ok(<[Entry]>::ref_from_bytes(&entries).map(<[_]>::to_vec).ok())
}

#[cfg(test)]
mod tests;
