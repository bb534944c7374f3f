//! Servers on disks that are simulated: full when they are told to be, or broken.

use std::sync::Arc;

use adamant::Store;
use adamant_server::{Options, Server};
use adamant_sim::{SimDirectory, SimDisk};

use crate::support::connections::options;

/// A disk, and a server of a store on it.
pub(crate) fn serve(change: impl FnOnce(&mut Options)) -> (SimDisk, Server) {
    let disk = SimDisk::new(7).without_history();
    let directory = Arc::new(SimDirectory::root(&disk));
    let store = Store::open_directory(directory, adamant::Options::new()).unwrap();
    let mut options = options();
    change(&mut options);
    (disk, Server::start_on(store, options).unwrap())
}
