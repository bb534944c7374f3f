//! What every benchmark uses: keys and data, clocks, places of stores, targets, reports.

pub mod error;
pub mod key;
pub mod data;
pub mod records;
pub mod measure;
pub mod asked;
pub mod report;
pub mod text;
pub mod rows;
pub mod engine;
pub mod raw;
pub mod control_group;
pub(crate) mod place;
