//! Going back: a store as one of its persistent savepoints shows it.
//!
//! Purpose: the heap exchanges the pools, see docs/decisions/0140-savepoints.md; the store sees to
//! its files, and to the numbers of its feed of changes: docs/decisions/0146-going-back-goes-on.md.
//! Invariants: no number of a commit, and none of the feed, ever names two states of a store.
//! Thread safety: a store that goes back is not open.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::{Error as HeapError, GoBack, Heap, Result as HeapResult};
use adamant_lsm::{file_name, number_of};
use adamant_medium::storage::Directory;

use crate::common::catalogue::{Catalogue, kind_of};
use crate::common::history::{HISTORY_NAME, read_head};
use crate::common::undone_changes::{first_change_behind, skip_to};
use crate::engine::held_files::decode;
use crate::engine::lsm_trees::FOLDERS;
use crate::engine::map::Map;
use crate::error::{Error, Result};
use crate::increment::is_increment;
use crate::kind::KeyspaceKind;
use crate::layout::{STORE_FORMAT_CHANGES, STORE_ROOT};
use crate::options::Options;
use crate::store::open::{directory_at, heap_options_of, lsm_trees_in, plain_of, resolved};

/// Makes a store what one of its persistent savepoints shows: all later commits are undone. The
/// store must not be open. All savepoints stay, later ones too: make one first, and there is a way
/// forward again.
///
/// The pool is made anew and takes the place of the old one in one step, so a crash leaves the
/// store as it was, or as the savepoint shows it. Takes as much space as the pool, and for pages
/// that later savepoints need. O(pool).
///
/// Numbers of commits do not go back: what was is a commit behind all others, so no number ever
/// names two states of a store. Of the [changes](crate::Store::changes) those are left that the
/// savepoint has, and the next one has a number above all that were ever given: whoever has read a
/// change that is undone gets [`Error::ChangesUnknown`]; others go on.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
/// use adamant::Store;
///
/// let store = Store::open(&path)?;
/// store.keyspace("towns")?.put("Bern", "134,000")?;
/// store.create_savepoint("before the import")?;
/// store.keyspace("towns")?.put("Bern", "0")?;
/// store.close()?;
///
/// adamant::go_back(&path, "before the import")?;
/// let store = Store::open(&path)?;
/// assert_eq!(store.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::UnknownSavepoint`] if there is none of that name that can be read; [`Error::Missing`]
/// or [`Error::NotAStore`] if there is no store, [`Error::Locked`] if it is open, also beside a
/// writer; no space, damage, a file of an LSM tree that is missing. Then the store is as it was.
pub fn go_back(path: impl AsRef<Path>, name: &str) -> Result<()> {
    go_back_with(path, name, Options::new())
}

/// As [`go_back`], for a store that is opened with these options, such as an encrypted one.
///
/// # Errors
/// As [`go_back`].
pub fn go_back_with(path: impl AsRef<Path>, name: &str, options: Options) -> Result<()> {
    let path = resolved(path.as_ref())?;
    let options = options.create(false).read_only(false).beside_writer(false);
    go_back_in(directory_at(&path, &options)?, name, options)
}

/// As [`go_back`], for the store in a directory of any storage backend. The simulator of
/// `testing/sim` uses this in place of a file system; programs use [`go_back`].
///
/// # Errors
/// As [`go_back`].
pub fn go_back_in(directory: Arc<dyn Directory>, name: &str, options: Options) -> Result<()> {
    if is_increment(&directory.list()?) {
        return Err(Error::Increment { path: directory.path().into() });
    }
    let options = options.create(false).read_only(false).beside_writer(false);
    let (directory, options) = plain_of(directory, &options)?;
    let user = GoingBack {
        directory: Arc::clone(&directory),
        options: options.clone(),
        last_change: Cell::new(0),
        failed: RefCell::new(None),
    };
    let gone = adamant_heap::go_back(directory, heap_options_of(&options), name, &user);
    if let Some(error) = user.failed.into_inner() {
        return Err(error);
    }
    match gone? {
        Some(_) => Ok(()),
        None => Err(Error::UnknownSavepoint { name: name.into() }),
    }
}

