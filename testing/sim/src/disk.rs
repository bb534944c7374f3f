//! The simulated disk of a workload, its history, and the cursor through that history.
//!
//! Thread safety: a disk has one lock, held for the time of one operation; a cursor is a value.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

use adamant_medium::error::Result;
use parking_lot::{Mutex, MutexGuard};

use crate::calls::{Call, Calls, Fault};
use crate::choice::Choice;
use crate::mapped::Mapped;
use crate::names::Node;
use crate::pages::PAGE_BYTES;
use crate::site::{Site, Sites};
use crate::state::{Event, Operation, ROOT, State};

/// Choices that tear cache lines, at a crash point with few states.
const TORN_CHOICES_MIN: u64 = 8;

/// A disk that remembers its history. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    inner: Arc<Mutex<Inner>>,
}

pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) random: fastrand::Rng,
    /// Locks held, by directory and name.
    pub(crate) locked: Vec<(u64, String)>,
    /// One for each share.
    pub(crate) shared: Vec<(u64, String)>,
    pub(crate) mapped: Mapped,
    pub(crate) sites: Sites,
    pub(crate) calls: Calls,
    /// Events of mapped memory since the last operation; the state has them already.
    events: Vec<Event>,
    recording: bool,
    seed: u64,
    /// The disk before the first operation of the history, and that operation's number.
    origin: (State, u64),
    history: Vec<Operation>,
    /// Marks, each with the number of the operation after it.
    marks: Vec<(u64, u64)>,
    faults: Vec<Range<u64>>,
    space_pages_max: Option<u64>,
    pub(crate) can_exchange: bool,
    pub(crate) renames_open: bool,
}

impl SimDisk {
    /// Whether it is the same disk.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// An empty disk. The seed is for the random bytes that it gives to programs.
    pub fn new(seed: u64) -> SimDisk {
        Self::from_state(State::new(), 0, seed, Sites::default())
    }

