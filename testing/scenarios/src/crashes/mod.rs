//! Crash tests of whole stores: setup, workload, and verification.

pub mod setup;
pub mod model;
pub mod plan;
pub mod workload;
pub mod roll;
pub mod survive;

pub use model::{Content, assert_clean, open, verify, verify_going_on, verify_of};
pub use plan::{Change, Move, Plan};
pub use roll::key;
pub use setup::Setup;
pub use survive::{Survived, assert_refusing};
pub use workload::{Mix, Step, Workload};
