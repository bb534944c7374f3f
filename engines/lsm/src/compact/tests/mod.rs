//! Tests of compactions by their parts.

mod pick;
