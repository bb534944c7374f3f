//! The state of the whole disk at one moment, and the operations that change it.
//!
//! Purpose: the running disk and a cursor through its history apply the same operations by the same
//! code. Clones are cheap: they share files and directories until one changes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

use crate::choice::{Choice, Decisions, Doubts};
use crate::file::FileState;
use crate::lines::Line;
use crate::names::{Names, Node};
use crate::pages::place;
use crate::site::Site;

/// The number of the directory that all others are in.
pub(crate) const ROOT: u64 = 0;

/// One operation that was requested of the disk, and happened.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Create {
        directory: u64,
        name: String,
        file: u64,
        path: Arc<Path>,
    },
    /// A second name of a file.
    Link {
        directory: u64,
        name: String,
        file: u64,
    },
    CreateDirectory {
        directory: u64,
        name: String,
        created: u64,
    },
    Rename {
        directory: u64,
        source: String,
        target: String,
    },
    Exchange {
        directory: u64,
        one: String,
        other: String,
    },
    Remove {
        directory: u64,
        name: String,
    },
    SyncDirectory {
        directory: u64,
        failed: bool,
    },
    Write {
        file: u64,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    Allocate {
        file: u64,
        offset: u64,
        len: u64,
    },
    Punch {
        file: u64,
        offset: u64,
        len: u64,
    },
    SetLen {
        file: u64,
        len: u64,
    },
    Sync {
        file: u64,
        failed: bool,
    },
    /// Observed stores to mapped memory, and flushes, since the operation before.
    Memory {
        events: Arc<[Event]>,
    },
    Fence {
        thread: ThreadId,
        site: Site,
    },
    /// An operation that failed and changed nothing.
    Failed {
        verb: &'static str,
    },
}

/// An event of a mapped file's memory.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Store { file: u64, line: u64, bytes: Line },
    Flush { file: u64, lines: Range<u64>, thread: ThreadId },
}

/// A disk: all files and directories by number. Numbers are never reused.
#[derive(Clone, Debug)]
pub(crate) struct State {
    files: BTreeMap<u64, Arc<FileState>>,
    directories: BTreeMap<u64, Arc<Names>>,
}

impl State {
    pub(crate) fn new() -> State {
        let directories = BTreeMap::from([(ROOT, Arc::default())]);
        State { files: BTreeMap::new(), directories }
    }

    pub(crate) fn file(&self, file: u64) -> &FileState {
        &self.files[&file]
    }

    pub(crate) fn directory(&self, directory: u64) -> &Names {
        &self.directories[&directory]
    }

    /// Adds what a program can read of a file, or of a directory and all in it.
    pub(crate) fn hash_visible(&self, node: Node, hasher: &mut impl Hasher) {
        match node {
            Node::File(file) => self.file(file).hash_visible(hasher),
            Node::Directory(directory) => {
                let names = self.directory(directory).visible();
                names.len().hash(hasher);
                for (name, node) in names {
                    name.hash(hasher);
                    self.hash_visible(*node, hasher);
                }
            }
        }
    }

    /// A number that no file and no directory has had.
    pub(crate) fn unused_number(&self) -> u64 {
        let last = |number: Option<&u64>| number.map_or(0, |number| number + 1);
        last(self.files.keys().next_back()).max(last(self.directories.keys().next_back()))
    }

    /// Pages that the files with a name take.
    pub(crate) fn space_pages(&self) -> u64 {
        let named = self.directories.values().flat_map(|names| names.visible().values());
        let files = named.filter_map(|node| match node {
            Node::File(file) => Some(*file),
            Node::Directory(_) => None,
        });
        // Some may have several names.
        let files: BTreeSet<u64> = files.collect();
        files.into_iter().map(|file| self.file(file).space().count()).sum()
    }

