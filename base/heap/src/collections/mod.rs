//! Maps, sets and lists of heap offsets and page numbers, in memory. Anything above may use them.

pub(crate) mod zones;
pub(crate) mod offset_map;
pub(crate) mod extents;
pub(crate) mod range_set;
