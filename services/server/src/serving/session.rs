//! The session: the protocol state of one client.
//!
//! Purpose: turns requests into steps of a unit. Commands about the connection run at once, in
//! order with the rest; their replies wait behind those of the steps before them.
//! Invariants: a step is self-contained: later requests do not change it.
//! Thread safety: a session belongs to its client's task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use adamant::expiring::ReservedExpiring;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::commands::{self, Command, Flags, Verb, Work};
use crate::commit::unit::{Action, Request, Step, Unit, bytes_of};
use crate::protocol::reply::{Replies, Version};
use crate::protocol::request::Arguments;
use crate::serving::clients::Client;
use crate::serving::shared::Shared;
use crate::state::call::is_word;
use crate::state::watch::Watched;

/// The protocol state of a client.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: Arc<Client>,
    pub(crate) database: usize,
    pub(crate) version: Version,
    pub(crate) is_known: bool,
    multi: Option<Multi>,
    pub(crate) watched: Arc<Watched>,
    pub(crate) silence: Silence,
    /// In a cluster: whether reads may return slightly stale data.
    pub(crate) is_stale: bool,
    /// The database to return to if an EXEC on its way does nothing.
    database_before: Option<usize>,
}

/// Requests since MULTI.
#[derive(Debug, Default)]
struct Multi {
    queued: Vec<(&'static Command, Arguments)>,
    bytes: usize,
    /// Whether one of them was refused: then EXEC does nothing.
    is_broken: bool,
}

/// Which replies a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// All.
    None,
    /// None.
    All,
    /// All but the one to the next command.
    Next,
    /// All but this one.
    This,
}

/// The continuation after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Other requests may join the unit.
    More,
    /// The unit must run before the next request is parsed.
    Wait,
    /// The connection ends when the unit is done.
    End,
    /// The server ends when the unit is done, and the connection after it.
    EndAll,
}

impl Session {
    /// The session of a client that has just connected.
    pub(crate) fn new(shared: Arc<Shared>, client: Arc<Client>) -> Self {
        let watched = Watched::new(&shared.world.watchers);
        let is_known = shared.settings.lock().password.is_none();
        Self {
            shared,
            client,
            database: 0,
            version: Version::Two,
            is_known,
            multi: None,
            watched,
            silence: Silence::None,
            is_stale: false,
            database_before: None,
        }
    }

