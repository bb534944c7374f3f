//! Stores of old formats.

mod format_1;
mod words;
