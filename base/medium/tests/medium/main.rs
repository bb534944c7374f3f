//! The medium: files, directories, regions and mapped memory of the system.

#[cfg(target_os = "linux")]
mod direct;
mod directories;
#[cfg(feature = "encryption")]
mod encrypted;
mod mapped;
mod processes;
mod regions;
#[cfg(target_os = "linux")]
mod stores;
