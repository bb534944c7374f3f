//! Ordered maps on the persistent heap of Adamant.
//!
//! All trees keep their pairs in entry blocks of the same shape ([`slot`]) and implement the same
//! trait ([`tree::OrderedMap`]). A tree is named by the heap offset of its head block; the handle
//! holds nothing else, so that it can be copied and costs nothing to open.
#![forbid(unsafe_code)]

pub mod error;
pub mod slot;
mod checking;
mod loose;
mod parts;
mod estimate;
pub mod tree;
mod moves;
mod compact;
pub mod bplus;
mod layout;
mod words;
mod kind;
mod cursor;
mod visit;
mod sample;
mod map;
mod pairs;
pub mod btree;
pub mod critbit;
pub mod redblack;
mod typed;

pub use bplus::{Bplus, Salvaged};
pub use btree::BtreeKind;
pub use checking::{Checking, Report};
pub use critbit::CritbitKind;
pub use cursor::PairCursor;
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use kind::{Kind, Label, Link, Trail};
pub use layout::Head;
pub use loose::DetachedEntry;
pub use map::Tree;
pub use moves::{Moved, MovedPart, Moves};
pub use parts::Part;
pub use redblack::RedblackKind;
pub use tree::{Cursor, Operation, OrderedMap, Pair, Seek, Walk};
pub use typed::load::MapPiece;
pub use typed::map::{Entries, Key, Map};
pub use words::{Form, Item};

/// A B-tree with pairs in all of its nodes.
pub type Btree = Tree<BtreeKind>;
/// A crit-bit tree.
pub type Critbit = Tree<CritbitKind>;
/// A red-black tree.
pub type Redblack = Tree<RedblackKind>;
