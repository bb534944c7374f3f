//! Values that Python borrows without a copy.
//!
//! Purpose: an object with the buffer protocol over a `Slice`, for `memoryview`.
//! Invariants: the bytes of a slice neither move nor change until its last clone is dropped (S2,
//! S5); a view keeps this object, and this object the slice. Views are read-only.
//! Thread safety: bytes that never change may be read by any thread.

use std::ffi::c_int;

use adamant::Slice;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::fork::Kept;

/// A value of the store. Python sees it only as the `obj` of a `memoryview`.
#[pyclass(frozen, module = "adamant._native")]
pub(crate) struct Lent {
    value: Kept<Slice>,
}

impl Lent {
    /// A read-only view of a value.
    pub(crate) fn view(py: Python<'_>, value: Slice) -> PyResult<Bound<'_, PyMemoryView>> {
        let lent = Bound::new(py, Self { value: Kept::new(value) })?;
        PyMemoryView::from(lent.as_any())
    }
}

#[pymethods]
impl Lent {
    /// Exports the bytes to a buffer.
    ///
    /// # Safety
    /// `view` is null, or a writable `Py_buffer` from the interpreter.
    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let bytes: &[u8] = this.value.get()?;
        let Ok(len) = ffi::Py_ssize_t::try_from(bytes.len()) else {
            return Err(PyBufferError::new_err("the value is longer than a buffer can be"));
        };
        let start = bytes.as_ptr().cast_mut().cast();
        // SAFETY: `view` is as required above; null is an error of this function. `start` and `len`
        // are the slice's bytes, which live and do not change while `slf` lives, of which the view
        // gets a reference. With `readonly` 1 no consumer writes through the pointer.
        let outcome = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) };
        if outcome != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        Ok(())
    }
}
