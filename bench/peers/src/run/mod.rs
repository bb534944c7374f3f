//! A run: who takes part, with which data, round by round in processes of their own.

pub mod roster;
pub mod datasets;
pub mod machine;
pub mod waits;
pub mod calls;
pub mod settings;
pub mod trace;
pub mod child;
pub mod rounds;
