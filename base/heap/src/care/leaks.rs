//! The leak scan: compares the allocated blocks with those that the named roots reach.
//!
//! Purpose: find blocks that nothing owns any more, pointers to blocks that are gone, and blocks
//! that two pointers take for different types. Reads only.
//! Invariants: the scan visits each allocated block once, so it ends whatever the pointers say.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::image::mapping::Image;
use crate::inspect::trace::{Kind, Owned, Structure, Traced, Tracer, Types};
use crate::layout::{DIRECTORY_ROOT, ROOT_COUNT};
use crate::objects::directory::{NamedRoot, decode};
use crate::space::allocated::Allocated;
use crate::space::blocks::Blocks;

/// An allocated block that no named root reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    /// Its heap offset.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A pointer that is wrong. `owner` is the heap offset of the object that holds it, 0 for a named
/// root.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeakFinding {
    /// No allocated block starts where it points.
    Dangling {
        /// The object that holds the pointer.
        owner: u64,
        /// Where it points.
        offset: u64,
        /// The type that the pointer has.
        layout: String,
    },
    /// The block is too small for the type of the pointer.
    Short {
        /// The object that holds the pointer.
        owner: u64,
        /// Where it points.
        offset: u64,
        /// Bytes of the block.
        bytes: u64,
        /// The type, and how many values of it should be there.
        layout: String,
    },
    /// Another pointer has another type.
    Mismatch {
        /// The object that holds the pointer.
        owner: u64,
        /// Where it points.
        offset: u64,
        /// The type that the pointer has.
        layout: String,
        /// The type of the other pointer.
        other: String,
    },
    /// The type is not among those that the scan was given: what the block owns was not followed.
    Unknown {
        /// The object that holds the pointer.
        owner: u64,
        /// Where it points.
        offset: u64,
        /// The known facts about the type.
        layout: String,
    },
    /// A data structure is damaged: what it has beyond that block was not followed.
    Damaged {
        /// The first block of the structure.
        owner: u64,
        /// The block.
        offset: u64,
        /// The damage.
        what: &'static str,
    },
}

impl fmt::Display for LeakFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dangling { owner, offset, layout } => write!(
                f,
                "object {owner:#x}: expected {layout} at heap offset {offset:#x}, found no \
                 allocated block"
            ),
            Self::Short { owner, offset, bytes, layout } => write!(
                f,
                "object {owner:#x}: expected {layout} at heap offset {offset:#x}, found a block of \
                 {bytes} bytes"
            ),
            Self::Mismatch { owner, offset, layout, other } => write!(
                f,
                "object {owner:#x}: expected {layout} at heap offset {offset:#x}, another pointer \
                 says {other}"
            ),
            Self::Unknown { owner, offset, layout } => write!(
                f,
                "object {owner:#x}: points to heap offset {offset:#x} and {layout}, which is not \
                 among the types given to the scan; add it"
            ),
            Self::Damaged { owner, offset, what } => write!(
                f,
                "structure {owner:#x}: the block at heap offset {offset:#x} {what}; a check of the \
                 structure says more"
            ),
        }
    }
}

/// The result of a leak scan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LeakReport {
    /// The number of allocated blocks.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub block_bytes: u64,
    /// Blocks that the named roots reach, including the directory of named roots.
    pub reachable: u64,
    /// Pointers to blocks that another pointer had reached. That is right where objects own blocks
    /// together; elsewhere one of the blocks is destroyed twice some day.
    pub shared: u64,
    /// Blocks that nothing reaches, by offset.
    pub leaks: Vec<Leak>,
    /// Everything wrong with pointers.
    pub findings: Vec<LeakFinding>,
    /// Numbers of root words that are set and that a scan of types cannot follow: what they reach
    /// (a store's keyspaces under number 0) is among the leaks.
    pub untraced_roots: Vec<usize>,
}

impl LeakReport {
    /// Whether every block is reached, and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.leaks.is_empty() && self.findings.is_empty() && self.untraced_roots.is_empty()
    }
}

