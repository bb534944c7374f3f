//! Execution of the steps of a unit.
//!
//! Invariants: a refused command has changed nothing. A failure of the store within a transaction
//! ends the transaction; the failure of a read is its reply.

use std::time::Instant;

use adamant::Error;
use bytes::Bytes;

use crate::commands::{Flags, Work, check_flush, check_swap};
use crate::commit::unit::{Action, Request, Unit};
use crate::commit::world::World;
use crate::protocol::reply::Replies;
use crate::state::call::{Call, Failure, Outcome, check_key};
use crate::state::clock;
use crate::state::data::{Data, Found};
use crate::state::watch::{Seen, Watched};

/// Reply bytes with which a unit goes back to its client before its other steps are done, so that
/// only the client waits until they are taken.
const REPLY_BYTES_ENOUGH: usize = 1 << 20;

/// Why the execution of a unit stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is done.
    Done,
    /// There are enough replies.
    Enough,
    /// The next step must run alone.
    Alone,
}

/// Runs the steps of a unit from the next one on.
///
/// # Errors
/// The store failed within the transaction of `data`, which is to be dropped.
pub(crate) fn run(world: &World, data: &mut Data<'_>, unit: &mut Unit) -> Result<Stop, Error> {
    let Unit { steps, next, replies, is_aborted, .. } = unit;
    while let Some(step) = steps.get(*next) {
        let start = replies.len();
        if start > REPLY_BYTES_ENOUGH {
            return Ok(Stop::Enough);
        }
        replies.version = step.version;
        match &step.action {
            Action::Run(request) if is_alone(request, data) => return Ok(Stop::Alone),
            Action::Exec { parts, watched } => {
                if watched.is_changed(clock::now()) || differs(data, watched)? {
                    *is_aborted = true;
                    replies.null_array();
                } else {
                    replies.array(parts.len());
                    for part in parts {
                        run_action(world, data, part, replies)?;
                    }
                }
            }
            action => run_action(world, data, action, replies)?,
        }
        if step.is_silent {
            replies.truncate(start);
        }
        *next += 1;
    }
    Ok(Stop::Done)
}

/// Whether a command must run alone. If changes are recorded, those of all keys are, too.
fn is_alone(request: &Request, data: &Data<'_>) -> bool {
    let flags = request.command.flags;
    let is_recorded = data.is_recorded() && flags.has(Flags::WRITE);
    flags.has(Flags::ALONE) && data.is_within() && !is_recorded
}

/// Whether a key that is watched by its content has changed.
fn differs(data: &mut Data<'_>, watched: &Watched) -> Result<bool, Error> {
    for seen in watched.seen() {
        // From another node, which may have more databases.
        let found = match seen.database < data.databases() {
            true => data.get(seen.database, &seen.key)?,
            false => None,
        };
        if seen_of(seen.database, &seen.key, found.as_ref()) != seen {
            return Ok(true);
        }
    }
    Ok(false)
}

fn seen_of(database: usize, key: &[u8], found: Option<&Found>) -> Seen {
    Seen::new(database, key, found.map(|(value, deadline)| (&value[..], *deadline)))
}

/// Runs the steps of a read-only unit.
pub(crate) fn look(world: &World, unit: &mut Unit) {
    let mut data = Data::committed(&world.databases, &world.watchers);
    if let Err(error) = run(world, &mut data, unit) {
        fail(unit, &words_of(&error));
    }
}

/// Runs the next step of a unit, which must run alone, outside of all transactions.
pub(crate) fn run_alone(world: &World, unit: &mut Unit) {
    let Some(step) = unit.steps.get(unit.next) else { return };
    let start = unit.replies.len();
    unit.replies.version = step.version;
    if let Action::Run(request) = &step.action {
        let done = match request.command.flags.has(Flags::WRITE) {
            true => change_all(world, request, &mut unit.replies),
            false => {
                let mut data = Data::committed(&world.databases, &world.watchers);
                run_one(world, &mut data, request, &mut unit.replies)
            }
        };
        if let Err(error) = done {
            world.health.note(&error, unit.bytes);
            unit.replies.truncate(start);
            unit.replies.error(&words_of(&error));
        }
    }
    if step.is_silent {
        unit.replies.truncate(start);
    }
    unit.next += 1;
}

/// FLUSHDB, FLUSHALL and SWAPDB: in time that depends neither on the changes that other clients
/// wait for, nor on the number of keys.
fn change_all(world: &World, request: &Request, replies: &mut Replies) -> Result<(), Error> {
    let _alone = world.emptying.write();
    // The databases as they are now that no other thread changes them.
    let mut data = Data::committed(&world.databases, &world.watchers);
    let call = call(world, &mut data, request, replies);
    let done = match request.command.name {
        "swapdb" => check_swap(&call).map(|pair| swap(world, call.data, pair)),
        "flushall" => check_flush(&call)
            .map(|()| (0..world.databases.len()).try_for_each(|it| empty(world, call.data, it))),
        _ => check_flush(&call).map(|()| empty(world, call.data, request.database)),
    };
    match done {
        Ok(done) => {
            done?;
            replies.ok();
            Ok(())
        }
        Err(failure) => refuse(failure, replies),
    }
}

