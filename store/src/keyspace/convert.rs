//! Conversion of a keyspace: to another engine, and to other values.
//!
//! Purpose: a keyspace gets another tree with the same entries, in one commit.
//! Invariants: the entries are the same before and after it, so versions and conflicts have nothing
//! to note. A crash leaves the one tree or the other.
//! Thread safety: as `list.rs`. Values are compressed under the lock, since all of the keyspace is
//! converted at one moment.

use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;

use crate::common::catalogue::dictionary;
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::shared::{List, Shared};
use crate::common::state::KeyspaceState;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::limits::check_name;
use crate::merge_operators::OperatorName;
use crate::own_options::OwnOptions;
use crate::value_compression::ValueCompression;

/// The compression that a keyspace is to have, and its dictionary.
pub(crate) type ChosenValues<'c> = (ValueCompression, Option<&'c [u8]>);

impl Shared {
    /// Converts a keyspace to another engine; false if it uses that engine already.
    pub(crate) fn convert_keyspace(&self, name: &str, engine: Engine) -> Result<bool> {
        self.convert(name, |transaction, entry| {
            let own = entry.options(name)?;
            let found = self.catalogue().map(transaction, name, entry)?.engine();
            Ok((found != engine).then_some((engine, own)))
        })
    }

    /// Has a keyspace store its values in another way; false if it stores them so already.
    pub(crate) fn convert_values(
        &self,
        name: &str,
        (values, bytes): ChosenValues<'_>,
    ) -> Result<bool> {
        self.convert(name, |transaction, entry| {
            let engine = self.catalogue().map(transaction, name, entry)?.engine();
            let before = entry.options(name)?;
            let mut own = before;
            own.values = Some(values).filter(|values| !values.is_none());
            own.check(name)?;
            let known =
                before.dictionary.map(|place| dictionary(transaction, place)).transpose()?;
            if known != bytes {
                let place = |bytes: &[u8]| self.catalogue().place_dictionary(transaction, bytes);
                own.dictionary = bytes.map(place).transpose()?;
            }
            Ok((own != before).then_some((engine, own)))
        })
    }

    /// Converts a keyspace to what `choose` says, unless that is `None`.
    fn convert(
        &self,
        name: &str,
        choose: impl FnOnce(
            &mut Transaction<'_>,
            &CatalogueEntry,
        ) -> Result<Option<(Engine, OwnOptions)>>,
    ) -> Result<bool> {
        check_name(name)?;
        let convert = |transaction: &mut Transaction<'_>, list: &mut List| {
            let (entry, _) = self.known(transaction, name)?;
            match choose(transaction, &entry)? {
                Some(to) => self.convert_one(transaction, list, (name, &entry), to).map(Some),
                None => Ok(None),
            }
        };
        let converted = self.change_list(None, Durability::Sync, &[], convert)?;
        let is_new = converted.is_some();
        self.destroy_retired(converted.flatten().into_iter().collect());
        Ok(is_new)
    }

    /// Returns the head of the old tree if it is left and no snapshot sees it.
    fn convert_one(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        (name, entry): (&str, &CatalogueEntry),
        (engine, own): (Engine, OwnOptions),
    ) -> Result<Option<u64>> {
        list.doubt(entry);
        let kept = self.catalogue().convert(transaction, name, entry, (engine, &own))?;
        let unseen = kept.as_ref().map(Map::head);
        match kept {
            Some(kept) if self.versions().any() => {
                self.versions().drop_keyspace(entry.id.get(), kept);
                Ok(None)
            }
            _ => Ok(unseen),
        }
    }

    /// Records options of a keyspace beside others that are recorded. Does nothing if it has them.
    /// Returns the head of a tree to be destroyed.
    ///
    /// # Errors
    /// [`Error::PlainValues`] if values are to be compressed and there are some that are not.
    pub(crate) fn record_options(
        &self,
        transaction: &mut Transaction<'_>,
        list: &List,
        (state, asked): (&KeyspaceState, &OwnOptions),
    ) -> Result<Option<u64>> {
        let (name, entry) = state.find(transaction, self.catalogue())?;
        let recorded = entry.options(&name)?;
        let own = asked.or(&recorded);
        if own == recorded {
            return Ok(None);
        }
        own.check(&name)?;
        if let Some(found) = recorded.merge.filter(|_| own.merge != recorded.merge) {
            return Err(wrong_operator(&name, &own.merge.unwrap_or(found), &found));
        }
        let (place, durability) = (Arc::clone(state.place()), own.durability.flatten());
        transaction.on_commit(move |_| place.set_durability(durability));
        if recorded.values.is_none() && own.values.is_some() {
            let map = self.catalogue().map(transaction, &name, &entry)?;
            if !map.is_empty(transaction)? {
                return Err(Error::PlainValues { name });
            }
            return self.convert_one(transaction, list, (&name, &entry), (map.engine(), own));
        }
        if own.merge != recorded.merge {
            list.doubt(&entry);
        }
        if own.values != recorded.values {
            // Stored values say how they are stored: only new ones are stored in another way.
            list.doubt(&entry);
        }
        self.catalogue().give_options(transaction, (&name, &entry), &own)?;
        Ok(None)
    }
}

/// A keyspace was to have another merge operator than it has.
pub(crate) fn wrong_operator(name: &str, expected: &OperatorName, found: &OperatorName) -> Error {
    let (expected, found) = (expected.as_str().into(), found.as_str().into());
    Error::WrongMergeOperator { name: name.into(), expected, found }
}
