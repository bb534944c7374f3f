//! What an operand of a transaction makes of the value when the transaction began.

use adamant_slice::Slice;

use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;

/// The value of a key of which the transaction has written an operand alone. The caller notes the
/// key as read.
pub(crate) fn merged(
    snapshot: &Snapshot,
    keyspace: &Keyspace,
    key: &[u8],
    operand: &[u8],
) -> Result<Slice> {
    let older = snapshot.get(keyspace, key)?;
    keyspace.operator()?.merge(key, older.as_deref(), operand)
}
