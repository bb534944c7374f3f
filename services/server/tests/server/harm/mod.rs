//! What clients, disks and kills do to a server.

pub(crate) mod disk;
pub(crate) mod abuse;
pub(crate) mod full;
pub(crate) mod kills;
pub(crate) mod large;
pub(crate) mod limits;
