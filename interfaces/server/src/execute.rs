//! Running the steps of a unit.
//!
//! Invariants: a command that is refused has changed nothing. A failure of the store within a
//! transaction ends the transaction; of a look it is the reply.

use adamant::Error;

use crate::call::{Call, Failure, check_key};
use crate::clock;
use crate::commands::{Flags, Work, check_flush};
use crate::data::Data;
use crate::reply::Replies;
use crate::unit::{Action, Request, Unit};
use crate::world::World;

/// Bytes of replies with which a unit goes back to its client before its other steps are done, so
/// that it is the client who waits for them to be taken.
const REPLY_BYTES_ENOUGH: usize = 1 << 20;

/// Why a unit was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is done.
    Done,
    /// There are replies enough.
    Enough,
    /// The next step is to be done alone.
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
            Action::Run(request) if request.command.flags.has(Flags::ALONE) && data.is_within() => {
                return Ok(Stop::Alone);
            }
            Action::Exec { parts, watched } => {
                if watched.is_changed(clock::now()) {
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

/// Runs the next step of a unit, which is to be done alone, outside of all transactions.
pub(crate) fn run_alone(world: &World, unit: &mut Unit) {
    let Some(step) = unit.steps.get(unit.next) else { return };
    let start = unit.replies.len();
    unit.replies.version = step.version;
    let mut data = Data::committed(&world.databases, &world.watchers);
    if let Action::Run(request) = &step.action {
        let done = match request.command.flags.has(Flags::WRITE) {
            true => empty(world, &mut data, request, &mut unit.replies),
            false => run_one(world, &mut data, request, &mut unit.replies),
        };
        if let Err(error) = done {
            unit.replies.truncate(start);
            unit.replies.error(&words_of(&error));
        }
    }
    if step.is_silent {
        unit.replies.truncate(start);
    }
    unit.next += 1;
}

/// FLUSHDB and FLUSHALL: in time that does not depend on what other clients wait for.
fn empty(
    world: &World,
    data: &mut Data<'_>,
    request: &Request,
    replies: &mut Replies,
) -> Result<(), Error> {
    let call = call(world, data, request, replies);
    if let Err(failure) = check_flush(&call) {
        return refuse(failure, call.replies);
    }
    let databases = match request.command.name {
        "flushall" => 0..world.databases.len(),
        _ => request.database..request.database + 1,
    };
    let _alone = world.emptying.write();
    for database in databases {
        let mut gone = world.watchers.keys(database);
        let mut looked = Ok(());
        gone.retain(|key| {
            call.data.contains(database, key).unwrap_or_else(|error| {
                looked = Err(error);
                false
            })
        });
        looked?;
        world.databases.clear(database)?;
        gone.iter().for_each(|key| world.watchers.tell(database, key));
    }
    call.replies.ok();
    Ok(())
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
                watched.watch(*database, key, found.and_then(|(_, deadline)| deadline));
            }
            replies.ok();
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

/// How a client is told of a failure of the store.
pub(crate) fn words_of(error: &Error) -> String {
    if error.is_out_of_space() || error.is_poisoned() {
        // What Redis says when its log cannot be written: clients know it.
        format!("MISCONF nothing was changed: {error}")
    } else {
        format!("ERR {error}")
    }
}

/// Answers all steps from `next` on with a failure: none of them was done.
pub(crate) fn fail(unit: &mut Unit, error: &Error) {
    let words = words_of(error);
    for step in &unit.steps[unit.next..] {
        match &step.action {
            _ if step.is_silent => {}
            Action::Ready(bytes) => unit.replies.raw(bytes),
            _ => unit.replies.error(&words),
        }
    }
    unit.next = unit.steps.len();
    unit.is_aborted = true;
}
