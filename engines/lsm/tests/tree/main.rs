//! Tests of the LSM tree on a heap, with its files.

mod check_parts;
mod costs;
mod crashes;
mod damage;
mod emptied;
mod faults;
mod filters;
mod gaps;
mod heap_damage;
mod level_options;
mod load_threads;
mod loads;
mod model;
mod orphans;
mod store;
mod threads;
