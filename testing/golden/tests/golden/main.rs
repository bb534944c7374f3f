//! Stores of old formats.

mod format_1;
mod images;
mod operands;
mod words;