impl Heap {
    /// Finds the blocks that no named root reaches, by the types that the program knows. Views and
    /// commits wait while it runs; a thread that has a view must not call it. O(pool), 12 bytes of
    /// memory for each allocated block, and what walking one structure takes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use adamant_heap::{
    /// #     Durability, Error, Heap, MemoryDirectory, Options, Ptr, TypedWrite, Types,
    /// # };
    /// # let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), Options::default())?;
    /// let lost = heap.transaction(Durability::Sync, |tx| {
    ///     let kept = tx.create(1_u64)?;
    ///     tx.named_root_or_create("numbers", |_| Ok(kept))?;
    ///     tx.create(2_u64)
    /// })?;
    /// let report = heap.leaks(&Types::new().with::<Ptr<u64>>())?;
    /// assert_eq!(report.leaks.len(), 1);
    /// assert_eq!(report.leaks[0].offset, lost.offset());
    /// assert!(report.findings.is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// When the directory of named roots or the medium is damaged, and within a transaction of the
    /// same thread; what is wrong with pointers is in the report.
    pub fn leaks(&self, types: &Types) -> Result<LeakReport> {
        self.alone(|blocks, image, _| Scan::new(blocks, image, types)?.run())
    }
}

/// Values and structures that wait to be visited.
enum Waiting {
    Values { owner: u64, owned: Owned },
    Structure { owner: u64, structure: Structure },
}

/// A scan in progress.
struct Scan<'a> {
    blocks: Blocks<'a>,
    image: &'a Image,
    types: &'a Types,
    /// Offsets of all allocated blocks, in order.
    offsets: Vec<u64>,
    /// By block: 0, or the number of its layout in `layouts`, from 1.
    seen: Vec<u32>,
    layouts: Vec<String>,
    /// By type id: its number in `layouts`.
    numbers: BTreeMap<u64, usize>,
    waiting: Vec<Waiting>,
    report: LeakReport,
}

impl<'a> Scan<'a> {
    fn new(blocks: Blocks<'a>, image: &'a Image, types: &'a Types) -> Result<Self> {
        let mut report = LeakReport::default();
        let mut offsets = Vec::new();
        for block in Allocated::blocks(image, blocks.classes)? {
            let (offset, bytes) = block?;
            offsets.push(offset);
            report.block_bytes += bytes;
        }
        report.blocks = offsets.len() as u64;
        Ok(Self {
            blocks,
            image,
            types,
            seen: vec![0; offsets.len()],
            offsets,
            layouts: Vec::new(),
            numbers: BTreeMap::new(),
            waiting: Vec::new(),
            report,
        })
    }

    fn run(mut self) -> Result<LeakReport> {
        let untraced = (0..ROOT_COUNT)
            .filter(|index| self.image.root(*index) != 0 && *index != DIRECTORY_ROOT);
        self.report.untraced_roots.extend(untraced);
        for root in self.directory(self.image.root(DIRECTORY_ROOT))? {
            match self.types.get(root.type_id) {
                Some(kind) => {
                    let owned = Owned { offset: root.offset, len: 1, kind };
                    self.waiting.push(Waiting::Values { owner: 0, owned });
                }
                None => self.reach_unknown(0, root.offset, root.type_id, root.layout()),
            }
        }
        let mut tracer = Tracer::default();
        while let Some(next) = self.waiting.pop() {
            match next {
                Waiting::Values { owner, owned } => self.visit(owner, owned, &mut tracer)?,
                Waiting::Structure { owner, structure } => {
                    self.walk(owner, structure, &mut tracer)?;
                }
            }
        }
        for (offset, _) in self.offsets.iter().zip(&self.seen).filter(|(_, seen)| **seen == 0) {
            let bytes = self.blocks.locate(self.image, *offset)?.bytes();
            self.report.leaks.push(Leak { offset: *offset, bytes });
        }
        self.report.reachable = self.report.blocks - self.report.leaks.len() as u64;
        Ok(self.report)
    }

    /// Reaches the directory and reads it.
    fn directory(&mut self, offset: u64) -> Result<Vec<NamedRoot>> {
        if offset == 0 {
            return Ok(Vec::new());
        }
        let layout = "the directory of named roots";
        // No type has the id 0.
        if !self.reach(0, offset, 0, || layout.into()) {
            return Err(Error::InvalidPointer {
                offset,
                what: "is not allocated, but said to be the directory of named roots",
            });
        }
        decode(self.blocks.block(self.image, offset)?, offset)
    }

