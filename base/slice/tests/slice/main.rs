//! Slices, as their users and Miri see them.

mod features;
mod operations;
mod owners;
mod soundness;
mod text;
