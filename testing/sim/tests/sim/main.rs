//! The simulator, and the heap on it.

mod beside;
mod heap_crashes;
mod mapped;
mod simulator;
mod typed_crashes;
