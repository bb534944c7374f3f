//! What every heap does, over the undo journal. The same over the other one: `redo.rs`.

mod setup {
    use adamant_heap::{Flushing, JournalKind, Options};

    /// Of smaller blocks no old bytes are logged when they change.
    pub(crate) const SAVED_BYTES_MIN: usize = 4096;

    /// How the cases open a heap.
    pub(crate) fn options() -> Options {
        let mut options = Options::default();
        options.journal = JournalKind::Undo;
        options.flushing = Flushing::Volatile;
        options
    }
}

#[path = "cases/actions.rs"]
mod actions;
#[path = "cases/extremes.rs"]
mod extremes;
#[path = "cases/fork.rs"]
mod fork;
#[path = "cases/pieces.rs"]
mod pieces;
#[path = "cases/reuse.rs"]
mod reuse;
#[path = "cases/savepoints.rs"]
mod savepoints;
#[path = "cases/shrink.rs"]
mod shrink;
#[path = "cases/transactions.rs"]
mod transactions;
#[path = "cases/typed.rs"]
mod typed;
#[path = "cases/unused.rs"]
mod unused;
#[path = "cases/zones.rs"]
mod zones;
