//! Increments: backups of what changed since another one.
//!
//! Purpose: a directory that becomes an increment as a store is copied into it, and one that shows
//! an increment, with all that it is the difference from, as a store. So neither what copies nor
//! what opens a store knows of them. See `docs/format/increment.md`, and
//! `docs/decisions/0134-increments.md` for why.

pub mod layout;
mod folder;
mod runs;
mod index;
mod chain;
mod difference;
mod same_file;
mod making;
mod view;

use std::sync::Arc;

use adamant_medium::storage::Directory;

pub(crate) use chain::Chain;
pub use making::Increment;
pub(crate) use making::Making;

use crate::error::Result;
use crate::increment::layout::INCREMENT_NAME;
pub(crate) use crate::increment::view::View;
use crate::options::Options;

/// The increment of that name as the directory of a store that is opened for reading only; all
/// links of its chain lie in `siblings`, encrypted if the options have a key. The simulator of
/// `testing/sim` uses this in place of a file system; programs use
/// [`Store::open_read_only`](crate::Store::open_read_only).
///
/// # Errors
/// As [`Store::open_read_only`](crate::Store::open_read_only).
pub fn increment_in(
    siblings: &Arc<dyn Directory>,
    name: &str,
    options: &Options,
) -> Result<Arc<dyn Directory>> {
    Ok(Arc::new(View::new(Chain::open(siblings, name, options.key.as_ref())?)))
}

/// Whether the names in a directory are those of an increment.
pub(crate) fn is_increment(names: &[String]) -> bool {
    names.iter().any(|name| name == INCREMENT_NAME) && !names.iter().any(|name| name == "pool")
}
