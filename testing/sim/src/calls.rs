//! Calls of a program, counted by kind, one of which may fail.
//!
//! Purpose: a test runs a workload again and again, each time with the next call of a kind failing, until it
//! passes untouched. A call fails with its effect as `lib.rs` says of failing operations; what is said of it
//! is that the device failed, or that there is no space.

use std::io;
use std::ops::Range;
use std::path::Path;

use adamant_medium::error::Error;

/// What a program asks of a disk.
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
    /// Space of a file is given back.
    Punch,
    /// The length of a file.
    SetLen,
    /// A file in memory.
    Map,
    /// The same, whose stores are the file's.
    MapShared,
    /// A new file or directory.
    Create,
    /// Another name.
    Rename,
    /// A name goes.
    Remove,
    /// The names in a directory.
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

/// Why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device does.
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

    /// Counts a call; how it fails, if it is to.
    pub(crate) fn make(&mut self, call: Call) -> Option<Fault> {
        let made = &mut self.made[call as usize];
        *made += 1;
        let (planned, numbers, fault) = self.planned.as_ref()?;
        (*planned == call && numbers.contains(made)).then_some(*fault)
    }
}
