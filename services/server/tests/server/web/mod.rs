//! Status by HTTP.

pub(crate) mod health;
pub(crate) mod figures;
pub(crate) mod status;
pub(crate) mod page;
