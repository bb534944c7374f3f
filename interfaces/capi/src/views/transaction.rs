//! Serializable transactions.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adamant::{Attempts, ExclusiveTransaction, Transaction};

use crate::border::code::{
    ADAMANT_CLOSED, ADAMANT_MISUSE, ADAMANT_NOT_FOUND, ADAMANT_OK, ADAMANT_TIMED_OUT,
};
use crate::border::failure::{Failure, Result, run};
use crate::border::hold::hold;
use crate::border::options::durability_of;
use crate::border::pointers::{Changed, Context, In, Opaque, Out, Slice, Taken, Work};
use crate::views::loan::Loans;
use crate::whole::keyspace::{KeyspaceHandle, name_of};
use crate::whole::store::StoreHandle;

/// Reads and writes that happen as one, at the commit, or not at all. For one thread at a time. To
/// be freed by adamant_transaction_free, which undoes one that was not committed.
pub enum TransactionHandle {}

/// A transaction and the values that it has lent.
#[derive(Debug)]
pub struct State {
    /// `None` once it was committed.
    open: Option<Transaction>,
    /// The number of its writes, by which its cursors notice new ones.
    pub(crate) writes: u64,
    loans: Loans,
}

impl State {
    fn new(open: Transaction) -> Self {
        Self { open: Some(open), writes: 0, loans: Loans::default() }
    }

    /// The transaction, unless it was committed.
    pub(crate) fn open(&mut self) -> Result<&mut Transaction> {
        self.open.as_mut().ok_or_else(committed)
    }

    /// Lends a value until the transaction is freed.
    pub(crate) fn lend(&mut self, had: adamant::Slice, value: &Out<Slice>) {
        value.lend(self.loans.keep(had));
    }
}

fn committed() -> Failure {
    Failure::new(ADAMANT_CLOSED, "the transaction was committed; free it and begin another")
}

impl Opaque for TransactionHandle {
    /// Shared with its cursors.
    type Content = Arc<Mutex<State>>;
    const KIND: u32 = 0xADA1_0008;
    const NAME: &'static str = "a transaction";
}

/// Begins a transaction: it sees the store as it is now, and its own writes.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_begin(
    store: In<StoreHandle>,
    transaction: Out<*mut TransactionHandle>,
) -> c_int {
    run(|| {
        transaction.need_handle()?;
        let state = State::new(store.store()?.begin()?);
        transaction.give(Arc::new(Mutex::new(state)));
        Ok(ADAMANT_OK)
    })
}

/// Runs a function in a transaction beside which nobody else writes, and commits that, unless the
/// function returns other than 0: then nothing of it happened, and `result`, which may be NULL, is
/// what it returned.
///
/// It waits for others that write, and they for it, so that there is no ADAMANT_CONFLICT; readers
/// do not wait. The function neither commits nor frees its transaction, and its thread cannot write
/// otherwise meanwhile: ADAMANT_MISUSE.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_exclusive(
    store: Changed<StoreHandle>,
    work: Work<TransactionHandle>,
    context: Context,
    result: Out<c_int>,
) -> c_int {
    run(|| {
        let store = store.store()?;
        let work = work.with(context)?;
        run_exclusive(&store, store.begin_exclusive()?, work, &result)
    })
}

/// As adamant_exclusive, unless others write for longer than so many milliseconds: then
/// ADAMANT_TIMED_OUT, and the function was not called. 0 does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_exclusive_within(
    store: Changed<StoreHandle>,
    wait_ms_max: u64,
    work: Work<TransactionHandle>,
    context: Context,
    result: Out<c_int>,
) -> c_int {
    run(|| {
        let (store, work) = (store.store()?, work.with(context)?);
        let longest = Duration::from_millis(wait_ms_max);
        let exclusive = store.begin_exclusive_within(longest)?.ok_or_else(|| {
            let words = format!("others wrote for longer than {wait_ms_max} ms; try again later");
            Failure::new(ADAMANT_TIMED_OUT, words)
        })?;
        run_exclusive(&store, exclusive, work, &result)
    })
}