fn empty(world: &World, data: &mut Data<'_>, database: usize) -> Result<(), Error> {
    let gone = watched_in(world, data, database, &[database])?;
    world.databases.clear(database)?;
    gone.iter().for_each(|key| world.watchers.tell(database, key));
    Ok(())
}

fn swap(world: &World, data: &mut Data<'_>, (one, other): (usize, usize)) -> Result<(), Error> {
    if one == other {
        return Ok(());
    }
    let mut changed = Vec::new();
    for database in [one, other] {
        let keys = watched_in(world, data, database, &[one, other])?;
        changed.extend(keys.into_iter().map(|key| (database, key)));
    }
    world.databases.swap(one, other)?;
    changed.iter().for_each(|(database, key)| world.watchers.tell(*database, key));
    Ok(())
}

/// The watched keys of a database that exist in one of these databases.
fn watched_in(
    world: &World,
    data: &mut Data<'_>,
    database: usize,
    places: &[usize],
) -> Result<Vec<Bytes>, Error> {
    let mut found = Vec::new();
    for key in world.watchers.keys(database) {
        for &place in places {
            if data.contains(place, &key)? {
                found.push(key);
                break;
            }
        }
    }
    Ok(found)
}

fn run_action(
    world: &World,
    data: &mut Data<'_>,
    action: &Action,
    replies: &mut Replies,
) -> Result<(), Error> {
    match action {
        Action::Ready(bytes) => replies.raw(bytes),
        Action::Run(request) => run_one(world, data, request, replies)?,
        Action::Watch { database, keys, watched } => {
            for key in keys {
                let found = data.get(*database, key)?;
                match world.is_replicated {
                    true => watched.see(seen_of(*database, key, found.as_ref())),
                    false => {
                        watched.watch(*database, key, found.and_then(|(_, deadline)| deadline));
                    }
                }
            }
            replies.ok();
        }
        Action::Administer(_) => {
            replies.error("ERR this server is no node of a cluster (--cluster)");
        }
        Action::Exec { .. } => unreachable!("MULTI does not queue EXEC"),
    }
    Ok(())
}

fn call<'c, 'd>(
    world: &'c World,
    data: &'c mut Data<'d>,
    request: &'c Request,
    replies: &'c mut Replies,
) -> Call<'c, 'd> {
    Call {
        surroundings: &world.surroundings,
        data,
        database: request.database,
        arguments: &request.arguments,
        room: request.room.as_ref(),
        replies,
        now: clock::now(),
    }
}

fn run_one(
    world: &World,
    data: &mut Data<'_>,
    request: &Request,
    replies: &mut Replies,
) -> Result<(), Error> {
    let start = replies.len();
    let Work::Data(function) = request.command.work else { return Ok(()) };
    if request.command.flags.has(Flags::ADD) && world.bound.is_over() {
        world.tallies.rejected(request.command);
        replies.error("OOM command not allowed when used memory > 'maxmemory'.");
        return Ok(());
    }
    let begun = Instant::now();
    data.take_looks();
    let done = run_function(world, data, request, function, replies);
    let has_failed = done.is_err() || replies.is_error_at(start);
    world.tallies.ran(request.command, begun.elapsed(), has_failed);
    if request.command.looks() {
        let (hits, misses) = data.take_looks();
        world.tallies.looked(hits, misses);
    }
    done
}

fn run_function(
    world: &World,
    data: &mut Data<'_>,
    request: &Request,
    function: fn(&mut Call<'_, '_>) -> Outcome,
    replies: &mut Replies,
) -> Result<(), Error> {
    let start = replies.len();
    let is_within = data.is_within();
    let mut call = call(world, data, request, replies);
    let checked = match request.command.flags.has(Flags::ADD) {
        true => request
            .command
            .keys_of(request.arguments.len())
            .try_for_each(|at| check_key(&request.arguments[at])),
        false => Ok(()),
    };
    match checked.and_then(|()| function(&mut call)) {
        Ok(()) => Ok(()),
        Err(failure) => {
            replies.truncate(start);
            match failure {
                Failure::Store(error) if !is_within => {
                    replies.error(&words_of(&error));
                    Ok(())
                }
                failure => refuse(failure, replies),
            }
        }
    }
}

fn refuse(failure: Failure, replies: &mut Replies) -> Result<(), Error> {
    match failure {
        Failure::Refused(words) => {
            replies.error(&words);
            Ok(())
        }
        Failure::Store(error) => Err(error),
    }
}

/// The reply for a failure of the store. MISCONF is what Redis says when it cannot write its log:
/// clients know it.
pub(crate) fn words_of(error: &Error) -> String {
    if error.is_out_of_space() {
        format!("MISCONF nothing was changed: {error}")
    } else if error.is_poisoned() {
        // The commit may be in the log: the next opening decides.
        format!("MISCONF the device failed, and the change may have been made: {error}")
    } else {
        format!("ERR {error}")
    }
}

/// Answers all steps from `next` on with a failure.
pub(crate) fn fail(unit: &mut Unit, words: &str) {
    for step in &unit.steps[unit.next..] {
        match &step.action {
            _ if step.is_silent => {}
            Action::Ready(bytes) => unit.replies.raw(bytes),
            _ => unit.replies.error(words),
        }
    }
    unit.next = unit.steps.len();
    unit.is_aborted = true;
}