/// What a store does with its heap when that goes back.
struct GoingBack {
    directory: Arc<dyn Directory>,
    options: Options,
    /// Above the number of every commit that the feed of changes ever had.
    last_change: Cell<u64>,
    /// Why the new heap could not be changed, in the words of the store.
    failed: RefCell<Option<Error>>,
}

impl GoingBack {
    fn catalogue<R: Read>(&self, heap: &R, root: u64) -> Result<Catalogue> {
        let lsm_trees = lsm_trees_in(Arc::clone(&self.directory), &self.options);
        Catalogue::open(heap, root, Arc::new(lsm_trees))
    }

    /// The number of the last commit in the feed of changes of a heap; `None` if it records none.
    /// An error for a heap of which that cannot be said.
    fn last_change(&self, heap: &Heap) -> Result<Option<u64>> {
        let view = heap.view()?;
        let root = view.root(STORE_ROOT);
        let catalogue = self.catalogue(&view, root)?;
        if catalogue.format(&view)? < STORE_FORMAT_CHANGES {
            return Ok(Some(0));
        }
        let Some(map) = history_map(&view, &catalogue)? else { return Ok(None) };
        Ok(Some(read_head(&view, &map)?.next - 1))
    }

    fn skip_changes(&self, heap: &Heap) -> Result<()> {
        heap.transaction(Durability::Sync, |transaction| {
            let catalogue = self.catalogue(transaction, transaction.root(STORE_ROOT))?;
            // Also if no history is there: the next one begins above all numbers.
            catalogue.raise_format_to(transaction, STORE_FORMAT_CHANGES)?;
            match history_map(transaction, &catalogue)? {
                Some(map) => skip_to(transaction, &map, self.last_change.get()),
                None => Ok(()),
            }
        })
    }
}

impl GoBack for GoingBack {
    fn refuse(&self, attached: &[u8]) -> HeapResult<()> {
        need_files(&*self.directory, attached)
    }

    fn leave(&self, heap: &Heap) -> HeapResult<bool> {
        let last = match self.last_change(heap) {
            Ok(Some(last)) => last,
            // Recording has ended, or cannot be read: no number was above this one.
            Ok(None) | Err(_) => first_change_behind(heap.last_commit()),
        };
        self.last_change.set(last);
        // Of a store that never had changes no savepoint has any.
        Ok(last > 0)
    }

    fn arrive(&self, heap: &Heap) -> HeapResult<()> {
        self.skip_changes(heap).or_else(|error| {
            if error.is_damaged() {
                // As the savepoint has it: without a head no change is ever read or recorded.
                return Ok(());
            }
            let words = "the feed of changes of the savepoint could not be changed";
            *self.failed.borrow_mut() = Some(error);
            Err(HeapError::Misuse { what: words })
        })
    }
}

/// The map of the history of changes; `None` if there is none.
fn history_map<R: Read>(heap: &R, catalogue: &Catalogue) -> Result<Option<Map>> {
    let Some(entry) = catalogue.find(heap, HISTORY_NAME)? else { return Ok(None) };
    if kind_of(HISTORY_NAME, &entry)? != KeyspaceKind::Changes {
        return Ok(None);
    }
    catalogue.map(heap, HISTORY_NAME, &entry).map(Some)
}

/// Fails unless all files of LSM trees are in the store's directory that a savepoint lists.
fn need_files(directory: &dyn Directory, attached: &[u8]) -> HeapResult<()> {
    let (mut missing, names) = (decode(attached), directory.list()?);
    for folder in FOLDERS.into_iter().filter(|folder| names.iter().any(|name| name == folder)) {
        for name in directory.subdirectory(folder)?.list()? {
            if let Some((number, true)) = number_of(&name) {
                missing.remove(&number);
            }
        }
    }
    let Some(number) = missing.into_iter().min() else { return Ok(()) };
    Err(HeapError::Damaged {
        file: directory.path().join(FOLDERS[0]).join(file_name(number)),
        offset: 0,
        what:
            "expected this file, which the savepoint needs, there or among the blob files, found \
               none; the store is as it was: put the file back, or delete the savepoint"
                .into(),
    })
}
