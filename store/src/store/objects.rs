//! Application objects in the store's heap, beside the keyspaces.
//!
//! Purpose: a queue, a graph, or a typed map of `adamant-trees` may live in the same pool as the
//! keyspaces and change in the same commit. Such objects are reached from named roots of the heap;
//! the store's own root has no name.
//! Invariants: a transaction changes objects at its commit, under the exclusive lock, after the
//! reads were validated and the keys were written. So it sees the objects as they are then, and
//! either all changes happen or none.

use adamant_heap::error::Result as HeapResult;
use adamant_heap::{Heap, Transaction as HeapTransaction};

use crate::error::Result;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

impl Store {
    /// The heap below the store: to read objects of your own ([`Heap::view`]), to reserve blocks
    /// before a transaction, to change objects in transactions of their own. Use named roots: the
    /// numbered roots are the store's. Closing the heap closes the store. Within a transaction of
    /// the heap the store cannot be used.
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
    /// Changes objects of your own in the same commit, see [`Store::heap`]. `work` is called once,
    /// at the commit, when nothing can conflict any more and the other writes are made. If it
    /// fails, so does the commit, and nothing is changed. It sees the objects as they are then,
    /// whatever the transaction has read. It must not use the store, and other writers wait for it.
    ///
    /// ```
    /// use adamant::{Error, Store};
    /// use adamant_heap::{TypedRead, TypedWrite};
    ///
    /// let store = Store::in_memory()?;
    /// let orders = store.keyspace("orders")?;
    /// store.transaction(|tx| {
    ///     tx.put(&orders, "4711", "three apples")?;
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
