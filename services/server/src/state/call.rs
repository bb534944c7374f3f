//! The call of a command: its arguments, data and replies.

use std::borrow::Cow;

use adamant::Deadline;
use bytes::Bytes;

use crate::protocol::number::integer;
use crate::protocol::reply::Replies;
use crate::protocol::request::GivenRoom;
use crate::state::cursors::Cursors;
use crate::state::data::{Data, KEY_BYTES_MAX, is_key};
use crate::state::fences::Fences;

/// Why a command did nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An impossible request: the words of the reply.
    Refused(Cow<'static, str>),
    /// The store failed.
    Store(adamant::Error),
}

impl From<adamant::Error> for Failure {
    fn from(error: adamant::Error) -> Self {
        Self::Store(error)
    }
}

/// The result of a command, or of a part of it.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NO_INTEGER: &str = "ERR value is not an integer or out of range";
pub(crate) const NO_SUCH_KEY: &str = "ERR no such key";
pub(crate) const SAME_OBJECTS: &str = "ERR source and destination objects are the same";
pub(crate) const NO_DATABASE: &str = "ERR DB index is out of range";
pub(crate) const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/// Refuses in fixed words.
pub(crate) fn refuse<T>(words: impl Into<Cow<'static, str>>) -> Outcome<T> {
    Err(Failure::Refused(words.into()))
}

/// The state beside the data that all calls share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) cursors: Cursors,
    pub(crate) fences: Fences,
    /// Maximum bytes of a value.
    pub(crate) value_bytes_max: usize,
    /// Maximum bytes of a reply.
    pub(crate) reply_bytes_max: usize,
}

/// A call. A failed command that writes has changed nothing, unless the store failed, which ends
/// its transaction.
pub(crate) struct Call<'c, 'd> {
    pub(crate) surroundings: &'c Surroundings,
    pub(crate) data: &'c mut Data<'d>,
    pub(crate) database: usize,
    /// The name of the command first.
    pub(crate) arguments: &'c [Bytes],
    /// The given value, if it has reserved room.
    pub(crate) room: Option<&'c GivenRoom>,
    pub(crate) replies: &'c mut Replies,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
}

impl<'c> Call<'c, '_> {
    /// An argument; the table of commands guarantees that it is there.
    pub(crate) fn argument(&self, at: usize) -> &'c Bytes {
        &self.arguments[at]
    }

    /// The command, in lower case, for messages.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(self.argument(0)).to_ascii_lowercase()
    }

    /// Converts an amount of time to milliseconds since 1970: in seconds or milliseconds, relative
    /// or since 1970.
    pub(crate) fn moment(&self, amount: i64, is_seconds: bool, is_moment: bool) -> Outcome<i64> {
        let start = if is_moment { 0 } else { i64::try_from(self.now).unwrap_or(i64::MAX) };
        let millis = amount.checked_mul(if is_seconds { 1000 } else { 1 });
        let millis = millis.and_then(|millis| millis.checked_add(start));
        millis.ok_or_else(|| self.no_time())
    }

    /// Refuses an amount of time.
    pub(crate) fn no_time(&self) -> Failure {
        Failure::Refused(format!("ERR invalid expire time in '{}' command", self.name()).into())
    }

    /// An argument that is an integer.
    pub(crate) fn integer(&self, at: usize) -> Outcome<i64> {
        integer(self.argument(at)).ok_or(Failure::Refused(NO_INTEGER.into()))
    }

    /// An argument that is the number of a database.
    pub(crate) fn database(&self, at: usize) -> Outcome<usize> {
        let number = self.integer(at)?;
        match usize::try_from(number) {
            Ok(number) if number < self.data.databases() => Ok(number),
            _ => refuse(NO_DATABASE),
        }
    }

    /// The entry of an argument's key, in the call's own database.
    pub(crate) fn get(&mut self, at: usize) -> Outcome<Option<crate::state::data::Found>> {
        Ok(self.data.get(self.database, &self.arguments[at])?)
    }

    /// Sets the entry of an argument's key, in the call's own database.
    pub(crate) fn put(&mut self, at: usize, value: &[u8], deadline: Option<Deadline>) -> Outcome {
        Ok(self.data.put(self.database, &self.arguments[at], value, deadline)?)
    }

    /// Sets the first key to the value after it, which may have reserved room.
    pub(crate) fn put_given(&mut self, deadline: Option<Deadline>) -> Outcome {
        let Some(room) = self.room else { return self.put(1, &self.arguments[2], deadline) };
        let Some(value) = room.lock().take() else {
            return refuse("MISCONF nothing was changed: the value is gone, send it again");
        };
        Ok(self.data.put_reserved(self.database, &self.arguments[1], value, deadline)?)
    }

    /// Removes the key of an argument; returns whether it was there.
    pub(crate) fn remove(&mut self, at: usize) -> Outcome<bool> {
        Ok(self.data.remove(self.database, &self.arguments[at])?)
    }

    /// Refuses a reply that is too long.
    pub(crate) fn check_reply(&self, start: usize) -> Outcome {
        let bytes_max = self.surroundings.reply_bytes_max;
        if self.replies.len() - start > bytes_max {
            return refuse(format!(
                "ERR the reply would have more than {bytes_max} bytes (--reply-bytes-max); ask for less"
            ));
        }
        Ok(())
    }
}

/// Refuses an invalid key.
pub(crate) fn check_key(key: &[u8]) -> Outcome {
    if is_key(key) {
        return Ok(());
    }
    refuse(format!("ERR a key has up to {KEY_BYTES_MAX} bytes, this one has {}", key.len()))
}

/// Whether an argument is that word, in any case.
pub(crate) fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// The error of Redis for an unknown subcommand.
pub(crate) fn unknown_sub(command: &str, word: &[u8]) -> String {
    let word = String::from_utf8_lossy(word);
    format!("ERR unknown subcommand '{word}'. Try {command} HELP.")
}
