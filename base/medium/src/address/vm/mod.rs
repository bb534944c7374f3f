//! Virtual memory, system by system: reserved addresses, and the memory behind them.

#[cfg(target_os = "linux")]
pub(super) mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{Reservation, commit, page_bytes, release};
#[cfg(windows)]
pub(super) use windows::{Reservation, commit, page_bytes, release};
