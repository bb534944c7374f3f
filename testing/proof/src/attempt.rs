//! Trying something that may panic, and saying what the panic said.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// Runs it; what it panicked with.
pub(crate) fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

/// Runs it while panics print nothing: many of them are looked for.
pub(crate) fn in_silence<T>(work: impl FnOnce() -> T) -> T {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let done = work();
    set_hook(hook);
    done
}