    /// Notes that a pointer of this type reaches a block. Returns whether it is the first one;
    /// counts a second one, and reports one of another type or to no block.
    fn reach(&mut self, owner: u64, offset: u64, id: u64, layout: impl Fn() -> String) -> bool {
        let Ok(index) = self.offsets.binary_search(&offset) else {
            let layout = layout();
            self.report.findings.push(LeakFinding::Dangling { owner, offset, layout });
            return false;
        };
        let number = *self.numbers.entry(id).or_insert_with(|| {
            self.layouts.push(layout());
            self.layouts.len()
        });
        let seen = &mut self.seen[index];
        match *seen as usize {
            0 => {
                *seen = number as u32;
                return true;
            }
            same if same == number => self.report.shared += 1,
            other => {
                let (layout, other) = (layout(), self.layouts[other - 1].clone());
                let finding = LeakFinding::Mismatch { owner, offset, layout, other };
                self.report.findings.push(finding);
            }
        }
        false
    }

    fn reach_unknown(&mut self, owner: u64, offset: u64, id: u64, layout: String) {
        if self.reach(owner, offset, id, || layout.clone()) {
            self.report.findings.push(LeakFinding::Unknown { owner, offset, layout });
        }
    }

    /// Reaches the block of a pointer and, if it is new, notes everything that it owns.
    fn visit(&mut self, owner: u64, owned: Owned, tracer: &mut Tracer) -> Result<()> {
        let Owned { offset, len, kind: Kind { layout, trace } } = owned;
        let words = || if len == 1 { layout.to_string() } else { format!("{len} times {layout}") };
        if !self.reach(owner, offset, layout.id(), words) {
            return Ok(());
        }
        let block = self.blocks.block(self.image, offset)?;
        let bytes = len.checked_mul(layout.bytes()).and_then(|bytes| usize::try_from(bytes).ok());
        let Some(values) = bytes.and_then(|bytes| block.get(..bytes)) else {
            let (bytes, layout) = (block.len() as u64, words());
            self.report.findings.push(LeakFinding::Short { owner, offset, bytes, layout });
            return Ok(());
        };
        trace(values, tracer);
        self.note(offset, tracer);
        Ok(())
    }

    /// Reaches the first block of a structure and, if it is new, all other blocks and what they
    /// own.
    fn walk(&mut self, owner: u64, structure: Structure, tracer: &mut Tracer) -> Result<()> {
        let Structure { head, layout, walk } = structure;
        if !self.reach(owner, head, layout.id(), || layout.to_string()) {
            return Ok(());
        }
        walk(&Traced::new(self.blocks, self.image), head, tracer)?;
        // An id of this structure alone, so that a block in two structures is reported.
        let id = layout.id().wrapping_add(head);
        for part in tracer.parts.drain(..) {
            self.reach(head, part, id, || format!("a block of the {layout} at {head:#x}"));
        }
        for (offset, what) in tracer.damaged.drain(..) {
            self.report.findings.push(LeakFinding::Damaged { owner: head, offset, what });
        }
        self.note(head, tracer);
        Ok(())
    }

    /// Notes what an object or a structure owns.
    fn note(&mut self, owner: u64, tracer: &mut Tracer) {
        let values = tracer.owned.drain(..).map(|owned| Waiting::Values { owner, owned });
        self.waiting.extend(values);
        let structures = tracer.structures.drain(..);
        self.waiting.extend(structures.map(|structure| Waiting::Structure { owner, structure }));
        for any in tracer.any.drain(..) {
            match self.types.get(any.id()) {
                Some(kind) => {
                    let owned = Owned { offset: any.offset(), len: 1, kind };
                    self.waiting.push(Waiting::Values { owner, owned });
                }
                None => {
                    let layout = format!("a type with the id {:#x}", any.id());
                    self.reach_unknown(owner, any.offset(), any.id(), layout);
                }
            }
        }
    }
}
