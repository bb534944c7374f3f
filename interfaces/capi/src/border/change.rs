//! Changes of the feed, as C sees them.

use std::ffi::{c_int, c_void};
use std::ops::Bound;

use adamant::{Change as StoreChange, ChangedKeyspace, Slice};

use crate::border::code::*;
use crate::border::failure::{Failure, Result};
use crate::border::pointers::{Context, Lent};

/// A change that a commit made. What does not belong to its kind is no bytes (NULL), and 0. All
/// bytes are lent until the function returns that is given it.
#[repr(C)]
pub struct Change {
    /// The number of its commit: commits are numbered one by one, in the order in which they came.
    pub commit: u64,
    /// How many changes of this commit come behind this one.
    pub left: u64,
    /// What happened: ADAMANT_CHANGE_PUT and so on. A later version may have more of them.
    pub kind: c_int,
    /// The name of the keyspace, as it was then, without a zero byte.
    pub keyspace: Lent,
    /// The number of the keyspace, which no other one ever has.
    pub keyspace_id: u64,
    /// The key.
    pub key: Lent,
    /// The value that the commit left.
    pub value: Lent,
    /// When the value is over; ADAMANT_NEVER for all that do not end.
    pub deadline: u64,
    /// The name of the other keyspace.
    pub target: Lent,
    /// Its number.
    pub target_id: u64,
    /// The other key.
    pub target_key: Lent,
    /// The lower end of a range; NULL: it has none.
    pub lower: Lent,
    /// The upper end of a range; NULL: it has none.
    pub upper: Lent,
    /// Other than 0: the key `lower` itself is not in the range.
    pub lower_excluded: c_int,
    /// Other than 0: the key `upper` itself is in the range.
    pub upper_included: c_int,
    /// The name of the keyspace since.
    pub new_name: Lent,
}

impl Change {
    fn new(kind: c_int, keyspace: &ChangedKeyspace) -> Self {
        Self {
            commit: 0,
            left: 0,
            kind,
            keyspace: Lent::new(keyspace.name.as_bytes()),
            keyspace_id: keyspace.id,
            key: Lent::none(),
            value: Lent::none(),
            deadline: ADAMANT_NEVER,
            target: Lent::none(),
            target_id: 0,
            target_key: Lent::none(),
            lower: Lent::none(),
            upper: Lent::none(),
            lower_excluded: 0,
            upper_included: 0,
            new_name: Lent::none(),
        }
    }

    fn to(self, target: &ChangedKeyspace) -> Self {
        Self { target: Lent::new(target.name.as_bytes()), target_id: target.id, ..self }
    }

    fn within(self, lower: Bound<&Slice>, upper: Bound<&Slice>) -> Self {
        let key = |bound: Bound<&Slice>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Lent::new(key),
            Bound::Unbounded => Lent::none(),
        };
        let lower_excluded = matches!(lower, Bound::Excluded(_)).into();
        let upper_included = matches!(upper, Bound::Included(_)).into();
        Self { lower: key(lower), upper: key(upper), lower_excluded, upper_included, ..self }
    }
}

/// A function of C's that is told a change. It gets back the `context` that was given with it. It
/// may look at the change until it returns, and use the store, but not the feed.
#[repr(transparent)]
pub struct ChangeReader(
    Option<unsafe extern "C-unwind" fn(context: *mut c_void, change: *const Change)>,
);

impl ChangeReader {
    /// The argument that a call from C with this function makes.
    ///
    /// # Safety
    /// It may be called with its context, on this thread, during the call.
    pub unsafe fn new(function: unsafe extern "C-unwind" fn(*mut c_void, *const Change)) -> Self {
        Self(Some(function))
    }

    /// The function with its context: it is told the changes of a commit, which it takes.
    pub(crate) fn with(
        self,
        context: Context,
    ) -> Result<impl FnOnce(adamant::Commit) -> Result<()>> {
        let function = self.0.ok_or_else(|| Failure::invalid("expected a reader, found NULL"))?;
        Ok(move |commit: adamant::Commit| {
            // A defect of one is told before the first is.
            let parts: Vec<_> = commit.changes.iter().map(split).collect::<Result<_>>()?;
            let mut left = parts.len() as u64;
            for (change, value) in commit.changes.iter().zip(&parts) {
                left -= 1;
                let change = Change { commit: commit.number, left, ..shown(change, value) };
                // SAFETY: C vouches that the function may be called with this context during the
                // call; the change lives until it returns, and so does what it lends.
                unsafe { function(context.pointer(), &change) }
            }
            Ok(())
        })
    }
}

/// A value and when it is over.
type Value = (Slice, u64);

/// The value of a change without its deadline, and that.
fn split(change: &StoreChange) -> Result<Value> {
    let StoreChange::Put { keyspace, value, .. } = change else {
        return Ok((Slice::EMPTY, ADAMANT_NEVER));
    };
    let (value, deadline) = keyspace.split(value)?;
    Ok((value, deadline.map_or(ADAMANT_NEVER, |deadline| deadline.millis())))
}

/// A change, with its value, as C sees it.
fn shown(change: &StoreChange, (value, deadline): &Value) -> Change {
    let of = |kind| Change::new(kind, change.keyspace());
    match change {
        StoreChange::Put { key, .. } => {
            let (key, value) = (Lent::new(key), Lent::new(value));
            Change { key, value, deadline: *deadline, ..of(ADAMANT_CHANGE_PUT) }
        }
        StoreChange::Removed { key, .. } => {
            Change { key: Lent::new(key), ..of(ADAMANT_CHANGE_REMOVED) }
        }
        StoreChange::Moved { key, target, target_key, .. } => {
            let (key, target_key) = (Lent::new(key), Lent::new(target_key));
            Change { key, target_key, ..of(ADAMANT_CHANGE_MOVED) }.to(target)
        }
        StoreChange::Swapped { key, target, target_key, .. } => {
            let (key, target_key) = (Lent::new(key), Lent::new(target_key));
            Change { key, target_key, ..of(ADAMANT_CHANGE_SWAPPED) }.to(target)
        }
        StoreChange::RangeRemoved { bounds: (lower, upper), .. } => {
            of(ADAMANT_CHANGE_RANGE_REMOVED).within(lower.as_ref(), upper.as_ref())
        }
        StoreChange::Cleared { .. } => of(ADAMANT_CHANGE_CLEARED),
        StoreChange::Created { .. } => of(ADAMANT_CHANGE_CREATED),
        StoreChange::Dropped { .. } => of(ADAMANT_CHANGE_DROPPED),
        StoreChange::Renamed { new_name, .. } => {
            Change { new_name: Lent::new(new_name.as_bytes()), ..of(ADAMANT_CHANGE_RENAMED) }
        }
        StoreChange::Exchanged { target, .. } => of(ADAMANT_CHANGE_EXCHANGED).to(target),
        StoreChange::Loaded { first, last, .. } => {
            of(ADAMANT_CHANGE_LOADED).within(Bound::Included(first), Bound::Included(last))
        }
        _ => of(0),
    }
}
