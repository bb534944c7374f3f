//! Small programs that use Adamant, each runnable by itself:
//!
//! - `hello`: open, write, read, close, open again.
//! - `transfer`: one batch over two keyspaces.
//! - `index`: prefixes and ranges over an index that is kept beside the data.
//! - `queue`: a consumer in a process of its own, which the producer's commits wake.
//! - `typed`: keys that are tuples, values that are structures.
//!
//! On the bare heap, with data structures of their own:
//!
//! - `list`: a linked list of typed objects under a named root.
//! - `gather`: worker threads reserve and fill blocks, one transaction publishes all of them.
//! - `bank`: threads transfer money, the process is killed, nothing is lost.
//!
//! `cargo run -p adamant-examples --example NAME`
//!
//! The modules are the guides of the folder `docs`: as documentation, and so that each piece of
//! code in them is compiled and run by the tests.
#![forbid(unsafe_code)]

pub mod guide;
