//! Errors of a measurement: it ends with the first one, so their kind does not matter.

/// The result of a step of a measurement.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error unless `holds`: contents are verified beside every measurement.
///
/// # Errors
/// With `message`.
pub fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(message().into()) }
}
