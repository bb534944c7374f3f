//! The lanes of a store of the undo journal, made fewer and smaller than a new store has.
//!
//! Purpose: a short workload starts small lanes over, and needs files for what has no room in them; and a
//! recovery, which looks at all bytes of all lanes, takes a fifth of the time.
//! Thread safety: nobody else may use the store.

use adamant_medium::error::Result;
use adamant_medium::storage::Directory;
use adamant_wire::checksum::crc32c;

use crate::directory::SimDirectory;
use crate::disk::SimDisk;

/// Bytes of the file before the lanes, of its header, and of that before its checksum; and where in it
/// the count and the length of the lanes are: as `docs/format/lanes.md` has them.
const LANES_START: u64 = 4096;
const SUMMED_BYTES: usize = 40;
const COUNT_AT: usize = 12;
const BYTES_AT: usize = 16;
/// The file that a new store keeps for large entries.
const SPARE_NAME: &str = "large-1";

/// Replaces the lanes of a closed store by `count` lanes of so many bytes each. What is kept for large
/// entries goes, so that it is made again. The disk begins its history anew.
///
/// # Errors
/// Those of the medium.
///
/// # Panics
/// If there are none: the store has another journal.
pub fn remake(disk: &SimDisk, count: u32, bytes: u64) -> Result<()> {
    let directory = SimDirectory::root(disk).subdirectory("log")?;
    let file = directory.open("lanes")?.expect("a store of the undo journal has lanes");
    let mut head = [0; SUMMED_BYTES];
    file.read_at(&mut head, 0)?;
    head[COUNT_AT..COUNT_AT + 4].copy_from_slice(&count.to_le_bytes());
    head[BYTES_AT..BYTES_AT + 8].copy_from_slice(&bytes.to_le_bytes());
    file.write_at(&head, 0)?;
    file.write_at(&crc32c(0, &head).to_le_bytes(), SUMMED_BYTES as u64)?;
    // What was in them is covered by the watermark, and lies elsewhere in lanes of this length.
    file.set_len(LANES_START)?;
    file.allocate(LANES_START, u64::from(count) * bytes)?;
    if directory.open(SPARE_NAME)?.is_some() {
        directory.remove(SPARE_NAME)?;
    }
    disk.begin_history();
    Ok(())
}
