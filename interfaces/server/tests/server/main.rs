//! The server, in this process and as a program, by clients of its own and by others.

#![forbid(unsafe_code)]

mod support;
mod certificates;
mod disk;
mod program;
mod web;

mod abuse;
mod answers;
mod clients;
mod differential;
mod exchange;
mod full;
mod kills;
mod large;
mod limits;
mod page;
mod status;
mod tls;
mod transactions;
