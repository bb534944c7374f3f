//! A parallel work queue: as many items at once as there are processors; each idle worker takes the
//! next.
//!
//! Thread safety: the queue is the only thing that threads share here.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Processes all items, in order as far as threads allow. True if all succeeded.
///
/// # Errors
/// The first error of a thread, which takes no further items then; in words, if it panicked.
pub(crate) fn side_by_side<T: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<bool, String> + Sync,
) -> Result<bool, String> {
    let queue = Mutex::new(items.into_iter());
    let worker = || -> Result<bool, String> {
        let mut is_whole = true;
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { return Ok(is_whole) };
            is_whole &= work(item)?;
        }
    };
    let count = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_fold(true, |is_whole, worker| {
            let outcome = worker.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
            outcome.map(|outcome| is_whole && outcome)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_once_and_what_fails_is_told() {
        let done = Mutex::new(Vec::new());
        let work = |number: u32| {
            done.lock().unwrap().push(number);
            Ok(number != 7)
        };
        assert_eq!(side_by_side((0..7).collect(), work), Ok(true));
        assert_eq!(side_by_side(vec![7, 8], work), Ok(false));
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..9).collect::<Vec<_>>());
        let fail = |number: u32| if number == 3 { Err("three".to_owned()) } else { Ok(true) };
        assert_eq!(side_by_side((0..9).collect(), fail), Err("three".to_owned()));
    }
}
