//! Units of work: the requests that a client sent at once, and their replies.
//!
//! Invariants: steps run in order, each once; the replies to those before `next` are in `replies`.
//! Thread safety: a unit belongs to its client's task, or to the thread that it was handed to.

use std::sync::Arc;

use bytes::Bytes;

use crate::commands::{Command, Flags};
use crate::protocol::reply::{Replies, Version};
use crate::protocol::request::{Arguments, GivenRoom};
use crate::state::watch::Watched;

/// A command of the table with its arguments, whose number is correct.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: &'static Command,
    pub(crate) database: usize,
    pub(crate) arguments: Arguments,
    /// The value, if it has reserved room.
    pub(crate) room: Option<GivenRoom>,
}

/// Bytes of a value with reserved room.
fn bytes_in(room: &Option<GivenRoom>) -> usize {
    room.as_ref().map_or(0, |room| room.lock().as_ref().map_or(0, |room| room.len()))
}

/// The action of a step.
#[derive(Debug)]
pub(crate) enum Action {
    /// Nothing: it is done, and this is the reply.
    Ready(Vec<u8>),
    /// One command.
    Run(Request),
    /// Commands as one, unless a watched key has changed.
    Exec {
        /// Either a command, or the reply to one about the connection.
        parts: Vec<Action>,
        watched: Arc<Watched>,
    },
    /// Keys are watched from here on.
    Watch { database: usize, keys: Vec<Bytes>, watched: Arc<Watched> },
    /// A command about the cluster, in these words; nothing follows it.
    Administer(Arguments),
}

/// An action and how it is answered.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) version: Version,
    /// Whether the client wants no reply.
    pub(crate) is_silent: bool,
}

/// The needs of a unit, the most demanding last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Nothing: all of it is done.
    #[default]
    Nothing,
    /// A short read.
    Look,
    /// A long read.
    LongLook,
    /// The commit lock.
    Turn,
}

/// Steps and the replies to them.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    pub(crate) steps: Vec<Step>,
    /// Index of the next step.
    pub(crate) next: usize,
    pub(crate) replies: Replies,
    pub(crate) needs: Needs,
    /// Approximate bytes of arguments.
    pub(crate) bytes: usize,
    /// Whether it may take more than a moment.
    pub(crate) is_long: bool,
    /// Whether an EXEC did nothing because of its watched keys.
    pub(crate) is_aborted: bool,
    /// In a cluster: whether its reads must see every acknowledged write.
    pub(crate) is_fresh: bool,
    /// In a cluster: it came back undone, because another node leads.
    pub(crate) is_refused: bool,
}

/// Overhead of an argument beside its bytes.
const ARGUMENT_BYTES: usize = 32;

/// Approximate memory of arguments.
pub(crate) fn bytes_of(arguments: &[Bytes]) -> usize {
    arguments.iter().map(|argument| argument.len() + ARGUMENT_BYTES).sum()
}

impl Unit {
    /// Whether all steps were done.
    pub(crate) fn is_done(&self) -> bool {
        self.next == self.steps.len()
    }

    /// Whether one of the next steps may change data.
    pub(crate) fn changes(&self) -> bool {
        self.steps[self.next..].iter().any(|step| match &step.action {
            Action::Run(request) => request.command.flags.has(Flags::WRITE),
            Action::Exec { .. } => true,
            Action::Ready(_) | Action::Watch { .. } | Action::Administer(_) => false,
        })
    }

    /// Whether a transaction has taken a value of the next steps and is gone with it, so that they
    /// cannot run again.
    pub(crate) fn is_spent(&self) -> bool {
        let is_spent = |step: &Step| match &step.action {
            Action::Run(Request { room: Some(room), .. }) => room.lock().is_none(),
            _ => false,
        };
        self.steps[self.next..].iter().any(is_spent)
    }

    /// Adds the reply of a request that is done already.
    pub(crate) fn push_ready(&mut self, mut reply: Replies, is_silent: bool) {
        let (bytes, version) = (reply.take(), reply.version);
        if is_silent {
            return;
        }
        if self.steps.is_empty() {
            self.replies.raw(&bytes);
        } else {
            self.steps.push(Step { action: Action::Ready(bytes), version, is_silent });
        }
    }

    /// Adds a step. `may_wait`: whether reads may have to wait for the device.
    pub(crate) fn push(&mut self, step: Step, may_wait: bool) {
        let takes_long = |request: &Request| {
            may_wait
                || request.command.flags.has(Flags::SLOW)
                || request.command.flags.has(Flags::ALONE)
        };
        let needs = match &step.action {
            Action::Ready(_) => Needs::Nothing,
            Action::Run(request) => {
                self.bytes += bytes_of(&request.arguments) + bytes_in(&request.room);
                self.is_long |= takes_long(request);
                if request.command.flags.has(Flags::WRITE) {
                    Needs::Turn
                } else if takes_long(request) {
                    Needs::LongLook
                } else {
                    Needs::Look
                }
            }
            Action::Exec { parts, .. } => {
                for part in parts {
                    if let Action::Run(request) = part {
                        self.bytes += bytes_of(&request.arguments);
                        // Commands that run alone elsewhere take time for each key in here.
                        self.is_long |= takes_long(request);
                    }
                }
                Needs::Turn
            }
            Action::Watch { .. } => Needs::Turn,
            Action::Administer(_) => Needs::Look,
        };
        self.needs = self.needs.max(needs);
        self.steps.push(step);
    }
}
