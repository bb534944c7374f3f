//! Snapshots, and the bytes that they lend.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use adamant::Snapshot;

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::run;
use crate::border::pointers::{Changed, In, Opaque, Out, Slice, Taken};
use crate::views::loan::Loans;
use crate::whole::keyspace::{KeyspaceHandle, found};
use crate::whole::store::StoreHandle;

/// All keyspaces of a store at one moment, whatever is written since. To be freed by
/// adamant_snapshot_free, which also ends what it has lent.
pub enum SnapshotHandle {}

/// A snapshot, and the values that it has lent.
#[derive(Debug)]
pub struct Content {
    pub(crate) snapshot: Snapshot,
    loans: Mutex<Loans>,
}

impl Content {
    /// Lends a value until the loans end.
    pub(crate) fn lend(&self, had: adamant::Slice, value: &Out<Slice>) {
        // A panic under this lock could only be one of allocation, and leaves the list intact.
        let mut loans = self.loans.lock().unwrap_or_else(PoisonError::into_inner);
        value.lend(loans.keep(had));
    }
}

impl Opaque for SnapshotHandle {
    type Content = Content;
    const KIND: u32 = 0xADA1_0007;
    const NAME: &'static str = "a snapshot";
}

/// Opens a snapshot of now. Nobody waits for it, and it waits for nobody.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_new(
    store: In<StoreHandle>,
    snapshot: Out<*mut SnapshotHandle>,
) -> c_int {
    run(|| {
        snapshot.need_handle()?;
        let opened = store.store()?.snapshot()?;
        snapshot.give(Content { snapshot: opened, loans: Mutex::default() });
        Ok(ADAMANT_OK)
    })
}

/// Lends the value that a key had; ADAMANT_NOT_FOUND if it had none. The bytes stay as they are
/// until adamant_snapshot_release or adamant_snapshot_free, whatever is written meanwhile. A value
/// of more than 4 KiB is not copied: it is the store's own.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_get(
    snapshot: In<SnapshotHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    value: Out<Slice>,
) -> c_int {
    run(|| {
        value.need("value")?;
        let content = snapshot.get()?;
        let Some(had) = content.snapshot.get(keyspace.keyspace()?, key.bytes()?)? else {
            return Ok(ADAMANT_NOT_FOUND);
        };
        content.lend(had, &value);
        Ok(ADAMANT_OK)
    })
}

/// Whether a key had a value: ADAMANT_OK or ADAMANT_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_contains(
    snapshot: In<SnapshotHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
) -> c_int {
    run(|| Ok(found(snapshot.get()?.snapshot.contains(keyspace.keyspace()?, key.bytes()?)?)))
}

/// How many entries a keyspace had.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_len(
    snapshot: In<SnapshotHandle>,
    keyspace: In<KeyspaceHandle>,
    entries: Out<u64>,
) -> c_int {
    run(|| {
        entries.need("number of entries")?;
        entries.set(snapshot.get()?.snapshot.len(keyspace.keyspace()?)?);
        Ok(ADAMANT_OK)
    })
}

/// Ends the loans of a snapshot, whose values take memory till then; the snapshot goes on.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_release(snapshot: Changed<SnapshotHandle>) -> c_int {
    run(|| {
        let content = snapshot.get()?;
        content.loans.lock().unwrap_or_else(PoisonError::into_inner).end();
        Ok(ADAMANT_OK)
    })
}

/// Frees a snapshot and ends its loans; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_free(snapshot: Taken<SnapshotHandle>) {
    run(|| snapshot.free().map(|()| ADAMANT_OK));
}
