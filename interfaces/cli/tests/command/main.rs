//! The command as its users meet it: every test runs the program in a folder of its own.

mod support;

mod backup;
mod bad_input;
mod copy;
mod encryption;
mod csv;
mod follow;
mod full_disk;
mod heap_and_repair;
mod import_export;
mod lsm;
mod merge;
mod moments;
mod savepoints;
mod values;
