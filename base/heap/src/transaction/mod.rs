//! Transactions, their commits, and views. Used by the heap.

pub(crate) mod ranges;
pub(crate) mod requests;
pub(crate) mod scratch;
pub(crate) mod tx;
pub(crate) mod view;
pub(crate) mod unused;
pub(crate) mod overwrite;
pub(crate) mod chunked;
pub(crate) mod calls;
pub(crate) mod commit;
pub(crate) mod roots;
