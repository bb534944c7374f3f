//! The commit lock: one task commits for all.
//!
//! Purpose: a task that has queued its unit yields, so that others can queue theirs; the first to
//! get the lock then commits all that wait. No thread is woken up for that: with dedicated threads,
//! a unit took nearly two system calls for sleeping and waking.
//! Invariants: the holder of the lock looks at the queue once more after it has released the lock,
//! so no unit is left there.
//! Thread safety: any task of a runtime of several threads.

use std::sync::Arc;

use tokio::task;

use crate::commit::committer;
use crate::serving::shared::Shared;

/// Commits the waiting units, unless another task is about to. A unit that was queued before is
/// answered in the end.
pub(crate) async fn take_part(shared: &Arc<Shared>) {
    // Other tasks queue their units before this one continues.
    task::yield_now().await;
    commit_waiting(shared);
}

fn commit_waiting(shared: &Arc<Shared>) {
    let Shared { world, queue, ending, .. } = &**shared;
    {
        let Some(_turn) = queue.try_turn() else { return };
        let _alarm = Alarm(shared);
        let run = || committer::run_waiting(world, queue, ending);
        match queue.is_short() {
            true => run(),
            // The other tasks of this thread continue elsewhere.
            false => task::block_in_place(run),
        }
    }
    if queue.len() > 0 {
        // After the tasks that have been answered: they may queue more.
        let shared = Arc::clone(shared);
        task::spawn(async move { commit_waiting(&shared) });
    }
}

/// If a commit panics, the server ends: its outcome is unknown.
struct Alarm<'s>(&'s Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail_for_panic();
        }
    }
}