    /// Whether it has yet to give a password.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.is_known
    }

    /// Bytes that it holds since MULTI.
    pub(crate) fn held_bytes(&self) -> usize {
        self.multi.as_ref().map_or(0, |multi| multi.bytes)
    }

    /// To be called when a unit is done.
    pub(crate) fn done(&mut self, unit: &Unit) {
        if let Some(before) = self.database_before.take()
            && unit.is_aborted
        {
            self.choose(before);
        }
        self.client.watched.store(self.watched.len(), Ordering::Relaxed);
    }

    /// Reserved room for a value of SET, unless it may have none: not within MULTI, where nothing
    /// runs until EXEC, nor in an engine that keeps values elsewhere, nor in a cluster, where it
    /// goes to other nodes.
    pub(crate) fn room(&self, bytes: usize) -> Option<ReservedExpiring> {
        let databases = &self.shared.world.databases;
        if self.shared.world.is_replicated {
            return None;
        }
        if self.multi.is_some() || self.is_stranger() || databases.may_wait(self.database) {
            return None;
        }
        // If there is no space the commit will say so.
        databases.get(self.database).reserve(bytes).ok()
    }

    /// Makes a request a part of a unit, with its value if that has reserved room.
    pub(crate) fn plan(
        &mut self,
        arguments: Arguments,
        room: Option<ReservedExpiring>,
        unit: &mut Unit,
    ) -> Then {
        self.shared.commands.fetch_add(1, Ordering::Relaxed);
        self.silence = match self.silence {
            Silence::Next => Silence::This,
            Silence::This => Silence::None,
            other => other,
        };
        let command = match self.look_up(&arguments) {
            Ok(command) => command,
            Err(words) => {
                if let Some(multi) = &mut self.multi {
                    multi.is_broken = true;
                }
                self.answer(unit, |reply| reply.error(&words));
                return Then::More;
            }
        };
        self.client.note(command.name);
        if self.multi.is_some() && !command.flags.has(Flags::NOW) {
            self.queue(command, arguments, unit);
            return Then::More;
        }
        match command.work {
            Work::Data(_) => {
                let room = room.map(|room| Mutex::new(Some(room)));
                let request = Request { command, database: self.database, arguments, room };
                self.push(unit, Action::Run(request));
                Then::More
            }
            Work::Session(verb) => self.perform(verb, arguments, unit),
        }
    }

    /// The requested command, if it exists and is allowed with these arguments.
    fn look_up(&self, arguments: &[Bytes]) -> Result<&'static Command, String> {
        let Some(command) = commands::find(&arguments[0]) else {
            return Err(unknown(arguments));
        };
        if !command.takes(arguments.len()) {
            self.shared.world.tallies.rejected(command);
            let name = command.name;
            return Err(format!("ERR wrong number of arguments for '{name}' command"));
        }
        if !self.is_known && !command.flags.has(Flags::STRANGER) {
            return Err("NOAUTH Authentication required.".into());
        }
        if self.multi.is_some() && command.flags.has(Flags::NO_MULTI) {
            return Err("ERR Command not allowed inside a transaction".into());
        }
        Ok(command)
    }

    fn queue(&mut self, command: &'static Command, arguments: Arguments, unit: &mut Unit) {
        let queued_max = self.shared.options.queued_max;
        let Some(multi) = &mut self.multi else { return };
        if multi.queued.len() == queued_max {
            multi.is_broken = true;
            let words = format!("ERR more than {queued_max} commands in one transaction");
            return self.answer(unit, |reply| reply.error(&words));
        }
        multi.bytes += bytes_of(&arguments);
        multi.queued.push((command, arguments));
        let queued = i64::try_from(multi.queued.len()).unwrap_or(i64::MAX);
        self.client.queued.store(queued, Ordering::Relaxed);
        self.answer(unit, |reply| reply.simple("QUEUED"));
    }

    fn perform(&mut self, verb: Verb, arguments: Arguments, unit: &mut Unit) -> Then {
        match verb {
            Verb::Multi if self.multi.is_some() => {
                self.answer(unit, |reply| reply.error("ERR MULTI calls can not be nested"));
            }
            Verb::Multi => {
                self.multi = Some(Multi::default());
                self.client.queued.store(0, Ordering::Relaxed);
                self.answer(unit, Replies::ok);
            }
            Verb::Exec => return self.exec(unit),
            Verb::Discard => match self.end_multi() {
                Some(_) => {
                    self.unwatch();
                    self.answer(unit, Replies::ok);
                }
                None => self.answer(unit, |reply| reply.error("ERR DISCARD without MULTI")),
            },
            Verb::Watch => self.watch(&arguments[1..], unit),
            Verb::Shutdown => return self.shutdown(&arguments[1..], unit),
            Verb::Cluster if !unit.steps.is_empty() => {
                self.answer(unit, |reply| {
                    reply.error("ERR send ADAMANT.CLUSTER alone, not in one piece with others");
                });
            }
            Verb::Cluster => {
                self.push(unit, Action::Administer(arguments));
                return Then::Wait;
            }
            Verb::Quit => {
                self.answer(unit, Replies::ok);
                return Then::End;
            }
            Verb::Reset => {
                self.end_multi();
                self.reset();
                self.answer(unit, |reply| reply.simple("RESET"));
            }
            verb => {
                let mut reply = Replies::new(self.version);
                let begun = Instant::now();
                let ends = self.local(verb, &arguments, &mut reply);
                if let Some(command) = commands::find(&arguments[0]) {
                    let has_failed = reply.is_error_at(0);
                    self.shared.world.tallies.ran(command, begun.elapsed(), has_failed);
                }
                let is_silent = self.is_silent();
                unit.push_ready(reply, is_silent);
                if ends || self.client.is_killed() {
                    return Then::End;
                }
            }
        }
        Then::More
    }

    fn exec(&mut self, unit: &mut Unit) -> Then {
        let Some(multi) = self.end_multi() else {
            self.answer(unit, |reply| reply.error("ERR EXEC without MULTI"));
            return Then::More;
        };
        let watched = self.unwatch();
        if multi.is_broken {
            self.answer(unit, |reply| {
                reply.error("EXECABORT Transaction discarded because of previous errors.");
            });
            return Then::More;
        }
        let before = self.database;
        let mut parts = Vec::with_capacity(multi.queued.len());
        for (command, arguments) in multi.queued {
            parts.push(match command.work {
                Work::Data(_) => {
                    Action::Run(Request { command, database: self.database, arguments, room: None })
                }
                Work::Session(verb) => {
                    let mut reply = Replies::new(self.version);
                    self.local(verb, &arguments, &mut reply);
                    Action::Ready(reply.take())
                }
            });
        }
        self.push(unit, Action::Exec { parts, watched });
        if self.database == before {
            return Then::More;
        }
        self.database_before = Some(before);
        Then::Wait
    }

    fn watch(&mut self, keys: &[Bytes], unit: &mut Unit) {
        let watched_max = self.shared.options.watched_max;
        if self.multi.is_some() {
            self.answer(unit, |reply| reply.error("ERR WATCH inside MULTI is not allowed"));
        } else if self.watched.len() + keys.len() > watched_max {
            let words = format!("ERR more than {watched_max} keys are watched (--watched-max)");
            self.answer(unit, |reply| reply.error(&words));
        } else {
            let (keys, watched) = (keys.to_vec(), Arc::clone(&self.watched));
            self.push(unit, Action::Watch { database: self.database, keys, watched });
        }
    }

    fn shutdown(&mut self, words: &[Bytes], unit: &mut Unit) -> Then {
        let known = ["NOSAVE", "SAVE", "NOW", "FORCE"];
        if !words.iter().all(|word| known.iter().any(|known| is_word(word, known))) {
            self.answer(unit, |reply| reply.error(crate::state::call::SYNTAX));
            return Then::More;
        }
        Then::EndAll
    }

    fn end_multi(&mut self) -> Option<Multi> {
        self.client.queued.store(-1, Ordering::Relaxed);
        self.multi.take()
    }

    /// Stops watching; returns what was watched.
    pub(crate) fn unwatch(&mut self) -> Arc<Watched> {
        let fresh = Watched::new(&self.shared.world.watchers);
        std::mem::replace(&mut self.watched, fresh)
    }

    /// Resets the session to its initial state.
    fn reset(&mut self) {
        self.unwatch();
        self.choose(0);
        self.set_version(Version::Two);
        self.is_known = self.shared.settings.lock().password.is_none();
        self.silence = Silence::None;
        self.is_stale = false;
        self.client.names.lock().name = Bytes::new();
    }

    /// Selects a database.
    pub(crate) fn choose(&mut self, database: usize) {
        self.database = database;
        self.client.database.store(database, Ordering::Relaxed);
    }

    /// Sets the version of the protocol.
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.client.is_three.store(version == Version::Three, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        matches!(self.silence, Silence::All | Silence::This)
    }

    fn push(&self, unit: &mut Unit, action: Action) {
        let (version, is_silent) = (self.version, self.is_silent());
        let may_wait = self.shared.world.databases.may_wait(self.database);
        unit.is_fresh |= !self.is_stale;
        unit.push(Step { action, version, is_silent }, may_wait);
    }

    fn answer(&self, unit: &mut Unit, write: impl FnOnce(&mut Replies)) {
        let mut reply = Replies::new(self.version);
        write(&mut reply);
        unit.push_ready(reply, self.is_silent());
    }
}

/// The error of Redis for an unknown command.
fn unknown(arguments: &[Bytes]) -> String {
    /// Maximum bytes of the name, and of the arguments, that are shown.
    const BYTES_MAX: usize = 128;
    let shown =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]).into_owned();
    let mut behind = String::new();
    for argument in &arguments[1..] {
        if behind.len() >= BYTES_MAX {
            break;
        }
        let room = BYTES_MAX - behind.len();
        let part = shown(&argument[..argument.len().min(room)]);
        behind.push_str(&format!("'{part}' "));
    }
    format!("ERR unknown command '{}', with args beginning with: {behind}", shown(&arguments[0]))
}