/// Runs a function in a transaction and commits that, unless the function returns other than 0:
/// then nothing of it happened, and `result`, which may be NULL, is what it returned last.
///
/// When another commit changed what it read it runs again, from the start: `exclusive_after` times
/// beside others, then once as by adamant_exclusive, which cannot conflict; 0 stands for 8, and
/// UINT32_MAX for never. ADAMANT_CONFLICT after `attempts_max` attempts, for which 0 is 100, and if
/// none can begin within `time_ms_max` milliseconds, where 0 is no limit.
/// adamant_transaction_attempt counts. The function neither commits nor frees its transaction, and
/// writes by that only.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_run(
    store: Changed<StoreHandle>,
    attempts_max: u32,
    exclusive_after: u32,
    time_ms_max: u64,
    work: Work<TransactionHandle>,
    context: Context,
    result: Out<c_int>,
) -> c_int {
    run(|| {
        let (store, work) = (store.store()?, work.with(context)?);
        let time = (time_ms_max > 0).then(|| Duration::from_millis(time_ms_max));
        let mut limits = Attempts::new().time_max(time);
        if attempts_max > 0 {
            limits = limits.attempts_max(attempts_max);
        }
        if exclusive_after > 0 {
            limits =
                limits.exclusive_after((exclusive_after < u32::MAX).then_some(exclusive_after));
        }
        let ran = store.transaction_with(limits, |it| match run_in(&store, it, &work, &result)? {
            0 => Ok(()),
            _ => Err(Stopped::Itself),
        });
        match ran {
            Ok(()) | Err(Stopped::Itself) => Ok(ADAMANT_OK),
            Err(Stopped::Failed(failure)) => Err(failure),
        }
    })
}

/// Sets a cursor of the feed of changes at the commit, as adamant_changes_cursor_set.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_cursor_set(
    transaction: Changed<TransactionHandle>,
    name: In<c_char>,
    number: u64,
) -> c_int {
    run(|| {
        hold(transaction.get()?)?.open()?.set_cursor(name_of(&name)?, number)?;
        Ok(ADAMANT_OK)
    })
}

/// How often adamant_transaction_run has called its function for this transaction, this time
/// counted; of any other transaction 1.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_attempt(
    transaction: In<TransactionHandle>,
    attempt: Out<u32>,
) -> c_int {
    run(|| {
        attempt.need("attempt")?;
        attempt.set(hold(transaction.get()?)?.open()?.attempt());
        Ok(ADAMANT_OK)
    })
}

/// The reason why a function's transaction was not committed.
enum Stopped {
    Itself,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(failure: E) -> Self {
        Self::Failed(failure.into())
    }
}

/// Runs a function of C in a transaction and returns its result. The function's handle owns the
/// transaction meanwhile, and an empty one takes its place; that stays if the result is not 0.
fn run_in(
    store: &adamant::Store,
    transaction: &mut Transaction,
    work: impl Fn(Arc<Mutex<State>>) -> Result<c_int>,
    result: &Out<c_int>,
) -> Result<c_int> {
    let lent = std::mem::replace(transaction, store.begin()?);
    let state = Arc::new(Mutex::new(State::new(lent)));
    let code = work(Arc::clone(&state))?;
    result.set(code);
    let lent = hold(&state)?.open.take();
    if code == 0 {
        *transaction = lent.ok_or_else(committed)?;
    }
    Ok(code)
}

fn run_exclusive(
    store: &adamant::Store,
    mut exclusive: ExclusiveTransaction<'_>,
    work: impl Fn(Arc<Mutex<State>>) -> Result<c_int>,
    result: &Out<c_int>,
) -> Result<c_int> {
    if run_in(store, &mut exclusive, work, result)? == 0 {
        exclusive.commit()?;
    }
    Ok(ADAMANT_OK)
}

/// Sets a savepoint, to which adamant_savepoint_undo goes back. Savepoints lie within one another.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_set(transaction: Changed<TransactionHandle>) -> c_int {
    run(|| {
        hold(transaction.get()?)?.open()?.set_savepoint();
        Ok(ADAMANT_OK)
    })
}

