//! The properties of a command.

use crate::state::call::{Call, Outcome};

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Number of arguments, including its name; if negative, the minimum.
    pub(crate) arity: i8,
    pub(crate) flags: Flags,
    /// The first argument that is a key, the last one (from the end, if negative), and the step.
    pub(crate) keys: (i8, i8, i8),
    pub(crate) group: Group,
    pub(crate) work: Work,
    /// The first version of Redis that had it.
    pub(crate) since: &'static str,
    pub(crate) summary: &'static str,
}

impl Command {
    /// Whether the keys that it looks up count as hits and misses: as in Redis those of commands
    /// that read, and of those that return what they replace.
    pub(crate) fn looks(&self) -> bool {
        self.flags.has(Flags::READ) || ["getdel", "getex", "getset"].contains(&self.name)
    }
}

/// The implementation.
#[derive(Debug)]
pub(crate) enum Work {
    /// A function on the data.
    Data(fn(&mut Call<'_, '_>) -> Outcome),
    /// The session.
    Session(Verb),
}

/// A command that a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Verb {
    Auth,
    Client,
    Cluster,
    Command,
    Config,
    Discard,
    Echo,
    Exec,
    Hello,
    Info,
    Multi,
    Ping,
    Quit,
    ReadOnly,
    ReadWrite,
    Reset,
    Select,
    Shutdown,
    Time,
    Unwatch,
    Watch,
}

/// The subject of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Values.
    String,
    /// Keys.
    Generic,
    /// The connection.
    Connection,
    /// Transactions.
    Transactions,
    /// The server.
    Server,
}

impl Group {
    /// The name in COMMAND DOCS.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Generic => "generic",
            Self::Connection => "connection",
            Self::Transactions => "transactions",
            Self::Server => "server",
        }
    }
}

/// Properties of a command that are known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);
    /// Reads data.
    pub(crate) const READ: Self = Self(1);
    /// May change data: it runs only under the commit lock.
    pub(crate) const WRITE: Self = Self(1 << 1);
    /// May store new keys: they are checked first.
    pub(crate) const ADD: Self = Self(1 << 2);
    /// O(log n) in its arguments.
    pub(crate) const FAST: Self = Self(1 << 3);
    /// May read much: it runs on a thread that no other client waits for.
    pub(crate) const SLOW: Self = Self(1 << 4);
    /// Outside of MULTI it is not part of a group commit.
    pub(crate) const ALONE: Self = Self(1 << 5);
    /// Not allowed within MULTI.
    pub(crate) const NO_MULTI: Self = Self(1 << 6);
    /// Not queued by MULTI, but run at once.
    pub(crate) const NOW: Self = Self(1 << 7);
    /// Allowed before authentication.
    pub(crate) const STRANGER: Self = Self(1 << 8);
    /// For operators.
    pub(crate) const ADMIN: Self = Self(1 << 9);

    /// Both sets of flags.
    pub(super) const fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Whether it has all of these.
    pub(crate) fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Their names in COMMAND INFO.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let names = [
            (Self::READ, "readonly"),
            (Self::WRITE, "write"),
            (Self::ADD, "denyoom"),
            (Self::FAST, "fast"),
            (Self::NO_MULTI, "no_multi"),
            (Self::STRANGER, "no_auth"),
            (Self::ADMIN, "admin"),
        ];
        names.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| *name).collect()
    }
}

impl Command {
    /// Whether it accepts `arguments` arguments, including its name.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Indexes of the arguments that are keys, of `arguments` arguments.
    pub(crate) fn keys_of(&self, arguments: usize) -> impl Iterator<Item = usize> {
        let (first, last, step) = self.keys;
        let last = match usize::try_from(last) {
            Ok(last) => last,
            Err(_) => arguments.saturating_sub(usize::from(last.unsigned_abs())),
        };
        let first = usize::from(first.unsigned_abs());
        let all = if first == 0 { 1..1 } else { first..(last + 1).min(arguments) };
        all.step_by(usize::from(step.unsigned_abs()).max(1))
    }
}
