//! The registry of readers: other processes that read a store while this one writes it.
//!
//! Purpose: what a reader still needs is in a file of its own, which also says whether it is alive:
//! a reader holds the file's lock, which dies with it. See
//! docs/decisions/0133-readers-beside-the-writer.md.
//! Invariants: a reader has a place before it has a lock, and a lock before it reads a page. A
//! reader without a place was overtaken: nothing is kept for it any more.
//! Thread safety: any thread, of any process.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::fork::ForkGuard;
use adamant_medium::storage::{Directory, File, Lock};
use adamant_wire::checksum::crc32c;
use parking_lot::Mutex;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::journal::records::log_file::remove_if_there;

/// The directory of the registry, in that of the store.
pub(crate) const READERS_NAME: &str = "readers";
/// What the name of a reader's lock ends in, and that of its place.
const LOCK_SUFFIX: &str = ".reader";
const PLACE_SUFFIX: &str = ".place";
/// Attempts to register: another process may take a file that has no lock yet for a dead reader's.
const ATTEMPTS_MAX: u32 = 100;

fn place_name(name: &str) -> String {
    format!("{name}{PLACE_SUFFIX}")
}

fn lock_name(name: &str) -> String {
    format!("{name}{LOCK_SUFFIX}")
}

/// A batch of a checkpoint: the number of the checkpoint, and of the batch within it. In the order
/// in which they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::journal) struct BatchId {
    pub(in crate::journal) number: u64,
    pub(in crate::journal) batch: u64,
}

/// What a reader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) struct Place {
    /// The last commit that it sees; 0 while it is being opened, or moves on: it may be any.
    pub(in crate::journal) moment: u64,
    /// The last batch whose pages it may read from the pool: it needs what later ones overwrite.
    pub(in crate::journal) known: BatchId,
}

/// A place, as its file has it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct StoredPlace {
    moment: U64,
    number: U64,
    batch: U64,
    /// CRC32C of the bytes before.
    checksum: U32,
}

impl StoredPlace {
    fn of(place: Place) -> Self {
        let Place { moment, known: BatchId { number, batch } } = place;
        let (moment, number, batch) = (moment.into(), number.into(), batch.into());
        let mut stored = Self { moment, number, batch, checksum: 0.into() };
        stored.checksum = stored.sum().into();
        stored
    }

    fn sum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32c(0, &bytes[..bytes.len() - size_of::<U32>()])
    }

    /// `None` while it is being written.
    fn place(&self) -> Option<Place> {
        let known = BatchId { number: self.number.get(), batch: self.batch.get() };
        let place = Place { moment: self.moment.get(), known };
        (self.checksum.get() == self.sum()).then_some(place)
    }
}

/// The registration of a reader, until it ends or is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    directory: Arc<dyn Directory>,
    name: String,
    place: Arc<dyn File>,
    /// `None` once it has ended.
    lock: Mutex<Option<Box<dyn Lock>>>,
    fork: ForkGuard,
}

impl Registration {
    /// Registers a reader that is being opened: from now on every page is kept for it before it is
    /// overwritten, and the log stays.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn new(store: &dyn Directory) -> Result<Self> {
        let directory = store.subdirectory(READERS_NAME)?;
        // Its end comes after the heap has closed its files.
        let directory = directory.open_again()?.unwrap_or(directory);
        for _ in 0..ATTEMPTS_MAX {
            if let Some(registered) = Self::attempt(&directory)? {
                return Ok(registered);
            }
        }
        let source = std::io::Error::other("other processes remove its files");
        Err(MediumError::io("register in", directory.path(), None, 0, source).into())
    }

    fn attempt(directory: &Arc<dyn Directory>) -> Result<Option<Self>> {
        let mut number = [0; 8];
        directory.random(&mut number)?;
        let name = format!("{:016x}", u64::from_le_bytes(number));
        let place = directory.create(&place_name(&name))?;
        let opening = Place { moment: 0, known: BatchId::default() };
        place.write_at(StoredPlace::of(opening).as_bytes(), 0)?;
        let lock_file = lock_name(&name);
        let lock = match directory.lock(&lock_file) {
            Ok(lock) => Mutex::new(Some(lock)),
            Err(MediumError::Locked { .. }) => {
                remove_if_there(directory.as_ref(), &place_name(&name))?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let fork = ForkGuard::new()?;
        let registered = Self { directory: Arc::clone(directory), name, place, lock, fork };
        // A process that looked between making the file and locking it has removed both.
        let is_there = directory.list()?.contains(&lock_file) && !registered.is_overtaken()?;
        Ok(is_there.then_some(registered))
    }

    /// Tells what is needed from now on.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn set(&self, place: Place) -> Result<()> {
        Ok(self.place.write_at(StoredPlace::of(place).as_bytes(), 0)?)
    }

    /// Whether nothing is kept for it any more.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn is_overtaken(&self) -> Result<bool> {
        Ok(self.directory.open(&place_name(&self.name))?.is_none())
    }

    /// The directory of the registry.
    pub(in crate::journal) fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// Ends it: nothing is kept for the reader from now on.
    fn end(&self) {
        let Some(_lock) = self.lock.lock().take().filter(|_| !self.fork.is_child()) else { return };
        for file in [place_name(&self.name), lock_name(&self.name)] {
            // Best effort: files without a lock are removed by whoever finds them.
            let _ = remove_if_there(self.directory.as_ref(), &file);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.end();
    }
}

