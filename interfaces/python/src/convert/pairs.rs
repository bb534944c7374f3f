//! The argument of `dict.update`, as pairs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Passes on the pairs of a mapping, or of an iterable of pairs.
///
/// # Errors
/// As `dict.update`, and the errors of `each`, which end the iteration.
pub(crate) fn each_pair<'py>(
    source: &Bound<'py, PyAny>,
    mut each: impl FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if source.hasattr("items")? {
        return each_of(&source.call_method0("items")?, each);
    }
    if !source.hasattr("keys")? {
        return each_of(source, each);
    }
    for key in source.call_method0("keys")?.try_iter()? {
        let key = key?;
        each(&key, &source.get_item(&key)?)?;
    }
    Ok(())
}

fn each_of<'py>(
    pairs: &Bound<'py, PyAny>,
    mut each: impl FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    for pair in pairs.try_iter()? {
        let pair = pair?;
        if let Ok(tuple) = pair.cast::<PyTuple>()
            && tuple.len() == 2
        {
            each(&tuple.get_item(0)?, &tuple.get_item(1)?)?;
            continue;
        }
        let parts = pair.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let [key, value] = &parts[..] else {
            let parts = parts.len();
            return Err(PyValueError::new_err(format!("expected pairs, found {parts} elements")));
        };
        each(key, value)?;
    }
    Ok(())
}
