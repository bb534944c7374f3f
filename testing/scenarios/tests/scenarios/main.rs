//! Scenarios of users on every engine, crashes, damage and full disks.

mod bad_input;
mod changes_crashes;
mod combined_puts;
mod engines;
mod expiring_crashes;
mod full_disk;
mod fuzz;
mod going_back_crashes;
mod increment_crashes;
mod map_crashes;
mod multimap_crashes;
mod nothing_changed;
mod repair;
mod savepoint_crashes;
mod store_crashes;
mod sync_points;
mod together;
mod type_crashes;
