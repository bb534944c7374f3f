//! The memory of mapped files: its addresses and its changes.
//!
//! Purpose: a mapped file's visible content is that of a file in memory, which is really mapped
//! into the program's region. So the simulator sees stores without a report, by reading that file,
//! and owns it however long the region lives.
//! Thread safety: part of a disk, under its lock. Stores of other threads while it reads are seen
//! in part, as a crash would.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use adamant_medium::address::region::Region;
use adamant_medium::error::Result;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};

use crate::file::FileState;
use crate::lines::LINE_BYTES;
use crate::pages::{PAGE_BYTES, Page};
use crate::state::{Event, State};

/// Bytes compared at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The mapped files of a disk.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    contents: BTreeMap<u64, Arc<dyn File>>,
    /// Files that only copies have stored to since their last flush.
    copied: BTreeSet<u64>,
    /// The newest last: it hides older ones at the same addresses.
    ranges: Vec<MappedRange>,
}

#[derive(Debug)]
struct MappedRange {
    addresses: Range<u64>,
    file: u64,
    file_offset: u64,
}

impl Mapped {
    /// The content of a file that is mapped.
    pub(crate) fn content(&self, file: u64) -> Option<&Arc<dyn File>> {
        self.contents.get(&file)
    }

    /// The content of a file that will be mapped.
    pub(crate) fn create_content(&mut self, file: u64, state: &FileState) -> Result<&dyn File> {
        let content: &Arc<dyn File> = match self.contents.entry(file) {
            Entry::Occupied(content) => content.into_mut(),
            Entry::Vacant(missing) => missing.insert(filled(state)?),
        };
        Ok(content.as_ref())
    }

    /// Notes where a file's bytes were mapped.
    pub(crate) fn add(
        &mut self,
        region: &Region,
        region_offset: u64,
        file: u64,
        file_offset: u64,
        len: u64,
    ) {
        let start = address(region, region_offset);
        self.ranges.push(MappedRange { addresses: start..start + len, file, file_offset });
    }

    /// The files and cache lines of a range of mapped memory; a pool that grew was mapped in
    /// pieces.
    ///
    /// # Panics
    /// If there are none: flushing unmapped memory is a mistake of the program.
    pub(crate) fn lines(&self, region: &Region, offset: u64, len: u64) -> Vec<(u64, Range<u64>)> {
        let end = address(region, offset) + len;
        let line = LINE_BYTES as u64;
        let mut at = address(region, offset);
        let mut pieces = Vec::new();
        while at < end {
            let holds = |range: &&MappedRange| range.addresses.contains(&at);
            let range = self.ranges.iter().rev().find(holds);
            let range = range.unwrap_or_else(|| panic!("{len} bytes at {offset} are not mapped"));
            let piece_end = range.addresses.end.min(end);
            let first = range.file_offset + (at - range.addresses.start);
            let lines = first / line..(first + (piece_end - at)).div_ceil(line);
            pieces.push((range.file, lines));
            at = piece_end;
        }
        pieces
    }

    /// A copy stored to a file, or it was flushed: after a flush there may be unreported stores.
    pub(crate) fn note_copied(&mut self, file: u64, is_copied: bool) {
        if is_copied {
            self.copied.insert(file);
        } else {
            self.copied.remove(&file);
        }
    }

    /// The lines of all files that differ from the last observation, except files stored to by
    /// copies.
    pub(crate) fn changes(&self, state: &State) -> Vec<Event> {
        let files = self.contents.keys().filter(|file| !self.copied.contains(file));
        files.flat_map(|&file| self.changes_in(state, file, 0..u64::MAX)).collect()
    }

    /// The same for the pages of a file that hold these lines.
    pub(crate) fn changes_in(&self, state: &State, file: u64, lines: Range<u64>) -> Vec<Event> {
        let (content, known) = (&self.contents[&file], state.file(file));
        let page = PAGE_BYTES as u64;
        let start = lines.start.saturating_mul(LINE_BYTES as u64) / page * page;
        let end = lines.end.saturating_mul(LINE_BYTES as u64).checked_next_multiple_of(page);
        let end = end.unwrap_or(u64::MAX).min(known.len());
        let mut events = Vec::new();
        let mut chunk = vec![0; end.saturating_sub(start).min(CHUNK_BYTES as u64) as usize];
        chunk.resize(chunk.len().next_multiple_of(PAGE_BYTES), 0);
        for offset in (start..end).step_by(CHUNK_BYTES) {
            let bytes = (end - offset).min(CHUNK_BYTES as u64) as usize;
            chunk[bytes..].fill(0);
            let read = content.read_at(&mut chunk[..bytes], offset);
            read.expect("the content is as long as its file");
            let (pages, _) = chunk[..bytes.next_multiple_of(PAGE_BYTES)].as_chunks::<PAGE_BYTES>();
            for (number, page) in (offset / page..).zip(pages) {
                add_changes(&mut events, file, known, number, page);
            }
        }
        events
    }
}

fn add_changes(events: &mut Vec<Event>, file: u64, known: &FileState, number: u64, page: &Page) {
    let lines = known.changed_lines(number, page).into_iter();
    events.extend(lines.map(|(line, bytes)| Event::Store { file, line, bytes }));
}

fn address(region: &Region, offset: u64) -> u64 {
    region.base().as_ptr().addr() as u64 + offset
}

/// A file that can be mapped, with a file's visible content.
fn filled(state: &FileState) -> Result<Arc<dyn File>> {
    let content = MemoryDirectory::new().create("content")?;
    content.set_len(state.len())?;
    for (number, page) in state.pages() {
        let offset = number * PAGE_BYTES as u64;
        let bytes = (state.len() - offset).min(PAGE_BYTES as u64);
        content.write_at(&page[..bytes as usize], offset)?;
    }
    Ok(content)
}
