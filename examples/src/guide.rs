//! The guides, whose code runs as documentation tests.
//!
//! They are here and not in the crates that they are about: a published package holds nothing from
//! outside of its folder.

#[doc = include_str!("../../docs/guide/rust.md")]
pub mod rust {}

#[doc = include_str!("../../docs/heap-guide.md")]
pub mod heap {}
