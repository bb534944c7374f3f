//! The results of a run: rows, goals, the report and its pictures.

pub mod rows;
pub mod figures;
pub mod goals;
pub mod notes;
pub mod picture;
pub mod text;
pub mod bars;
pub mod plots;
pub mod report;
