//! Reads what `strace -f` wrote, and counts system calls between marks.

use std::collections::{BTreeMap, BTreeSet};

use adamant_bench::harness::error::Result;
use serde_json::{Value, json};

use crate::run::calls::MARK;

/// Kinds of calls, in the order of the report.
pub const KINDS: [&str; 7] =
    ["syncs", "range_syncs", "writes", "reads", "memory", "waits", "others"];

/// The kind of a call.
fn kind_of(name: &str) -> &'static str {
    match name {
        "fsync" | "fdatasync" | "msync" | "sync" | "syncfs" => "syncs",
        // Neither metadata nor what the disk itself keeps in a cache.
        "sync_file_range" => "range_syncs",
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => "writes",
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => "reads",
        "mmap" | "munmap" | "mremap" | "madvise" | "mprotect" | "brk" => "memory",
        "futex" | "sched_yield" | "nanosleep" | "clock_nanosleep" | "poll" | "ppoll"
        | "epoll_wait" => "waits",
        _ => "others",
    }
}

/// Counts of a row.
type Counts = BTreeMap<&'static str, u64>;

/// What is known while lines are read.
#[derive(Default)]
struct Reader {
    /// Descriptors of files every write to which is a sync.
    synced: BTreeSet<u32>,
    /// Threads whose opening of such a file has not ended.
    opening: BTreeSet<String>,
    /// The row between whose marks we are, its operations, and its calls so far.
    row: Option<(String, u64, Counts)>,
    rows: Vec<Value>,
}

/// One JSON object for each row between marks: its operations, and calls by kind. Writes to a file
/// that was opened with `O_DSYNC` or `O_SYNC` count as writes and as syncs.
///
/// # Errors
/// Marks that do not fit each other.
pub fn count(text: &str) -> Result<Vec<Value>> {
    let mut reader = Reader::default();
    for line in text.lines() {
        // A number of the thread, spaces, and what it did.
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        reader.line(thread, rest.trim_start())?;
    }
    match reader.row {
        None => Ok(reader.rows),
        Some((row, _, _)) => Err(format!("the trace ends within {row}").into()),
    }
}

impl Reader {
    fn line(&mut self, thread: &str, line: &str) -> Result<()> {
        if line.starts_with("<... ") {
            if self.opening.remove(thread) {
                self.synced.extend(result_of(line));
            }
            return Ok(());
        }
        let Some((name, arguments)) = line.split_once('(') else { return Ok(()) };
        if let Some((_, mark)) = arguments.split_once(MARK) {
            return self.mark(mark.split('"').next().unwrap_or_default());
        }
        let descriptor: Option<u32> = arguments
            .split(|char: char| !char.is_ascii_digit())
            .next()
            .and_then(|number| number.parse().ok());
        let is_synced = descriptor.is_some_and(|number| self.synced.contains(&number));
        match name {
            "open" | "openat" if arguments.contains("O_DSYNC") || arguments.contains("O_SYNC") => {
                if line.ends_with("<unfinished ...>") {
                    self.opening.insert(thread.to_owned());
                } else {
                    self.synced.extend(result_of(line));
                }
            }
            "close" => self.synced.retain(|&number| Some(number) != descriptor),
            _ => {}
        }
        if let Some((_, _, counts)) = &mut self.row {
            let kind = match name {
                // It writes soon, and waits for nothing.
                "msync" if arguments.contains("MS_ASYNC") => "others",
                name => kind_of(name),
            };
            *counts.entry(kind).or_default() += 1;
            if kind == "writes" && is_synced {
                *counts.entry("syncs").or_default() += 1;
            }
        }
        Ok(())
    }

    /// `:begin:ROW:OPERATIONS` or `:end:ROW:OPERATIONS`.
    fn mark(&mut self, mark: &str) -> Result<()> {
        let words: Vec<&str> = mark.split(':').collect();
        match (&words[..], self.row.take()) {
            (["", "begin", row, operations], None) => {
                self.row = Some(((*row).to_owned(), operations.parse()?, Counts::new()));
            }
            (["", "end", row, _], Some((begun, operations, counts))) if begun == *row => {
                let mut line = json!({"calls": row, "operations": operations});
                for kind in KINDS {
                    line[kind] = counts.get(kind).copied().unwrap_or(0).into();
                }
                self.rows.push(line);
            }
            _ => return Err(format!("a mark out of place in a trace: {mark}").into()),
        }
        Ok(())
    }
}

/// The descriptor that a call returned.
fn result_of(line: &str) -> Option<u32> {
    let (_, result) = line.rsplit_once(" = ")?;
    result.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_between_marks_are_counted_by_kind() {
        let text = r#"
7 openat(AT_FDCWD, "data", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3
7 openat(AT_FDCWD, "data", O_WRONLY|O_DSYNC|O_CLOEXEC <unfinished ...>
8 fdatasync(3) = 0
7 <... openat resumed>) = 4
7 statx(AT_FDCWD, "adamant-peers-calls:begin:put.sync.1t:2", 0, STATX_ALL, NULL) = -1 ENOENT (x)
7 pwrite64(3, ""..., 160, 0) = 160
7 fdatasync(3 <unfinished ...>
8 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL) = 0
7 <... fdatasync resumed>) = 0
7 pwrite64(4, ""..., 160, 0) = 160
8 sync_file_range(3, 0, 160, SYNC_FILE_RANGE_WRITE) = 0
8 msync(0x7f, 4096, MS_ASYNC) = 0
8 close(4) = 0
8 write(4, ""..., 10) = 10
7 statx(AT_FDCWD, "adamant-peers-calls:end:put.sync.1t:2", 0, STATX_ALL, NULL) = -1 ENOENT (x)
7 fsync(3) = 0
7 +++ exited with 0 +++
"#;
        let rows = count(text).unwrap();
        let expected = json!({
            "calls": "put.sync.1t", "operations": 2, "syncs": 2, "range_syncs": 1, "writes": 3,
            "reads": 0, "memory": 0, "waits": 1, "others": 2,
        });
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn a_trace_that_was_cut_off_is_an_error() {
        let begun = "7 stat(\"adamant-peers-calls:begin:load:1\", 0x7f) = -1 ENOENT (x)\n";
        let ended = begun.replace("begin", "end");
        assert!(count(begun).is_err());
        assert!(count(&ended).is_err());
        assert_eq!(count(&format!("{begun}{ended}")).unwrap().len(), 1);
    }
}
