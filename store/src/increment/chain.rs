//! A chain: a full backup, and increments one on top of the other.
//!
//! Purpose: finds and verifies all links that a backup needs, and shows the pool file and the files
//! of LSM trees that they make together.
//! Invariants: each link is the one that its child was made against: its identity says so. The full
//! backup is locked against writing while the chain is open; no increment is ever written. All
//! links lie side by side, in one directory.
//! Thread safety: nothing changes after the opening; any thread reads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::error::Error as HeapError;
use adamant_heap::{PoolIdentity, verify_file_page};
use adamant_lsm::number_of;
use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::names::name_of;
use adamant_medium::storage::{Directory, File, Lock};
use parking_lot::Mutex;

use crate::encryption::{EncryptionKey, decrypted};
use crate::error::{Error, Result};
use crate::increment::folder::Folder;
use crate::increment::index::{Index, damaged};
use crate::increment::layout::{BLOCK_BYTES, INCREMENT_NAME, LinkIdentity};
use crate::increment::runs::{Run, find, overlay};

/// The lock file: its holder may write a store.
const LOCK_NAME: &str = "lock";
/// Name of the pool file.
pub(super) const POOL_NAME: &str = "pool";
/// The most bytes that are read by one call.
const READ_BYTES: u64 = 1 << 20;

/// A file of an LSM tree, as a chain shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) folder: Folder,
    pub(super) number: u64,
    pub(super) bytes: u64,
    /// Index of the link that has it.
    link: usize,
}

/// One link: its directory, and what it has of the pool.
#[derive(Debug)]
struct Link {
    directory: Arc<dyn Directory>,
    blocks: Blocks,
}

#[derive(Debug)]
enum Blocks {
    /// A full backup: the pool file, and whether its pages are verified.
    Full(Arc<dyn File>, bool),
    /// An increment.
    Difference(Box<Index>),
}

/// A full backup and the increments up to one of them.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The full backup first.
    links: Vec<Link>,
    identity: LinkIdentity,
    runs: Vec<Run>,
    blocks: u64,
    files: Vec<ListedFile>,
    /// That of the full backup; `None` once closed.
    lock: Mutex<Option<Box<dyn Lock>>>,
}

/// Who needs a link, and which one it must be.
type Needed = Option<(PathBuf, LinkIdentity)>;

impl Chain {
    /// Opens the chain that ends with the link of that name, all links of which are in `siblings`.
    ///
    /// # Errors
    /// [`Error::Missing`] or [`Error::NotAParent`] for that link, [`Error::MissingLink`] and
    /// [`Error::WrongLink`] for one below it; [`Error::Locked`] if the full backup is open for
    /// writing; damage; those of the storage backend.
    pub(crate) fn open(
        siblings: &Arc<dyn Directory>,
        name: &str,
        key: Option<&EncryptionKey>,
    ) -> Result<Self> {
        let (mut differences, mut needed, mut name) = (Vec::new(), None, name.to_string());
        loop {
            let directory = decrypted(link_in(siblings, &name, &needed)?, (key, false), is_link)?;
            let Some(file) = directory.open(INCREMENT_NAME)? else {
                return Self::over(directory, &needed, differences);
            };
            let index = Index::read(file)?;
            check_identity(directory.path(), &needed, index.identity())?;
            needed = Some((directory.path().into(), index.header.parent));
            name.clone_from(&index.parent_name);
            differences.push((directory, index));
            // Only a file that was made to deceive names one of its children.
            let names = differences.iter().map(|(directory, _)| directory.path());
            if names.into_iter().any(|path| path.file_name() == Some(&*name_of(&name))) {
                let what =
                    format!("expected a chain that ends with a full backup, found {name:?} twice");
                let (_, newest) = &differences[differences.len() - 1];
                return Err(damaged(newest.file(), 0, what).into());
            }
        }
    }

