//! Old stores, kept to show that they still open.
//!
//! `stores/format-1/` holds images of stores that format 1 wrote, and what is in them:
//!
//! - `clean.runs`: closed, everything is in the pool file.
//! - `crashed.runs`: the process died, the log has to be replayed.
//! - `content.txt`: every entry of both.
//! - `engines/`: the same three of a store with keyspaces of every tree; `bplus-2/`: of one whose
//!   B+ trees have version 2 of that engine's format; `lsm-2/`: of one with log-structured merge
//!   trees; `encrypted/`: of such a store whose files are encrypted; `lsm/`: of such a store with
//!   version 1 of that engine's format, which is refused; `values/`: of one with compressed values
//!   in trees; `multimaps/`: of one with multimaps; `operands/`: of one with merge operands that
//!   are not folded, and persistent savepoints; `words/`: of a heap with typed maps whose nodes
//!   hold pairs of words; `undo/`: images of a store by the undo journal, which is refused, too.
//!
//! An image is a text file, see [`image`], so that a store with holes of a mebibyte takes little
//! room and a change of one shows in a review. Stores are compared by content.
#![forbid(unsafe_code)]

pub mod content;
pub mod image;
pub mod operands;

pub mod words;

mod set;

pub use set::Set;
