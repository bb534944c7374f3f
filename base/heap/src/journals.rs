//! The journal of a heap: one of two, or that of a heap that is only read.
//!
//! Purpose: what the rest of the heap calls, whichever journal the pool was made for. The redo
//! journal keeps a private image and a log; under the undo journal memory is the medium.
//! Invariants: the kind is chosen when a pool is made, and stored in its header.
//! Thread safety: any thread; see the two.

use std::fmt;
use std::sync::Arc;

use adamant_medium::persist::{Flushing, Persist};
use adamant_medium::storage::{Directory, File};
use adamant_wire::mutants::is_planted;

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::image::{Image, Mapping};
use crate::journal::{
    GivenLog, Holds, Journal as Redo, JournalOptions, JournalStats, RecordBuilder, Recovery,
    remove_abandoned,
};
use crate::lanes::{self, Fresh, Lanes, Undo};
use crate::layout::{INCOMPAT_UNDO_JOURNAL, PAGE_BYTES};
use crate::pool_file::PoolFile;
use crate::read_only::ReadOnly;

/// Name of the pool file.
const POOL_NAME: &str = "pool";
/// Name of the directory of the log.
const LOG_NAME: &str = "log";
/// Name of a pool file that is being created.
const POOL_NEW_NAME: &str = "pool.new";
/// The log directory while it is given its name again.
const LOG_NEW_NAME: &str = "log.new";

/// How commits become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalKind {
    /// A log of records, for ordinary files.
    #[default]
    Redo,
    /// Direct access: memory is the medium. For persistent memory, or tmpfs where that is asked
    /// for. Such a pool has no checksums of pages.
    Undo,
}

impl JournalKind {
    /// The kind that the pool in a directory was made for; `None` where there is no pool. Reads the
    /// pool's header, takes no lock.
    ///
    /// # Errors
    /// As [`Heap::open`](crate::Heap::open) for a file that is no pool, a newer or a damaged one.
    pub fn in_directory(directory: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let Some(file) = directory.open(POOL_NAME)? else { return Ok(None) };
        Ok(Some(Self::of(&PoolFile::open(file)?)))
    }

    /// The kind that a pool's header asks for.
    pub(crate) fn of(pool: &PoolFile) -> Self {
        if pool.incompat() & INCOMPAT_UNDO_JOURNAL != 0 { Self::Undo } else { Self::Redo }
    }
}

impl fmt::Display for JournalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redo => "redo",
            Self::Undo => "undo",
        })
    }
}

/// The journal of an open heap.
#[derive(Debug)]
pub(crate) enum Journal {
    /// A log, and an applier behind it.
    Redo(Box<Redo>),
    /// Lanes, and memory that is the medium.
    Undo(Box<Lanes>),
    /// Either, of a pool of which nothing is changed.
    ReadOnly(Box<ReadOnly>),
}

/// A record that was appended, to be handed to [`Journal::applied`] once memory shows it.
#[derive(Debug)]
#[must_use = "what is appended is to be applied"]
pub(crate) struct Appended<'j> {
    /// Its sequence number.
    pub(crate) sequence: u64,
    lane: Option<lanes::Appended<'j>>,
}