    /// The chain over a full backup: increments, the newest first.
    fn over(
        directory: Arc<dyn Directory>,
        needed: &Needed,
        differences: Vec<(Arc<dyn Directory>, Index)>,
    ) -> Result<Self> {
        let Some(pool) = directory.open(POOL_NAME)? else {
            let found = "a directory without a pool".into();
            return Err(no_link(directory.path(), needed, found));
        };
        let lock = directory.lock_shared(LOCK_NAME)?;
        let (identity, was_closed) = full_identity(&*directory)?;
        check_identity(directory.path(), needed, identity)?;
        let (blocks, files) = (pool.len()? / BLOCK_BYTES, full_files(&*directory)?);
        let mut chain = Self {
            links: vec![Link { directory, blocks: Blocks::Full(pool, was_closed) }],
            identity,
            runs: vec![Run { first: 0, count: blocks, link: 0, slot: 0 }],
            blocks,
            files,
            lock: Mutex::new(Some(lock)),
        };
        for (directory, index) in differences.into_iter().rev() {
            chain.push(directory, index)?;
        }
        Ok(chain)
    }

    fn push(&mut self, directory: Arc<dyn Directory>, index: Index) -> Result<()> {
        let (link, blocks) = (self.links.len(), index.header.blocks.get());
        let own = index.runs().map(|(range, slot)| {
            let run = |slot| Run { first: range.start, count: range.end - range.start, link, slot };
            (range.clone(), slot.map(run))
        });
        self.runs = overlay(&self.runs, own, blocks);
        self.files = self.files_with(&*directory, &index)?;
        (self.blocks, self.identity) = (blocks, index.identity());
        self.links.push(Link { directory, blocks: Blocks::Difference(Box::new(index)) });
        Ok(())
    }

    /// The files that an increment on top of this chain lists.
    fn files_with(&self, directory: &dyn Directory, index: &Index) -> Result<Vec<ListedFile>> {
        let listed = index.files.iter().map(|entry| {
            let Some(folder) = Folder::of(entry.folder) else {
                let what = format!("expected a folder of files, found {entry:?}");
                return Err(damaged(index.file(), 0, what).into());
            };
            let (number, bytes, link) = (entry.number.get(), entry.bytes.get(), self.links.len());
            let own = ListedFile { folder, number, bytes, link };
            match entry.is_here {
                0 => self.parents_file(&own, directory.path()),
                _ => Ok(own),
            }
        });
        let mut listed = listed.collect::<Result<Vec<_>>>()?;
        listed.sort_unstable_by_key(ListedFile::key);
        Ok(listed)
    }

    /// A file that an increment on top of this chain has from it.
    fn parents_file(&self, expected: &ListedFile, needed_by: &Path) -> Result<ListedFile> {
        let found = self.file(expected.folder, expected.number);
        if let Some(found) = found.filter(|found| found.bytes == expected.bytes) {
            return Ok(*found);
        }
        // Increments list what they have from others, so this is the full backup's.
        let link = &self.links[found.map_or(0, |found| found.link)];
        let path = link.directory.path().join(expected.folder.name()).join(expected.name());
        let needed_by = needed_by.into();
        let length = |bytes| format!("{bytes} bytes");
        Err(match found {
            None => Error::MissingLink { path, needed_by },
            Some(found) => Error::WrongLink {
                path,
                needed_by,
                expected: length(expected.bytes),
                found: length(found.bytes),
            },
        })
    }

    /// The identity of the newest link.
    pub(super) fn identity(&self) -> LinkIdentity {
        self.identity
    }

    /// Path of the newest link.
    pub(super) fn path(&self) -> &Path {
        self.newest().directory.path()
    }

    /// The directory of the newest link.
    pub(super) fn directory(&self) -> &Arc<dyn Directory> {
        &self.newest().directory
    }

    fn newest(&self) -> &Link {
        // There is always the full backup.
        &self.links[self.links.len() - 1]
    }

