//! Counted calls of a program, by kind, one of which may fail.
//!
//! Purpose: a test runs a workload repeatedly, each time with the next call of a kind failing,
//! until it passes without a failure. A call fails with the effect that `lib.rs` describes for
//! failing operations; the error is that the device failed, or that there is no space.

use std::io;
use std::ops::Range;
use std::path::Path;

use adamant_medium::error::Error;

/// A call to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Bytes of a file.
    Read,
    /// Bytes of a file; the first half of them is written if it fails.
    Write,
    /// A file becomes durable.
    Sync,
    /// The names in a directory become durable.
    SyncDirectory,
    /// Space for a file.
    Allocate,
    /// Gives back space of a file.
    Punch,
    /// The length of a file.
    SetLen,
    /// Maps a file privately.
    Map,
    /// The same, with stores that reach the file.
    MapShared,
    /// A new file or directory.
    Create,
    /// Renames.
    Rename,
    /// Removes a name.
    Remove,
    /// Lists the names in a directory.
    List,
}

impl Call {
    /// All of them.
    pub const ALL: [Call; 13] = [
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::SyncDirectory,
        Call::Allocate,
        Call::Punch,
        Call::SetLen,
        Call::Map,
        Call::MapShared,
        Call::Create,
        Call::Rename,
        Call::Remove,
        Call::List,
    ];

    /// The name that tests print.
    pub fn name(self) -> &'static str {
        match self {
            Call::Read => "read",
            Call::Write => "write",
            Call::Sync => "sync",
            Call::SyncDirectory => "sync directory",
            Call::Allocate => "allocate",
            Call::Punch => "punch",
            Call::SetLen => "set length",
            Call::Map => "map",
            Call::MapShared => "map shared",
            Call::Create => "create",
            Call::Rename => "rename",
            Call::Remove => "remove",
            Call::List => "list",
        }
    }
}

/// The reason why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device fails.
    Device,
    /// There is no space.
    Full,
}

impl Fault {
    pub(crate) fn error(self, verb: &'static str, path: &Path, offset: Option<u64>) -> Error {
        let source = match self {
            Fault::Device => io::Error::other("the simulated device failed"),
            Fault::Full => io::ErrorKind::StorageFull.into(),
        };
        Error::io(verb, path, offset, 0, source)
    }
}

/// The calls made, and those that are to fail.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    made: [u64; Call::ALL.len()],
    pub(crate) planned: Option<(Call, Range<u64>, Fault)>,
}

impl Calls {
    pub(crate) fn count(&self, call: Call) -> u64 {
        self.made[call as usize]
    }

    /// Counts a call; returns how it fails, if planned.
    pub(crate) fn make(&mut self, call: Call) -> Option<Fault> {
        let made = &mut self.made[call as usize];
        *made += 1;
        let (planned, numbers, fault) = self.planned.as_ref()?;
        (*planned == call && numbers.contains(made)).then_some(*fault)
    }
}
