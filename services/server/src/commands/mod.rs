//! The commands: one file a family, and the table of all of them.
//!
//! A command is a function of a [`Call`](crate::state::call::Call), or, if it concerns the client
//! and not data, a [`Verb`] that the session executes. COMMAND answers from the table.

mod command;

mod counters;
mod expiry;
mod keys;
mod ordered;
mod parts;
mod scan;
mod strings;

mod table;

pub(crate) use command::{Command, Flags, Verb, Work};
pub(crate) use keys::{check_flush, check_swap};
pub(crate) use table::{ALL, find};
