//! Arrays of Python that rows are written into.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::arrays::border;
use crate::arrays::source::{buffer_of, invalid, shape_of};
use crate::errors::{Failure, Result};

/// An array of rows of a width.
pub(crate) struct Target {
    buffer: PyUntypedBuffer,
    what: &'static str,
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

impl Target {
    /// # Errors
    /// `TypeError` for what is no array, `BufferError` for one that cannot be written, or lies in
    /// pieces, `InvalidArgument` for another shape.
    pub(crate) fn new(object: &Bound<'_, PyAny>, what: &'static str) -> PyResult<Self> {
        let buffer = buffer_of(object, what)?;
        if buffer.readonly() || !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err(format!(
                "expected an array for {what} that may be written and lies in one piece, found \
                 another; make it by numpy.empty"
            )));
        }
        let (rows, width) = shape_of(&buffer, what)?;
        Ok(Self { buffer, what, rows, width })
    }

    /// An array of a byte for each row: booleans.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn flags(object: &Bound<'_, PyAny>, rows: usize) -> PyResult<Self> {
        let what = "found";
        let buffer = buffer_of(object, what)?;
        if buffer.item_size() != 1 || buffer.shape() != [rows] || buffer.readonly() {
            return Err(invalid(format!(
                "expected an array of {rows} booleans for {what}, found {} bytes each in the shape \
                 {:?}; make it by numpy.empty({rows}, bool)",
                buffer.item_size(),
                buffer.shape()
            )));
        }
        Ok(Self { buffer, what, rows, width: 1 })
    }

    /// Whether bytes have the length of its rows.
    pub(crate) fn check(&self, bytes: &[u8], row: usize) -> Result<()> {
        if bytes.len() == self.width {
            return Ok(());
        }
        Err(Failure::Invalid(format!(
            "expected {} bytes in each row of {}, found {} for row {row}; use an array of Arrow, \
             which has rows of any length",
            self.width,
            self.what,
            bytes.len()
        )))
    }

    /// Writes rows from one on.
    pub(crate) fn write(&self, py: Python<'_>, row: usize, bytes: &[u8]) -> PyResult<()> {
        if border::write(py, &self.buffer, row * self.width, bytes) {
            return Ok(());
        }
        let what = self.what;
        Err(PyBufferError::new_err(format!("expected room for the rows of {what}, found less")))
    }
}
