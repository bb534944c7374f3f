//! Functions that run in a transaction: with retries, or exclusively.
//!
//! Purpose: the retry limits and the exclusive last attempt are the store's own, for Python as for
//! Rust.
//! Invariants: while the function runs, a Python object owns the transaction, and an empty one
//! takes its place; so a function that kept the object finds it ended.
//! Thread safety: waits for the store detached from the interpreter.

use std::sync::{Arc, Mutex};

use adamant::{Attempts, Durability};
use pyo3::prelude::*;

use crate::convert::choices;
use crate::convert::moment::timeout_of;
use crate::errors;
use crate::mapping::place::{OpenTransaction, hold};
use crate::store::Store;

/// A transaction that was begun for a function.
#[pyclass(frozen, module = "adamant._native")]
pub(crate) struct Begun {
    pub(crate) transaction: Arc<OpenTransaction>,
}

/// The reason why a function's transaction was not committed.
enum Stopped {
    Store(adamant::Error),
    Python(PyErr),
}

impl From<adamant::Error> for Stopped {
    fn from(error: adamant::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Stopped> for PyErr {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Store(error) => errors::of_store(error),
            Stopped::Python(error) => error,
        }
    }
}

/// A function to run in a transaction.
struct Work {
    function: Py<PyAny>,
    durability: Option<Durability>,
}

impl Work {
    fn new(function: Bound<'_, PyAny>, durability: Option<&str>) -> PyResult<Self> {
        let durability = durability.map(choices::durability).transpose()?;
        Ok(Self { function: function.unbind(), durability })
    }

    /// Runs the function in a transaction, which then has the writes to commit.
    fn run(
        &self,
        store: &adamant::Store,
        transaction: &mut adamant::Transaction,
    ) -> Result<Py<PyAny>, Stopped> {
        let mut begun = std::mem::replace(transaction, store.begin()?);
        if let Some(durability) = self.durability {
            begun.durability(durability);
        }
        let begun = Arc::new(Mutex::new(Some(begun)));
        let made = Python::attach(|py| {
            let begun = Begun { transaction: Arc::clone(&begun) };
            self.function.bind(py).call1((begun,)).map(Bound::unbind)
        });
        let begun = hold(&begun).take();
        let made = made.map_err(Stopped::Python)?;
        // Unless the function has ended it.
        if let Some(begun) = begun {
            *transaction = begun;
        }
        Ok(made)
    }
}

/// Runs a function in a transaction, again after a conflict, and returns its result once that is
/// committed.
#[pyfunction]
#[pyo3(signature = (store, function, attempts, exclusive_after, timeout, durability, /))]
pub(crate) fn run(
    store: &Bound<'_, Store>,
    function: Bound<'_, PyAny>,
    attempts: Option<u32>,
    exclusive_after: Option<u32>,
    timeout: Option<Bound<'_, PyAny>>,
    durability: Option<&str>,
) -> PyResult<Py<PyAny>> {
    let (py, work) = (store.py(), Work::new(function, durability)?);
    let limits = Attempts::new().exclusive_after(exclusive_after).time_max(timeout_of(timeout)?);
    let limits = attempts.map_or(limits, |attempts| limits.attempts_max(attempts));
    let store = store.get().store(py)?;
    Ok(py.detach(move || store.transaction_with(limits, |it| work.run(&store, it)))?)
}

/// Runs a function in an exclusive transaction, and returns its result once that is committed.
#[pyfunction]
#[pyo3(signature = (store, function, timeout, durability, /))]
pub(crate) fn run_exclusive(
    store: &Bound<'_, Store>,
    function: Bound<'_, PyAny>,
    timeout: Option<Bound<'_, PyAny>>,
    durability: Option<&str>,
) -> PyResult<Py<PyAny>> {
    let (py, work) = (store.py(), Work::new(function, durability)?);
    let (store, longest) = (store.get().store(py)?, timeout_of(timeout)?);
    let made = py.detach(move || {
        let begun = match longest {
            None => store.begin_exclusive().map(Some),
            Some(longest) => store.begin_exclusive_within(longest),
        };
        let Some(mut exclusive) = begun? else { return Ok(None) };
        let made = work.run(&store, &mut exclusive)?;
        exclusive.commit()?;
        Ok::<_, Stopped>(Some(made))
    });
    made?.ok_or_else(|| {
        errors::named("TimedOut", "others wrote for longer than was to be waited; try again later")
    })
}