/// A registration that ends when this is dropped, whoever else has it: what a reader has for a
/// lock.
#[derive(Debug)]
pub(in crate::journal) struct ReaderLock(pub(in crate::journal) Arc<Registration>);

impl Lock for ReaderLock {}

impl Drop for ReaderLock {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A reader that another process has registered.
#[derive(Debug)]
pub(in crate::journal) struct Reader {
    pub(in crate::journal) name: String,
    pub(in crate::journal) place: Place,
}

impl Reader {
    /// Whether it stays at what its place says: it is not being opened, nor moving on.
    pub(in crate::journal) fn is_still(&self) -> bool {
        self.place.moment != 0
    }

    /// The order in which readers are overtaken: those that know least need most.
    pub(in crate::journal) fn age(&self) -> (BatchId, bool, u64) {
        (self.place.known, !self.is_still(), self.place.moment)
    }
}

/// The registry, as the process that writes sees it.
#[derive(Debug)]
pub(in crate::journal) struct Readers {
    directory: Arc<dyn Directory>,
}

impl Readers {
    /// The registry of a store; `None` if no reader was ever registered. One call.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn of(store: &dyn Directory) -> Result<Option<Self>> {
        if !store.list()?.iter().any(|name| name == READERS_NAME) {
            return Ok(None);
        }
        Ok(Some(Self { directory: store.subdirectory(READERS_NAME)? }))
    }

    /// The directory of the registry.
    pub(in crate::journal) fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// The readers that are alive and were not overtaken. Removes what dead ones left. Some five
    /// calls for each.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn list(&self) -> Result<Vec<Reader>> {
        let mut readers = Vec::new();
        let directory = self.directory.as_ref();
        let files = directory.list()?;
        let name_of = |file: &String| {
            let name = file.strip_suffix(LOCK_SUFFIX).or_else(|| file.strip_suffix(PLACE_SUFFIX));
            name.map(str::to_owned)
        };
        let names: BTreeSet<String> = files.iter().filter_map(name_of).collect();
        for name in names {
            match directory.lock(&lock_name(&name)) {
                // Under the lock, also a place that had none when the files were listed: a reader
                // that is registering gets no lock, or finds that its place is gone. Without it,
                // one that had registered by now would lose its place.
                Ok(_lock) => {
                    remove_if_there(directory, &place_name(&name))?;
                    remove_if_there(directory, &lock_name(&name))?;
                }
                // Whether another user's is alive cannot be told.
                Err(_) => {
                    if let Some(place) = self.place_of(&name) {
                        readers.push(Reader { name, place });
                    }
                }
            }
        }
        Ok(readers)
    }

    /// The place of a reader; `None` if it was overtaken.
    fn place_of(&self, name: &str) -> Option<Place> {
        let mut bytes = [0; size_of::<StoredPlace>()];
        let read = match self.directory.open(&place_name(name)) {
            Ok(None) => return None,
            Ok(Some(file)) => file.read_at(&mut bytes, 0),
            Err(error) => Err(error),
        };
        let stored = read.ok().and_then(|()| StoredPlace::read_from_bytes(&bytes).ok());
        // It is being written, or cannot be read: it may need anything.
        let any = Place { moment: 0, known: BatchId::default() };
        Some(stored.and_then(|stored| stored.place()).unwrap_or(any))
    }

    /// Keeps nothing for a reader from now on; it will be told.
    ///
    /// # Errors
    /// Those of the medium. Then what it needs must stay.
    pub(in crate::journal) fn overtake(&self, reader: &Reader) -> Result<()> {
        remove_if_there(self.directory.as_ref(), &place_name(&reader.name))
    }
}
