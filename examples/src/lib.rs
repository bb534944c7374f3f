//! Small programs that use Adamant, each runnable by itself:
//!
//! - `hello`: open, write, read, close, open again.
//! - `transfer`: one batch over two keyspaces.
//! - `index`: prefixes and ranges over an index that is kept beside the data.
//!
//! `cargo run -p adamant-examples --example NAME`
#![forbid(unsafe_code)]
