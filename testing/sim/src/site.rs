//! Sites: the calls of a program that make something durable, any of which can be left out.
//!
//! Purpose: a crash test that passes shows little unless it fails when a flush, a fence or a sync
//! is missing. A disk notes the site of each call; when a site is disabled, its calls succeed and
//! do nothing, on this disk and on all that crashes of it leave.
//! Thread safety: one lock, held for the time of a lookup.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::Mutex;

/// The kinds of calls that make something durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Lines of mapped memory are written back.
    Flush,
    /// Streaming stores: written back as they are made.
    Copy,
    /// The lines that this thread flushed are durable.
    Fence,
    /// A file is durable.
    Sync,
    /// The names in a directory are durable.
    SyncDirectory,
}

/// A call in the program's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The call.
    pub kind: Kind,
    /// Its file in the workspace.
    pub file: &'static str,
    /// The line of the call.
    pub line: u32,
    /// Its column.
    pub column: u32,
}

impl Site {
    pub(crate) fn new(kind: Kind, location: &'static Location<'static>) -> Site {
        let (file, line, column) = (location.file(), location.line(), location.column());
        Site { kind, file, line, column }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            Kind::Flush => "flush",
            Kind::Copy => "copy",
            Kind::Fence => "fence",
            Kind::Sync => "sync",
            Kind::SyncDirectory => "sync directory",
        };
        write!(f, "{verb} at {}:{}:{}", self.file, self.line, self.column)
    }
}

/// The sites reached by a disk and by those that came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    met: BTreeMap<Site, u64>,
    disabled: Option<Site>,
}

impl Sites {
    /// Counts a call; returns whether it is to do its work.
    pub(crate) fn meet(&self, site: Site) -> bool {
        let mut inner = self.inner.lock();
        *inner.met.entry(site).or_insert(0) += 1;
        inner.disabled != Some(site)
    }

    pub(crate) fn disable(&self, site: Option<Site>) {
        self.inner.lock().disabled = site;
    }

    pub(crate) fn met(&self) -> Vec<(Site, u64)> {
        self.inner.lock().met.iter().map(|(&site, &count)| (site, count)).collect()
    }
}