    /// Bytes of the pool file.
    pub(super) fn pool_bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// Reads bytes of the pool file; behind its end there are zeros.
    ///
    /// # Errors
    /// Of kind `InvalidData` for a damaged block, with the file of its link; those of the storage
    /// backend.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        while at < end {
            let (run, stop) = match find(&self.runs, at / BLOCK_BYTES) {
                Ok(run) => (Some(run), (run.end() * BLOCK_BYTES).min(at + READ_BYTES)),
                Err(next) => (None, next.map_or(end, |next| next * BLOCK_BYTES)),
            };
            let stop = stop.min(end);
            let part = &mut buffer[(at - offset) as usize..(stop - offset) as usize];
            match run {
                Some(run) => self.links[run.link].read(part, at, run)?,
                None => part.fill(0),
            }
            at = stop;
        }
        Ok(())
    }

    /// A file of an LSM tree.
    pub(super) fn file(&self, folder: Folder, number: u64) -> Option<&ListedFile> {
        let key = (folder as u8, number);
        self.files.binary_search_by_key(&key, ListedFile::key).ok().map(|at| &self.files[at])
    }

    /// All files of LSM trees.
    pub(super) fn files(&self) -> &[ListedFile] {
        &self.files
    }

    /// Opens a file of an LSM tree; `None` if its link lost it.
    ///
    /// # Errors
    /// Of kind `InvalidData` if it has another length; those of the storage backend.
    pub(super) fn open_file(&self, listed: &ListedFile) -> MediumResult<Option<Arc<dyn File>>> {
        let directory = &self.links[listed.link].directory;
        if !has(&**directory, listed.folder.name())? {
            return Ok(None);
        }
        let folder = directory.subdirectory(listed.folder.name())?;
        let Some(file) = folder.open(&listed.name())? else { return Ok(None) };
        let len = file.len()?;
        if len != listed.bytes {
            let what = format!("expected a file of {} bytes, found {len}", listed.bytes);
            return Err(damaged(&*file, len, what));
        }
        Ok(Some(file))
    }

    /// Closes the files of all links, and lets the full backup be written.
    pub(super) fn close(&self) {
        *self.lock.lock() = None;
        self.links.iter().for_each(|link| link.directory.close());
    }
}

impl ListedFile {
    fn key(&self) -> (u8, u64) {
        (self.folder as u8, self.number)
    }

    /// Its name in its folder.
    pub(super) fn name(&self) -> String {
        adamant_lsm::file_name(self.number)
    }
}

impl Link {
    /// Reads bytes of a run from an offset of the pool file on.
    fn read(&self, part: &mut [u8], at: u64, run: &Run) -> MediumResult<()> {
        let index = match &self.blocks {
            Blocks::Full(pool, is_verified) => return read_full(&**pool, *is_verified, part, at),
            Blocks::Difference(index) => index,
        };
        let (block, skipped) = (at / BLOCK_BYTES, (at % BLOCK_BYTES) as usize);
        let mut bytes = vec![0; (skipped + part.len()).next_multiple_of(BLOCK_BYTES as usize)];
        index.read_blocks(&mut bytes, run.slot + block - run.first, block)?;
        part.copy_from_slice(&bytes[skipped..skipped + part.len()]);
        Ok(())
    }
}