    /// Applies operation `number` of the history.
    pub(crate) fn apply(&mut self, number: u64, operation: &Operation) {
        match operation {
            Operation::Create { directory, name, file, path } => {
                self.files.insert(*file, Arc::new(FileState::new(path.clone())));
                self.names(*directory).add(number, name.clone(), Node::File(*file));
            }
            Operation::CreateDirectory { directory, name, created } => {
                self.directories.insert(*created, Arc::default());
                self.names(*directory).add(number, name.clone(), Node::Directory(*created));
            }
            Operation::Rename { directory, source, target } => {
                self.names(*directory).rename(number, source.clone(), target.clone());
            }
            Operation::Link { directory, name, file } => {
                self.names(*directory).add(number, name.clone(), Node::File(*file));
            }
            Operation::Exchange { directory, one, other } => {
                self.names(*directory).exchange(number, one.clone(), other.clone());
            }
            Operation::Remove { directory, name } => {
                self.names(*directory).remove(number, name.clone());
            }
            Operation::SyncDirectory { directory, failed: false } => self.names(*directory).sync(),
            Operation::SyncDirectory { directory, failed: true } => {
                self.names(*directory).sync_failed();
            }
            Operation::Write { file, offset, bytes } => {
                self.at(*file).write(number, bytes, *offset)
            }
            Operation::Allocate { file, offset, len } => {
                self.at(*file).allocate(number, *offset, *len);
            }
            Operation::Punch { file, offset, len } => self.at(*file).punch(number, *offset, *len),
            Operation::SetLen { file, len } => self.at(*file).set_len(number, *len),
            Operation::Sync { file, failed: false } => self.at(*file).sync(number),
            Operation::Sync { file, failed: true } => self.at(*file).sync_failed(),
            Operation::Memory { events } => {
                events.iter().for_each(|event| self.remember(number, event));
            }
            Operation::Fence { thread, .. } => {
                let files = self.files.values_mut().filter(|file| file.is_mapped());
                files.for_each(|file| Arc::make_mut(file).fence(*thread));
            }
            Operation::Failed { .. } => {}
        }
    }

    /// Notes an event of mapped memory before operation `number`.
    pub(crate) fn remember(&mut self, number: u64, event: &Event) {
        match event {
            Event::Store { file, line, bytes } => {
                let state = self.at(*file);
                let (page, _) = place(*line);
                assert!(
                    state.space().missing(page..page + 1) == 0,
                    "a store to page {page} of {}, which takes no space, would be a signal",
                    state.path.display()
                );
                state.store(number, *line, bytes);
            }
            Event::Flush { file, lines, thread } => self.at(*file).flush(lines.clone(), *thread),
        }
    }

    /// Whether a line in doubt has words that may survive separately.
    pub(crate) fn has_torn_lines(&self) -> bool {
        self.nameable_files().any(|(_, file)| file.has_torn_lines())
    }

    /// The death of the process: the disk stays unchanged, and none of its flushes gets its fence.
    pub(crate) fn kill(&mut self) {
        let files = self.files.values_mut().filter(|file| file.is_mapped());
        files.for_each(|file| Arc::make_mut(file).forget_flushes());
    }

    fn at(&mut self, file: u64) -> &mut FileState {
        Arc::make_mut(self.files.get_mut(&file).expect("a file is created before it is used"))
    }

    fn names(&mut self, directory: u64) -> &mut Names {
        let names = self.directories.get_mut(&directory);
        Arc::make_mut(names.expect("a directory is created before it is used"))
    }

    /// All things that a power cut at this moment leaves to chance, in the order in which `crash`
    /// asks.
    pub(crate) fn doubts(&self, torn: bool) -> Doubts {
        let mut doubts = Doubts::new(torn);
        self.directories.values().for_each(|names| names.doubts(&mut doubts));
        self.nameable_files().for_each(|(_, file)| file.doubts(&mut doubts));
        doubts
    }

    /// The disk after a power cut at this moment: all that is left of it is durable.
    pub(crate) fn crash(&self, choice: &mut Choice) -> State {
        let mut decisions = Decisions::new(choice, &self.doubts(choice.is_torn()));
        let crashed = |names: &Names, decisions: &mut Decisions| Arc::new(names.crash(decisions));
        let directories: BTreeMap<u64, Arc<Names>> = self
            .directories
            .iter()
            .map(|(&number, names)| (number, crashed(names, &mut decisions)))
            .collect();
        let files = self
            .nameable_files()
            .map(|(number, file)| (number, Arc::new(file.crash(&mut decisions))))
            .collect();
        State { files, directories }
    }

    /// The files that have a name, or may have one after a power cut.
    fn nameable_files(&self) -> impl Iterator<Item = (u64, &FileState)> {
        let nodes = self.directories.values().flat_map(|names| names.reachable());
        let files = nodes.filter_map(|node| match node {
            Node::File(file) => Some(file),
            Node::Directory(_) => None,
        });
        let files: BTreeSet<u64> = files.collect();
        files.into_iter().map(|file| (file, self.file(file)))
    }
}
