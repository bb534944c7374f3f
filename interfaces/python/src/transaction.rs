//! Serializable transactions.

use std::sync::{Arc, Mutex};

use adamant::Transaction as StoreTransaction;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::convert::choices;
use crate::convert::pairs::each_pair;
use crate::errors::{self, Failure};
use crate::fork::Kept;
use crate::keyspace::Keyspace;
use crate::mapping::place::{OpenTransaction, Place, hold, with_transaction};
use crate::mapping::reader::{Reader, cannot_pickle};
use crate::run::Begun;
use crate::store::Store;

/// Keys that are collected at once before they are removed.
const REMOVED_ENTRIES: usize = 1024;

/// A transaction until it is committed or rolled back.
#[pyclass(frozen, subclass, module = "adamant._native")]
pub(crate) struct Transaction {
    transaction: Kept<Arc<OpenTransaction>>,
}

impl Transaction {
    /// The transaction, until it has ended.
    pub(crate) fn open(&self) -> PyResult<&Arc<OpenTransaction>> {
        self.transaction.get()
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<StoreTransaction>> {
        let transaction = self.transaction.get()?;
        Ok(py.detach(|| hold(transaction).take()))
    }
}

#[pymethods]
impl Transaction {
    /// A transaction of a store, or the one that was begun for a function.
    #[new]
    #[pyo3(signature = (store, durability=None))]
    fn new(store: &Bound<'_, PyAny>, durability: Option<&str>) -> PyResult<Self> {
        if let Ok(begun) = store.cast::<Begun>() {
            return Ok(Self { transaction: Kept::new(Arc::clone(&begun.get().transaction)) });
        }
        let store = store.cast::<Store>()?;
        let durability = durability.map(choices::durability).transpose()?;
        let opened = store.get().store(store.py())?;
        let mut begun = store.py().detach(move || opened.begin()).map_err(errors::of_store)?;
        if let Some(durability) = durability {
            begun.durability(durability);
        }
        Ok(Self { transaction: Kept::new(Arc::new(Mutex::new(Some(begun)))) })
    }

    /// Sets a cursor of the feed of changes at the commit.
    #[pyo3(signature = (name, number, /))]
    fn set_cursor(&self, py: Python<'_>, name: &str, number: u64) -> PyResult<()> {
        let transaction = self.transaction.get()?;
        Ok(py.detach(|| with_transaction(transaction, |it| it.set_cursor(name, number)))?)
    }

    /// Makes all its writes in one commit, unless something that it read has changed.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let transaction = self.take(py)?.ok_or(Failure::TransactionEnded)?;
        py.detach(|| transaction.commit()).map_err(errors::of_store)
    }

    /// Discards its writes. Rolling it back again does nothing.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.take(py)?;
        py.detach(|| drop(taken));
        Ok(())
    }

    /// Which run of its function this is, from 1; 1 for other transactions.
    #[getter]
    fn attempt(&self, py: Python<'_>) -> PyResult<u32> {
        let transaction = self.transaction.get()?;
        Ok(py.detach(|| with_transaction(transaction, |it| Ok(it.attempt())))?)
    }

    /// Whether it was committed or rolled back.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        let transaction = self.transaction.get()?;
        Ok(py.detach(|| hold(transaction).is_none()))
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}

/// A keyspace within a transaction.
#[pyclass(frozen, subclass, generic, mapping, extends = Reader, module = "adamant._native")]
pub(crate) struct TransactionReader {
    transaction: Kept<Arc<OpenTransaction>>,
}

impl TransactionReader {
    /// Calls a closure with the transaction, detached from the interpreter.
    pub(crate) fn write<T: Send>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&adamant::Keyspace, &mut StoreTransaction) -> adamant::Result<T> + Send,
    ) -> PyResult<T> {
        let transaction = slf.get().transaction.get()?;
        slf.as_super().get().detached(slf.py(), |map, _| {
            with_transaction(transaction, |it| work(map.keyspace(), it))
        })
    }
}

#[pymethods]
impl TransactionReader {
    #[new]
    fn new(
        transaction: &Bound<'_, Transaction>,
        keyspace: &Bound<'_, Keyspace>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let reader = keyspace.as_super().get();
        let open = transaction.get().open()?;
        let place = Place::Within(Arc::clone(open));
        let reader = Reader::new(reader.map_now(transaction.py())?, place, reader.codecs());
        let this = Self { transaction: Kept::new(Arc::clone(open)) };
        Ok(PyClassInitializer::from(reader).add_subclass(this))
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::put(slf, key, value)
    }

    /// Sets the value of a key, without reading it, so it cannot conflict: like
    /// `keyspace[key] = value`.
    #[pyo3(signature = (key, value, /))]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        let (key, value) = (reader.key(key)?, reader.value(value)?);
        Self::write(slf, |keyspace, it| it.put(keyspace, &key, &value))
    }

    /// Merges an operand with the value of a key, by the merge operator of the keyspace, without
    /// reading it: so it cannot conflict.
    #[pyo3(signature = (key, operand, /))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        let (key, operand) = (reader.key(key)?, reader.value(operand)?);
        Self::write(slf, |keyspace, it| it.merge(keyspace, &key, &operand))
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = slf.as_super().get();
        let Ok(slice) = key.cast::<PySlice>() else {
            let is_gone = reader.sought(key)?.is_some() && Self::discard(slf, key)?;
            return if is_gone { Ok(()) } else { Err(reader.missing(key)) };
        };
        let span = reader.span_of(slice)?;
        Self::write(slf, |keyspace, it| {
            loop {
                let some = it.range(keyspace, span.bounds()).keys().take(REMOVED_ENTRIES);
                let keys = some.collect::<adamant::Result<Vec<_>>>()?;
                if keys.is_empty() {
                    return Ok(());
                }
                keys.iter().try_for_each(|key| it.delete(keyspace, key))?;
            }
        })
    }

    /// Removes a key if it exists; returns whether it did, for which it is read.
    #[pyo3(signature = (key, /))]
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = slf.as_super().get().key(key)?;
        Self::write(slf, |keyspace, it| {
            let was_there = it.contains(keyspace, &bytes)?;
            if was_there {
                it.delete(keyspace, &bytes)?;
            }
            Ok(was_there)
        })
    }

    /// Deletes a key, whether it exists or not, without reading it, so it cannot conflict.
    #[pyo3(signature = (key, /))]
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = slf.as_super().get().key(key)?;
        Self::write(slf, |keyspace, it| it.delete(keyspace, &bytes))
    }

    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let take = |key: &[u8]| Self::write(slf, |keyspace, it| it.take(keyspace, key));
        slf.as_super().get().pop(key, default, take)
    }

    /// Removes and returns the entry with the highest key, or the lowest.
    #[pyo3(signature = (last=true))]
    fn popitem<'py>(slf: &Bound<'py, Self>, last: bool) -> PyResult<Bound<'py, PyTuple>> {
        let entry =
            Self::write(
                slf,
                |keyspace, it| {
                    if last { it.pop_last(keyspace) } else { it.pop_first(keyspace) }
                },
            )?;
        slf.as_super().get().pair(slf.py(), entry)?.ok_or_else(errors::nothing_to_pop)
    }

    #[pyo3(signature = (*sources))]
    fn _update(slf: &Bound<'_, Self>, sources: &Bound<'_, PyTuple>) -> PyResult<()> {
        for source in sources {
            each_pair(&source, |key, value| Self::__setitem__(slf, key, value))?;
        }
        Ok(())
    }
}