impl Journal {
    /// Creates pool and journal in a directory without a pool, durably. `initial_pages` are whole
    /// pages with their heap offsets.
    ///
    /// # Errors
    /// `Error::Unsupported` when a log with records lies there; those of the medium.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        kind: JournalKind,
        flushing: Flushing,
        options: JournalOptions,
        initial_pages: &[(u64, &[u8])],
        data_pages: u64,
    ) -> Result<Self> {
        name_log_again(directory, kind)?;
        let made =
            Self::create_named(directory, kind, flushing, options, (initial_pages, data_pages));
        if made.is_err() {
            // The sync of that name may be what failed. It would look durable from then on, and the next
            // sync would not make it so: commits of a store that nobody finds after a power cut. Best
            // effort: if this fails too, there is no device to speak of.
            let _ = directory.rename(POOL_NAME, POOL_NEW_NAME);
        }
        made
    }

    fn create_named(
        directory: &Arc<dyn Directory>,
        kind: JournalKind,
        flushing: Flushing,
        options: JournalOptions,
        (initial_pages, data_pages): (&[(u64, &[u8])], u64),
    ) -> Result<Self> {
        if kind == JournalKind::Redo {
            let redo = Redo::create(directory, options, initial_pages, data_pages)?;
            return Ok(Self::Redo(Box::new(redo)));
        }
        let mut uuid = [0; 16];
        directory.random(&mut uuid)?;
        Lanes::create(directory, uuid, flushing)?;
        remove_if_there(directory.as_ref(), POOL_NEW_NAME)?;
        let file = directory.create(POOL_NEW_NAME)?;
        if is_planted("rename.a-mapped-pool-before-it-is-durable") {
            directory.rename(POOL_NEW_NAME, POOL_NAME)?;
            directory.sync()?;
            PoolFile::create(file, uuid, data_pages, initial_pages, INCOMPAT_UNDO_JOURNAL)?;
            return Ok(Self::open(directory, kind, flushing, options)?.0);
        }
        PoolFile::create(file, uuid, data_pages, initial_pages, INCOMPAT_UNDO_JOURNAL)?;
        // Everything is durable, names included, before the name that makes it a store.
        directory.sync()?;
        directory.rename(POOL_NEW_NAME, POOL_NAME)?;
        // Which makes that name durable.
        Ok(Self::open(directory, kind, flushing, options)?.0)
    }

    /// Opens pool and journal. The pool is not up to date before [`Journal::recover`].
    ///
    /// # Errors
    /// `Error::Unsupported` for what is no pool, a newer one, or one of the other journal;
    /// `Error::Damaged` when something durable is not what was written; those of the medium.
    pub(crate) fn open(
        directory: &Arc<dyn Directory>,
        kind: JournalKind,
        flushing: Flushing,
        options: JournalOptions,
    ) -> Result<(Self, Recovery)> {
        let Some(file) = directory.open(POOL_NAME)? else {
            let what = "expected a file \"pool\" in here, found none; this is no store".into();
            return Err(Error::Unsupported { file: directory.path().into(), what });
        };
        let pool = PoolFile::open(file)?;
        let found = JournalKind::of(&pool);
        if found != kind {
            return Err(Error::Unsupported {
                file: pool.file().path().into(),
                what: format!(
                    "expected a pool of the {kind} journal, found one of the {found} journal; \
                     open it with that one, or export it and import it into a new store"
                ),
            });
        }
        if kind == JournalKind::Redo {
            let (redo, recovery) = Redo::open(directory, options)?;
            return Ok((Self::Redo(Box::new(redo)), recovery));
        }
        let lanes = Lanes::open(directory, pool, flushing)?;
        remove_if_there(directory.as_ref(), POOL_NEW_NAME)?;
        Ok((Self::Undo(Box::new(lanes)), Recovery::default()))
    }

    /// Opens pool and journal for reading only, and gives the image that recovery would make of them.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(crate) fn open_read_only(
        directory: &Arc<dyn Directory>,
        bytes_max: u64,
    ) -> Result<(Self, Image, Recovery)> {
        let Some(file) = directory.open(POOL_NAME)? else {
            let what = "expected a file \"pool\" in here, found none; this is no store".into();
            return Err(Error::Unsupported { file: directory.path().into(), what });
        };
        let pool = PoolFile::open(file)?;
        let (opened, image, recovery) = ReadOnly::open(directory, pool, bytes_max)?;
        Ok((Self::ReadOnly(Box::new(opened)), image, recovery))
    }

    /// Tells `each` of the pages of the image that are not those of the file, where recovery left the
    /// file as it was: heap offset and bytes of each range of them.
    pub(crate) fn unlike_file(&self, image: &Image, each: &mut dyn FnMut(u64, u64)) {
        if let Self::ReadOnly(read_only) = self {
            read_only.unlike_file(image, each);
        }
    }

    /// Whether nothing can be changed.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::ReadOnly(_))
    }

    /// The kind that the pool was made for.
    pub(crate) fn kind(&self) -> JournalKind {
        match self {
            Self::Redo(_) => JournalKind::Redo,
            Self::Undo(_) => JournalKind::Undo,
            Self::ReadOnly(read_only) => JournalKind::of(read_only.pool()),
        }
    }

    /// Brings the image up to date, where that was not done to the file before it was mapped.
    ///
    /// # Errors
    /// `Error::Damaged` when something durable is not what was written; those of the medium.
    pub(crate) fn recover(&self, image: &Image) -> Result<Option<Recovery>> {
        match self {
            Self::Redo(_) | Self::ReadOnly(_) => Ok(None),
            Self::Undo(lanes) => lanes.recover(image).map(Some),
        }
    }

    /// How the pool is to be mapped.
    pub(crate) fn mapping(&self) -> Mapping {
        match self {
            Self::Redo(_) | Self::ReadOnly(_) => Mapping::Private,
            Self::Undo(_) => Mapping::Shared,
        }
    }

    /// The lanes, under the undo journal.
    #[inline]
    pub(crate) fn lanes(&self) -> Option<&Lanes> {
        match self {
            Self::Redo(_) | Self::ReadOnly(_) => None,
            Self::Undo(lanes) => Some(lanes),
        }
    }

    /// How stores to memory become durable, under the undo journal.
    #[inline]
    pub(crate) fn persist(&self) -> Option<&dyn Persist> {
        self.lanes().map(Lanes::persist)
    }

    /// An empty record for this journal.
    pub(crate) fn record(&self) -> RecordBuilder {
        match self {
            Self::Redo(_) | Self::ReadOnly(_) => RecordBuilder::new(),
            Self::Undo(_) => RecordBuilder::whole(),
        }
    }

    /// Waits until a small record finds room. To be called before the writer's lock is taken.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    #[inline]
    pub(crate) fn wait_for_space(&self) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.wait_for_space(),
            Self::Undo(lanes) => lanes.check(),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Fails as the next record would, whatever it is and however much space there is.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.check_writable(),
            Self::Undo(lanes) => lanes.check(),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Appends a record that publishes nothing that was written in place.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them. Then nothing was appended.
    #[inline]
    pub(crate) fn append(&self, record: &RecordBuilder, image: &Image) -> Result<Appended<'_>> {
        self.append_commit(record, Fresh::Durable, &mut None, image)
    }

    /// Appends a record. Under the undo journal it is durable then, and makes void what `undo`
    /// saved.
    ///
    /// # Errors
    /// As [`Journal::append`].
    #[inline(always)]
    pub(crate) fn append_commit<'j>(
        &'j self,
        record: &RecordBuilder,
        fresh: Fresh,
        undo: &mut Option<Undo<'j>>,
        image: &Image,
    ) -> Result<Appended<'j>> {
        match self {
            Self::Redo(redo) => Ok(Appended { sequence: redo.append(record)?, lane: None }),
            Self::Undo(lanes) => {
                let lane = lanes.append(record, fresh, undo, image)?;
                Ok(Appended { sequence: lane.sequence, lane: Some(lane) })
            }
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// To be told when memory shows a record.
    #[inline]
    pub(crate) fn applied(&self, appended: Appended<'_>, record: &RecordBuilder, image: &Image) {
        if let (Self::Undo(lanes), Some(lane)) = (self, appended.lane) {
            lanes.applied(lane, record, image);
        }
    }

    /// Waits until record `sequence` is as durable as asked for.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    #[inline]
    pub(crate) fn finish(&self, sequence: u64, durability: Durability) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.finish(sequence, durability),
            // What is visible is durable.
            Self::Undo(_) | Self::ReadOnly(_) => Ok(()),
        }
    }

    /// Backs data pages `0 .. pages` of the pool.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium. Then the pool is as large as it was.
    pub(crate) fn grow(&self, pages: u64) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.grow(pages),
            Self::Undo(lanes) => lanes.grow(pages),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Backs data pages that may be holes of the pool.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(crate) fn back(&self, start: u64, pages: u64) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.back(start, pages),
            Self::Undo(lanes) => lanes.back(start, pages),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Whether the pool can have holes.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    pub(crate) fn can_punch(&self) -> Result<bool> {
        match self {
            Self::Redo(redo) => redo.can_punch(),
            Self::Undo(lanes) => lanes.pool().can_punch(),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Adds to a record that data pages become holes. Under the undo journal there is nothing to say:
    /// pages have no sums, and what free ones hold is nobody's business.
    pub(crate) fn put_hole(&self, record: &mut RecordBuilder, start: u64, pages: u64) {
        if let Self::Redo(_) = self {
            record.hole(start * PAGE_BYTES, pages * PAGE_BYTES);
        }
    }

    /// Sees to it that the pages which a record made holes are; a checkpoint has covered it.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn punch(&self, holes: &[(u64, u64)]) -> Result<()> {
        match self {
            // The applier has done it.
            Self::Redo(_) => Ok(()),
            Self::Undo(lanes) => lanes.punch(holes),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Gives space of the log back that nothing needs, but for what `keep_log` is asked for; how
    /// many bytes.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn give_log_back(&self, kept_bytes: u64) -> Result<u64> {
        match self {
            Self::Redo(journal) => journal.give_log_back(kept_bytes),
            // It is as large as it was made.
            Self::Undo(_) => Ok(0),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Cuts the pool off after data page `pages - 1`. A checkpoint has covered all that names pages
    /// beyond.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium. The pool may be as long as it was then.
    pub(crate) fn truncate(&self, pages: u64) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.truncate(pages),
            Self::Undo(lanes) => lanes.truncate(pages),
            Self::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }

    /// Ends writing, because of what happened outside of the journal.
    pub(crate) fn poison(&self, error: Error) {
        match self {
            Self::Redo(redo) => redo.poison(error),
            Self::Undo(lanes) => lanes.poison(error),
            // There is nothing that could go on.
            Self::ReadOnly(_) => {}
        }
    }

    /// Data pages that the pool backs.
    pub(crate) fn pages_backed(&self) -> u64 {
        match self {
            Self::Redo(redo) => redo.pages_backed(),
            Self::Undo(lanes) => lanes.pool().pages_backed(),
            Self::ReadOnly(read_only) => read_only.pool().pages_backed(),
        }
    }

    /// The pool file, to be mapped.
    pub(crate) fn pool(&self) -> &Arc<dyn File> {
        match self {
            Self::Redo(redo) => redo.pool(),
            Self::Undo(lanes) => lanes.pool().file(),
            Self::ReadOnly(read_only) => read_only.pool().file(),
        }
    }

    /// Whether pages have checksums.
    #[inline]
    pub(crate) fn has_sums(&self) -> bool {
        match self {
            Self::Redo(_) => true,
            Self::Undo(_) => false,
            Self::ReadOnly(read_only) => read_only.has_sums(),
        }
    }

    /// Judges a page of the file by its stored checksum (R7); it must be as in the file.
    ///
    /// # Errors
    /// `Error::Damaged`; those of the medium.
    pub(crate) fn verify_page(&self, heap_offset: u64, page: &[u8]) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.verify_page(heap_offset, page),
            Self::Undo(_) => Ok(()),
            Self::ReadOnly(read_only) => read_only.pool().verify_page(heap_offset, page),
        }
    }

    /// Judges all pages of the file that have checksums and tells `on_damage` of each that is not
    /// what was written. Returns the pages judged. O(pool).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(Error)) -> Result<u64> {
        match self {
            Self::Redo(redo) => redo.verify(on_damage),
            Self::Undo(_) => Ok(0),
            Self::ReadOnly(read_only) => read_only.verify(on_damage),
        }
    }

    /// Makes a new pool in an empty directory that holds what this one does, as of some record after
    /// the call. `go_on` is asked again and again. Returns that record's number.
    ///
    /// # Errors
    /// `Error::Unsupported` under the undo journal; those of `go_on`; `Error::Poisoned`,
    /// `Error::Damaged` for a page that is not what was written; those of the medium. Then there is no
    /// pool in the directory.
    pub(crate) fn back_up(
        &self,
        directory: &dyn Directory,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let mut uuid = [0; 16];
        directory.random(&mut uuid)?;
        // Its name is durable by the sync below; an empty log needs no files.
        directory.subdirectory(LOG_NAME)?;
        let file = directory.create(POOL_NEW_NAME)?;
        if is_planted("rename.a-copy-before-it-is-durable") {
            directory.rename(POOL_NEW_NAME, POOL_NAME)?;
            directory.sync()?;
        }
        let made = PoolFile::begin(file, uuid, 0).and_then(|pool| match self {
            Self::Redo(redo) => redo.back_up(&pool, go_on),
            Self::ReadOnly(read_only) if read_only.has_sums() => read_only.back_up(&pool, go_on),
            Self::Undo(_) | Self::ReadOnly(_) => Err(Error::Unsupported {
                file: self.pool().path().into(),
                what: "the pages of a pool of the undo journal change where they are and have no \
                       checksums, so they cannot be copied meanwhile; copy what is in it"
                    .into(),
            }),
        });
        let made = made.and_then(|sequence| {
            directory.sync()?;
            if !is_planted("rename.a-copy-before-it-is-durable") {
                directory.rename(POOL_NEW_NAME, POOL_NAME)?;
            }
            directory.sync()?;
            Ok(sequence)
        });
        if made.is_err() {
            // Best effort: it is no pool, and its name says so; or the sync of its last name failed.
            let _ = remove_if_there(directory, POOL_NEW_NAME);
            let _ = remove_if_there(directory, POOL_NAME);
        }
        made
    }

    /// Takes everything appended before the call to the pool file, durably (R1).
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::Damaged`; those of the medium, which poison.
    pub(crate) fn checkpoint(&self, image: &Image) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.checkpoint(),
            Self::Undo(lanes) => lanes.checkpoint(image),
            Self::ReadOnly(_) => Ok(()),
        }
    }

    /// As [`Journal::checkpoint`], of what the applier holds back, too: it is not held any more.
    ///
    /// # Errors
    /// As [`Journal::checkpoint`].
    pub(crate) fn checkpoint_held(&self, image: &Image) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.checkpoint_held(),
            Self::Undo(_) | Self::ReadOnly(_) => self.checkpoint(image),
        }
    }

    /// Has a log be so large, if there is one, that giving it back would give so many bytes.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them.
    pub(crate) fn keep_log(&self, bytes: u64) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.keep_log(bytes),
            Self::Undo(_) | Self::ReadOnly(_) => Ok(()),
        }
    }

    /// Gives the room of the log back to the file system, if there is one, until what it returns is
    /// dropped. To be called by who has the image alone.
    ///
    /// # Errors
    /// As [`Journal::close`], and as a call that writes.
    pub(crate) fn give_back_log(&self) -> Result<Option<GivenLog<'_>>> {
        match self {
            Self::Redo(redo) => redo.give_back_log().map(Some),
            Self::Undo(_) | Self::ReadOnly(_) => Ok(None),
        }
    }

    /// The extents whose bytes the applier holds back, where there is one.
    pub(crate) fn holds(&self) -> Option<&Arc<Holds>> {
        match self {
            Self::Redo(redo) => Some(redo.holds()),
            Self::Undo(_) | Self::ReadOnly(_) => None,
        }
    }

    /// Sequence number of the last record appended.
    pub(crate) fn last_sequence(&self) -> u64 {
        match self {
            Self::Redo(redo) => redo.last_sequence(),
            Self::Undo(lanes) => lanes.last_sequence(),
            Self::ReadOnly(read_only) => read_only.last_sequence(),
        }
    }

    /// Counters.
    pub(crate) fn stats(&self) -> JournalStats {
        match self {
            Self::Redo(redo) => redo.stats(),
            Self::Undo(lanes) => lanes.stats(),
            Self::ReadOnly(read_only) => read_only.stats(),
        }
    }

    /// Leaves nothing to do for the next opening. Later calls that write are refused.
    ///
    /// # Errors
    /// As `checkpoint`.
    pub(crate) fn close(&self, image: &Image) -> Result<()> {
        match self {
            Self::Redo(redo) => redo.close(),
            Self::Undo(lanes) => lanes.close(image),
            Self::ReadOnly(_) => Ok(()),
        }
    }
}

/// Gives a log directory that a creation which failed left its name once more, unless it is in use: its
/// name may look durable since a sync failed on it, and only one that is given again is written again.
///
/// # Errors
/// `Error::Unsupported` when a log with records lies there; those of the medium.
fn name_log_again(directory: &Arc<dyn Directory>, kind: JournalKind) -> Result<()> {
    let names = directory.list()?;
    let has = |name: &str| names.iter().any(|known| known == name);
    if has(LOG_NAME) {
        // The pool of that creation may have had its name, and was taken back: it must not come back
        // when a power cut finds its log in the making.
        directory.sync()?;
        remove_abandoned(directory.subdirectory(LOG_NAME)?.as_ref())?;
        directory.rename(LOG_NAME, LOG_NEW_NAME)?;
    } else if !has(LOG_NEW_NAME) {
        return Ok(());
    }
    // Or a power cut took the second half of this the last time.
    directory.rename(LOG_NEW_NAME, LOG_NAME)?;
    if kind == JournalKind::Redo {
        // Before there is a pool: whoever opens one looks for no log of the other name. The undo journal
        // syncs this directory anyway before it names its pool.
        directory.sync()?;
    }
    Ok(())
}

fn remove_if_there(directory: &dyn Directory, name: &str) -> Result<()> {
    if directory.open(name)?.is_some() {
        directory.remove(name)?;
    }
    Ok(())
}
