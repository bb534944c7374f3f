//! Tests of the ordered maps, as one program: it is compiled and linked once.

mod bytes;
mod check_parts;
mod common;
mod compact;
mod estimate;
mod faults;
mod format;
mod heap;
mod load;
mod model;
mod moves;
mod shared_start;
mod space;
mod typed;
mod words;
