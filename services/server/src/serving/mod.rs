//! Connections and sessions, and what they tell of the server. Called by the server alone.

pub(crate) mod clients;
pub(crate) mod shared;
pub(crate) mod figures;
pub(crate) mod config;
pub(crate) mod describe;
pub(crate) mod info;
pub(crate) mod session;
pub(crate) mod local;
pub(crate) mod turn;
pub(crate) mod connection;