/// Undoes what the transaction wrote since its last savepoint, which is ended. What it read counts
/// as read. ADAMANT_MISUSE if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_undo(transaction: Changed<TransactionHandle>) -> c_int {
    run(|| end_savepoint(&transaction, Transaction::undo_savepoint))
}

/// Ends the last savepoint and keeps what was written since. ADAMANT_MISUSE if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_keep(transaction: Changed<TransactionHandle>) -> c_int {
    run(|| end_savepoint(&transaction, Transaction::keep_savepoint))
}

fn end_savepoint(
    transaction: &In<TransactionHandle>,
    end: fn(&mut Transaction) -> bool,
) -> Result<c_int> {
    let mut state = hold(transaction.get()?)?;
    if !end(state.open()?) {
        return Err(Failure::new(ADAMANT_MISUSE, "the transaction has no savepoint to be ended"));
    }
    // Its cursors have to discard pre-read entries.
    state.writes += 1;
    Ok(ADAMANT_OK)
}

/// Lends the value of a key, until the transaction is freed; ADAMANT_NOT_FOUND if it has none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_get(
    transaction: In<TransactionHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    value: Out<Slice>,
) -> c_int {
    run(|| {
        value.need("value")?;
        let mut state = hold(transaction.get()?)?;
        let Some(had) = state.open()?.get(keyspace.keyspace()?, key.bytes()?)? else {
            return Ok(ADAMANT_NOT_FOUND);
        };
        state.lend(had, &value);
        Ok(ADAMANT_OK)
    })
}

/// Sets the value of a key, whether it had one or not, without reading it: so it cannot conflict.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_put(
    transaction: Changed<TransactionHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        let mut state = hold(transaction.get()?)?;
        state.open()?.put(keyspace.keyspace()?, key.bytes()?, value.bytes()?)?;
        state.writes += 1;
        Ok(ADAMANT_OK)
    })
}

/// Merges an operand with the value of a key, as adamant_merge does, without reading it: so it
/// cannot conflict.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_merge(
    transaction: Changed<TransactionHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    operand: Slice,
) -> c_int {
    run(|| {
        let mut state = hold(transaction.get()?)?;
        state.open()?.merge(keyspace.keyspace()?, key.bytes()?, operand.bytes()?)?;
        state.writes += 1;
        Ok(ADAMANT_OK)
    })
}

/// Deletes a key, whether it exists or not, without reading it: so it cannot conflict.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_delete(
    transaction: Changed<TransactionHandle>,
    keyspace: In<KeyspaceHandle>,
    key: Slice,
) -> c_int {
    run(|| {
        let mut state = hold(transaction.get()?)?;
        state.open()?.delete(keyspace.keyspace()?, key.bytes()?)?;
        state.writes += 1;
        Ok(ADAMANT_OK)
    })
}

/// What its commit waits for: ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_durability(
    transaction: Changed<TransactionHandle>,
    durability: c_int,
) -> c_int {
    run(|| {
        let durability = durability_of(durability)?;
        hold(transaction.get()?)?.open()?.durability(durability);
        Ok(ADAMANT_OK)
    })
}

/// Makes all writes in one commit. Whether it succeeds or not, the transaction can only be freed
/// then.
///
/// Fails with ADAMANT_CONFLICT if another commit has changed what it read: nothing was done, and
/// the caller begins another one and does it again.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_commit(transaction: Changed<TransactionHandle>) -> c_int {
    run(|| {
        let taken = hold(transaction.get()?)?.open.take();
        taken.ok_or_else(committed)?.commit()?;
        Ok(ADAMANT_OK)
    })
}

/// Frees a transaction; NULL is none. What was not committed is not done.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_free(transaction: Taken<TransactionHandle>) {
    run(|| {
        // A cursor that outlives it must not keep it open.
        transaction.content()?.map(|state| hold(state).map(|mut state| state.open.take()));
        transaction.free().map(|()| ADAMANT_OK)
    });
}
