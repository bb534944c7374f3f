//! Batches: changes of any keyspaces that become one commit.
//!
//! Invariants: the lock is held only while an operation is added, never while Python code runs or
//! the store is waited for.

use std::sync::Mutex;

use adamant::Keyspace as StoreKeyspace;
use pyo3::prelude::*;

use crate::convert::choices;
use crate::convert::pairs::each_pair;
use crate::errors::{self, Failure};
use crate::fork::Kept;
use crate::keyspace::Keyspace;
use crate::mapping::place::hold;
use crate::mapping::reader::{Reader, cannot_pickle};
use crate::store::Store;

/// A batch until it is committed or discarded.
#[pyclass(frozen, subclass, module = "adamant._native")]
pub(crate) struct Batch {
    batch: Kept<Mutex<Option<adamant::Batch>>>,
}

impl Batch {
    /// Adds changes to it.
    pub(crate) fn with(
        &self,
        work: impl FnOnce(&mut adamant::Batch) -> adamant::Result<()>,
    ) -> PyResult<()> {
        let mut held = hold(self.batch.get()?);
        let outcome = held.as_mut().ok_or(Failure::BatchEnded).and_then(|it| Ok(work(it)?));
        drop(held);
        Ok(outcome?)
    }
}

fn parts<'a>(keyspace: &'a Bound<'_, Keyspace>) -> PyResult<(&'a Reader, &'a StoreKeyspace)> {
    let reader = keyspace.as_super().get();
    Ok((reader, reader.keyspace()?))
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (store, durability=None))]
    fn new(store: &Bound<'_, Store>, durability: Option<&str>) -> PyResult<Self> {
        let mut batch = store.get().store(store.py())?.batch();
        if let Some(name) = durability {
            batch.durability(choices::durability(name)?);
        }
        Ok(Self { batch: Kept::new(Mutex::new(Some(batch))) })
    }

    /// Sets the value of a key at the commit.
    #[pyo3(signature = (keyspace, key, value, /))]
    fn put(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (reader, keyspace) = parts(keyspace)?;
        let (key, value) = (reader.key(key)?, reader.value(value)?);
        self.with(|batch| batch.put(keyspace, &key, &value))
    }

    /// Merges an operand with the value of a key at the commit, by the merge operator of the
    /// keyspace.
    #[pyo3(signature = (keyspace, key, operand, /))]
    fn merge(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (reader, keyspace) = parts(keyspace)?;
        let (key, operand) = (reader.key(key)?, reader.value(operand)?);
        self.with(|batch| batch.merge(keyspace, &key, &operand))
    }

    /// Deletes a key at the commit, if it exists then.
    #[pyo3(signature = (keyspace, key, /))]
    fn delete(&self, keyspace: &Bound<'_, Keyspace>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (reader, keyspace) = parts(keyspace)?;
        let key = reader.key(key)?;
        self.with(|batch| batch.delete(keyspace, &key))
    }

    /// Sets the values of keys at the commit: of a mapping, or of an iterable of pairs.
    #[pyo3(signature = (keyspace, pairs, /))]
    fn update(&self, keyspace: &Bound<'_, Keyspace>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let (reader, keyspace) = parts(keyspace)?;
        each_pair(pairs, |key, value| {
            let (key, value) = (reader.key(key)?, reader.value(value)?);
            self.with(|batch| batch.put(keyspace, &key, &value))
        })
    }

    /// Moves the value of a key to another key at the commit, without copying it, if it exists
    /// then.
    #[pyo3(signature = (keyspace, key, new_key, /))]
    fn rename(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: &Bound<'_, PyAny>,
        new_key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (reader, keyspace) = parts(keyspace)?;
        let (key, new_key) = (reader.key(key)?, reader.key(new_key)?);
        self.with(|batch| batch.rename(keyspace, &key, &new_key))
    }

    /// Moves the value of a key to a key of another keyspace at the commit, without copying it, if
    /// it exists then.
    #[pyo3(signature = (keyspace, key, target, new_key, /))]
    fn move_to(
        &self,
        keyspace: &Bound<'_, Keyspace>,
        key: &Bound<'_, PyAny>,
        target: &Bound<'_, Keyspace>,
        new_key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let ((reader, keyspace), (other, target)) = (parts(keyspace)?, parts(target)?);
        let (key, new_key) = (reader.key(key)?, other.key(new_key)?);
        self.with(|batch| batch.move_to(keyspace, &key, target, &new_key))
    }

    /// Sets a cursor of the feed of changes at the commit.
    #[pyo3(signature = (name, number, /))]
    fn set_cursor(&self, name: &str, number: u64) -> PyResult<()> {
        self.with(|batch| batch.set_cursor(name, number))
    }

    /// Makes all changes in one commit.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let taken = hold(self.batch.get()?).take();
        let batch = taken.ok_or(Failure::BatchEnded)?;
        py.detach(|| batch.commit()).map_err(errors::of_store)
    }

    /// Discards all changes.
    fn discard(&self) -> PyResult<()> {
        drop(hold(self.batch.get()?).take());
        Ok(())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(hold(self.batch.get()?).as_ref().map_or(0, adamant::Batch::len))
    }

    /// Whether it was committed or discarded.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(hold(self.batch.get()?).is_none())
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}
