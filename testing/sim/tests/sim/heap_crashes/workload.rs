//! A scripted user of a heap: the same seed does the same.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use adamant_heap::{Durability, Error, Flushing, Heap, Result, Transaction, Write};
use adamant_sim::{Call, Fault, Mark, SimDisk};

use crate::heap_crashes::model::{
    HEADER_BYTES, Model, SLOTS, commit_of, is_poisoned, open_bounded, slot_at,
};

/// Bytes of a block too large for one frame, by far.
const LARGE_BYTES: Range<usize> = 1_100_000..1_500_000;

/// All durabilities.
pub(crate) const ALL: &[Durability] =
    &[Durability::Sync, Durability::Buffered, Durability::Deferred];

/// The kinds of steps that a workload takes: by default small commits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) flushing: Flushing,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    /// One commit in this many writes a large block; 0: none does.
    pub(crate) large_one_in: u64,
    /// One step in this many is a checkpoint, and one a sync; 0: none.
    pub(crate) upkeep_one_in: u64,
    /// One step in this many reserves, publishes, frees or sets a word without a transaction; 0:
    /// none.
    pub(crate) alone_one_in: u64,
    /// One commit in this many overwrites parts of several blocks that it declared at once; 0:
    /// none.
    pub(crate) declare_one_in: u64,
    /// One step in this many is a transaction that fails at its end; 0: none.
    pub(crate) abort_one_in: u64,
    /// One step in this many is taken by another thread, while this one waits; 0: none.
    pub(crate) thread_one_in: u64,
    /// One step in this many closes the heap and opens it again; 0: none.
    pub(crate) reopen_one_in: u64,
    /// One step in this many gives free space back; 0: none.
    pub(crate) shrink_one_in: u64,
    /// Whether the log is given back then, too, half of the times, which ends backups.
    pub(crate) gives_log_back: bool,
    /// Whether no file can be mapped shared.
    pub(crate) is_unmapped: bool,
    /// The bound of the memory that differs from the file's.
    pub(crate) memory_bytes_max: u64,
    /// The durabilities to choose from.
    pub(crate) durabilities: &'static [Durability],
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            flushing: Flushing::Auto,
            seed: 0,
            steps: 0,
            large_one_in: 0,
            upkeep_one_in: 0,
            alone_one_in: 0,
            declare_one_in: 0,
            abort_one_in: 0,
            thread_one_in: 0,
            reopen_one_in: 0,
            shrink_one_in: 0,
            gives_log_back: false,
            is_unmapped: false,
            memory_bytes_max: u64::MAX,
            durabilities: ALL,
        }
    }
}

/// A heap in use, and its expected contents.
pub(crate) struct Workload {
    pub(crate) disk: SimDisk,
    pub(crate) heap: Arc<Heap>,
    /// By commit.
    pub(crate) models: Vec<Model>,
    /// Errors that the heap survived.
    pub(crate) refused: u64,
    pub(crate) mix: Mix,
    random: fastrand::Rng,
    /// A block that was published without a transaction, and that no pointer refers to yet.
    loose: Option<(u64, Vec<u8>)>,
    /// The number of such blocks of a process that died, at most: no pointer will ever refer to
    /// them.
    lost_max: u64,
}

impl Workload {
    /// Creates a heap on an empty disk.
    pub(crate) fn create(disk: &SimDisk, mix: Mix) -> Result<Workload> {
        if mix.is_unmapped {
            disk.fail_calls(Call::MapShared, Fault::Device);
        }
        let (heap, _) = open_bounded(disk, mix.flushing, mix.memory_bytes_max)?;
        Mark::Durable.put(disk, 0);
        Ok(Workload {
            disk: disk.clone(),
            heap: Arc::new(heap),
            models: vec![Model::empty(mix.flushing)],
            refused: 0,
            mix,
            random: fastrand::Rng::with_seed(mix.seed),
            loose: None,
            lost_max: 0,
        })
    }

    /// Continues with a heap that was recovered to the last of these models.
    pub(crate) fn resume(disk: &SimDisk, heap: Heap, models: &[Model], mix: Mix) -> Workload {
        let models = models.to_vec();
        Workload {
            disk: disk.clone(),
            heap: Arc::new(heap),
            lost_max: models.last().map_or(0, |model| model.loose_max),
            models,
            refused: 0,
            mix,
            random: fastrand::Rng::with_seed(mix.seed),
            loose: None,
        }
    }

