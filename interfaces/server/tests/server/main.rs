//! The server, in this process and as a program, by clients of its own and by others.

#![forbid(unsafe_code)]

mod support;

mod answers;
mod differential;
mod kills;
mod large;
mod limits;
mod transactions;