    fn from_state(state: State, first: u64, seed: u64, sites: Sites) -> SimDisk {
        let inner = Inner {
            origin: (state.clone(), first),
            state,
            random: fastrand::Rng::with_seed(seed),
            locked: Vec::new(),
            shared: Vec::new(),
            mapped: Mapped::default(),
            sites,
            calls: Calls::default(),
            events: Vec::new(),
            recording: true,
            seed,
            history: Vec::new(),
            marks: Vec::new(),
            faults: Vec::new(),
            space_pages_max: None,
            can_exchange: true,
            renames_open: true,
        };
        SimDisk { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// A hash of all that a program can read on it: names, lengths, space and bytes. O(bytes).
    ///
    /// Disks that a crash left are equal for every program if these are, except for the random
    /// bytes that they give.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner().state.hash_visible(Node::Directory(ROOT), &mut hasher);
        hasher.finish()
    }

    /// The number that the next operation gets: the crash point after all operations so far.
    pub fn operation_count(&self) -> u64 {
        let mut inner = self.inner();
        inner.settle();
        inner.next_number()
    }

    /// Another disk, empty, that shares its sites with this one.
    pub fn emptied(&self) -> SimDisk {
        let inner = self.inner();
        Self::from_state(State::new(), 0, inner.seed, inner.sites.clone())
    }

    /// Makes everything durable and forgets the history: crash points begin here. No program may
    /// run on the disk, as its mappings no longer belong to a file of the disk.
    pub fn begin_history(&self) {
        let mut inner = self.inner();
        inner.settle();
        inner.mapped = Mapped::default();
        let point = inner.next_number();
        inner.state = inner.state.crash(&mut Choice::All);
        inner.origin = (inner.state.clone(), point);
        inner.history.clear();
    }

    /// The same disk, which keeps no history from here on: it cannot crash, and flushes and fences
    /// of mapped memory cost nothing.
    #[must_use]
    pub fn without_history(self) -> SimDisk {
        self.inner().recording = false;
        self
    }

    /// The calls that made something durable, each with its count, on this disk, on those that
    /// crashes of it left, and on those that it came from.
    pub fn sites(&self) -> Vec<(Site, u64)> {
        self.inner().sites.met()
    }

    /// Lets the calls at one site succeed without doing anything, on all the disks of
    /// [`SimDisk::sites`]; `None`: at no site.
    pub fn disable(&self, site: Option<Site>) {
        self.inner().sites.disable(site);
    }

    /// Describes an operation, for messages and to find one: a verb, a path, and numbers. `None` if
    /// it is not in this disk's history.
    pub fn describe(&self, number: u64) -> Option<String> {
        let inner = self.inner();
        let index = usize::try_from(number.checked_sub(inner.origin.1)?).ok()?;
        Some(inner.describe(inner.history.get(index)?))
    }

    /// Puts a value into the history, such as the number of a commit that was acknowledged.
    pub fn mark(&self, value: u64) {
        let mut inner = self.inner();
        let number = inner.next_number();
        inner.marks.push((number, value));
    }

    /// The marks made before a crash point, oldest first.
    pub fn marks(&self, point: u64) -> Vec<u64> {
        let inner = self.inner();
        let before = inner.marks.iter().take_while(|(number, _)| *number <= point);
        before.map(|&(_, value)| value).collect()
    }

    /// Makes the operations of these numbers fail, in addition to those named earlier.
    pub fn fail(&self, operations: Range<u64>) {
        self.inner().faults.push(operations);
    }

    /// Makes the call of a kind with this number fail, counted from 1 and from the start of this
    /// disk.
    pub fn fail_call(&self, call: Call, number: u64, fault: Fault) {
        self.inner().calls.planned = Some((call, number..number + 1, fault));
    }

    /// Makes all calls of a kind fail from now on.
    pub fn fail_calls(&self, call: Call, fault: Fault) {
        self.inner().calls.planned = Some((call, 0..u64::MAX, fault));
    }

    /// How many calls of a kind there were.
    pub fn call_count(&self, call: Call) -> u64 {
        self.inner().calls.count(call)
    }

    /// Makes all calls succeed from now on.
    pub fn repair(&self) {
        let mut inner = self.inner();
        inner.faults.clear();
        inner.calls.planned = None;
    }

    /// Limits the space that files may take, rounded down to whole pages; `None`: no limit. Space
    /// that is taken already stays, also beyond it.
    pub fn set_space_bytes(&self, bytes_max: Option<u64>) {
        self.inner().space_pages_max = bytes_max.map(|bytes| bytes / PAGE_BYTES as u64);
    }

    /// The same disk, whose file system cannot exchange two names.
    #[must_use]
    pub fn without_exchange(self) -> SimDisk {
        self.inner().can_exchange = false;
        self
    }

    /// The same disk, which renames no directory that a lock is held in.
    #[must_use]
    pub fn without_open_renames(self) -> SimDisk {
        self.inner().renames_open = false;
        self
    }

    /// Bytes of space that files with a name take.
    pub fn space_used_bytes(&self) -> u64 {
        self.inner().state.space_pages() * PAGE_BYTES as u64
    }

    /// The walk through the history so far, at its first crash point.
    pub fn cursor(&self) -> Cursor {
        let mut inner = self.inner();
        inner.settle();
        let (state, point) = inner.origin.clone();
        let history = inner.history.as_slice().into();
        let sites = inner.sites.clone();
        Cursor { state, first: point, point, history, seed: inner.seed, sites }
    }

    /// The disk after a power cut at a crash point. To try many, use a cursor.
    pub fn crash(&self, point: u64, choice: &mut Choice) -> SimDisk {
        let mut cursor = self.cursor();
        cursor.advance_to(point);
        cursor.crash(choice)
    }

    /// The disk after the death of the process at a crash point.
    pub fn kill(&self, point: u64) -> SimDisk {
        let mut cursor = self.cursor();
        cursor.advance_to(point);
        cursor.kill()
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("SimDisk")
            .field("operations", &inner.next_number())
            .field("seed", &inner.seed)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn next_number(&self) -> u64 {
        self.origin.1 + self.history.len() as u64
    }

    /// Applies an operation and adds it to the history, after [`Inner::fault`] or
    /// [`Inner::settle`]: looking for stores takes longer than most operations.
    pub(crate) fn record(&mut self, operation: Operation) {
        self.state.apply(self.next_number(), &operation);
        if self.recording {
            self.history.push(operation);
        }
    }

    /// Notes the current contents of some lines of mapped memory, and that they are flushed.
    pub(crate) fn flush(&mut self, file: u64, lines: Range<u64>, thread: ThreadId) {
        if self.recording {
            let changes = self.mapped.changes_in(&self.state, file, lines.clone());
            self.note(changes);
            self.note([Event::Flush { file, lines, thread }]);
        }
    }

    fn note(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.state.remember(self.next_number(), &event);
            self.events.push(event);
        }
    }

    /// Adds the events of mapped memory to the history.
    pub(crate) fn settle(&mut self) {
        if self.recording {
            let changes = self.mapped.changes(&self.state);
            self.note(changes);
        }
        if !self.events.is_empty() {
            let events = std::mem::take(&mut self.events).into();
            self.history.push(Operation::Memory { events });
        }
    }

    /// How the next operation fails, if planned.
    pub(crate) fn fault(&mut self, call: Call) -> Option<Fault> {
        self.settle();
        let fails = self.faults.iter().any(|fault| fault.contains(&self.next_number()));
        self.calls.make(call).or(fails.then_some(Fault::Device))
    }

    /// Fails a call that is no operation of the history, if it is the one planned.
    pub(crate) fn check_call(&mut self, call: Call, verb: &'static str, path: &Path) -> Result<()> {
        self.calls.make(call).map_or(Ok(()), |fault| Err(fault.error(verb, path, None)))
    }

    /// Fails the next operation, without an effect, if planned.
    pub(crate) fn check(&mut self, call: Call, verb: &'static str, path: &Path) -> Result<()> {
        if let Some(fault) = self.fault(call) {
            self.record(Operation::Failed { verb });
            return Err(fault.error(verb, path, None));
        }
        Ok(())
    }

    /// Pages that can still be taken.
    pub(crate) fn space_pages_left(&self) -> u64 {
        match self.space_pages_max {
            None => u64::MAX,
            Some(pages) => pages.saturating_sub(self.state.space_pages()),
        }
    }

    fn describe(&self, operation: &Operation) -> String {
        let path = |file: &u64| self.state.file(*file).path.display();
        let failed = |failed: &bool| if *failed { ", failing" } else { "" };
        match operation {
            Operation::Create { path, .. } => format!("create {}", path.display()),
            Operation::Link { name, .. } => format!("link {name}"),
            Operation::CreateDirectory { name, .. } => format!("create directory {name}"),
            Operation::Rename { source, target, .. } => format!("rename {source} to {target}"),
            Operation::Exchange { one, other, .. } => format!("exchange {one} and {other}"),
            Operation::Remove { name, .. } => format!("remove {name}"),
            Operation::SyncDirectory { directory, failed: fails } => {
                format!("sync directory {directory}{}", failed(fails))
            }
            Operation::Write { file, offset, bytes } => {
                format!("write {} at {offset}: {} bytes", path(file), bytes.len())
            }
            Operation::Allocate { file, offset, len } => {
                format!("allocate {} at {offset}: {len} bytes", path(file))
            }
            Operation::Punch { file, offset, len } => {
                format!("punch {} at {offset}: {len} bytes", path(file))
            }
            Operation::SetLen { file, len } => format!("set length {}: {len}", path(file)),
            Operation::Sync { file, failed: fails } => {
                format!("sync {}{}", path(file), failed(fails))
            }
            Operation::Memory { events } => {
                let flush = |event: &&Event| matches!(event, Event::Flush { .. });
                let flushes = events.iter().filter(flush).count();
                format!("{} lines stored, {flushes} flushes", events.len() - flushes)
            }
            Operation::Fence { site, .. } => site.to_string(),
            Operation::Failed { verb } => format!("{verb}, failing"),
        }
    }
}

/// A crash point of a history, and the disk at it. Walking costs as much as the operations; clones
/// are cheap.
#[derive(Clone, Debug)]
pub struct Cursor {
    state: State,
    first: u64,
    point: u64,
    history: Arc<[Operation]>,
    seed: u64,
    sites: Sites,
}

impl Cursor {
    /// The crash point: the number of the operation that comes next.
    pub fn point(&self) -> u64 {
        self.point
    }

