//! Tests of the heap, except crashes and damage.

mod setup {
    use adamant_heap::Options;

    /// The options with which the cases open a heap.
    pub(crate) fn options() -> Options {
        let mut options = Options::default();
        options.background = false;
        options
    }
}

mod files;
mod checkpoints;
mod damage_under_changes;
mod growth;
mod held;
mod hostile;
mod killed;
mod lent;
mod reopened;
mod salvage;
mod typed_damage;
mod undo_pools;
mod actions;
mod beside;
mod circles;
mod extremes;
mod filled;
mod first_touch;
#[cfg(unix)]
mod fork;
mod pack;
mod pieces;
mod ranges;
mod reuse;
mod savepoints;
mod shrink;
mod transactions;
mod typed;
mod unused;
mod zones;
