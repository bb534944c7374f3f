//! Iterators over keys, values or entries.
//!
//! Purpose: takes entries in batches, detached from the interpreter, and makes objects of them one
//! by one: the cost of a batch is not paid for each entry.
//! Invariants: holds no lock of the store between batches, so a keyspace may be written during an
//! iteration. After an error it yields nothing more.
//! Thread safety: threads that share one get entries in turn.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::convert::codec::Codec;
use crate::errors::Failure;
use crate::fork::Kept;
use crate::mapping::place::{Entry, Walk};

/// Entries of the first batch: small, since many iterators are asked for a few entries only.
const BATCH_ENTRIES_MIN: usize = 16;
/// Entries of a batch at most: a transaction seeks again for each.
const BATCH_ENTRIES_MAX: usize = 1024;

/// The items of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Keys,
    Values,
    Items,
}

impl Kind {
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        match name {
            "keys" => Ok(Self::Keys),
            "values" => Ok(Self::Values),
            "items" => Ok(Self::Items),
            _ => Err(PyTypeError::new_err(format!("nothing iterates over {name:?}"))),
        }
    }
}

/// An iterator, as Python sees it.
#[pyclass(frozen, generic, module = "adamant._native")]
pub(crate) struct Cursor {
    kind: Kind,
    reverse: bool,
    codecs: (Codec, Codec),
    state: Kept<Mutex<State>>,
}

struct State {
    walk: Option<Walk>,
    batch: VecDeque<Entry>,
    entries_max: usize,
}

impl State {
    /// Takes the next batch. At the end, and after an error, drops the walk.
    fn fill(&mut self, reverse: bool) -> Result<(), Failure> {
        let Some(mut walk) = self.walk.take() else { return Ok(()) };
        self.batch = walk.batch(reverse, self.entries_max)?.into();
        // By 2: unneeded entries are at most as many as the needed ones.
        self.entries_max = (self.entries_max * 2).min(BATCH_ENTRIES_MAX);
        if !self.batch.is_empty() {
            self.walk = Some(walk);
        }
        Ok(())
    }
}

impl Cursor {
    pub(crate) fn new(kind: Kind, reverse: bool, codecs: (Codec, Codec), walk: Walk) -> Self {
        let (batch, entries_max) = (VecDeque::new(), BATCH_ENTRIES_MIN);
        let state = State { walk: Some(walk), batch, entries_max };
        Self { kind, reverse, codecs, state: Kept::new(Mutex::new(state)) }
    }

    /// Takes the lock, and lets other threads run Python code while it waits.
    fn hold<'a>(&self, py: Python<'_>, state: &'a Mutex<State>) -> MutexGuard<'a, State> {
        state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Cursor {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.hold(py, self.state.get()?);
        if state.batch.is_empty() {
            let state = &mut *state;
            py.detach(|| state.fill(self.reverse))?;
        }
        let entry = state.batch.pop_front();
        drop(state);
        let Some((key, value)) = entry else { return Ok(None) };
        let (keys, values) = &self.codecs;
        Ok(Some(match self.kind {
            Kind::Keys => keys.decode(py, &key)?,
            Kind::Values => values.decode(py, &value)?,
            Kind::Items => {
                let pair = [keys.decode(py, &key)?, values.decode(py, &value)?];
                PyTuple::new(py, pair)?.into_any()
            }
        }))
    }
}
