//! What every heap does, over the redo journal. The same over the other one: `undo.rs`.

mod setup {
    use adamant_heap::Options;

    /// Of smaller blocks no old bytes are logged when they change.
    pub(crate) const SAVED_BYTES_MIN: usize = 4096;

    /// How the cases open a heap.
    pub(crate) fn options() -> Options {
        let mut options = Options::default();
        options.background = false;
        options
    }
}

#[path = "cases/actions.rs"]
mod actions;
#[path = "cases/extremes.rs"]
mod extremes;
#[path = "cases/first_touch.rs"]
mod first_touch;
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
