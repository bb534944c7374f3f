//! Following a store: later commits, the feed of changes, and positions in it.

pub mod follow;
pub mod feed;
pub mod cursors;
