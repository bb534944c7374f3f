//! Unit tests of compaction.

mod pick;
