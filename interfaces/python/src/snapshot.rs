//! Snapshots: all keyspaces as they were at one moment.

use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;

use crate::errors;
use crate::expiring::Expiring;
use crate::fork::Kept;
use crate::keyspace::Keyspace;
use crate::mapping::place::{OpenSnapshot, Place};
use crate::mapping::reader::{Reader, cannot_pickle};
use crate::store::Store;

/// A snapshot until it is closed.
#[pyclass(frozen, subclass, module = "adamant._native")]
pub(crate) struct Snapshot {
    snapshot: Kept<Arc<OpenSnapshot>>,
}

impl Snapshot {
    /// The snapshot, until it is closed.
    pub(crate) fn open(&self) -> PyResult<&Arc<OpenSnapshot>> {
        self.snapshot.get()
    }
}

#[pymethods]
impl Snapshot {
    #[new]
    #[pyo3(signature = (store, durable=false))]
    fn new(store: &Bound<'_, Store>, durable: bool) -> PyResult<Self> {
        let opened = store.get().store(store.py())?;
        let take = move || if durable { opened.snapshot_durable() } else { opened.snapshot() };
        let snapshot = store.py().detach(take).map_err(errors::of_store)?;
        Ok(Self { snapshot: Kept::new(Arc::new(RwLock::new(Some(snapshot)))) })
    }

    /// Closes it. Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let snapshot = self.snapshot.get()?;
        py.detach(|| {
            let taken = snapshot.write().unwrap_or_else(PoisonError::into_inner).take();
            drop(taken);
        });
        Ok(())
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        let snapshot = self.snapshot.get()?;
        let is_open = || snapshot.read().unwrap_or_else(PoisonError::into_inner).is_some();
        Ok(!py.detach(is_open))
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}

/// A keyspace as a snapshot saw it.
#[pyclass(frozen, subclass, generic, mapping, extends = Reader, module = "adamant._native")]
pub(crate) struct SnapshotReader;

#[pymethods]
impl SnapshotReader {
    #[new]
    fn new(
        snapshot: &Bound<'_, Snapshot>,
        keyspace: &Bound<'_, Keyspace>,
    ) -> PyResult<PyClassInitializer<Self>> {
        Self::of(snapshot, keyspace.as_super().get())
    }
}

impl SnapshotReader {
    fn of(snapshot: &Bound<'_, Snapshot>, reader: &Reader) -> PyResult<PyClassInitializer<Self>> {
        let place = Place::At(Arc::clone(snapshot.get().open()?));
        let reader = Reader::new(reader.map_now(snapshot.py())?, place, reader.codecs());
        Ok(PyClassInitializer::from(reader).add_subclass(Self))
    }
}

/// An expiring keyspace as a snapshot saw it, without the entries that have expired at the time of
/// a call.
#[pyclass(frozen, subclass, generic, mapping, extends = SnapshotReader, module = "adamant._native")]
pub(crate) struct SnapshotExpiring;

#[pymethods]
impl SnapshotExpiring {
    #[new]
    fn new(
        snapshot: &Bound<'_, Snapshot>,
        expiring: &Bound<'_, Expiring>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let seen = SnapshotReader::of(snapshot, expiring.as_super().get())?;
        Ok(seen.add_subclass(Self))
    }

    /// Seconds until the value of a key expires, None if it never does.
    #[pyo3(signature = (key, /))]
    fn ttl(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        slf.as_super().as_super().get().ttl(key)
    }

    /// The time at which the value of a key expires, in seconds since 1970, None if it never does.
    #[pyo3(signature = (key, /))]
    fn deadline(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        slf.as_super().as_super().get().deadline(key)
    }
}
