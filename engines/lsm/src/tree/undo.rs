//! The undo guard: what is to be done unless the transaction commits.
//!
//! Invariants: the commit handler owns the guard and resolves it. A transaction that is undone
//! drops its handlers, and an error drops the guard before it has one: both undo.

/// Calls `undo` with its value when it is dropped before the commit.
pub(super) struct UndoGuard<T> {
    value: Option<T>,
    undo: fn(T),
}

impl<T> UndoGuard<T> {
    pub(super) fn new(value: T, undo: fn(T)) -> Self {
        Self { value: Some(value), undo }
    }

    /// The transaction has committed: `keep` gets the value.
    pub(super) fn resolve(mut self, keep: fn(T)) {
        self.value.take().into_iter().for_each(keep);
    }
}

impl<T> Drop for UndoGuard<T> {
    fn drop(&mut self) {
        self.value.take().into_iter().for_each(self.undo);
    }
}
