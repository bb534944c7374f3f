//! The keeper: periodic work, independent of clients.
//!
//! Purpose: removes expired entries, syncs buffered commits each second, ends the server when the
//! store has failed without any commit, and tests whether there is space again.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adamant::{Deadline, Durability, Error, Result};

use crate::commit::ending::Ending;
use crate::commit::world::World;

/// Approximate time for which expired entries stay, invisible.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum expired entries that one commit removes; writers wait for it.
const EXPIRED_MAX: usize = 500;
/// Approximate time for which a buffered commit may be unsynced. As `appendfsync everysec`.
const SYNC_PAUSE: Duration = Duration::from_secs(1);
/// Minimum pause between two shrinks of a store that uses more than its bound: a shrink blocks all
/// clients for some syncs of the pool.
const SHRINK_PAUSE: Duration = Duration::from_secs(1);
/// Pause between trials after a commit found no space.
const TRIAL_PAUSE: Duration = Duration::from_secs(1);
/// Maximum bytes of a trial.
const TRIAL_BYTES_MAX: usize = 1 << 20;
/// The key of a trial; a number follows that makes it unused.
const TRIAL_KEY: &[u8] = b"\xffadamant-server: is there space?";

/// Runs until the server ends. A poisoned store ends it.
pub(crate) fn serve(world: &World, ending: &Ending) {
    let mut synced = (Instant::now(), 0);
    let (mut tried, mut shrunk) = (Instant::now(), Instant::now());
    while !ending.wait(PAUSE) {
        // Each runs even if another one fails, for lack of space for example: expired entries stay
        // invisible, buffered commits are still synced, and the next round tries again.
        let kept = [
            // A checkpoint may have failed while there were no writes.
            world.databases.store().check_writable(),
            sync(world, &mut synced),
            expire(world),
            bound(world, &mut shrunk),
            try_again(world, &mut tried),
        ];
        if let Some(error) = kept.into_iter().filter_map(Result::err).find(Error::is_poisoned) {
            ending.begin(Some(error.to_string()));
        }
    }
}

fn expire(world: &World) -> Result<()> {
    for number in 0..world.databases.len() {
        let _shared = world.emptying.read();
        let database = world.databases.get(number);
        // It is not acknowledged to any client, so it need not wait.
        let gone = database.with_durability(Durability::Buffered).remove_expired(EXPIRED_MAX)?;
        world.tallies.expired.fetch_add(gone, Ordering::Relaxed);
    }
    Ok(())
}

/// Measures the used space, if it is bounded; above the bound, gives free space back from time to
/// time.
fn bound(world: &World, shrunk: &mut Instant) -> Result<()> {
    let (bound, store) = (&world.bound, world.databases.store());
    if bound.bytes_max.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    bound.look(&store)?;
    if bound.is_over() && shrunk.elapsed() >= SHRINK_PAUSE {
        store.shrink()?;
        bound.look(&store)?;
        *shrunk = Instant::now();
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

/// If a commit found no space: writes an entry of the same size that has already expired, so that
/// it is invisible, and is removed like all expired entries.
fn try_again(world: &World, tried: &mut Instant) -> Result<()> {
    let Some(bytes) = world.health.refused_bytes().filter(|_| tried.elapsed() >= TRIAL_PAUSE)
    else {
        return Ok(());
    };
    *tried = Instant::now();
    let _shared = world.emptying.read();
    let database = world.databases.get(0);
    world.databases.store().exclusive(|transaction| {
        transaction.durability(Durability::Buffered);
        let mut all = database.within(transaction);
        for number in 0..=u8::MAX {
            let key = [TRIAL_KEY, &[number]].concat();
            if all.get(&key)?.is_none() {
                let value = vec![0; bytes.min(TRIAL_BYTES_MAX)];
                all.put(key, value, Some(Deadline::from_millis(1)))?;
                break;
            }
        }
        Ok::<_, adamant::Error>(())
    })?;
    world.health.recover();
    Ok(())
}
