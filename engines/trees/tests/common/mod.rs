//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod mock;
pub(crate) mod model;
pub(crate) mod shapes;
