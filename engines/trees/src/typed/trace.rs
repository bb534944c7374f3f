//! Typed maps in the scan for leaks.
//!
//! Purpose: implements [`Trace`] for [`Map`], so that the scan follows a map that is a named root
//! or a field of an object: its blocks, and everything that its values own.
//! Thread safety: the scan has exclusive access to the heap.

use adamant_heap::error::{Error as HeapError, Result as HeapResult};
use adamant_heap::{Persistent, Trace, Traced, Tracer};

use crate::error::Error;
use crate::parts::Part;
use crate::tree::OrderedMap;
use crate::typed::map::{Key, Map};

impl<K: Key, V: Trace, T: OrderedMap> Trace for Map<K, V, T> {
    /// Traces the tree and its values. A map of zeros names no tree, and owns nothing.
    fn trace(&self, tracer: &mut Tracer) {
        if self.head() != 0 {
            tracer.structure(self.head(), Self::STORED, walk::<V, T>);
        }
    }
}

fn walk<V: Trace, T: OrderedMap>(
    read: &Traced<'_>,
    head: u64,
    tracer: &mut Tracer,
) -> HeapResult<()> {
    let outcome = T::open(read, head).and_then(|tree| {
        tree.parts(read, &mut |part| match part {
            Part::Block(block) => tracer.part(block),
            Part::Value(bytes) => match V::read_from_bytes(bytes) {
                Ok(value) => value.trace(tracer),
                Err(_) => tracer.damaged(head, "holds a value of another size than the map's"),
            },
        })
    });
    match outcome {
        Ok(()) => {}
        Err(Error::Damaged { block, what }) => tracer.damaged(block, what),
        Err(Error::Heap(HeapError::InvalidPointer { offset, what })) => {
            tracer.damaged(offset, what);
        }
        Err(Error::Heap(error)) => return Err(error),
        Err(_) => tracer.damaged(head, "is not the head of such a tree"),
    }
    Ok(())
}
