//! The simulator, and the heap on it.

mod heap_crashes;
mod mapped;
mod simulator;
mod typed_crashes;
