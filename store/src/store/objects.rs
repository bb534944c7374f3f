//! Structures of one's own beside the keyspaces, on the heap that both are on.
//!
//! Purpose: a queue, a graph, a typed map of `adamant-trees` may live in the same pool as the keyspaces,
//! and change in the same commit. They are reached from named roots of the heap; the store's own root
//! has no name.
//! Invariants: what is to be done to them by a transaction is done at its commit, under the exclusive
//! lock, after the reads were found valid and the keys were written: so it sees the objects as they
//! are then, and all of it happens or nothing.

use adamant_heap::error::Result as HeapResult;
use adamant_heap::{Heap, Transaction as HeapTransaction};

use crate::error::Result;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

impl Store {
    /// The heap that the store is on: to read objects of one's own ([`Heap::view`]), to reserve blocks
    /// before a transaction, to change objects by transactions of their own. Give them named roots:
    /// the roots that have numbers are the store's, and closing the heap closes the store. Within a
    /// transaction of the heap the store cannot be used.
    ///
    /// ```
    /// use adamant::Store;
    /// use adamant_heap::{Durability, Error, TypedRead, TypedWrite};
    ///
    /// let store = Store::in_memory()?;
    /// let heap = store.heap()?;
    /// let starts = heap.transaction(Durability::Sync, |tx| {
    ///     let starts = tx.named_root_or_create("starts", |_| Ok(0_u64))?;
    ///     *tx.get_mut(starts)? += 1;
    ///     Ok::<_, Error>(*tx.get(starts)?)
    /// })?;
    /// assert_eq!(starts, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn heap(&self) -> Result<&Heap> {
        self.shared.heap()
    }
}

impl Transaction {
    /// Changes objects of one's own in the same commit, see [`Store::heap`]: `work` is called once, at the
    /// commit, when nothing can conflict any more, and the other writes are made. If it fails, so does
    /// the commit, and nothing was changed. It sees the objects as they are then, whatever the
    /// transaction has read; it must not use the store, and others wait for it.
    ///
    /// ```
    /// use adamant::{Error, Store};
    /// use adamant_heap::{TypedRead, TypedWrite};
    ///
    /// let store = Store::in_memory()?;
    /// let orders = store.keyspace("orders")?;
    /// store.transaction(|tx| {
    ///     tx.insert(&orders, "4711", "three apples")?;
    ///     tx.on_heap(|heap| {
    ///         let count = heap.named_root_or_create("orders ever", |_| Ok(0_u64))?;
    ///         *heap.get_mut(count)? += 1;
    ///         Ok(())
    ///     });
    ///     Ok::<(), Error>(())
    /// })?;
    /// let view = store.heap()?.view()?;
    /// let count = view.named_root::<u64>("orders ever")?.expect("it was made");
    /// assert_eq!(*view.get(count)?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on_heap(
        &mut self,
        work: impl FnOnce(&mut HeapTransaction<'_>) -> HeapResult<()> + Send + 'static,
    ) {
        self.push_work(Box::new(work));
    }
}
