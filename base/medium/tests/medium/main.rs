//! The medium: files, directories, regions and mapped memory of the system.

mod direct;
mod directories;
mod mapped;
mod processes;
mod regions;
mod stores;
