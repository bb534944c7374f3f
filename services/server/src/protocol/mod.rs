//! The wire protocol: requests, replies, numbers and patterns in them. Used by commands and
//! connections.

pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod tls;
pub(crate) mod sockets;