    /// Creates a heap, takes all steps, and returns its expected contents by commit.
    pub(crate) fn run(disk: &SimDisk, mix: Mix) -> Vec<Model> {
        let mut workload = Workload::create(disk, mix).unwrap();
        for _ in 0..mix.steps {
            workload.step().unwrap();
        }
        workload.models.last().unwrap().verify(&workload.heap);
        workload.models
    }

    /// Closes the heap and opens it again.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        self.heap.close()?;
        Mark::Durable.put(&self.disk, self.last().commit);
        let mix = &self.mix;
        self.heap = Arc::new(open_bounded(&self.disk, mix.flushing, mix.memory_bytes_max)?.0);
        Ok(())
    }

    pub(crate) fn last(&self) -> &Model {
        self.models.last().unwrap()
    }

    /// A step, on this thread or another one.
    pub(crate) fn step(&mut self) -> Result<()> {
        if self.one_in(self.mix.thread_one_in) {
            let step = || self.step_here();
            let done = thread::scope(|scope| scope.spawn(step).join());
            return done.unwrap_or_else(|panic| resume_unwind(panic));
        }
        self.step_here()
    }

    /// Upkeep, a commit, or a transaction that fails.
    fn step_here(&mut self) -> Result<()> {
        if self.one_in(self.mix.upkeep_one_in) {
            self.heap.checkpoint()?;
            Mark::Durable.put(&self.disk, self.last().commit);
        } else if self.one_in(self.mix.upkeep_one_in) {
            self.heap.sync()?;
            Mark::Durable.put(&self.disk, self.last().commit);
        } else if self.one_in(self.mix.reopen_one_in) {
            self.reopen()?;
        } else if self.one_in(self.mix.shrink_one_in) {
            self.heap.shrink()?;
            if self.mix.gives_log_back && self.random.bool() {
                self.heap.lend_log_space(|| ())?;
            }
            Mark::Durable.put(&self.disk, self.last().commit);
        } else if self.one_in(self.mix.abort_one_in) {
            self.abort()?;
        } else if self.one_in(self.mix.alone_one_in) {
            let durability = *self.random.choice(self.mix.durabilities).unwrap();
            self.act_alone(durability)?;
        } else {
            let durability = *self.random.choice(self.mix.durabilities).unwrap();
            self.commit(durability)?;
        }
        Ok(())
    }

    /// One transaction of some changes. After an error it is undone, or the heap is poisoned.
    pub(crate) fn commit(&mut self, durability: Durability) -> Result<()> {
        let mut model = self.last().clone();
        model.commit += 1;
        model.loose_max = self.lost_max + u64::from(self.loose.is_some());
        let seed = self.random.u64(..);
        let large = self.one_in(self.mix.large_one_in);
        let declare = self.one_in(self.mix.declare_one_in);
        self.transaction(durability, model, |tx, header, model| {
            let mut random = fastrand::Rng::with_seed(seed);
            if large {
                let bytes = random.usize(LARGE_BYTES);
                fill_slot(tx, header, model, &mut random, bytes)?;
            }
            if declare {
                overwrite_declared(tx, header, model, &mut random)?;
            }
            for _ in 0..random.usize(1..4) {
                change(tx, header, model, &mut random)?;
            }
            Ok(())
        })
    }

    /// A transaction of some changes that is aborted at the end.
    fn abort(&mut self) -> Result<()> {
        let mut model = self.last().clone();
        let mut random = self.random.fork();
        let given_up: Result<()> = self.heap.transaction(Durability::Sync, |tx| {
            let header = header(tx)?;
            if random.bool() {
                overwrite_declared(tx, header, &mut model, &mut random)?;
            }
            // A block that is too large for a copy, if there is one.
            let is_large = |bytes: &Option<Arc<Vec<u8>>>| {
                bytes.as_ref().is_some_and(|bytes| bytes.len() > 4096)
            };
            if let Some(slot) = model.slots.iter().position(is_large) {
                overwrite_slot(tx, header, &mut model, &mut random, slot)?;
            }
            for _ in 0..random.usize(1..4) {
                change(tx, header, &mut model, &mut random)?;
            }
            Err(Error::Misuse { what: "given up on purpose" })
        });
        match given_up {
            Err(Error::Misuse { .. }) => Ok(()),
            other => other,
        }
    }

    /// One action without a transaction. Publishing and freeing do not show in the header, so until
    /// the next commit one more block may be there or not.
    fn act_alone(&mut self, durability: Durability) -> Result<()> {
        let header = self.heap.view()?.root(0);
        if let Some((block, bytes)) = self.loose.take() {
            match self.random.u8(..3) {
                0 => return self.heap.free(durability, block),
                _ => return self.link(durability, block, bytes),
            }
        }
        if header != 0 && self.random.bool() {
            let mut model = self.last().clone();
            model.commit += 1;
            model.loose_max = self.lost_max;
            let commit = model.commit;
            return self.note(durability, model, |heap| {
                heap.transaction(durability, |tx| tx.update_u64(header, 0, commit))
            });
        }
        let mut bytes = vec![0; self.random.usize(1..50_000)];
        self.random.fill(&mut bytes);
        let mut reservation = self.heap.reserve(bytes.len() as u64)?;
        let mut cancelled = self.heap.reserve(self.random.u64(1..9000))?;
        reservation.copy_from_slice(&bytes);
        cancelled.fill(1);
        let block = reservation.offset();
        // Before the attempt: whether it succeeded, or poisoned when it was visible, it may be
        // there.
        self.models.last_mut().unwrap().loose_max = self.lost_max + 1;
        self.heap.publish(durability, [reservation])?;
        self.loose = Some((block, bytes));
        Ok(())
    }

    /// A transaction that has a slot point to a block that was published without a transaction, and
    /// publishes another reservation itself.
    fn link(&mut self, durability: Durability, block: u64, bytes: Vec<u8>) -> Result<()> {
        let mut model = self.last().clone();
        model.commit += 1;
        model.loose_max = self.lost_max;
        let mut reservation = self.heap.reserve(77)?;
        reservation.fill(7);
        self.transaction(durability, model, |tx, header, model| {
            for (slot, block, bytes) in
                [(0, block, bytes), (1, tx.publish(reservation)?, vec![7; 77])]
            {
                empty_slot(tx, header, model, slot)?;
                tx.update_u64(header, 8 + slot * 16, block)?;
                tx.update_u64(header, 16 + slot * 16, bytes.len() as u64)?;
                model.slots[slot] = Some(Arc::new(bytes));
            }
            Ok(())
        })
    }

    /// One transaction that only frees a slot, if there is a full one.
    pub(crate) fn free_one(&mut self, durability: Durability) -> Result<()> {
        let mut model = self.last().clone();
        model.commit += 1;
        let slot = model.slots.iter().position(Option::is_some);
        self.transaction(durability, model, |tx, header, model| match slot {
            Some(slot) => empty_slot(tx, header, model, slot),
            None => Ok(()),
        })
    }

    fn transaction(
        &mut self,
        durability: Durability,
        mut model: Model,
        work: impl FnOnce(&mut Transaction<'_>, u64, &mut Model) -> Result<()>,
    ) -> Result<()> {
        let commit = model.commit;
        Mark::Begun.put(&self.disk, commit);
        let done = self.heap.transaction(durability, |tx| {
            let header = header(tx)?;
            work(tx, header, &mut model)?;
            tx.update_u64(header, 0, commit)
        });
        self.note_done(durability, model, done)
    }

    fn note(
        &mut self,
        durability: Durability,
        model: Model,
        work: impl FnOnce(&Heap) -> Result<()>,
    ) -> Result<()> {
        Mark::Begun.put(&self.disk, model.commit);
        let done = work(&self.heap);
        self.note_done(durability, model, done)
    }

    /// Notes the outcome of a commit.
    fn note_done(&mut self, durability: Durability, model: Model, done: Result<()>) -> Result<()> {
        let commit = model.commit;
        match (&done, durability) {
            (Ok(()), Durability::Sync) => Mark::Durable.put(&self.disk, commit),
            (Ok(()), Durability::Buffered) => Mark::Buffered.put(&self.disk, commit),
            (Ok(()), Durability::Deferred) => {}
            (Err(error), _) if is_poisoned(error) && commit_of(&self.heap) == commit => {}
            (Err(_), _) => {
                self.refused += 1;
                self.last().verify(&self.heap);
                return done;
            }
        }
        self.models.push(model);
        done
    }

    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.random.u64(..count) == 0
    }
}

