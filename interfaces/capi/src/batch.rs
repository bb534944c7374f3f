//! Batches: many changes in one commit.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard};

use adamant::Batch;

use crate::border::code::{ADAMANT_CLOSED, ADAMANT_OK};
use crate::border::failure::{Failure, Result, run};
use crate::border::hold::hold;
use crate::border::options::durability_of;
use crate::border::pointers::{Changed, In, Opaque, Out, Slice, Taken};
use crate::multimap::MultimapHandle;
use crate::whole::keyspace::{KeyspaceHandle, name_of};
use crate::whole::store::StoreHandle;

/// Changes to any keyspaces of one store that become one commit. For one thread at a time. To be
/// freed by adamant_batch_free.
pub enum BatchHandle {}

impl Opaque for BatchHandle {
    /// `None` once it was committed.
    type Content = Mutex<Option<Batch>>;
    const KIND: u32 = 0xADA1_0006;
    const NAME: &'static str = "a batch";
}

/// A batch that is locked for a call.
type HeldBatch<'a> = MutexGuard<'a, Option<Batch>>;

impl In<BatchHandle> {
    fn with<T>(&self, work: impl FnOnce(&mut Batch) -> Result<T>) -> Result<T> {
        let mut held: HeldBatch<'_> = hold(self.get()?)?;
        work(held.as_mut().ok_or_else(committed)?)
    }
}

fn committed() -> Failure {
    Failure::new(ADAMANT_CLOSED, "the batch was committed; free it and make another")
}

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_new(store: In<StoreHandle>, batch: Out<*mut BatchHandle>) -> c_int {
    run(|| {
        batch.need_handle()?;
        batch.give(Mutex::new(Some(store.store()?.batch())));
        Ok(ADAMANT_OK)
    })
}

/// Will set the value of a key, whether it had one or not. The bytes are copied.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_put(
    batch: Changed<BatchHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        batch.with(|batch| Ok(batch.put(keyspace.keyspace()?, key.bytes()?, value.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Will merge an operand with the value of a key, as adamant_merge does. The bytes are copied. What
/// the operator refuses is an error of the commit.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_merge(
    batch: Changed<BatchHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    operand: Slice,
) -> c_int {
    run(|| {
        batch.with(|batch| {
            Ok(batch.merge(keyspace.keyspace()?, key.bytes()?, operand.bytes()?)?)
        })?;
        Ok(ADAMANT_OK)
    })
}

/// Will delete a key, whether it exists or not.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_delete(
    batch: Changed<BatchHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
) -> c_int {
    run(|| {
        batch.with(|batch| Ok(batch.delete(keyspace.keyspace()?, key.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Will give a key of a multimap a value, whether it has that or not. The bytes are copied.
/// ADAMANT_KEY_LENGTH if both are too long together.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_multimap_put(
    batch: Changed<BatchHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        let multimap = multimap.get()?;
        batch.with(|batch| Ok(multimap.put_into(batch, key.bytes()?, value.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Will take a value from a key of a multimap, whether it has that or not.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_multimap_delete(
    batch: Changed<BatchHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        let multimap = multimap.get()?;
        batch.with(|batch| Ok(multimap.delete_from(batch, key.bytes()?, value.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Will move the value of a key to a key of the same or another keyspace, as adamant_move; nothing
/// if there is none then. Changes before and after it in the batch happen before and after it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_move(
    batch: Changed<BatchHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    target: In<KeyspaceHandle>,
    new_key: Slice,
) -> c_int {
    run(|| {
        batch.with(|batch| {
            let (keyspace, target) = (keyspace.keyspace()?, target.keyspace()?);
            Ok(batch.move_to(keyspace, key.bytes()?, target, new_key.bytes()?)?)
        })?;
        Ok(ADAMANT_OK)
    })
}

/// Will swap the values of two keys, of one keyspace or two, as adamant_swap; nothing unless both
/// are there then.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_swap(
    batch: Changed<BatchHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    other: In<KeyspaceHandle>,
    other_key: Slice,
) -> c_int {
    run(|| {
        batch.with(|batch| {
            let (keyspace, other) = (keyspace.keyspace()?, other.keyspace()?);
            Ok(batch.swap(keyspace, key.bytes()?, other, other_key.bytes()?)?)
        })?;
        Ok(ADAMANT_OK)
    })
}

/// Will set a cursor of the feed of changes, as adamant_changes_cursor_set.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_cursor_set(
    batch: Changed<BatchHandle>,
    name: In<c_char>,
    number: u64,
) -> c_int {
    run(|| {
        batch.with(|batch| Ok(batch.set_cursor(name_of(&name)?, number)?))?;
        Ok(ADAMANT_OK)
    })
}

/// What its commit waits for: ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_durability(
    batch: Changed<BatchHandle>,
    durability: c_int,
) -> c_int {
    run(|| {
        let durability = durability_of(durability)?;
        batch.with(|batch| {
            batch.durability(durability);
            Ok(ADAMANT_OK)
        })
    })
}

/// How many changes are in it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_len(batch: In<BatchHandle>, changes: Out<u64>) -> c_int {
    run(|| {
        changes.need("number of changes")?;
        changes.set(batch.with(|batch| Ok(batch.len() as u64))?);
        Ok(ADAMANT_OK)
    })
}

/// Makes all changes in one commit: after a crash all of them are there, or none. Whether it
/// succeeds or not, the batch can only be freed then.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_commit(batch: Changed<BatchHandle>) -> c_int {
    run(|| {
        let taken = hold(batch.get()?)?.take();
        taken.ok_or_else(committed)?.commit()?;
        Ok(ADAMANT_OK)
    })
}

/// Frees a batch; NULL is none. What was not committed is not done.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_batch_free(batch: Taken<BatchHandle>) {
    run(|| batch.free().map(|()| ADAMANT_OK));
}
