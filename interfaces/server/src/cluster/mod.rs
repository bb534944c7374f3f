//! A server as a node of a cluster: openraft's protocol, over `adamant-replica`'s storage.
//!
//! Purpose: what clients see is one store. A unit that writes goes to the node that leads. There
//! one thread takes all units that wait, runs them on what is applied, in a transaction that is
//! never committed, and proposes what they changed as one entry of the log, under the condition
//! that no other entry came between ([`propose`]). A unit that looks waits until this node has what
//! was acknowledged before ([`reads`]), and looks here.
//! Invariants: a reply to a write is sent when its entry is applied, and the entry is applied only
//! to the state that the reply was made from: whoever thinks that it leads, replies are as if all
//! had happened one after the other.
//! Thread safety: a [`Member`] is shared; one thread proposes.

mod address;
mod handshake;
mod frames;
mod messages;

mod peers;
mod network;
mod reads;

mod member;
mod propose;
mod membership;
mod admit;
mod listen;

mod start;

pub(crate) use member::Member;
pub(crate) use start::Opened;