/// The header block, made by the first commit.
fn header(tx: &mut Transaction<'_>) -> Result<u64> {
    match tx.root(0) {
        0 => {
            let header = tx.reserve(HEADER_BYTES as u64)?;
            tx.write(header, 0, HEADER_BYTES)?.fill(0);
            tx.set_root(0, header)?;
            Ok(header)
        }
        header => Ok(header),
    }
}

/// One change of a random kind.
fn change(
    tx: &mut Transaction<'_>,
    header: u64,
    model: &mut Model,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let slot = random.usize(..SLOTS);
    match random.u8(..8) {
        0 => empty_slot(tx, header, model, slot),
        1 | 2 => overwrite_slot(tx, header, model, random, slot),
        3 => {
            let undone: Result<()> = tx.savepoint(|tx| {
                let mut model = model.clone();
                overwrite_slot(tx, header, &mut model, random, slot)?;
                fill_slot(tx, header, &mut model, random, 300)?;
                empty_slot(tx, header, &mut model, slot)?;
                Err(Error::Misuse { what: "undone on purpose" })
            });
            match undone {
                Err(Error::Misuse { .. }) => Ok(()),
                other => other,
            }
        }
        _ => {
            let bytes = match random.u8(..8) {
                0..=3 => random.usize(1..200),
                4..=6 => random.usize(200..4000),
                _ => random.usize(4000..40_000),
            };
            tx.savepoint(|tx| fill_slot(tx, header, model, random, bytes))
        }
    }
}

