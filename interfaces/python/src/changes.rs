//! The feed of changes: commits in order, live and from the past.
//!
//! Purpose: a commit becomes a number and a list of tuples, of which the Python half makes objects.
//! Thread safety: threads that share a feed get its commits in turn.

use std::ops::Bound as Limit;
use std::sync::Mutex;

use adamant::{Change, Slice};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::convert::moment::{seconds, timeout_of};
use crate::errors::{self, Failure};
use crate::fork::Kept;
use crate::mapping::place::hold;
use crate::mapping::reader::cannot_pickle;
use crate::store::Store;
use crate::waiting::wait;

/// Commits in order, until it is closed.
#[pyclass(frozen, subclass, module = "adamant._native")]
pub(crate) struct Changes {
    changes: Kept<Mutex<Option<adamant::Changes>>>,
}

#[pymethods]
impl Changes {
    /// The timeout is for the Python half.
    #[new]
    #[pyo3(signature = (store, after=0, timeout=None))]
    fn new(
        store: &Bound<'_, Store>,
        after: u64,
        timeout: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        timeout_of(timeout)?;
        let (py, opened) = (store.py(), store.get().store(store.py())?);
        let changes = py.detach(move || opened.changes(after)).map_err(errors::of_store)?;
        Ok(Self { changes: Kept::new(Mutex::new(Some(changes))) })
    }

    /// The next commit: its number and its changes; None if none comes in time.
    fn _next<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<(u64, Vec<Bound<'py, PyTuple>>)>> {
        let changes = self.changes.get()?;
        let commit = wait(py, timeout, |longest| {
            let mut held = hold(changes);
            Ok(held.as_mut().ok_or(Failure::ChangesClosed)?.next_within(longest)?)
        })?;
        let Some(commit) = commit else { return Ok(None) };
        let told = commit.changes.iter().map(|change| tell(py, change));
        Ok(Some((commit.number, told.collect::<PyResult<_>>()?)))
    }

    /// The number of the last commit that was given, or behind which it began.
    #[getter]
    fn after(&self, py: Python<'_>) -> PyResult<u64> {
        let changes = self.changes.get()?;
        let after = py.detach(|| hold(changes).as_ref().map(adamant::Changes::after));
        Ok(after.ok_or(Failure::ChangesClosed)?)
    }

    /// Ends it. Ending it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let changes = self.changes.get()?;
        py.detach(|| drop(hold(changes).take()));
        Ok(())
    }

    /// Whether it was ended.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        let changes = self.changes.get()?;
        Ok(py.detach(|| hold(changes).is_none()))
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}

/// The fields of `adamant.Change` that not each change has.
#[derive(Default)]
struct Fields<'c> {
    key: Option<&'c [u8]>,
    value: Option<Slice>,
    deadline: Option<f64>,
    target: Option<(&'c str, u64)>,
    target_key: Option<&'c [u8]>,
    start: Option<Vec<u8>>,
    stop: Option<Vec<u8>>,
    new_name: Option<&'c str>,
}

impl<'c> Fields<'c> {
    fn of(change: &'c Change) -> adamant::Result<Self> {
        let mut fields = Self::default();
        match change {
            Change::Put { keyspace, key, value } => {
                let (value, deadline) = keyspace.split(value)?;
                fields.key = Some(key);
                fields.value = Some(value);
                fields.deadline = deadline.map(|deadline| seconds(deadline.millis()));
            }
            Change::Removed { key, .. } => fields.key = Some(key),
            Change::Moved { key, target, target_key, .. }
            | Change::Swapped { key, target, target_key, .. } => {
                fields.key = Some(key);
                fields.target = Some((&target.name, target.id));
                fields.target_key = Some(target_key);
            }
            Change::RangeRemoved { bounds: (from, to), .. } => {
                fields.start = match from {
                    Limit::Included(key) => Some(key.to_vec()),
                    Limit::Excluded(key) => Some(behind(key)),
                    Limit::Unbounded => None,
                };
                fields.stop = match to {
                    Limit::Included(key) => Some(behind(key)),
                    Limit::Excluded(key) => Some(key.to_vec()),
                    Limit::Unbounded => None,
                };
            }
            Change::Loaded { first, last, .. } => {
                fields.start = Some(first.to_vec());
                fields.stop = Some(behind(last));
            }
            Change::Renamed { new_name, .. } => fields.new_name = Some(new_name),
            Change::Exchanged { target, .. } => fields.target = Some((&target.name, target.id)),
            _ => {}
        }
        Ok(fields)
    }
}

/// The lowest key above a key.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A change as the fields of `adamant.Change`.
fn tell<'py>(py: Python<'py>, change: &Change) -> PyResult<Bound<'py, PyTuple>> {
    let fields = Fields::of(change).map_err(errors::of_store)?;
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    let keyspace = change.keyspace();
    let told = (
        change.name(),
        &*keyspace.name,
        keyspace.id,
        fields.key.map(bytes),
        fields.value.as_deref().map(bytes),
        fields.deadline,
        fields.target.map(|(name, _)| name),
        fields.target.map(|(_, id)| id),
        fields.target_key.map(bytes),
        fields.start.as_deref().map(bytes),
        fields.stop.as_deref().map(bytes),
        fields.new_name,
    );
    told.into_pyobject(py)
}
