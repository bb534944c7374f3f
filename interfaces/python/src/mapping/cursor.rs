//! Iterators over keys, values or entries.
//!
//! Purpose: takes entries in batches, detached from the interpreter, and makes objects of them one
//! by one: the cost of a batch is not paid for each entry.
//! Invariants: holds no lock of the store between batches, so a keyspace may be written during an
//! iteration. After an error it yields nothing more.
//! Thread safety: threads that share one get entries in turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::convert::codec::Codec;
use crate::errors::Failure;
use crate::fork::Kept;
use crate::mapping::place::Walk;
use crate::mapping::scan_batch::ScanBatch;

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
    batch: ScanBatch,
    entries_max: usize,
}

impl State {
    /// Takes the next batch. At the end, and after an error, drops the walk.
    fn fill(&mut self, reverse: bool) -> Result<(), Failure> {
        self.batch.clear();
        let Some(mut walk) = self.walk.take() else { return Ok(()) };
        walk.batch(reverse, self.entries_max, &mut self.batch)?;
        // By 2: unneeded entries are at most as many as the needed ones.
        self.entries_max = (self.entries_max * 2).min(BATCH_ENTRIES_MAX);
        if self.batch.len() > 0 {
            self.walk = Some(walk);
        }
        Ok(())
    }
}

impl Cursor {
    pub(crate) fn new(kind: Kind, reverse: bool, codecs: (Codec, Codec), walk: Walk) -> Self {
        let (batch, entries_max) = (ScanBatch::default(), BATCH_ENTRIES_MIN);
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
        let mut held = self.hold(py, self.state.get()?);
        let state = &mut *held;
        if state.batch.is_taken() {
            py.detach(|| state.fill(self.reverse))?;
        }
        let Some((key, value)) = state.batch.pop() else { return Ok(None) };
        let (keys, values) = &self.codecs;
        let with_key = self.kind != Kind::Values;
        let with_value = self.kind != Kind::Keys;
        let key = with_key.then(|| keys.decode_plainly(py, key));
        let value = with_value.then(|| values.decode_plainly(py, value));
        // What is left to do runs code of Python, which may ask for the lock.
        drop(held);
        let key = key.map(|it| it.or_else(|bytes| keys.decode(py, &bytes))).transpose()?;
        let value = value.map(|it| it.or_else(|bytes| values.decode(py, &bytes))).transpose()?;
        Ok(match (key, value) {
            (Some(key), Some(value)) => Some(PyTuple::new(py, [key, value])?.into_any()),
            (only, None) | (None, only) => only,
        })
    }
}
