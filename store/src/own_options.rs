//! The options of one keyspace that its entry in the catalogue records.
//!
//! Thread safety: values.

use adamant_heap::durability::Durability;
use adamant_lsm::TreeOptions;

use crate::error::{Error, Result};
use crate::merge_operators::OperatorName;
use crate::value_compression::ValueCompression;

/// The place of a dictionary in the heap: a block of its own, which belongs to the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DictionaryPlace {
    /// Heap offset of the block.
    pub(crate) block: u64,
    /// Bytes of the dictionary; the block may be longer.
    pub(crate) bytes: u32,
}

/// The options of one keyspace. Those of the engine that it does not have at the moment stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnOptions {
    /// Those of the engine `lsm`.
    pub(crate) lsm: TreeOptions,
    /// The compression of values in a tree; `None`: they are stored as they are, with nothing
    /// beside them.
    pub(crate) values: Option<ValueCompression>,
    /// The dictionary of that compression.
    pub(crate) dictionary: Option<DictionaryPlace>,
    /// The durability of commits that do not set their own; `Some(None)`: that of the store, which
    /// was asked for.
    pub(crate) durability: Option<Option<Durability>>,
    /// The name of the merge operator.
    pub(crate) merge: Option<OperatorName>,
}

impl OwnOptions {
    /// These, and the others where these have none.
    pub(crate) fn or(&self, others: &Self) -> Self {
        Self {
            lsm: self.lsm.or(&others.lsm),
            values: self.values.or(others.values),
            dictionary: self.dictionary.or(others.dictionary),
            durability: self.durability.or(others.durability),
            merge: self.merge.or(others.merge),
        }
    }

    /// Fails if an option of the keyspace with that name has an impossible value, or one that this
    /// build is without.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let checked = self.lsm.check().and_then(|()| self.values.map_or(Ok(()), |it| it.check()));
        checked.map_err(Error::of_lsm(name))?;
        self.merge.map_or(Ok(()), |merge| merge.check(name))
    }
}

impl From<TreeOptions> for OwnOptions {
    fn from(lsm: TreeOptions) -> Self {
        Self { lsm, ..Self::default() }
    }
}
