//! A batch of requests for one combined commit: blocks to allocate, and blocks to free.
//!
//! Purpose: collect the requests of several threads for one record. Bits of one word are coalesced
//! across threads.
//! Thread safety: none of its own. One batch is behind the lock of the posted requests
//! (`requests.rs`), another belongs to the holder of the writer lock.

use crate::error::Error;
use crate::image::class::ClassTable;
use crate::journal::RecordBuilder;
use crate::space::block_bits::Word;
use crate::space::changes::Changes;
use crate::space::reservation::Reservation;

/// Bytes that may be posted to a batch, counting `BLOCK_BYTES` for each block: some 10 us of work.
pub(crate) const POSTED_BYTES_MAX: usize = 32 << 10;
const BLOCK_BYTES: usize = 64;
/// Bytes of memory that a batch keeps for its record.
const RECORD_BYTES_KEPT: usize = 64 << 10;

/// The request of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'r> {
    Publish(&'r [Reservation]),
    Free(u64),
}

impl Request<'_> {
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |reservation: &Reservation| reservation.written_len() + BLOCK_BYTES;
        match self {
            Request::Publish(reservations) => reservations.iter().map(bytes).sum(),
            Request::Free(_) => BLOCK_BYTES,
        }
    }
}

/// Requests that share a record.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) record: RecordBuilder,
    pub(crate) changes: Changes,
    /// Blocks to free, each with the ticket of its request.
    pub(crate) frees: Vec<(u64, u64)>,
    /// Tickets of requests that cannot be done.
    pub(crate) refused: Vec<(u64, Error)>,
    posted_bytes: usize,
}

impl Batch {
    /// An empty batch, with an empty record in the form that the journal takes.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            record: RecordBuilder::new().keeping(RECORD_BYTES_KEPT),
            changes: Changes::default(),
            frees: Vec::new(),
            refused: Vec::new(),
            posted_bytes: 0,
        })
    }

    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.record.clear();
        self.changes.clear();
        self.frees.clear();
        self.refused.clear();
        self.posted_bytes = 0;
    }

    /// Adds a request with its ticket.
    #[inline]
    pub(crate) fn add(&mut self, classes: &ClassTable, request: Request<'_>, ticket: u64) {
        match request {
            Request::Publish(reservations) => {
                for reservation in reservations {
                    self.changes.add(classes, Word::of(reservation.place()));
                    if reservation.written_len() > 0 {
                        self.record.bytes(reservation.offset(), reservation);
                    }
                }
            }
            Request::Free(block) => self.frees.push((block, ticket)),
        }
    }

    /// Adds a request of a waiting caller if there is room for it; returns whether there was.
    pub(crate) fn post(&mut self, classes: &ClassTable, request: Request<'_>, ticket: u64) -> bool {
        let bytes = self.posted_bytes + request.bytes();
        if bytes > POSTED_BYTES_MAX {
            return false;
        }
        self.posted_bytes = bytes;
        self.add(classes, request, ticket);
        true
    }
}