    /// Goes on by one operation; `false` at the end of the history.
    pub fn advance(&mut self) -> bool {
        let Some(operation) = self.history.get((self.point - self.first) as usize) else {
            return false;
        };
        self.state.apply(self.point, operation);
        self.point += 1;
        true
    }

    /// Goes on to a crash point.
    ///
    /// # Panics
    /// If it lies behind, or beyond the end of the history.
    pub fn advance_to(&mut self, point: u64) {
        assert!(point >= self.point, "a cursor at {} cannot go back to {point}", self.point);
        while self.point < point {
            assert!(self.advance(), "the history ends at {}, before {point}", self.point);
        }
    }

    /// Whether the next crash point may leave all states that this one may: the next operations are
    /// stores to mapped memory.
    pub fn is_covered(&self) -> bool {
        let next = self.history.get((self.point - self.first) as usize);
        matches!(next, Some(Operation::Memory { .. }))
    }

    /// Number of disks that a power cut here may leave if it tears no cache line, at most
    /// `u64::MAX`.
    pub fn state_count(&self) -> u64 {
        self.state.doubts(false).state_count()
    }

    /// Choices for this crash point: all states if there are at most `count_max` of them, else
    /// none, all, all but one thing and only one thing for each if that is half of them or less,
    /// and random ones. If cache lines can be torn, a quarter more do that, 8 at least if
    /// `count_max` allows.
    pub fn choices(&self, count_max: u64, seed: u64) -> Vec<Choice> {
        let seeds = |count| (0..count).map(move |number| seed ^ (self.point << 16) ^ number);
        let doubts = self.state.doubts(false);
        let mut choices: Vec<Choice>;
        if doubts.state_count() <= count_max {
            choices = (0..doubts.state_count()).map(Choice::Number).collect();
        } else {
            choices = vec![Choice::None, Choice::All];
            let things = doubts.thing_count();
            if things as u64 <= count_max / 4 {
                choices.extend((0..things).flat_map(|at| [Choice::AllBut(at), Choice::Only(at)]));
            }
            let rest = count_max.saturating_sub(choices.len() as u64);
            choices.extend(seeds(rest).map(Choice::random));
        }
        if self.state.has_torn_lines() {
            let count = (choices.len() as u64).max(count_max.min(TORN_CHOICES_MIN * 4)).div_ceil(4);
            choices.extend(seeds(count).map(Choice::torn));
        }
        choices
    }

    /// The disk after a power cut here: a fresh one, all of it durable, with a history of its own.
    pub fn crash(&self, choice: &mut Choice) -> SimDisk {
        SimDisk::from_state(self.state.crash(choice), 0, self.next_seed(), self.sites.clone())
    }

    /// The disk after the death of the process here: nothing is lost, nothing more is durable. Its
    /// operations are numbered from here.
    pub fn kill(&self) -> SimDisk {
        let mut state = self.state.clone();
        state.kill();
        SimDisk::from_state(state, self.point, self.next_seed(), self.sites.clone())
    }

    /// Random bytes after a restart differ from those before.
    fn next_seed(&self) -> u64 {
        self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.point + 1)
    }
}