/// Reserves a new block for a random slot; frees the previous one.
fn fill_slot(
    tx: &mut Transaction<'_>,
    header: u64,
    model: &mut Model,
    random: &mut fastrand::Rng,
    len: usize,
) -> Result<()> {
    let slot = random.usize(..SLOTS);
    empty_slot(tx, header, model, slot)?;
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    let block = tx.reserve(len as u64)?;
    tx.write(block, 0, len)?.copy_from_slice(&bytes);
    tx.update_u64(header, 8 + slot * 16, block)?;
    tx.update_u64(header, 16 + slot * 16, len as u64)?;
    model.slots[slot] = Some(Arc::new(bytes));
    Ok(())
}

/// Overwrites some bytes of a block in place.
fn overwrite_slot(
    tx: &mut Transaction<'_>,
    header: u64,
    model: &mut Model,
    random: &mut fastrand::Rng,
    slot: usize,
) -> Result<()> {
    let Some(bytes) = &mut model.slots[slot] else { return Ok(()) };
    let bytes = Arc::make_mut(bytes);
    let start = random.usize(..bytes.len());
    let end = bytes.len().min(start + random.usize(1..10_000));
    random.fill(&mut bytes[start..end]);
    let (block, _) = slot_at(tx, header, slot);
    tx.write(block, start, end - start)?.copy_from_slice(&bytes[start..end]);
    Ok(())
}

/// Overwrites parts of several blocks, all declared before the first changes.
fn overwrite_declared(
    tx: &mut Transaction<'_>,
    header: u64,
    model: &mut Model,
    random: &mut fastrand::Rng,
) -> Result<()> {
    let mut ranges = Vec::new();
    for (slot, bytes) in model.slots.iter_mut().enumerate() {
        if let (Some(bytes), true) = (bytes, random.bool()) {
            let start = random.usize(..bytes.len());
            let end = bytes.len().min(start + random.usize(1..300));
            random.fill(&mut Arc::make_mut(bytes)[start..end]);
            ranges.push((slot, slot_at(tx, header, slot).0, start..end));
        }
    }
    for (slot, block, range) in ranges {
        let Some(bytes) = &model.slots[slot] else { continue };
        tx.write(block, range.start, range.len())?.copy_from_slice(&bytes[range]);
    }
    Ok(())
}

fn empty_slot(tx: &mut Transaction<'_>, header: u64, model: &mut Model, slot: usize) -> Result<()> {
    if model.slots[slot].take().is_some() {
        let (block, _) = slot_at(tx, header, slot);
        tx.free(block)?;
        tx.update_u64(header, 8 + slot * 16, 0)?;
        tx.update_u64(header, 16 + slot * 16, 0)?;
    }
    Ok(())
}
