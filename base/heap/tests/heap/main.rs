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

mod actions;
mod circles;
mod extremes;
mod first_touch;
mod fork;
mod pieces;
mod ranges;
mod reuse;
mod savepoints;
mod shrink;
mod transactions;
mod typed;
mod unused;
mod zones;