/// Reads bytes of the pool of a full backup. What reads them through an increment verifies them as
/// well, but would name the increment.
fn read_full(pool: &dyn File, is_verified: bool, part: &mut [u8], at: u64) -> MediumResult<()> {
    pool.read_at(part, at)?;
    let block_bytes = BLOCK_BYTES as usize;
    if !is_verified || !at.is_multiple_of(BLOCK_BYTES) {
        return Ok(());
    }
    for (offset, page) in (at..).step_by(block_bytes).zip(part.chunks_exact(block_bytes)) {
        match verify_file_page(pool, offset, page) {
            Err(HeapError::Medium(error)) => return Err(error),
            Err(_) => return Err(damaged(pool, offset, NO_PAGE.into())),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// The message for a damaged page of a full backup.
const NO_PAGE: &str = "expected a page that matches its checksum, found another one";

/// The directory of a link, without making one.
fn link_in(
    siblings: &Arc<dyn Directory>,
    name: &str,
    needed: &Needed,
) -> Result<Arc<dyn Directory>> {
    let path = siblings.path().join(name_of(name));
    if !has(&**siblings, name)? {
        return Err(match needed {
            Some((needed_by, _)) => Error::MissingLink { path, needed_by: needed_by.clone() },
            None => Error::Missing { path, what: NO_BACKUP },
        });
    }
    let opened = match siblings.subdirectory(name) {
        Err(MediumError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
            return Err(no_link(&path, needed, "a file".into()));
        }
        opened => opened?,
    };
    // A handle of its own, which the chain closes.
    Ok(opened.open_again()?.unwrap_or(opened))
}

/// Whether the names in a directory are those of a link.
fn is_link(names: &[String]) -> bool {
    names.iter().any(|name| name == POOL_NAME || name == INCREMENT_NAME)
}

/// The message for a parent that is not there.
const NO_BACKUP: &str = "expected a backup to take the difference from, found nothing; check the \
                         path, or make a full backup there first";

/// Whether a name is in a directory.
fn has(directory: &dyn Directory, name: &str) -> MediumResult<bool> {
    Ok(directory.list()?.iter().any(|known| known == name))
}

/// The error for a path that is no link.
fn no_link(path: &Path, needed: &Needed, found: String) -> Error {
    match needed {
        Some((needed_by, expected)) => Error::WrongLink {
            path: path.into(),
            needed_by: needed_by.clone(),
            expected: text_of(expected),
            found,
        },
        None => Error::NotAParent { path: path.into(), found },
    }
}

fn check_identity(path: &Path, needed: &Needed, found: LinkIdentity) -> Result<()> {
    match needed {
        Some((_, expected)) if *expected != found => Err(no_link(path, needed, text_of(&found))),
        _ => Ok(()),
    }
}

/// An identity in words.
fn text_of(identity: &LinkIdentity) -> String {
    let uuid: String = identity.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let LinkIdentity { checkpoint, sequence, checksum, .. } = *identity;
    format!("backup {uuid} of commit {sequence}, checkpoint {checkpoint}, {:08x}", checksum.get())
}

/// Identity of a full backup, and whether all that it holds is in its pool.
fn full_identity(directory: &dyn Directory) -> Result<(LinkIdentity, bool)> {
    let found = PoolIdentity::read(directory)?;
    let identity = LinkIdentity {
        uuid: found.uuid,
        checkpoint: found.checkpoint.into(),
        sequence: found.sequence.into(),
        checksum: found.head_checksum.into(),
    };
    Ok((identity, found.was_closed))
}

/// The files of LSM trees of a full backup.
fn full_files(directory: &dyn Directory) -> Result<Vec<ListedFile>> {
    let mut files = Vec::new();
    for folder in Folder::ALL {
        if !has(directory, folder.name())? {
            continue;
        }
        let inner = directory.subdirectory(folder.name())?;
        for name in inner.list()? {
            let Some((number, true)) = number_of(&name) else { continue };
            let Some(file) = inner.open(&name)? else { continue };
            files.push(ListedFile { folder, number, bytes: file.len()?, link: 0 });
        }
    }
    files.sort_unstable_by_key(ListedFile::key);
    Ok(files)
}

/// The error for a write to what is never written.
pub(super) fn never_written(path: &Path) -> MediumError {
    let source = io::Error::new(
        io::ErrorKind::ReadOnlyFilesystem,
        "an increment is never written; restore it to a path of its own",
    );
    MediumError::io("write", path, None, 0, source)
}
