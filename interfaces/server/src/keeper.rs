//! What is done now and then, whether clients come or not.
//!
//! Purpose: takes entries away that are over, and brings buffered commits to the device each second.

use std::time::{Duration, Instant};

use adamant::{Durability, Result};

use crate::ending::Ending;
use crate::world::World;

/// How long entries that are over stay, about: nobody sees them meanwhile.
const PAUSE: Duration = Duration::from_millis(100);
/// Entries that are taken away by one commit, for whose end others that write wait.
const EXPIRED_MAX: usize = 500;
/// How long a buffered commit may be without the device, about. As `appendfsync everysec`.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

/// Until the server ends. A poisoned store ends it.
pub(crate) fn serve(world: &World, ending: &Ending) {
    let mut synced = (Instant::now(), 0);
    while !ending.wait(PAUSE) {
        let kept = expire(world).and_then(|()| sync(world, &mut synced));
        // No space, for example: what is over is still not seen, and the next round tries again.
        if let Err(error) = kept
            && error.is_poisoned()
        {
            ending.begin(Some(error.to_string()));
        }
    }
}

fn expire(world: &World) -> Result<()> {
    for number in 0..world.databases.len() {
        let _shared = world.emptying.read();
        let database = world.databases.get(number);
        // Nobody is told of it: it need not wait.
        database.with_durability(Durability::Buffered).remove_expired(EXPIRED_MAX)?;
    }
    Ok(())
}

fn sync(world: &World, synced: &mut (Instant, u64)) -> Result<()> {
    let (last, commits) = *synced;
    if last.elapsed() < SYNC_PAUSE {
        return Ok(());
    }
    let store = world.databases.store();
    let now = store.stats()?.commits.commits;
    if now != commits {
        store.sync()?;
    }
    *synced = (Instant::now(), now);
    Ok(())
}
