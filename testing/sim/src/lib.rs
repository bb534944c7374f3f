//! A simulated medium that crashes.
//!
//! [`SimDisk`] is a file system in memory that records every operation. After a workload has run
//! once, it can show the disk as a power cut at any point of that history may leave it, and a store
//! is opened on that.
//!
//! # Fault model
//!
//! *Operations* are numbered from 0: create, rename and remove of a name, write, allocate, punch,
//! set length, sync of a file, sync of a directory, and the stores and fences of mapped memory.
//! Crash point `n` lies before operation `n`: all before it were issued. The effects of an
//! unfinished operation `n` are among those that crash point `n + 1` may leave, or, for a sync or a
//! fence, among those that crash point `n` may.
//!
//! *A power cut.* Each 512-byte sector written since the last successful sync of its file holds its
//! durable version or any version written since, each sector independently: so writes are lost,
//! reordered and torn. The length of a file is the durable one or any it had since; bytes beyond it
//! are gone, and when it grows again they are zero. Bytes that a cut of the length removed stay
//! exactly if the cut is lost. Allocated space is given back unless the file was synced. A punch is
//! a write of zeros that takes no space: until the sync each sector survives it or not. Of the
//! names made, moved and removed since the last successful sync of their directory any subset is
//! kept; a rename is atomic, and so is an exchange of two names. A synced file whose name was not
//! synced may have no name. Locks are gone.
//!
//! *A failed sync* makes nothing durable. The data that it should have written stays readable, and
//! looks clean: later successful syncs do not make it durable either, until it is written again. A
//! power cut leaves any version of it. This happens on systems that mark a page clean although
//! writing it failed.
//!
//! *A failed write* leaves its first half in the file, or, if it runs out of space, the part that
//! had room; other operations that fail do nothing. A test chooses the failing operation by its
//! number in the history ([`SimDisk::fail`]), or by its number among the calls of its kind
//! ([`SimDisk::fail_call`]); so reads, mappings and listings, which are no operations, can fail,
//! too.
//!
//! *A store through memory* is two writes, cut at any byte, and never fails; one to bytes that the
//! file does not have, or that take no space yet, would raise a signal and panics.
//!
//! *The death of a process* leaves everything as that process saw it. That does not make it
//! durable: a power cut after the restart may still take it.
//!
//! *Space* is counted in pages of 4 KiB, at the first write to a page or its allocation; a write to
//! a page that has space never runs out of it. A store to mapped memory that has none would raise a
//! signal on a full disk, and panics.
//!
//! *A private image* (`File::map_private`) has the file's bytes as they were when it was mapped,
//! and after `File::drop_private` as they are then. One may be dropped only if a successful sync
//! covers all of the file, else this panics: the system may read data of a failed sync from the
//! medium again, as it was before.
//!
//! *Mapped memory* (`File::map_shared`, `Directory::persist`) is lines of 64 bytes. A store is
//! visible at once, to the program and to reads of the file. A line is durable as it was when it
//! was flushed, once a fence of the same thread followed; a fence of another thread completes
//! nothing. A changed line may be evicted at any time, so a power cut leaves of each line its
//! durable version or any version observed since, each line independently, flushed or not. Lines
//! may be torn: each aligned word of 8 bytes is then of any of these times, which is more than the
//! processors allow. A dead process completes no flush, and its stores stay visible, but in doubt.
//! A sync of the file makes its lines durable; a write to it is stores. No call reports a store, so
//! lines are compared with the last observation: those of a flush at that flush, all of them at
//! each operation. `Persist::copy` does report its stores: a file whose last store was one is not
//! compared. A fence is an operation; before it comes one that stands for all stores and flushes
//! since the last.
//!
//! Not modelled: decay of durable data, a failing read through mapped memory, and a rename of which
//! both names survive.
//!
//! # Crash tests
//!
//! A workload marks in the history what it was promised about its commits ([`Mark`]); at a crash
//! point that gives the [`Promise`] to verify a recovery by. [`Tally`] walks through crash points
//! and states, and counts them.
//!
//! Such tests show something only if they fail when a call is missing: [`mutation`] leaves out the
//! flushes, fences and syncs of a program one call at a time ([`SimDisk::disable`]), and reports
//! which of them the test did not notice.

mod choice;
mod lines;
pub mod linearizable;
mod pages;
mod file;
mod names;
pub mod site;
mod state;
mod mapped;
pub mod calls;
pub mod disk;
mod persist;
pub mod directory;
pub mod hooked;
pub mod promise;
pub mod tally;
pub mod mutation;

pub use calls::{Call, Fault};
pub use choice::Choice;
pub use directory::SimDirectory;
pub use disk::{Cursor, SimDisk};
pub use hooked::Hooked;
pub use promise::{Mark, Promise};
pub use site::Site;
pub use tally::Tally;
