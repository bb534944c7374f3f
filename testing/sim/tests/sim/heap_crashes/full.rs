//! Actions without a transaction on a disk that is full at any of their allocations: refused
//! actions change nothing, neither in memory nor after reopening; and frees still work.

use adamant_heap::{Durability, Error, Flushing, Heap, Read, Write};
use adamant_sim::SimDisk;
use adamant_sim::tally::seed;

use crate::heap_crashes::model::open;

/// A published block, and its contents.
struct Block {
    offset: u64,
    bytes: Vec<u8>,
}

/// A user of actions, and the expected blocks.
struct User {
    blocks: Vec<Block>,
    random: fastrand::Rng,
    refused: u64,
}

impl User {
    fn verify(&self, heap: &Heap) {
        let view = heap.view().unwrap();
        for Block { offset, bytes } in &self.blocks {
            assert!(
                view.block(*offset).unwrap()[..bytes.len()] == bytes[..],
                "{offset:#x} differs"
            );
        }
        drop(view);
        let report = heap.check().unwrap();
        assert!(report.is_clean(), "{:#?}", report.findings);
        assert_eq!(report.blocks, self.blocks.len() as u64, "none leaked, none is gone");
    }

    /// Notes the outcome of an action, which was refused or done in whole.
    fn is_done(&mut self, heap: &Heap, outcome: Result<(), Error>) -> bool {
        let Err(error) = outcome else { return true };
        assert!(error.is_out_of_space(), "{error:?}");
        self.refused += 1;
        self.verify(heap);
        false
    }

    fn act(&mut self, heap: &Heap) {
        match self.random.u8(..8) {
            0 if !self.blocks.is_empty() => self.free(heap),
            1 if !self.blocks.is_empty() => {
                let index = self.random.usize(..self.blocks.len());
                let Block { offset, bytes } = &self.blocks[index];
                let (offset, at) = (*offset, self.random.usize(..bytes.len() / 8) * 8);
                let value = self.random.u64(..);
                let outcome =
                    heap.transaction(Durability::Sync, |tx| tx.update_u64(offset, at, value));
                if self.is_done(heap, outcome) {
                    self.blocks[index].bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
            }
            _ => self.publish(heap),
        }
    }

    /// Makes some reservations and publishes them at once.
    fn publish(&mut self, heap: &Heap) {
        let mut reservations = Vec::new();
        for _ in 0..self.random.usize(1..5) {
            let words_max = if self.random.u8(..4) == 0 { 40_000 } else { 200 };
            let bytes = self.random.u64(1..=words_max) * 8;
            match heap.reserve(bytes) {
                Ok(mut reservation) => {
                    self.random.fill(&mut reservation);
                    reservations.push(reservation);
                }
                Err(error) => {
                    // The reserved ones are given back here.
                    drop(std::mem::take(&mut reservations));
                    self.is_done(heap, Err(error));
                    return;
                }
            }
        }
        let blocks: Vec<Block> = reservations
            .iter()
            .map(|reserved| Block { offset: reserved.offset(), bytes: reserved.to_vec() })
            .collect();
        let outcome = heap.publish(Durability::Sync, reservations);
        if self.is_done(heap, outcome) {
            self.blocks.extend(blocks);
        }
    }

    fn free(&mut self, heap: &Heap) {
        let block = self.blocks.swap_remove(self.random.usize(..self.blocks.len()));
        heap.free(Durability::Sync, block.offset).expect("frees always find room");
    }
}

#[test]
fn actions_on_a_full_disk_are_refused_and_change_nothing() {
    for flushing in [Flushing::Auto, Flushing::Volatile] {
        let (mut refused, mut reserves) = (0, 0);
        // Seven pages more each time: sooner or later each allocation of the script is the one
        // refused.
        for pages in (0..200).step_by(7) {
            let disk = SimDisk::new(seed(71)).without_history();
            let (heap, _) = open(&disk, flushing).unwrap();
            let random = fastrand::Rng::with_seed(seed(71));
            let mut user = User { blocks: Vec::new(), random, refused: 0 };
            (0..10).for_each(|_| user.act(&heap));
            disk.set_space_bytes(Some(disk.space_used_bytes() + pages * 4096));
            (0..60).for_each(|_| user.act(&heap));
            reserves += u64::from(user.refused > 0);
            refused += user.refused;
            for _ in 0..user.blocks.len() / 2 {
                user.free(&heap);
            }
            user.verify(&heap);
            drop(heap);
            disk.set_space_bytes(None);
            let (heap, _) = open(&disk, flushing).unwrap();
            user.verify(&heap);
            user.act(&heap);
            user.verify(&heap);
        }
        assert!(reserves > 5, "{flushing:?}: refused with {reserves} sizes of the disk");
        println!("actions on a full disk, {flushing:?}: {refused} refused");
    }
}
