//! The two slots of checkpoints in the pool's head.
//!
//! Purpose: a checkpoint is written into the slot that the newest one is not in, so a torn write
//! leaves that one.
//! Invariants: a slot counts if its checksum, which begins with the pool's UUID, matches.
//! Thread safety: free functions.

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::File;
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::Result;
use crate::layout::{CHECKPOINT_OFFSETS, Checkpoint, HEAP_BYTES_MAX, PAGE_BYTES};

/// Bytes of a checkpoint before its checksum.
const CHECKPOINT_SUMMED_BYTES: usize = size_of::<Checkpoint>() - size_of::<u32>();
/// Counters of a pool and its log are at most this: half of what they could be.
pub(crate) const COUNTER_MAX: u64 = u64::MAX / 2;

fn checkpoint_checksum(uuid: &[u8; 16], checkpoint: &Checkpoint) -> u32 {
    crc32c(crc32c(0, uuid), &checkpoint.as_bytes()[..CHECKPOINT_SUMMED_BYTES])
}

/// Whether counting on from there stays within 64 bits, for longer than any disk lasts. With a
/// checksum that matches, only an attacker could have written anything else.
fn is_plausible(checkpoint: &Checkpoint) -> bool {
    let Checkpoint { number, generation, applied, durable, ordinal, position, .. } = *checkpoint;
    let counters = [number, generation, applied, durable, ordinal, position];
    counters.iter().all(|counter| counter.get() <= COUNTER_MAX)
        && checkpoint.pages.get() <= HEAP_BYTES_MAX / PAGE_BYTES
}

/// The checkpoint with its checksum, and the file offset of its slot.
pub(super) fn sealed(uuid: &[u8; 16], mut checkpoint: Checkpoint) -> (Checkpoint, u64) {
    checkpoint.checksum = checkpoint_checksum(uuid, &checkpoint).into();
    let slot = checkpoint.number.get() % CHECKPOINT_OFFSETS.len() as u64;
    (checkpoint, CHECKPOINT_OFFSETS[slot as usize])
}

/// The checkpoint in the slot at a file offset, if it is valid.
///
/// # Errors
/// Those of the medium.
pub(super) fn read_slot(file: &dyn File, uuid: &[u8; 16], at: u64) -> Result<Option<Checkpoint>> {
    let mut bytes = [0; size_of::<Checkpoint>()];
    match file.read_with_lost_at(&mut bytes, at) {
        // The file was cut.
        Err(MediumError::Truncated { .. }) => return Ok(None),
        read => read?,
    }
    Ok(Checkpoint::read_from_bytes(&bytes).ok().filter(|slot| {
        let is_sound = slot.checksum.get() == checkpoint_checksum(uuid, slot);
        is_sound && is_plausible(slot)
    }))
}
