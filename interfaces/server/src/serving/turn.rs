//! The turn to commit: which task does it for all.
//!
//! Purpose: a task that has handed its unit in lets others hand in theirs; who is first at the turn then commits all that wait. Nobody is
//! woken up for that: where threads of their own did it, a unit took nearly two calls of the system for them to sleep and to wake.
//! Invariants: whoever had the turn looks at the queue once more when it has given it back, so no unit is left there.
//! Thread safety: any task of a runtime of several threads.

use std::sync::Arc;

use tokio::task;

use crate::commit::committer;
use crate::serving::shared::Shared;

/// Commits what waits, unless somebody is about to. Whose unit was handed in before is answered in the end.
pub(crate) async fn take_part(shared: &Arc<Shared>) {
    // Whoever else has something to hand in does so before this goes on.
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
            // The other tasks of this thread go on elsewhere.
            false => task::block_in_place(run),
        }
    }
    if queue.len() > 0 {
        // Behind the tasks that have been answered: they may have more to hand in.
        let shared = Arc::clone(shared);
        task::spawn(async move { commit_waiting(&shared) });
    }
}

/// Should a commit panic, the server ends: nobody knows what was done.
struct Alarm<'s>(&'s Shared);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail_for_panic();
        }
    }
}
