//! The server, in this process and as a program, by clients of its own and by others.

#![forbid(unsafe_code)]

mod support;
mod web;
mod harm;
mod nodes;
mod answers;
mod clients;
mod differential;
mod encryption;
mod tls;
mod transactions;
