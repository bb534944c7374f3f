//! The table of all commands.
//!
//! Invariants: sorted by name, for binary search. The table's properties are checked before a
//! command runs: the number of its arguments, whether it writes, which arguments are keys.

use super::command::{Command, Flags, Group, Verb, Work};
use super::{counters, expiry, keys, ordered, parts, scan, strings};

/// A command a row: name, arity, flags, keys, group, implementation; the first version of Redis
/// that had it, and a summary.
macro_rules! commands {
    ($($name:literal $arity:literal [$($flag:ident)*] $keys:tt $group:ident $work:ident($done:expr)
        $since:literal $summary:literal;)*) => {
        &[$(Command {
            name: $name,
            arity: $arity,
            flags: Flags::NONE$(.and(Flags::$flag))*,
            keys: $keys,
            group: Group::$group,
            work: Work::$work($done),
            since: $since,
            summary: $summary,
        }),*]
    };
}

/// All commands, by name.
pub(crate) static ALL: &[Command] = commands! {
    "adamant.check" 1 [READ SLOW ALONE NO_MULTI] (0, 0, 0) Server Data(ordered::check)
        "7.0.0" "Verifies the whole store.";
    "adamant.cluster" -2 [ADMIN NO_MULTI] (0, 0, 0) Server Session(Verb::Cluster)
        "7.0.0" "About the nodes of a cluster: STATUS, JOIN, LEAVE.";
    "adamant.count" 3 [READ SLOW] (0, 0, 0) Generic Data(ordered::count)
        "7.0.0" "Counts the keys of a range.";
    "adamant.range" -3 [READ SLOW] (0, 0, 0) Generic Data(ordered::range)
        "7.0.0" "Returns the keys of a range and their values, in order.";
    "append" 3 [WRITE ADD FAST] (1, 1, 1) String Data(parts::append)
        "2.0.0" "Adds to the end of a value.";
    "auth" -2 [FAST STRANGER NO_MULTI] (0, 0, 0) Connection Session(Verb::Auth)
        "1.0.0" "Says who the client is.";
    "client" -2 [ADMIN] (0, 0, 0) Connection Session(Verb::Client)
        "2.4.0" "About connections: ID, GETNAME, SETNAME, SETINFO, LIST, INFO, KILL, NO-EVICT, REPLY.";
    "command" -1 [] (0, 0, 0) Server Session(Verb::Command)
        "2.8.13" "About commands: COUNT, LIST, INFO, DOCS.";
    "config" -2 [ADMIN] (0, 0, 0) Server Session(Verb::Config)
        "2.0.0" "About settings: GET, SET.";
    "copy" -3 [WRITE ADD] (1, 2, 1) Generic Data(keys::copy)
        "6.2.0" "Copies the value of a key to another one.";
    "dbsize" 1 [READ SLOW] (0, 0, 0) Server Data(keys::dbsize)
        "1.0.0" "Returns the number of keys.";
    "decr" 2 [WRITE ADD FAST] (1, 1, 1) String Data(counters::decr)
        "1.0.0" "Takes one from a number.";
    "decrby" 3 [WRITE ADD FAST] (1, 1, 1) String Data(counters::decrby)
        "1.0.0" "Takes from a number.";
    "del" -2 [WRITE] (1, -1, 1) Generic Data(keys::del)
        "1.0.0" "Removes keys.";
    "discard" 1 [FAST NOW] (0, 0, 0) Transactions Session(Verb::Discard)
        "2.0.0" "Forgets the commands of a transaction.";
    "echo" 2 [FAST] (0, 0, 0) Connection Session(Verb::Echo)
        "1.0.0" "Returns what it is given.";
    "exec" 1 [NOW] (0, 0, 0) Transactions Session(Verb::Exec)
        "1.2.0" "Runs the commands of a transaction, as one.";
    "exists" -2 [READ FAST] (1, -1, 1) Generic Data(keys::exists)
        "1.0.0" "Counts the keys that are there.";
    "expire" -3 [WRITE FAST] (1, 1, 1) Generic Data(expiry::expire)
        "1.0.0" "Sets in how many seconds a key ends.";
    "expireat" -3 [WRITE FAST] (1, 1, 1) Generic Data(expiry::expireat)
        "1.2.0" "Sets the second at which a key ends.";
    "expiretime" 2 [READ FAST] (1, 1, 1) Generic Data(expiry::expiretime)
        "7.0.0" "Returns the second at which a key ends.";
    "flushall" -1 [WRITE ALONE] (0, 0, 0) Server Data(keys::flushall)
        "1.0.0" "Removes all keys of all databases.";
    "flushdb" -1 [WRITE ALONE] (0, 0, 0) Server Data(keys::flushdb)
        "1.0.0" "Removes all keys of a database.";
    "get" 2 [READ FAST] (1, 1, 1) String Data(strings::get)
        "1.0.0" "Returns the value of a key.";
    "getdel" 2 [WRITE FAST] (1, 1, 1) String Data(strings::getdel)
        "6.2.0" "Returns the value of a key and removes it.";
    "getex" -2 [WRITE FAST] (1, 1, 1) String Data(strings::getex)
        "6.2.0" "Returns the value of a key and sets when it ends.";
    "getrange" 4 [READ] (1, 1, 1) String Data(parts::getrange)
        "2.4.0" "Returns a part of a value.";
    "getset" 3 [WRITE ADD FAST] (1, 1, 1) String Data(strings::getset)
        "1.0.0" "Sets the value of a key and returns the one before.";
    "hello" -1 [FAST STRANGER NO_MULTI] (0, 0, 0) Connection Session(Verb::Hello)
        "6.0.0" "Chooses a version of the protocol.";
    "incr" 2 [WRITE ADD FAST] (1, 1, 1) String Data(counters::incr)
        "1.0.0" "Adds one to a number.";
    "incrby" 3 [WRITE ADD FAST] (1, 1, 1) String Data(counters::incrby)
        "1.0.0" "Adds to a number.";
    "incrbyfloat" 3 [WRITE ADD FAST] (1, 1, 1) String Data(counters::incrbyfloat)
        "2.6.0" "Adds to a number with decimals.";
    "info" -1 [] (0, 0, 0) Server Session(Verb::Info)
        "1.0.0" "Returns figures of the server.";
    "keys" 2 [READ SLOW] (0, 0, 0) Generic Data(scan::keys)
        "1.0.0" "Returns all keys that match a pattern.";
    "mget" -2 [READ FAST] (1, -1, 1) String Data(strings::mget)
        "1.0.0" "Returns the values of keys.";
    "move" 3 [WRITE FAST] (1, 1, 1) Generic Data(keys::move_to)
        "1.0.0" "Moves a key to another database.";
    "mset" -3 [WRITE ADD] (1, -1, 2) String Data(strings::mset)
        "1.0.1" "Sets the values of keys.";
    "msetnx" -3 [WRITE ADD] (1, -1, 2) String Data(strings::msetnx)
        "1.0.1" "Sets the values of keys if none of them has one.";
    "multi" 1 [FAST NOW] (0, 0, 0) Transactions Session(Verb::Multi)
        "1.2.0" "Begins a transaction.";
    "persist" 2 [WRITE FAST] (1, 1, 1) Generic Data(expiry::persist)
        "2.2.0" "Lets a key stay.";
    "pexpire" -3 [WRITE FAST] (1, 1, 1) Generic Data(expiry::pexpire)
        "2.6.0" "Sets in how many milliseconds a key ends.";
    "pexpireat" -3 [WRITE FAST] (1, 1, 1) Generic Data(expiry::pexpireat)
        "2.6.0" "Sets the millisecond at which a key ends.";
    "pexpiretime" 2 [READ FAST] (1, 1, 1) Generic Data(expiry::pexpiretime)
        "7.0.0" "Returns the millisecond at which a key ends.";
    "ping" -1 [FAST] (0, 0, 0) Connection Session(Verb::Ping)
        "1.0.0" "Answers.";
    "psetex" 4 [WRITE ADD] (1, 1, 1) String Data(strings::psetex)
        "2.6.0" "Sets the value of a key for so many milliseconds.";
    "pttl" 2 [READ FAST] (1, 1, 1) Generic Data(expiry::pttl)
        "2.6.0" "Returns in how many milliseconds a key ends.";
    "quit" -1 [FAST STRANGER NOW] (0, 0, 0) Connection Session(Verb::Quit)
        "1.0.0" "Ends the connection.";
    "randomkey" 1 [READ SLOW] (0, 0, 0) Generic Data(scan::randomkey)
        "1.0.0" "Returns one of all keys, each as likely.";
    "readonly" 1 [FAST] (0, 0, 0) Connection Session(Verb::ReadOnly)
        "3.0.0" "Lets looks of this connection be at what a node of a cluster has, maybe a little old.";
    "readwrite" 1 [FAST] (0, 0, 0) Connection Session(Verb::ReadWrite)
        "3.0.0" "Lets looks of this connection be at all that was acknowledged.";
    "rename" 3 [WRITE] (1, 2, 1) Generic Data(keys::rename)
        "1.0.0" "Gives a key another name.";
    "renamenx" 3 [WRITE FAST] (1, 2, 1) Generic Data(keys::renamenx)
        "1.0.0" "Gives a key a name that no other one has.";
    "reset" 1 [FAST STRANGER NOW] (0, 0, 0) Connection Session(Verb::Reset)
        "6.2.0" "Makes the connection as it was when it was new.";
    "scan" -2 [READ SLOW] (0, 0, 0) Generic Data(scan::scan)
        "2.8.0" "Returns some keys, and where to go on.";
    "select" 2 [FAST] (0, 0, 0) Connection Session(Verb::Select)
        "1.0.0" "Chooses a database.";
    "set" -3 [WRITE ADD] (1, 1, 1) String Data(strings::set)
        "1.0.0" "Sets the value of a key, and when it ends.";
    "setex" 4 [WRITE ADD] (1, 1, 1) String Data(strings::setex)
        "2.0.0" "Sets the value of a key for so many seconds.";
    "setnx" 3 [WRITE ADD FAST] (1, 1, 1) String Data(strings::setnx)
        "1.0.0" "Sets the value of a key that has none.";
    "setrange" 4 [WRITE ADD] (1, 1, 1) String Data(parts::setrange)
        "2.2.0" "Overwrites a part of a value.";
    "shutdown" -1 [ADMIN NO_MULTI] (0, 0, 0) Server Session(Verb::Shutdown)
        "1.0.0" "Closes the store and ends the server.";
    "strlen" 2 [READ FAST] (1, 1, 1) String Data(parts::strlen)
        "2.2.0" "Returns the bytes of a value.";
    "substr" 4 [READ] (1, 1, 1) String Data(parts::getrange)
        "1.0.0" "Returns a part of a value.";
    "swapdb" 3 [WRITE ALONE] (0, 0, 0) Server Data(keys::swapdb)
        "4.0.0" "Exchanges two databases, in one commit.";
    "time" 1 [FAST] (0, 0, 0) Server Session(Verb::Time)
        "2.6.0" "Returns the seconds since 1970, and microseconds.";
    "touch" -2 [READ FAST] (1, -1, 1) Generic Data(keys::exists)
        "3.2.1" "Counts the keys that are there.";
    "ttl" 2 [READ FAST] (1, 1, 1) Generic Data(expiry::ttl)
        "1.0.0" "Returns in how many seconds a key ends.";
    "type" 2 [READ FAST] (1, 1, 1) Generic Data(keys::kind)
        "1.0.0" "Returns what a key holds.";
    "unlink" -2 [WRITE FAST] (1, -1, 1) Generic Data(keys::del)
        "4.0.0" "Removes keys.";
    "unwatch" 1 [FAST] (0, 0, 0) Transactions Session(Verb::Unwatch)
        "2.2.0" "Forgets what is watched.";
    "watch" -2 [FAST NOW] (1, -1, 1) Transactions Session(Verb::Watch)
        "2.2.0" "Makes EXEC do nothing if one of these keys has changed by then.";
};

/// The command of a name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    /// Bytes of the longest name, plus one.
    const ROOM: usize = 16;
    let mut lower = [0; ROOM];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let found = ALL.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok()?;
    Some(&ALL[found])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_found() {
        assert!(ALL.is_sorted_by(|one, other| one.name < other.name));
        for command in ALL {
            assert_eq!(find(command.name.to_uppercase().as_bytes()).unwrap().name, command.name);
            assert!(command.takes(usize::from(command.arity.unsigned_abs())));
        }
        for name in ["", "ge", "gets", "a-very-long-name-of-nothing"] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn which_arguments_are_keys() {
        let keys = |name: &str, arguments| {
            find(name.as_bytes()).unwrap().keys_of(arguments).collect::<Vec<_>>()
        };
        assert_eq!(keys("get", 2), [1]);
        assert_eq!(keys("mset", 5), [1, 3]);
        assert_eq!(keys("del", 4), [1, 2, 3]);
        assert_eq!(keys("rename", 3), [1, 2]);
        assert_eq!(keys("keys", 2), [0; 0]);
        assert_eq!(keys("mset", 4), [1, 3], "its function finds that this is no pair");
    }
}
