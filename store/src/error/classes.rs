//! Classes of errors, by which a program decides what to do.

use std::io::ErrorKind;

use adamant_heap::error::Error as HeapError;
use adamant_lsm::Error as LsmError;
use adamant_medium::error::Error as MediumError;
use adamant_trees::error::Error as TreeError;

use super::Error;

impl Error {
    /// Whether more space on the device would help. The failed call changed nothing; reads and
    /// removes still work.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::Heap(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// Whether a transaction failed because of another commit. It changed nothing and may be run
    /// again.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// let apples = transaction.contains(&stock, "apples")?;
    /// transaction.put(&stock, "any", if apples { "yes" } else { "no" })?;
    /// stock.put("apples", "7")?;
    /// assert!(transaction.commit().unwrap_err().is_conflict());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the store is poisoned: it refuses writes until it is opened again, because a write
    /// or sync failed after a commit had become visible.
    pub fn is_poisoned(&self) -> bool {
        matches!(self, Self::Heap(HeapError::Poisoned { .. }))
    }

    /// Whether the store is open for reading only and the call would write.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// adamant::Store::open(&path)?.keyspace("towns")?.put("Bern", "134,000")?;
    /// let store = adamant::Store::open_read_only(&path)?;
    /// let towns = store.open_keyspace("towns")?;
    /// assert!(towns.put("Basel", "173,000").unwrap_err().is_read_only());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Heap(HeapError::ReadOnly))
    }

    /// Whether durable data is damaged: run a check, or restore a copy.
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::NotWhole { .. }
            | Self::Medium(MediumError::Truncated { .. }) => true,
            // A block of an increment.
            Self::Medium(MediumError::Io { source, .. }) => source.kind() == ErrorKind::InvalidData,
            Self::Heap(error) => {
                matches!(error, HeapError::Damaged { .. } | HeapError::InvalidPointer { .. })
            }
            Self::Tree(error) => {
                matches!(error, TreeError::Damaged { .. } | TreeError::NotThisTree { .. })
            }
            Self::Lsm { error, .. } => error.is_damage(),
            _ => false,
        }
    }

    /// Whether this is no store, or one of an unknown version or for a build with other features.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// std::fs::write(&path, "some other file")?;
    /// assert!(adamant::Store::open(&path).unwrap_err().is_unsupported());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::NotAStore { .. }
                | Self::Increment { .. }
                | Self::WrongLink { .. }
                | Self::UnknownEngine { .. }
                | Self::UnknownKind { .. }
                | Self::UnknownOption { .. }
                | Self::Lsm { error: LsmError::NotBuilt { .. }, .. }
                | Self::Heap(HeapError::Unsupported { .. })
        )
    }

    /// Whether this build is without what the keyspace needs; one with that feature can read it. Of
    /// the catalogue's options only those that ask for such a thing are invalid: others are damage.
    pub(crate) fn is_not_built(&self) -> bool {
        let lacks = |error: &LsmError| {
            matches!(error, LsmError::NotBuilt { .. } | LsmError::InvalidOption { .. })
        };
        matches!(self, Self::Lsm { error, .. } if lacks(error))
    }

    /// Whether the call is impossible here, whatever its arguments, as in the child of a fork.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let only = store.begin_exclusive()?;
    /// assert!(stock.put("pears", "1").unwrap_err().is_misuse(), "this thread would wait for itself");
    /// only.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::WithinExclusive | Self::Heap(HeapError::Misuse { .. }))
    }
}
