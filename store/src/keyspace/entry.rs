//! Iterator items: pairs, keys, and entries with lazy values.
//!
//! Purpose: what each of the three takes of an entry during a scan, and what it makes of that
//! later.
//! Invariants: an entry has the value that its key had when the scan reached it, whatever is
//! written later: while the entry is kept, a value in a blob file stays there and a borrowed one in
//! its block.
//! Thread safety: entries may be sent to and shared with other threads.

use std::fmt;
use std::sync::Arc;

use adamant_lsm::LaterValue;
use adamant_slice::Slice;

use crate::engine::scan::{Keep, ScanItem};
use crate::engine::scan_batch::{EntryLocation, Filler, ScanBatch, Value};
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;

/// A key with a lazy value: the item of [`Entries`](crate::Entries).
///
/// Its value is the one that the key had when the iterator reached it, however late it is read. A
/// value in a blob file of the engine `lsm` is read on demand, each time; the file stays meanwhile.
/// A value of 2 KiB or more in another engine is borrowed, as by [`Keyspace::get`]; a shorter one
/// was copied. An entry keeps the store open, as every handle does, and may keep files on the disk
/// that nothing else needs.
#[derive(Clone)]
pub struct Entry {
    key: Slice,
    value: EntryValue,
}

#[derive(Clone)]
enum EntryValue {
    Here(Slice),
    /// One of the blob values of a scan batch. The keyspace keeps the store open; it is dropped
    /// last.
    Later(Arc<Vec<LaterValue>>, u32, Keyspace),
}

impl Entry {
    /// The key.
    pub fn key(&self) -> &Slice {
        &self.key
    }

    /// Returns the key and drops the rest.
    pub fn into_key(self) -> Slice {
        self.key
    }

    /// The value. O(1), except for one in a blob file, which is read from the device or the cache.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let scans = store.keyspace("scans")?;
    /// scans.put("page 1", vec![7; 100_000])?;
    /// let page = scans.iter().entries().next().transpose()?.expect("there is one");
    /// scans.clear()?;
    /// assert_eq!(page.value()?.len(), 100_000);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a value in a blob file: damage, a failing device, [`Error::Closed`] for a closed store.
    pub fn value(&self) -> Result<Slice> {
        match &self.value {
            EntryValue::Here(value) => Ok(value.clone()),
            EntryValue::Later(values, index, keyspace) => {
                read_later(keyspace, &self.key, values.get(*index as usize))
            }
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entry = f.debug_struct("Entry");
        entry.field("key", &self.key);
        match &self.value {
            EntryValue::Here(value) => entry.field("value", value).finish(),
            EntryValue::Later(..) => entry.finish_non_exhaustive(),
        }
    }
}

fn read_later(keyspace: &Keyspace, key: &[u8], value: Option<&LaterValue>) -> Result<Slice> {
    // Files of a closed store may belong to another by now; the child of a fork has no store.
    drop(keyspace.shared.view()?);
    match value {
        Some(value) => value.read(key).map_err(Error::of_lsm(keyspace.name())),
        None => Ok(Slice::EMPTY),
    }
}

/// The item type of an iterator; implemented only here.
pub(crate) trait Shape: Clone + Sized {
    /// Whether a scan has to supply values.
    const WITH_VALUES: bool;

    /// Adds what it needs of an entry.
    fn add(filler: &mut Filler, key: &[u8], met: ScanItem<'_, '_>) -> Result<()>;

    /// Makes the item from an entry that was added, of whatever shape.
    fn of(scan_batch: &ScanBatch, place: EntryLocation, keyspace: &Keyspace) -> Result<Self>;

    /// Makes the item from a pair.
    fn of_pair(key: Slice, value: Slice) -> Self;

    /// The key.
    fn key(&self) -> &Slice;
}

impl Shape for (Slice, Slice) {
    const WITH_VALUES: bool = true;

    #[inline]
    fn add(filler: &mut Filler, key: &[u8], met: ScanItem<'_, '_>) -> Result<()> {
        met.with(key, |value| filler.add(key, value))
    }

    #[inline]
    fn of(scan_batch: &ScanBatch, place: EntryLocation, keyspace: &Keyspace) -> Result<Self> {
        let key = scan_batch.key(place);
        let value = match scan_batch.value(place) {
            Value::Here(value) => value,
            Value::Later(values, index) => read_later(keyspace, &key, values.get(index as usize))?,
        };
        Ok((key, value))
    }

    fn of_pair(key: Slice, value: Slice) -> Self {
        (key, value)
    }

    fn key(&self) -> &Slice {
        &self.0
    }
}

impl Shape for Slice {
    const WITH_VALUES: bool = false;

    #[inline]
    fn add(filler: &mut Filler, key: &[u8], _: ScanItem<'_, '_>) -> Result<()> {
        filler.add(key, &[]);
        Ok(())
    }

    #[inline]
    fn of(scan_batch: &ScanBatch, place: EntryLocation, _: &Keyspace) -> Result<Self> {
        Ok(scan_batch.key(place))
    }

    fn of_pair(key: Slice, _: Slice) -> Self {
        key
    }

    fn key(&self) -> &Slice {
        self
    }
}

impl Shape for Entry {
    const WITH_VALUES: bool = true;

    fn add(filler: &mut Filler, key: &[u8], met: ScanItem<'_, '_>) -> Result<()> {
        match met.keep(key)? {
            Keep::Copy(value) => filler.add(key, value),
            Keep::Share(value) => filler.add_shared(key, value),
            Keep::Later(value) => filler.add_later(key, value),
        }
        Ok(())
    }

    fn of(scan_batch: &ScanBatch, place: EntryLocation, keyspace: &Keyspace) -> Result<Self> {
        let value = match scan_batch.value(place) {
            Value::Here(value) => EntryValue::Here(value),
            Value::Later(values, index) => EntryValue::Later(values, index, keyspace.clone()),
        };
        Ok(Self { key: scan_batch.key(place), value })
    }

    fn of_pair(key: Slice, value: Slice) -> Self {
        Self { key, value: EntryValue::Here(value) }
    }

    fn key(&self) -> &Slice {
        &self.key
    }
}
