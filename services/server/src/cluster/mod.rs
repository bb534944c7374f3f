//! A server as a node of a cluster: openraft's protocol, over `adamant-replica`'s storage.
//!
//! Purpose: clients see a single store. A unit that writes goes to the leader. There one thread
//! takes all waiting units, runs them on the applied state, in a transaction that is never
//! committed, and proposes their changes as one entry of the log, under the condition that no other
//! entry came between ([`propose`]). A unit that reads waits until this node has applied what was
//! acknowledged before ([`reads`]), and reads here.
//! Invariants: a reply to a write is sent when its entry is applied, and the entry is applied only
//! to the state that the reply was made from. So replies are as if all commands had run one after
//! the other, even if several nodes believe that they lead.
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
