//! What every heap does, over the undo journal, where transactions have room for hardly a copy: small
//! blocks change in place, too. The same with copies: `undo.rs`.

mod setup {
    use adamant_heap::{Flushing, JournalKind, Options};

    /// Of smaller blocks no old bytes are logged when they change.
    pub(crate) const SAVED_BYTES_MIN: usize = 8;

    /// How the cases open a heap.
    pub(crate) fn options() -> Options {
        let mut options = Options::default();
        options.journal = JournalKind::Undo;
        options.flushing = Flushing::Volatile;
        options.copies_bytes_max = 100;
        options
    }
}

#[path = "cases/actions.rs"]
mod actions;
#[path = "cases/reuse.rs"]
mod reuse;
#[path = "cases/savepoints.rs"]
mod savepoints;
#[path = "cases/transactions.rs"]
mod transactions;
#[path = "cases/typed.rs"]
mod typed;
