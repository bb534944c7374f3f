//! Conversions of the errors of lower layers into those of a store.

use adamant_heap::error::Error as HeapError;
use adamant_lsm::Error as LsmError;
use adamant_medium::error::Error as MediumError;
use adamant_trees::error::Error as TreeError;

use super::Error;

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Self {
        match error {
            MediumError::Locked { path, holder } => Self::Locked { path, holder },
            MediumError::WrongKey { path } => Self::WrongKey { path },
            MediumError::NotAuthentic { .. } => Self::Heap(error.into()),
            other => Self::Medium(other),
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        match error {
            HeapError::Medium(error) => Self::from(error),
            other => Self::Heap(other),
        }
    }
}

impl From<TreeError> for Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Heap(error) => Self::from(error),
            other => Self::Tree(other),
        }
    }
}

impl Error {
    /// Maps errors of an LSM tree to the store's, with the name of the keyspace.
    pub(crate) fn of_lsm(keyspace: &str) -> impl Fn(LsmError) -> Self {
        move |error| match error {
            LsmError::Heap(error) => Self::from(error),
            LsmError::Medium(error) => Self::from(error),
            other => Self::Lsm { keyspace: keyspace.into(), error: other },
        }
    }
}
