/*
 * Adamant: an embedded, transactional, ordered key-value store. For C99 and C++.
 *
 * Made from the sources by `cargo xtask header`. The guide is docs/guide/c.md.
 *
 * CONVENTIONS
 *
 *  1. Codes. A function that can fail returns an int: ADAMANT_OK (0); above 0 what is no error, such as
 *     ADAMANT_NOT_FOUND and ADAMANT_END; below 0 an error. A code never changes its meaning; a later version
 *     may have more of them. adamant_last_error() says in words what was wrong with the last call of this
 *     thread that failed, and what to do. A call that fails has done nothing, unless it says otherwise.
 *  2. Handles. What functions give through a pointer to a pointer is the caller's, who frees it by the
 *     function of its type, once, in any order; freeing NULL does nothing. A call that gives no handle leaves
 *     NULL there. A handle keeps what it needs: a keyspace may be used when its store was freed, but
 *     not when it was closed. A handle that was freed must not be used.
 *  3. Null. A pointer may be NULL only where it says so. Elsewhere NULL is ADAMANT_INVALID, as is a handle of
 *     another kind, as far as that can be seen.
 *     A pointer to const is to what the call only reads; what it changes has none.
 *  4. Bytes. An adamant_slice is `len` bytes at `data`, of any values. Those that are given to a function are
 *     read during the call only; they must not change meanwhile. Of no bytes `data` may be NULL.
 *  5. Loans. A slice that a function gives is lent: read it, never write to it or free it. It is good for as
 *     long as that function says: until a handle is freed, or a cursor moves. An adamant_value is a copy.
 *  6. Text. Paths and names are text that ends with a zero byte; names of keyspaces are UTF-8.
 *  7. Threads. Handles of stores, keyspaces, snapshots, values and lists may be used by any number of threads
 *     at once, those of entries that end and of multimaps too. Those of options, batches, transactions,
 *     cursors and feeds of changes are for one thread at a time, whichever: a second one is told
 *     ADAMANT_BUSY. Nobody frees what somebody uses.
 *  8. Fork. The child of a fork must not use or free handles from before it: calls are ADAMANT_MISUSE, and
 *     bytes that were lent are not there. Open the store after the fork, in one of the two.
 *  9. Closing. After adamant_close every use of the store is ADAMANT_CLOSED. Handles are freed all the same.
 * 10. Signals, exceptions. No function may be called from a signal handler. No exception of C++ may leave a
 *     function that the library calls. A panic of the library becomes ADAMANT_PANIC.
 * 11. Time. A deadline is in milliseconds since 1970, UTC, without leap seconds; ADAMANT_NEVER is later than all.
 * 12. Versions. adamant_abi() == ADAMANT_ABI, or the header is not that of the library.
 */

#ifndef ADAMANT_H
#define ADAMANT_H

#include <stddef.h>
#include <stdint.h>

/**
 * The number of this binary interface, see adamant_abi.
 */
#define ADAMANT_ABI 1

/**
 * Done.
 */
#define ADAMANT_OK 0

/**
 * There is no such key or keyspace; not an error.
 */
#define ADAMANT_NOT_FOUND 1

/**
 * A cursor has come to the end of its range; not an error.
 */
#define ADAMANT_END 2

/**
 * A null pointer where none may be, a handle of another kind, a length or a number that cannot be.
 */
#define ADAMANT_INVALID (-1)

/**
 * A defect of the library: it panicked. The call may have been done or not; the store goes on.
 */
#define ADAMANT_PANIC (-2)

/**
 * The store was closed, or the batch or transaction was committed.
 */
#define ADAMANT_CLOSED (-3)

/**
 * The handle is for one thread at a time, and another one is using it.
 */
#define ADAMANT_BUSY (-4)

/**
 * A key has up to 65,535 bytes: only what writes refuses a longer one.
 */
#define ADAMANT_KEY_LENGTH (-5)

/**
 * A value has at most 4 GiB - 1.
 */
#define ADAMANT_VALUE_LENGTH (-6)

/**
 * The name of a keyspace has 1 to 255 bytes of UTF-8.
 */
#define ADAMANT_NAME (-7)

/**
 * There is no keyspace of that name.
 */
#define ADAMANT_UNKNOWN_KEYSPACE (-8)

/**
 * There is a keyspace of that name already.
 */
#define ADAMANT_KEYSPACE_EXISTS (-9)

/**
 * The keyspace of the handle was dropped.
 */
#define ADAMANT_KEYSPACE_DROPPED (-10)

/**
 * The keyspace is of another store.
 */
#define ADAMANT_OTHER_STORE (-11)

/**
 * There is no engine of that name, or not in this version.
 */
#define ADAMANT_UNKNOWN_ENGINE (-12)

/**
 * The keyspace is kept by another engine than the one asked for.
 */
#define ADAMANT_WRONG_ENGINE (-13)

/**
 * What is at the path is no store, or not one that this version can open.
 */
#define ADAMANT_NOT_A_STORE (-14)

/**
 * There is no store at the path, and none was to be created.
 */
#define ADAMANT_MISSING (-15)

/**
 * Something is where a copy was to be made, or that would lie within the store.
 */
#define ADAMANT_TARGET (-16)

/**
 * Somebody has the store open.
 */
#define ADAMANT_LOCKED (-17)

/**
 * Another commit changed what the transaction read: it did nothing, run it again.
 */
#define ADAMANT_CONFLICT (-18)

/**
 * The snapshot was ended because what was kept for snapshots took too much memory.
 */
#define ADAMANT_SNAPSHOT_EXPIRED (-19)

/**
 * The store was opened for reading only.
 */
#define ADAMANT_READ_ONLY (-20)

/**
 * No space on the device. Nothing was changed; reads and removes still work.
 */
#define ADAMANT_OUT_OF_SPACE (-21)

/**
 * A write or sync failed before: no writes until the store is opened again. Reads go on.
 */
#define ADAMANT_POISONED (-22)

/**
 * Something durable is not what was written: run a check, restore a copy.
 */
#define ADAMANT_DAMAGED (-23)

/**
 * A reader used the store that lends to it.
 */
#define ADAMANT_REENTRANT (-24)

/**
 * The buffer is too small for the value.
 */
#define ADAMANT_TOO_SMALL (-26)

/**
 * The call cannot be made here, as in the child of a fork.
 */
#define ADAMANT_MISUSE (-27)

/**
 * The system failed: files, memory, threads.
 */
#define ADAMANT_SYSTEM (-28)

/**
 * Anything else; the text says what.
 */
#define ADAMANT_OTHER (-29)

/**
 * The keyspace of that name holds entries that were not made to end.
 */
#define ADAMANT_NOT_EXPIRING (-30)

/**
 * The keyspace of that name holds entries that end, or their deadlines: adamant_expiring_open
 * opens it. Or it is the history of changes, which adamant_changes_open reads.
 */
#define ADAMANT_WRONG_KIND (-31)

/**
 * Others wrote for longer than was to be waited: nothing was done, try again later.
 */
#define ADAMANT_TIMED_OUT (-32)

/**
 * The store does not record changes: adamant_record_changes begins.
 */
#define ADAMANT_CHANGES_NOT_RECORDED (-33)

/**
 * The history of changes does not have all commits behind that one: adamant_changes_info tells
 * those that it has.
 */
#define ADAMANT_CHANGES_UNKNOWN (-34)

/**
 * The store is encrypted, and no key was given: adamant_options_set_encryption_key.
 */
#define ADAMANT_KEY_NEEDED (-35)

/**
 * The store is encrypted by another key than was given. Nothing was changed.
 */
#define ADAMANT_WRONG_KEY (-36)

/**
 * A key was given, and the store is not encrypted.
 */
#define ADAMANT_NOT_ENCRYPTED (-37)

/**
 * A commit survives power loss: the default.
 */
#define ADAMANT_SYNC 0

/**
 * A commit survives the death of the process.
 */
#define ADAMANT_BUFFERED 1

/**
 * A commit may be lost with the process for a bounded time, but never in part.
 */
#define ADAMANT_DEFERRED 2

/**
 * A key has a value.
 */
#define ADAMANT_CHANGE_PUT 1

/**
 * A key has no value.
 */
#define ADAMANT_CHANGE_REMOVED 2

/**
 * The value of a key became that of the target key, and the key has none.
 */
#define ADAMANT_CHANGE_MOVED 3

/**
 * A key and the target key have exchanged their values.
 */
#define ADAMANT_CHANGE_SWAPPED 4

/**
 * No key of a range has a value.
 */
#define ADAMANT_CHANGE_RANGE_REMOVED 5

/**
 * A keyspace has no entries.
 */
#define ADAMANT_CHANGE_CLEARED 6

/**
 * A keyspace was made.
 */
#define ADAMANT_CHANGE_CREATED 7

/**
 * A keyspace is gone, with its entries.
 */
#define ADAMANT_CHANGE_DROPPED 8

/**
 * A keyspace has the new name.
 */
#define ADAMANT_CHANGE_RENAMED 9

/**
 * A keyspace and the target keyspace have exchanged their names.
 */
#define ADAMANT_CHANGE_EXCHANGED 10

/**
 * Entries of a range were loaded, where there were none. They are not listed: read them.
 */
#define ADAMANT_CHANGE_LOADED 11

/**
 * The deadline of an entry that has none: it stays until it is taken out. Later than all others.
 */
#define ADAMANT_NEVER UINT64_MAX

/**
 * 0 or 1: whether a store is created where there is none. Default: 1.
 */
#define ADAMANT_OPTION_CREATE 1

/**
 * 0 or 1: whether the store is opened for reading only, beside others that do. Default: 0.
 */
#define ADAMANT_OPTION_READ_ONLY 2

/**
 * ADAMANT_SYNC, ADAMANT_BUFFERED, ADAMANT_DEFERRED: what commits wait for unless they say
 * otherwise.
 */
#define ADAMANT_OPTION_DURABILITY 3

/**
 * Which files are memory, written by stores of the processor: 0 those on persistent memory (the
 * default), 1 those on tmpfs, too, 2 either, without flushes.
 */
#define ADAMANT_OPTION_FLUSHING 5

/**
 * Bytes of the log files. Default: 128 MiB.
 */
#define ADAMANT_OPTION_LOG_BYTES_MAX 6

/**
 * Milliseconds that a deferred commit stays in memory at most. Default: 100.
 */
#define ADAMANT_OPTION_DEFERRED_MS_MAX 7

/**
 * Bytes of deferred commits that stay in memory at most. Default: 4 MiB.
 */
#define ADAMANT_OPTION_DEFERRED_BYTES_MAX 8

/**
 * 0 or 1: whether each page is verified when it is first touched. Default: 0.
 */
#define ADAMANT_OPTION_VERIFY_FIRST_TOUCH 9

/**
 * Bytes of the process's own memory that the pool may take. Default: half of what the process may
 * have.
 */
#define ADAMANT_OPTION_MEMORY_BYTES_MAX 10

/**
 * Bytes of memory for huge pages. Default: 0.
 */
#define ADAMANT_OPTION_HUGE_BYTES_MAX 11

/**
 * Bytes of old values that are kept for open snapshots. Default: 1 GiB.
 */
#define ADAMANT_OPTION_SNAPSHOT_BYTES_MAX 12

/**
 * Bytes of blocks of the engine lsm that are kept in memory. Default: 64 MiB.
 */
#define ADAMANT_OPTION_CACHE_BYTES_MAX 13

/**
 * Files of the engine lsm that are open at once. Default: 256.
 */
#define ADAMANT_OPTION_OPEN_FILES_MAX 14

/**
 * Bytes of keys and values in a memtable of the engine lsm. Default: 64 MiB.
 */
#define ADAMANT_OPTION_LSM_MEMTABLE_BYTES_MAX 15

/**
 * 0 or 1: whether blocks of the engine lsm are compressed, by LZ4. Default: 1. See also
 * adamant_options_set_compression.
 */
#define ADAMANT_OPTION_LSM_COMPRESSION 16

/**
 * Bytes of a table of the engine lsm. Default: 64 MiB.
 */
#define ADAMANT_OPTION_LSM_TABLE_BYTES_MAX 17

/**
 * Bytes of a value from which on the engine lsm keeps it in a blob file. Default: 4 KiB.
 * UINT64_MAX: never.
 */
#define ADAMANT_OPTION_LSM_BLOB_BYTES_MIN 18

/**
 * Bytes of addresses that the pool takes, which is how large it can become while the store is
 * open. Default: 64 GiB, or sixteen times what the pool has.
 */
#define ADAMANT_OPTION_ADDRESS_BYTES_MAX 19

/**
 * Bytes of indexes and filters of the engine lsm that stay in memory beside the cache. Default: 64
 * MiB.
 */
#define ADAMANT_OPTION_PINNED_BYTES_MAX 20

/**
 * How the pages of the pool get into memory: 0 the file is mapped (the default on Linux), 1 each
 * is read and verified when it is first asked for (the default elsewhere).
 */
#define ADAMANT_OPTION_IMAGE 21

/**
 * 0 or 1: whether the store is opened for reading only, as it is at that moment, beside a process
 * that may write it. Default: 0.
 */
#define ADAMANT_OPTION_BESIDE_WRITER 22

/**
 * Bytes that a writer keeps for such readers at most, of what it overwrites. Default: 1 GiB.
 */
#define ADAMANT_OPTION_READER_BYTES_MAX 23

/**
 * 0 or 1: whether a thread removes expired entries of the keyspaces that were opened, by the
 * system's clock. Default: 1. With 0 they stay until adamant_expiring_remove_expired, though none
 * is shown.
 */
#define ADAMANT_OPTION_SWEEP_EXPIRED 24

/**
 * Bytes of a data block before compression: 64 to 8 MiB.
 */
#define ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES 1

/**
 * Bits of the filters per key: 0, for none, to 30.
 */
#define ADAMANT_KEYSPACE_OPTION_FILTER_BITS_PER_KEY 2

/**
 * 0 or 1: whether data blocks have a hash index.
 */
#define ADAMANT_KEYSPACE_OPTION_HASH_INDEX 3

/**
 * Bytes of a value from which on it is kept in a blob file. UINT64_MAX: never.
 */
#define ADAMANT_KEYSPACE_OPTION_BLOB_BYTES_MIN 4

/**
 * ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED: what commits to the keyspace wait for that
 * do not say it themselves, of any engine. UINT64_MAX: what the options of the store say. A commit
 * that changes several keyspaces waits for the most that one of them asks for.
 */
#define ADAMANT_KEYSPACE_OPTION_DURABILITY 5

/**
 * 0 or 1: whether data stays in the block cache after it was read.
 */
#define ADAMANT_KEYSPACE_OPTION_CACHES_DATA 6

/**
 * A savepoint that can be read.
 */
#define ADAMANT_SAVEPOINT_WHOLE 0

/**
 * A savepoint that was given up, since the device had no space for what it needed.
 */
#define ADAMANT_SAVEPOINT_LOST 1

/**
 * A savepoint whose file is not what was written.
 */
#define ADAMANT_SAVEPOINT_DAMAGED 2

/**
 * Changes to any keyspaces of one store that become one commit. For one thread at a time. To be
 * freed by adamant_batch_free.
 */
typedef struct adamant_batch adamant_batch;

/**
 * Commits in order. For one thread at a time. To be freed by adamant_changes_free.
 */
typedef struct adamant_changes adamant_changes;

/**
 * Goes through the entries of a keyspace by key, both ways. It stays good while the keyspace is
 * written to. For one thread at a time. To be freed by adamant_cursor_free.
 */
typedef struct adamant_cursor adamant_cursor;

/**
 * A keyspace whose entries may have a deadline, from which on they are not there, whether anybody
 * has taken them away by then or not (adamant_expiring_remove_expired does), and whether the store
 * was open or not. Keys have up to 65,527 bytes, values up to 4 GiB - 9. To be freed by
 * adamant_expiring_free.
 */
typedef struct adamant_expiring adamant_expiring;

/**
 * A keyspace: a named, ordered map of a store. To be freed by adamant_keyspace_free.
 */
typedef struct adamant_keyspace adamant_keyspace;

/**
 * Options of a keyspace: its durability, those of the engine lsm, and the compression of values in
 * the others. What is set is recorded with the keyspace that is opened with them, and holds from
 * then on, also after the store was opened again; what is not set stays as it is recorded, or else
 * as the options of the store say. To be freed by adamant_keyspace_options_free, also after a
 * keyspace was opened with them.
 */
typedef struct adamant_keyspace_options adamant_keyspace_options;

/**
 * A list of keyspaces, as they were when it was made. To be freed by adamant_keyspace_list_free.
 */
typedef struct adamant_keyspace_list adamant_keyspace_list;

/**
 * A map of keys to sets of values, both sorted by their bytes. A key and a value have up to 65,533
 * bytes together, and one less for each zero in the key. To be freed by adamant_multimap_free.
 */
typedef struct adamant_multimap adamant_multimap;

/**
 * Options of a store. To be freed by adamant_options_free, also after a store was opened with
 * them.
 */
typedef struct adamant_options adamant_options;

/**
 * A list of savepoints, as they were when it was made. To be freed by adamant_savepoint_list_free.
 */
typedef struct adamant_savepoint_list adamant_savepoint_list;

/**
 * All keyspaces of a store at one moment, whatever is written since. To be freed by
 * adamant_snapshot_free, which also ends what it has lent.
 */
typedef struct adamant_snapshot adamant_snapshot;

/**
 * An open store. To be closed by adamant_close and freed by adamant_store_free.
 */
typedef struct adamant_store adamant_store;

/**
 * Reads and writes that happen as one, at the commit, or not at all. For one thread at a time. To
 * be freed by adamant_transaction_free, which undoes one that was not committed.
 */
typedef struct adamant_transaction adamant_transaction;

/**
 * A value of the caller's own: a copy, which depends on nothing. To be freed by
 * adamant_value_free.
 */
typedef struct adamant_value adamant_value;

/**
 * Bytes: how many, and where. Whose they are, and for how long, is said where a slice is used.
 */
typedef struct {
    /**
     * Where; NULL for none.
     */
    const uint8_t *data;
    /**
     * How many.
     */
    size_t len;
} adamant_slice;

/**
 * Which keys: all but those that a part of it leaves out. A range of zeros is all keys. Bytes that
 * are not there (NULL) leave nothing out.
 */
typedef struct {
    /**
     * Keys that start with these bytes.
     */
    adamant_slice prefix;
    /**
     * Keys from this one on.
     */
    adamant_slice lower;
    /**
     * Keys below this one.
     */
    adamant_slice upper;
    /**
     * Other than 0: without the key `lower` itself.
     */
    int lower_excluded;
    /**
     * Other than 0: with the key `upper` itself.
     */
    int upper_included;
} adamant_range;

/**
 * A function of C's that gives one entry after the other: it puts key and value where it is told,
 * and returns other than 0; or 0 when there are no more. What it gives must stay until it is
 * called again. It gets back the `context` that was given with it.
 */
typedef int (*adamant_feeder)(void *context, adamant_slice *key, adamant_slice *value);

/**
 * A function of C's that is lent a value. It gets back the `context` that was given with it. It
 * may look at the bytes until it returns. It must not use the store, which would be
 * ADAMANT_REENTRANT.
 */
typedef void (*adamant_reader)(void *context, adamant_slice value);

/**
 * A function of C's that says what time it is: milliseconds since 1970, UTC, which should not go
 * back. It gets back the `context` that was given with it. It is called on any thread, and on
 * several at once, until the last handle that has it is freed. It must not use the store.
 */
typedef uint64_t (*adamant_clock)(void *context);

/**
 * A function of C's that works with a handle which is good until it returns, and is not to be
 * freed by it. It returns 0 if all went well. It gets back the `context` that was given with it.
 */
typedef int (*adamant_work)(void *context, adamant_transaction *handle);

/**
 * A change that a commit made. What does not belong to its kind is no bytes (NULL), and 0. All
 * bytes are lent until the function returns that is given it.
 */
typedef struct {
    /**
     * The number of its commit: commits are numbered one by one, in the order in which they came.
     */
    uint64_t commit;
    /**
     * How many changes of this commit come behind this one.
     */
    uint64_t left;
    /**
     * What happened: ADAMANT_CHANGE_PUT and so on. A later version may have more of them.
     */
    int kind;
    /**
     * The name of the keyspace, as it was then, without a zero byte.
     */
    adamant_slice keyspace;
    /**
     * The number of the keyspace, which no other one ever has.
     */
    uint64_t keyspace_id;
    /**
     * The key.
     */
    adamant_slice key;
    /**
     * The value that the commit left.
     */
    adamant_slice value;
    /**
     * When the value is over; ADAMANT_NEVER for all that do not end.
     */
    uint64_t deadline;
    /**
     * The name of the other keyspace.
     */
    adamant_slice target;
    /**
     * Its number.
     */
    uint64_t target_id;
    /**
     * The other key.
     */
    adamant_slice target_key;
    /**
     * The lower end of a range; NULL: it has none.
     */
    adamant_slice lower;
    /**
     * The upper end of a range; NULL: it has none.
     */
    adamant_slice upper;
    /**
     * Other than 0: the key `lower` itself is not in the range.
     */
    int lower_excluded;
    /**
     * Other than 0: the key `upper` itself is in the range.
     */
    int upper_included;
    /**
     * The name of the keyspace since.
     */
    adamant_slice new_name;
} adamant_change;

/**
 * A function of C's that is told a change. It gets back the `context` that was given with it. It
 * may look at the change until it returns, and use the store, but not the feed.
 */
typedef void (*adamant_change_reader)(void *context, const adamant_change *change);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What the last call of this thread that failed has to say: what was expected, what was found, and
 * what to do. Empty if none failed. The text is there until another call of this thread fails; it
 * is not to be freed.
 */
const char *adamant_last_error(void);

/**
 * The name of a code, such as "ADAMANT_CONFLICT"; "?" for a number that is none. Not to be freed.
 */
const char *adamant_code_name(int code);

/**
 * The version of the library, such as "0.1.0". Not to be freed.
 */
const char *adamant_version(void);

/**
 * The number of the library's binary interface. A program compares it with ADAMANT_ABI, which is
 * that of the header it was compiled with: they must be equal.
 */
uint32_t adamant_abi(void);

/**
 * The bytes of a value, until it is freed. Behind the last one is a zero byte that does not count,
 * so that text can be used as text. No bytes (NULL) for what is no value.
 */
adamant_slice adamant_value_bytes(const adamant_value *value);

/**
 * Frees a value; NULL is none.
 */
void adamant_value_free(adamant_value *value);

/**
 * The bytes of text up to its zero byte: adamant_text("ada"). No bytes for NULL.
 */
adamant_slice adamant_text(const char *text);

/**
 * So many bytes: adamant_bytes(&number, sizeof number).
 */
adamant_slice adamant_bytes(const void *data, size_t len);

/**
 * All keys that start with these bytes.
 */
adamant_range adamant_range_prefix(adamant_slice prefix);

/**
 * All keys from `lower` on that are below `upper`; NULL bytes are no bound.
 */
adamant_range adamant_range_between(adamant_slice lower, adamant_slice upper);

/**
 * The default options.
 */
int adamant_options_new(adamant_options **options);

/**
 * Sets an option, ADAMANT_OPTION_..., to a number.
 *
 * Fails with ADAMANT_INVALID for an option that this version does not know, or a number that it
 * cannot have.
 */
int adamant_options_set(adamant_options *options, int option, uint64_t value);

/**
 * Sets the compression of the engine lsm, level by level: "none", "lz4", "zstd" or "zstd:LEVEL"
 * (1 to 22; 3 is the default) for all of them; several, with commas in between, for the first
 * levels, of which the last one holds for all deeper levels; and at the end, after the word last,
 * that of the last level alone, where nine tenths of the data are: "none, lz4, last zstd".
 *
 * Fails with ADAMANT_INVALID for another text.
 */
int adamant_options_set_compression(adamant_options *options, const char *compression);

/**
 * Sets the key of an encrypted store: 32 bytes from a good source of randomness, or the same as 64
 * hexadecimal digits; NULL for none. A store that is created is encrypted by it. The bytes are
 * copied, and the copy is overwritten when the options and the stores that have it are freed.
 *
 * Fails with ADAMANT_INVALID for other bytes.
 */
int adamant_options_set_encryption_key(adamant_options *options, const void *key, size_t len);

/**
 * Frees options; NULL is none.
 */
void adamant_options_free(adamant_options *options);

/**
 * Options of which none is set.
 */
int adamant_keyspace_options_new(adamant_keyspace_options **options);

/**
 * Sets an option, ADAMANT_KEYSPACE_OPTION_..., to a number.
 *
 * Fails with ADAMANT_INVALID for an option that this version does not know, or a number that no
 * option could have. Whether it can be used is verified when a keyspace is opened with it.
 */
int adamant_keyspace_options_set(adamant_keyspace_options *options, int option, uint64_t value);

/**
 * Sets the compression, level by level, by a text as of adamant_options_set_compression.
 */
int adamant_keyspace_options_set_compression(adamant_keyspace_options *options, const char *compression);

/**
 * Sets the compression of values in a keyspace of any engine but lsm: "none", "lz4", "zstd" or
 * "zstd:LEVEL", and then, where it is not 128, the bytes of the shortest value that is compressed,
 * as in "lz4, from 200". An existing keyspace with values that are stored plain is refused with
 * ADAMANT_INVALID: adamant_keyspace_compress_values converts it.
 */
int adamant_keyspace_options_set_value_compression(adamant_keyspace_options *options,
                                                   const char *compression);

/**
 * Sets the merge operator of the keyspace, of any engine, by its name, one of those of the
 * library: "add" (64-bit integers, little-endian, signed or not), "max_u64", "min_u64", "max_i64",
 * "min_i64", "append" (bytes) and "or" (bits). It is recorded for good: a keyspace that has
 * another one is refused with ADAMANT_INVALID.
 */
int adamant_keyspace_options_set_merge_operator(adamant_keyspace_options *options, const char *name);

/**
 * Frees options; NULL is none.
 */
void adamant_keyspace_options_free(adamant_keyspace_options *options);

/**
 * Opens the store in the directory at a path, with options; NULL for the default ones. It is
 * created if there is none. After a crash this recovers what was committed.
 *
 * Fails with ADAMANT_LOCKED if somebody has it open, ADAMANT_NOT_A_STORE if something else is
 * there, ADAMANT_MISSING if nothing is there and nothing is to be created; ADAMANT_KEY_NEEDED,
 * ADAMANT_WRONG_KEY or ADAMANT_NOT_ENCRYPTED if the store is encrypted otherwise than the options
 * say.
 */
int adamant_open(const char *path, const adamant_options *options, adamant_store **store);

/**
 * Opens a new store in memory, which is gone when it is closed: for tests.
 */
int adamant_open_in_memory(adamant_store **store);

/**
 * The path that a store was opened at, as a value to be freed by adamant_value_free;
 * ADAMANT_NOT_FOUND for one in memory.
 */
int adamant_store_path(const adamant_store *store, adamant_value **path);

/**
 * Brings all commits to the files and closes the store, so that the next opening has nothing to
 * recover. From then on each use of it, of its keyspaces, cursors and so on is ADAMANT_CLOSED; the
 * handles are still to be freed.
 */
int adamant_close(adamant_store *store);

/**
 * Frees the handle of a store; NULL is none. One that was not closed is closed when its last
 * keyspace, batch, cursor, snapshot and transaction are freed, but of a failure nobody is told.
 */
void adamant_store_free(adamant_store *store);

/**
 * Makes all that was committed survive power loss, whatever its commits waited for.
 */
int adamant_sync(adamant_store *store);

/**
 * Makes the store as small and as fast to read as it can be, while others read and write: compacts
 * all keyspaces, and gives the space that this frees back to the file system. Until it is done it
 * takes as much space again as all entries.
 *
 * Fails with ADAMANT_OUT_OF_SPACE if there is none; nothing is lost then.
 */
int adamant_compact(adamant_store *store);

/**
 * Makes a copy of the store at a path where nothing is, while others read and write. It appears
 * there whole and verified, or not at all.
 *
 * Fails with ADAMANT_TARGET if something is there.
 */
int adamant_backup(const adamant_store *store, const char *path);

/**
 * As adamant_backup, but the files of keyspaces of the engine lsm become hard links if the copy is
 * on the same file system: they never change, so that takes no time and no space. Damage of the
 * device hits both stores.
 */
int adamant_backup_linked(const adamant_store *store, const char *path);

/**
 * As adamant_backup, but only of what the store has otherwise than a backup, the parent, which is
 * in the same directory: one of adamant_backup, or of this. The new one is read, restored and used
 * as a parent together with those that it stands on, so all of them must stay where they are;
 * adamant_open opens it with ADAMANT_OPTION_READ_ONLY.
 *
 * Fails with ADAMANT_INVALID if the parent is no backup or elsewhere, ADAMANT_MISSING if one of
 * the backups is missing, ADAMANT_NOT_A_STORE if one was written since, ADAMANT_TARGET if
 * something is at the path.
 */
int adamant_backup_since(const adamant_store *store, const char *parent, const char *path);

/**
 * Copies a backup, or any store that nobody has open, to a path where nothing is, and verifies it
 * on the way.
 *
 * Fails with ADAMANT_TARGET if something is there, ADAMANT_DAMAGED if the backup is not whole.
 */
int adamant_restore(const char *backup, const char *path);

/**
 * As adamant_restore, for a backup that is opened with these options, such as an encrypted one:
 * the copy is encrypted by the same key.
 */
int adamant_restore_with(const char *backup, const char *path, const adamant_options *options);

/**
 * Whether the files of a store are encrypted: 1, else 0.
 */
int adamant_is_encrypted(const adamant_store *store, int *encrypted);

/**
 * Has another key open an encrypted store from now on, instead of the one that did, at once: the
 * files stay as they are. The key is as of adamant_options_set_encryption_key. Backups that were
 * made before keep theirs. Somebody who has the old key and an old copy of the file "key" can read
 * the files of today: if that may be, use adamant_encrypt.
 *
 * Fails with ADAMANT_NOT_ENCRYPTED for a store that is not.
 */
int adamant_rekey(adamant_store *store, const void *key, size_t len);

/**
 * Writes a store that nobody has open anew, encrypted by the key of the new options; not encrypted
 * if they have none. The options open it as it is; NULL for the default ones. It takes as much
 * space again as all entries. A crash leaves the one or the other. The old files are removed,
 * which does not erase them from a device.
 */
int adamant_encrypt(const char *path, const adamant_options *options, const adamant_options *new_options);

/**
 * Opens the keyspace of a name (1 to 255 bytes of UTF-8), which is created if there is none.
 * `engine` is "bplus" (the default), "lsm", "btree", "critbit", "redblack", or NULL: the default
 * for a new one, any for one that exists.
 *
 * Fails with ADAMANT_WRONG_ENGINE if another engine keeps it.
 */
int adamant_keyspace_open(adamant_store *store,
                          const char *name,
                          const char *engine,
                          adamant_keyspace **keyspace);

/**
 * Opens a keyspace as adamant_keyspace_open, with options of the engine lsm; NULL for none. Those
 * that an existing keyspace does not have yet are recorded with it, in a commit of its own.
 *
 * Fails with ADAMANT_WRONG_ENGINE, too, if options are set and the engine is not lsm; with
 * ADAMANT_INVALID for an option that cannot be used.
 */
int adamant_keyspace_open_with(adamant_store *store,
                               const char *name,
                               const char *engine,
                               const adamant_keyspace_options *options,
                               adamant_keyspace **keyspace);

/**
 * Creates a keyspace, as adamant_keyspace_open; fails with ADAMANT_KEYSPACE_EXISTS if there is
 * one.
 */
int adamant_keyspace_create(adamant_store *store,
                            const char *name,
                            const char *engine,
                            adamant_keyspace **keyspace);

/**
 * Creates a keyspace as adamant_keyspace_create, with options as adamant_keyspace_open_with.
 */
int adamant_keyspace_create_with(adamant_store *store,
                                 const char *name,
                                 const char *engine,
                                 const adamant_keyspace_options *options,
                                 adamant_keyspace **keyspace);

/**
 * Opens a keyspace that exists; fails with ADAMANT_UNKNOWN_KEYSPACE if there is none.
 */
int adamant_keyspace_open_existing(const adamant_store *store, const char *name, adamant_keyspace **keyspace);

/**
 * Another handle of a keyspace, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or
 * ADAMANT_DEFERRED.
 */
int adamant_keyspace_with_durability(const adamant_keyspace *keyspace,
                                     int durability,
                                     adamant_keyspace **other);

/**
 * The durability of writes by a handle, ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED: its
 * own, or the one that is recorded with the keyspace, or that of the store.
 */
int adamant_keyspace_durability(const adamant_keyspace *keyspace, int *durability);

/**
 * Frees the handle of a keyspace; NULL is none. The keyspace stays.
 */
void adamant_keyspace_free(adamant_keyspace *keyspace);

/**
 * The name, until the handle is freed. NULL for what is no keyspace.
 */
const char *adamant_keyspace_name(const adamant_keyspace *keyspace);

/**
 * The name of the engine that kept it when the handle was opened. Not to be freed. NULL for what
 * is no keyspace.
 */
const char *adamant_keyspace_engine(const adamant_keyspace *keyspace);

/**
 * Drops a keyspace with all that it holds, in one commit; ADAMANT_NOT_FOUND if there is none. Its
 * handles get ADAMANT_KEYSPACE_DROPPED from then on.
 */
int adamant_keyspace_drop(adamant_store *store, const char *name);

/**
 * Gives a keyspace another name, in one commit. Its handles stay good.
 */
int adamant_keyspace_rename(adamant_store *store, const char *name, const char *new_name);

/**
 * Makes a keyspace one of another engine, in one commit. Its handles stay good, but are better
 * opened again.
 */
int adamant_keyspace_convert(adamant_store *store, const char *name, const char *engine);

/**
 * Has a keyspace store its values by another compression, as of
 * adamant_keyspace_options_set_value_compression: those that are there and all later ones, in one
 * commit. `dictionary` is one for zstd, of 64 KiB at most, or adamant_text(NULL) for none. Handles
 * of the keyspace stay good. Readers and writers wait until it is done.
 *
 * Fails with ADAMANT_INVALID for bytes that are no dictionary, and for one without zstd.
 */
int adamant_keyspace_compress_values(adamant_store *store,
                                     const char *name,
                                     const char *compression,
                                     adamant_slice dictionary);

/**
 * Trains a dictionary of at most so many bytes, 256 to 65536, from the values of a keyspace, for
 * adamant_keyspace_compress_values; 16384 are a good size. It is to be freed by
 * adamant_value_free.
 *
 * Fails with ADAMANT_INVALID for too few values, values that have nothing in common, and where
 * zstd is not built in.
 */
int adamant_keyspace_train_dictionary(const adamant_store *store,
                                      const char *name,
                                      size_t bytes_max,
                                      adamant_value **dictionary);

/**
 * Lists all keyspaces, by name.
 */
int adamant_keyspaces(const adamant_store *store, adamant_keyspace_list **list);

/**
 * How many keyspaces are in a list.
 */
size_t adamant_keyspace_list_count(const adamant_keyspace_list *list);

/**
 * The keyspace at an index of a list: its name and engine, which are there until the list is
 * freed, and how many entries it has (of the engine lsm: about). Each place may be NULL.
 * ADAMANT_NOT_FOUND beyond the end.
 */
int adamant_keyspace_list_get(const adamant_keyspace_list *list,
                              size_t index,
                              const char **name,
                              const char **engine,
                              uint64_t *entries);

/**
 * The name of the merge operator of the keyspace at an index of a list, which is there until the
 * list is freed; NULL: it has none. ADAMANT_NOT_FOUND beyond the end.
 */
int adamant_keyspace_list_merge_operator(const adamant_keyspace_list *list, size_t index, const char **name);

/**
 * Frees a list; NULL is none.
 */
void adamant_keyspace_list_free(adamant_keyspace_list *list);

/**
 * Makes a savepoint: all keyspaces as they are now, under a name of 1 to 255 bytes, to be read or
 * gone back to, even after the store was closed. It is durable when this returns. It costs room
 * for what changes; where there is none, the oldest savepoint is given up, and commits go on.
 *
 * Fails with ADAMANT_INVALID if there is one of that name, or the name has another length.
 */
int adamant_create_savepoint(adamant_store *store, const char *name);

/**
 * Deletes a savepoint and gives back what only it held; ADAMANT_NOT_FOUND if there is none of that
 * name. Needs no space. Fails with ADAMANT_MISUSE while it is open.
 */
int adamant_delete_savepoint(adamant_store *store, const char *name);

/**
 * Opens what a savepoint shows as a store that is only read, while this one goes on. This one
 * stays open as long, unless it is closed by adamant_close: then the savepoint cannot be read any
 * more.
 *
 * Fails with ADAMANT_MISSING if there is none of that name, or it was given up.
 */
int adamant_open_savepoint(const adamant_store *store, const char *name, adamant_store **savepoint);

/**
 * Makes the store at a path, which nobody has open, what one of its savepoints shows: all later
 * commits are undone, and all savepoints stay. Takes as much space as the file pool. A crash
 * leaves the store as it was, or as it is to be. NULL for the default options.
 *
 * Fails with ADAMANT_MISSING if there is none of that name, ADAMANT_LOCKED if the store is open.
 */
int adamant_go_back(const char *path, const char *name, const adamant_options *options);

/**
 * Lists all savepoints, the oldest first, and behind them those that were given up.
 */
int adamant_savepoints(const adamant_store *store, adamant_savepoint_list **list);

/**
 * How many savepoints are in a list.
 */
size_t adamant_savepoint_list_count(const adamant_savepoint_list *list);

/**
 * The savepoint at an index of a list: its name, which is there until the list is freed, the
 * number of the last commit that it shows, when it was made in milliseconds since 1970 (0: not
 * known), the bytes that it holds, and ADAMANT_SAVEPOINT_WHOLE, _LOST or _DAMAGED. Each place may
 * be NULL. ADAMANT_NOT_FOUND beyond the end.
 */
int adamant_savepoint_list_get(const adamant_savepoint_list *list,
                               size_t index,
                               const char **name,
                               uint64_t *commit,
                               uint64_t *made_ms,
                               uint64_t *bytes,
                               int *state);

/**
 * Frees a list; NULL is none.
 */
void adamant_savepoint_list_free(adamant_savepoint_list *list);

/**
 * Figures of a store, as the text of a JSON object.
 */
int adamant_stats(const adamant_store *store, adamant_value **json);

/**
 * Figures of a keyspace, as the text of a JSON object: "entries"; bytes on the medium,
 * "heap_bytes" (of a tree an estimate), "table_bytes" and "blob_bytes"; since the store was opened
 * "lookups" of keys, entries that were "scanned", and "writes"; of the engine lsm also
 * "cache_hits", "cache_misses" and "levels", for each of which "tables", "bytes" and "entries".
 */
int adamant_keyspace_stats(const adamant_keyspace *keyspace, adamant_value **json);

/**
 * Verifies every checksum and every structure of a store. The report is the text of a JSON object,
 * which is there also when it fails with ADAMANT_DAMAGED, or with ADAMANT_SYSTEM if all that it
 * found is what the system refused to read: {"clean": ..., "findings": [{"place": ..., "what":
 * ..., "unread": ...}], "pages_verified": ..., "blocks": ..., "keyspaces": [{"name": ...,
 * "entries": ...}]}. `json` may be NULL.
 */
int adamant_check(const adamant_store *store, adamant_value **json);

/**
 * Sets the value of a key, whether it had one or not. O(log n), and no read of files by the engine
 * lsm.
 */
int adamant_put(adamant_keyspace *keyspace, adamant_slice key, adamant_slice value);

/**
 * Merges an operand with the value of a key, by the merge operator of the keyspace: see
 * adamant_keyspace_options_set_merge_operator. A key without a value gets the operand as its
 * value. O(log n); the engine lsm reads no file for it.
 *
 * Fails with ADAMANT_INVALID if the keyspace has no merge operator, or the operator refuses the
 * operand, and with ADAMANT_VALUE_LENGTH if it has more than 1 MiB.
 */
int adamant_merge(adamant_keyspace *keyspace, adamant_slice key, adamant_slice operand);

/**
 * Deletes a key, whether it exists or not. O(log n), and no read of files by the engine lsm.
 */
int adamant_delete(adamant_keyspace *keyspace, adamant_slice key);

/**
 * Like adamant_put, and says whether there was a value (1) or not (0); `replaced` may be NULL. The
 * engine lsm has to look for the key, which may read the device; for the others it costs no more.
 */
int adamant_insert(adamant_keyspace *keyspace, adamant_slice key, adamant_slice value, int *replaced);

/**
 * Like adamant_delete, but ADAMANT_NOT_FOUND if the key did not exist. The engine lsm has to look
 * for the key, which may read the device; for the others it costs no more.
 */
int adamant_remove(adamant_keyspace *keyspace, adamant_slice key);

/**
 * Sets the value of a key that has none, and says whether it did (1); one that is there stays (0).
 * `inserted` may be NULL.
 */
int adamant_insert_unique(adamant_keyspace *keyspace, adamant_slice key, adamant_slice value, int *inserted);

/**
 * Sets the value of a key, or takes it out, if its value is the expected one, and says whether it
 * did (1) or not (0). Bytes that are not there, adamant_text(NULL), are no value: expected, the
 * key must have none; as the new value, it is taken out. If it was another one, `found` is a copy
 * of that, to be freed by adamant_value_free, or NULL for none. `swapped` and `found` may be NULL.
 */
int adamant_compare_and_swap(adamant_keyspace *keyspace,
                             adamant_slice key,
                             adamant_slice expected,
                             adamant_slice value,
                             int *swapped,
                             adamant_value **found);

/**
 * Sets the values of keys that ascend, which a function gives one after the other: the fastest way
 * to fill a keyspace, which need not be empty, and the one that leaves it smallest. `entries` and
 * `replaced` say how many there were, and how many of the keys had a value; they may be NULL.
 *
 * They are committed in pieces, so that a load which fails leaves some of the first ones. The
 * function may use the store. Fails with ADAMANT_INVALID where a key is not above the one before
 * it.
 */
int adamant_load_sorted(adamant_keyspace *keyspace,
                        adamant_feeder feeder,
                        void *context,
                        uint64_t *entries,
                        uint64_t *replaced);

/**
 * Takes the entry with the lowest key out, in one commit, and gives copies of its key and its
 * value, each to be freed by adamant_value_free; ADAMANT_NOT_FOUND, and NULL for both, if there is
 * no entry. Threads that do this at the same time get different entries. O(log n); the engine lsm
 * may read the device.
 */
int adamant_pop_first(adamant_keyspace *keyspace, adamant_value **key, adamant_value **value);

/**
 * Like adamant_pop_first, for the entry with the highest key.
 */
int adamant_pop_last(adamant_keyspace *keyspace, adamant_value **key, adamant_value **value);

/**
 * Deletes all keys of a range, in one commit; NULL for all keys. The engine lsm records the range,
 * the others delete entry by entry, for which a large range takes memory; adamant_clear, which
 * deletes all keys, does not.
 */
int adamant_delete_range(adamant_keyspace *keyspace, const adamant_range *range);

/**
 * Takes all entries out, in one small commit.
 */
int adamant_clear(adamant_keyspace *keyspace);

/**
 * Moves the value of a key to a key of the same or another keyspace, without a copy, in one
 * commit; it replaces what is there. ADAMANT_NOT_FOUND if there is nothing to be moved.
 */
int adamant_move(adamant_keyspace *keyspace,
                 adamant_slice key,
                 adamant_keyspace *target,
                 adamant_slice new_key);

/**
 * Swaps the values of two keys, of one keyspace or two, without a copy, in one commit;
 * ADAMANT_NOT_FOUND, and nothing is done, if one of them has none.
 */
int adamant_swap(adamant_keyspace *keyspace,
                 adamant_slice key,
                 adamant_keyspace *other,
                 adamant_slice other_key);

/**
 * The value of a key, as a copy to be freed by adamant_value_free; ADAMANT_NOT_FOUND, and NULL for
 * the value, if it has none.
 */
int adamant_get(const adamant_keyspace *keyspace, adamant_slice key, adamant_value **value);

/**
 * The values of `count` keys, to `count` places: each a value to be freed by adamant_value_free,
 * or NULL for a key that has none. Each 64 keys are read as of one moment. Where it fails, all
 * places are NULL.
 */
int adamant_multi_get(const adamant_keyspace *keyspace,
                      const adamant_slice *keys,
                      size_t count,
                      adamant_value **values);

/**
 * An estimate of the entries in a range, and of the bytes of their keys and values, without
 * visiting them; NULL is the whole keyspace. `bytes` may be NULL. In bplus right within some
 * tenths, mostly within some hundredths, and O(log n); in lsm from the indexes of tables, without
 * reading data; in the others right within a tenth of all entries, or counted if they are no more
 * than 1,000.
 */
int adamant_estimate(const adamant_keyspace *keyspace,
                     const adamant_range *range,
                     uint64_t *entries,
                     uint64_t *bytes);

/**
 * Copies the value of a key to a buffer, and says how many bytes it has; `value_bytes` may be
 * NULL.
 *
 * Fails with ADAMANT_TOO_SMALL if it does not fit: then nothing is copied, and `value_bytes` says
 * how large a buffer has to be.
 */
int adamant_get_into(const adamant_keyspace *keyspace,
                     adamant_slice key,
                     void *buffer,
                     size_t buffer_bytes,
                     size_t *value_bytes);

/**
 * Lends the value of a key to a function, without a copy, and returns when that has;
 * ADAMANT_NOT_FOUND, without calling it, if it has none. Writers wait meanwhile, and other
 * functions behind them; reads do not.
 */
int adamant_get_with(const adamant_keyspace *keyspace,
                     adamant_slice key,
                     adamant_reader reader,
                     void *context);

/**
 * Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND.
 */
int adamant_contains(const adamant_keyspace *keyspace, adamant_slice key);

/**
 * How many entries a keyspace has. The engine lsm counts them.
 */
int adamant_len(const adamant_keyspace *keyspace, uint64_t *entries);

/**
 * Opens the keyspace of a name for entries that may end, which is created if there is none, with
 * one beside it that has their deadlines in order, called as it and `.deadlines`. `engine` as in
 * adamant_keyspace_open.
 *
 * Fails with ADAMANT_NOT_EXPIRING if there is one of that name with other entries.
 */
int adamant_expiring_open(adamant_store *store,
                          const char *name,
                          const char *engine,
                          adamant_expiring **expiring);

/**
 * Opens such a keyspace as adamant_expiring_open, with options as adamant_keyspace_open_with; they
 * are of its entries, not of the deadlines.
 */
int adamant_expiring_open_with(adamant_store *store,
                               const char *name,
                               const char *engine,
                               const adamant_keyspace_options *options,
                               adamant_expiring **expiring);

/**
 * Drops a keyspace of entries that end, and their deadlines; ADAMANT_NOT_FOUND if there is none.
 */
int adamant_expiring_drop(adamant_store *store, const char *name);

/**
 * Another handle, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
 */
int adamant_expiring_with_durability(const adamant_expiring *expiring,
                                     int durability,
                                     adamant_expiring **other);

/**
 * Another handle, which asks a function what time it is, and not the system: for tests, and for
 * those who have a better clock. It goes to whatever is made with the handle.
 */
int adamant_expiring_with_clock(const adamant_expiring *expiring,
                                adamant_clock clock,
                                void *context,
                                adamant_expiring **other);

/**
 * Frees a handle; NULL is none. The keyspace stays.
 */
void adamant_expiring_free(adamant_expiring *expiring);

/**
 * What time it is by the clock: milliseconds since 1970. 0 for what is no handle.
 */
uint64_t adamant_expiring_now(const adamant_expiring *expiring);

/**
 * The deadline of what is to end after so many milliseconds. 0, which is over, for what is no
 * handle.
 */
uint64_t adamant_expiring_after(const adamant_expiring *expiring, uint64_t time_ms);

/**
 * Sets the value of a key, whether it had one or not, and when it expires: at
 * adamant_expiring_after(...) or ADAMANT_NEVER, at once if that is over. O(log n); it finds the
 * old entry first, in the engine lsm by a search that may read the device, since its deadline
 * goes.
 */
int adamant_expiring_put(adamant_expiring *expiring,
                         adamant_slice key,
                         adamant_slice value,
                         uint64_t deadline_ms);

/**
 * Deletes a key, whether it exists or not. Costs as adamant_expiring_put.
 */
int adamant_expiring_delete(adamant_expiring *expiring, adamant_slice key);

/**
 * Like adamant_expiring_put, at the same cost, and says whether it replaced a value that was not
 * over (1) or not (0); `replaced` may be NULL.
 */
int adamant_expiring_insert(adamant_expiring *expiring,
                            adamant_slice key,
                            adamant_slice value,
                            uint64_t deadline_ms,
                            int *replaced);

/**
 * Like adamant_expiring_delete, at the same cost, but ADAMANT_NOT_FOUND if the key did not exist,
 * or was over.
 */
int adamant_expiring_remove(adamant_expiring *expiring, adamant_slice key);

/**
 * Gives an entry another deadline; ADAMANT_NEVER: it stays. ADAMANT_NOT_FOUND if it is not there.
 */
int adamant_expiring_set_deadline(adamant_expiring *expiring, adamant_slice key, uint64_t deadline_ms);

/**
 * The value of a key, as a copy to be freed by adamant_value_free, and when it ends;
 * ADAMANT_NOT_FOUND, and NULL for the value, if it has none that is not over. `value` and
 * `deadline_ms` may be NULL.
 */
int adamant_expiring_get(const adamant_expiring *expiring,
                         adamant_slice key,
                         adamant_value **value,
                         uint64_t *deadline_ms);

/**
 * Whether a key has a value that is not over: ADAMANT_OK or ADAMANT_NOT_FOUND.
 */
int adamant_expiring_contains(const adamant_expiring *expiring, adamant_slice key);

/**
 * How many entries are not over: exact. What is over and was not taken away is looked at one by
 * one.
 */
int adamant_expiring_len(const adamant_expiring *expiring, uint64_t *entries);

/**
 * When the next entry will be over, or was; ADAMANT_NEVER if none ever is.
 */
int adamant_expiring_next_deadline(const adamant_expiring *expiring, uint64_t *deadline_ms);

/**
 * Takes entries away that are over, at most so many, in one commit, and says how many; `removed`
 * may be NULL. To be called now and then, best at adamant_expiring_next_deadline: they take room
 * until then.
 */
int adamant_expiring_remove_expired(adamant_expiring *expiring, size_t entries_max, uint64_t *removed);

/**
 * Opens the multimap of a name, which is created if there is none. `engine` as in
 * adamant_keyspace_open. It is renamed and dropped as any keyspace.
 *
 * Fails with ADAMANT_WRONG_KIND if there is a keyspace of that name with other entries.
 */
int adamant_multimap_open(adamant_store *store,
                          const char *name,
                          const char *engine,
                          adamant_multimap **multimap);

/**
 * Another handle, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
 */
int adamant_multimap_with_durability(const adamant_multimap *multimap,
                                     int durability,
                                     adamant_multimap **other);

/**
 * Frees a handle; NULL is none. The multimap stays.
 */
void adamant_multimap_free(adamant_multimap *multimap);

/**
 * Gives a key one more value, and says whether it is new (1) or was there (0), when nothing is
 * changed; `is_new` may be NULL. O(log n). ADAMANT_KEY_LENGTH if both are too long together.
 */
int adamant_multimap_insert(adamant_multimap *multimap, adamant_slice key, adamant_slice value, int *is_new);

/**
 * Takes a value from a key; ADAMANT_NOT_FOUND if the key did not have it. O(log n).
 */
int adamant_multimap_remove(adamant_multimap *multimap, adamant_slice key, adamant_slice value);

/**
 * Takes all values from a key, in one commit, and says how many there were; `values` may be NULL.
 */
int adamant_multimap_remove_all(adamant_multimap *multimap, adamant_slice key, uint64_t *values);

/**
 * Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
 */
int adamant_multimap_contains(const adamant_multimap *multimap, adamant_slice key, adamant_slice value);

/**
 * How many values a key has, which are counted.
 */
int adamant_multimap_count(const adamant_multimap *multimap, adamant_slice key, uint64_t *values);

/**
 * How many pairs of a key and a value there are.
 */
int adamant_multimap_len(const adamant_multimap *multimap, uint64_t *pairs);

/**
 * The lowest value of a key above another value, as a copy to be freed by adamant_value_free;
 * ADAMANT_END, and NULL, if there is none. NULL bytes for `above`: the lowest of all. So a loop
 * that gives the value found last goes through all of them, O(log n) each.
 */
int adamant_multimap_next_value(const adamant_multimap *multimap,
                                adamant_slice key,
                                adamant_slice above,
                                adamant_value **value);

/**
 * The lowest key above another one that has a value, as adamant_multimap_next_value.
 */
int adamant_multimap_next_key(const adamant_multimap *multimap, adamant_slice above, adamant_value **key);

/**
 * An empty batch.
 */
int adamant_batch_new(const adamant_store *store, adamant_batch **batch);

/**
 * Will set the value of a key, whether it had one or not. The bytes are copied.
 */
int adamant_batch_put(adamant_batch *batch,
                      const adamant_keyspace *keyspace,
                      adamant_slice key,
                      adamant_slice value);

/**
 * Will merge an operand with the value of a key, as adamant_merge does. The bytes are copied. What
 * the operator refuses is an error of the commit.
 */
int adamant_batch_merge(adamant_batch *batch,
                        const adamant_keyspace *keyspace,
                        adamant_slice key,
                        adamant_slice operand);

/**
 * Will delete a key, whether it exists or not.
 */
int adamant_batch_delete(adamant_batch *batch, const adamant_keyspace *keyspace, adamant_slice key);

/**
 * Will give a key of a multimap a value, whether it has that or not. The bytes are copied.
 * ADAMANT_KEY_LENGTH if both are too long together.
 */
int adamant_batch_multimap_put(adamant_batch *batch,
                               const adamant_multimap *multimap,
                               adamant_slice key,
                               adamant_slice value);

/**
 * Will take a value from a key of a multimap, whether it has that or not.
 */
int adamant_batch_multimap_delete(adamant_batch *batch,
                                  const adamant_multimap *multimap,
                                  adamant_slice key,
                                  adamant_slice value);

/**
 * Will move the value of a key to a key of the same or another keyspace, as adamant_move; nothing
 * if there is none then. Changes before and after it in the batch happen before and after it.
 */
int adamant_batch_move(adamant_batch *batch,
                       const adamant_keyspace *keyspace,
                       adamant_slice key,
                       const adamant_keyspace *target,
                       adamant_slice new_key);

/**
 * Will swap the values of two keys, of one keyspace or two, as adamant_swap; nothing unless both
 * are there then.
 */
int adamant_batch_swap(adamant_batch *batch,
                       const adamant_keyspace *keyspace,
                       adamant_slice key,
                       const adamant_keyspace *other,
                       adamant_slice other_key);

/**
 * Will set a cursor of the feed of changes, as adamant_changes_cursor_set.
 */
int adamant_batch_cursor_set(adamant_batch *batch, const char *name, uint64_t number);

/**
 * What its commit waits for: ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
 */
int adamant_batch_durability(adamant_batch *batch, int durability);

/**
 * How many changes are in it.
 */
int adamant_batch_len(const adamant_batch *batch, uint64_t *changes);

/**
 * Makes all changes in one commit: after a crash all of them are there, or none. Whether it
 * succeeds or not, the batch can only be freed then.
 */
int adamant_batch_commit(adamant_batch *batch);

/**
 * Frees a batch; NULL is none. What was not committed is not done.
 */
void adamant_batch_free(adamant_batch *batch);

/**
 * Opens a snapshot of now. Nobody waits for it, and it waits for nobody.
 */
int adamant_snapshot_new(const adamant_store *store, adamant_snapshot **snapshot);

/**
 * Lends the value that a key had; ADAMANT_NOT_FOUND if it had none. The bytes stay as they are
 * until adamant_snapshot_release or adamant_snapshot_free, whatever is written meanwhile. A value
 * of more than 4 KiB is not copied: it is the store's own.
 */
int adamant_snapshot_get(const adamant_snapshot *snapshot,
                         const adamant_keyspace *keyspace,
                         adamant_slice key,
                         adamant_slice *value);

/**
 * Whether a key had a value: ADAMANT_OK or ADAMANT_NOT_FOUND.
 */
int adamant_snapshot_contains(const adamant_snapshot *snapshot,
                              const adamant_keyspace *keyspace,
                              adamant_slice key);

/**
 * How many entries a keyspace had.
 */
int adamant_snapshot_len(const adamant_snapshot *snapshot,
                         const adamant_keyspace *keyspace,
                         uint64_t *entries);

/**
 * Ends the loans of a snapshot, whose values take memory till then; the snapshot goes on.
 */
int adamant_snapshot_release(adamant_snapshot *snapshot);

/**
 * Frees a snapshot and ends its loans; NULL is none.
 */
void adamant_snapshot_free(adamant_snapshot *snapshot);

/**
 * Begins a transaction: it sees the store as it is now, and its own writes.
 */
int adamant_transaction_begin(const adamant_store *store, adamant_transaction **transaction);

/**
 * Runs a function in a transaction beside which nobody else writes, and commits that, unless the
 * function returns other than 0: then nothing of it happened, and `result`, which may be NULL, is
 * what it returned.
 *
 * It waits for others that write, and they for it, so that there is no ADAMANT_CONFLICT; readers
 * do not wait. The function neither commits nor frees its transaction, and its thread cannot write
 * otherwise meanwhile: ADAMANT_MISUSE.
 */
int adamant_exclusive(adamant_store *store, adamant_work work, void *context, int *result);

/**
 * As adamant_exclusive, unless others write for longer than so many milliseconds: then
 * ADAMANT_TIMED_OUT, and the function was not called. 0 does not wait.
 */
int adamant_exclusive_within(adamant_store *store,
                             uint64_t wait_ms_max,
                             adamant_work work,
                             void *context,
                             int *result);

/**
 * Runs a function in a transaction and commits that, unless the function returns other than 0:
 * then nothing of it happened, and `result`, which may be NULL, is what it returned last.
 *
 * When another commit changed what it read it runs again, from the start: `exclusive_after` times
 * beside others, then once as by adamant_exclusive, which cannot conflict; 0 stands for 8, and
 * UINT32_MAX for never. ADAMANT_CONFLICT after `attempts_max` attempts, for which 0 is 100, and if
 * none can begin within `time_ms_max` milliseconds, where 0 is no limit.
 * adamant_transaction_attempt counts. The function neither commits nor frees its transaction, and
 * writes by that only.
 */
int adamant_transaction_run(adamant_store *store,
                            uint32_t attempts_max,
                            uint32_t exclusive_after,
                            uint64_t time_ms_max,
                            adamant_work work,
                            void *context,
                            int *result);

/**
 * Sets a cursor of the feed of changes at the commit, as adamant_changes_cursor_set.
 */
int adamant_transaction_cursor_set(adamant_transaction *transaction, const char *name, uint64_t number);

/**
 * How often adamant_transaction_run has called its function for this transaction, this time
 * counted; of any other transaction 1.
 */
int adamant_transaction_attempt(const adamant_transaction *transaction, uint32_t *attempt);

/**
 * Sets a savepoint, to which adamant_savepoint_undo goes back. Savepoints lie within one another.
 */
int adamant_savepoint_set(adamant_transaction *transaction);

/**
 * Undoes what the transaction wrote since its last savepoint, which is ended. What it read counts
 * as read. ADAMANT_MISUSE if there is none.
 */
int adamant_savepoint_undo(adamant_transaction *transaction);

/**
 * Ends the last savepoint and keeps what was written since. ADAMANT_MISUSE if there is none.
 */
int adamant_savepoint_keep(adamant_transaction *transaction);

/**
 * Lends the value of a key, until the transaction is freed; ADAMANT_NOT_FOUND if it has none.
 */
int adamant_transaction_get(const adamant_transaction *transaction,
                            const adamant_keyspace *keyspace,
                            adamant_slice key,
                            adamant_slice *value);

/**
 * Sets the value of a key, whether it had one or not, without reading it: so it cannot conflict.
 */
int adamant_transaction_put(adamant_transaction *transaction,
                            const adamant_keyspace *keyspace,
                            adamant_slice key,
                            adamant_slice value);

/**
 * Merges an operand with the value of a key, as adamant_merge does, without reading it: so it
 * cannot conflict.
 */
int adamant_transaction_merge(adamant_transaction *transaction,
                              const adamant_keyspace *keyspace,
                              adamant_slice key,
                              adamant_slice operand);

/**
 * Deletes a key, whether it exists or not, without reading it: so it cannot conflict.
 */
int adamant_transaction_delete(adamant_transaction *transaction,
                               const adamant_keyspace *keyspace,
                               adamant_slice key);

/**
 * What its commit waits for: ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
 */
int adamant_transaction_durability(adamant_transaction *transaction, int durability);

/**
 * Makes all writes in one commit. Whether it succeeds or not, the transaction can only be freed
 * then.
 *
 * Fails with ADAMANT_CONFLICT if another commit has changed what it read: nothing was done, and
 * the caller begins another one and does it again.
 */
int adamant_transaction_commit(adamant_transaction *transaction);

/**
 * Frees a transaction; NULL is none. What was not committed is not done.
 */
void adamant_transaction_free(adamant_transaction *transaction);

/**
 * Lends the value that a key had, as adamant_snapshot_get, and says when it ends;
 * ADAMANT_NOT_FOUND if it had none, or one that is over by now: time goes on for a snapshot too.
 * `value` and `deadline_ms` may be NULL.
 */
int adamant_snapshot_expiring_get(const adamant_snapshot *snapshot,
                                  const adamant_expiring *expiring,
                                  adamant_slice key,
                                  adamant_slice *value,
                                  uint64_t *deadline_ms);

/**
 * How many entries there were that are not over by now.
 */
int adamant_snapshot_expiring_len(const adamant_snapshot *snapshot,
                                  const adamant_expiring *expiring,
                                  uint64_t *entries);

/**
 * Lends the value of a key, until the transaction is freed, and says when it ends;
 * ADAMANT_NOT_FOUND if it has none that is not over. `value` and `deadline_ms` may be NULL.
 */
int adamant_transaction_expiring_get(const adamant_transaction *transaction,
                                     const adamant_expiring *expiring,
                                     adamant_slice key,
                                     adamant_slice *value,
                                     uint64_t *deadline_ms);

/**
 * Sets the value of a key, and when it expires, as adamant_expiring_put. What was there counts as
 * read.
 */
int adamant_transaction_expiring_put(adamant_transaction *transaction,
                                     const adamant_expiring *expiring,
                                     adamant_slice key,
                                     adamant_slice value,
                                     uint64_t deadline_ms);

/**
 * Deletes a key, as adamant_expiring_delete. What was there counts as read.
 */
int adamant_transaction_expiring_delete(adamant_transaction *transaction,
                                        const adamant_expiring *expiring,
                                        adamant_slice key);

/**
 * Like adamant_transaction_expiring_put, and says what was there, as adamant_expiring_insert.
 */
int adamant_transaction_expiring_insert(adamant_transaction *transaction,
                                        const adamant_expiring *expiring,
                                        adamant_slice key,
                                        adamant_slice value,
                                        uint64_t deadline_ms,
                                        int *replaced);

/**
 * Gives an entry another deadline, as adamant_expiring_set_deadline.
 */
int adamant_transaction_expiring_set_deadline(adamant_transaction *transaction,
                                              const adamant_expiring *expiring,
                                              adamant_slice key,
                                              uint64_t deadline_ms);

/**
 * Like adamant_transaction_expiring_delete, and says what was there, as adamant_expiring_remove.
 */
int adamant_transaction_expiring_remove(adamant_transaction *transaction,
                                        const adamant_expiring *expiring,
                                        adamant_slice key);

/**
 * Takes entries away that are over, as adamant_expiring_remove_expired.
 */
int adamant_transaction_expiring_remove_expired(adamant_transaction *transaction,
                                                const adamant_expiring *expiring,
                                                size_t entries_max,
                                                uint64_t *removed);

/**
 * Whether a key had a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
 */
int adamant_snapshot_multimap_contains(const adamant_snapshot *snapshot,
                                       const adamant_multimap *multimap,
                                       adamant_slice key,
                                       adamant_slice value);

/**
 * How many values a key had, which are counted.
 */
int adamant_snapshot_multimap_count(const adamant_snapshot *snapshot,
                                    const adamant_multimap *multimap,
                                    adamant_slice key,
                                    uint64_t *values);

/**
 * How many pairs of a key and a value there were.
 */
int adamant_snapshot_multimap_len(const adamant_snapshot *snapshot,
                                  const adamant_multimap *multimap,
                                  uint64_t *pairs);

/**
 * The lowest value that a key had above another value, as adamant_multimap_next_value: a copy, to
 * be freed by adamant_value_free.
 */
int adamant_snapshot_multimap_next_value(const adamant_snapshot *snapshot,
                                         const adamant_multimap *multimap,
                                         adamant_slice key,
                                         adamant_slice above,
                                         adamant_value **value);

/**
 * The lowest key above another one that had a value, as adamant_multimap_next_key: a copy, to be
 * freed by adamant_value_free.
 */
int adamant_snapshot_multimap_next_key(const adamant_snapshot *snapshot,
                                       const adamant_multimap *multimap,
                                       adamant_slice above,
                                       adamant_value **key);

/**
 * Gives a key a value, whether it has that or not, without reading it: so it cannot conflict.
 */
int adamant_transaction_multimap_put(adamant_transaction *transaction,
                                     const adamant_multimap *multimap,
                                     adamant_slice key,
                                     adamant_slice value);

/**
 * Takes a value from a key, whether it has that or not, without reading it: so it cannot conflict.
 */
int adamant_transaction_multimap_delete(adamant_transaction *transaction,
                                        const adamant_multimap *multimap,
                                        adamant_slice key,
                                        adamant_slice value);

/**
 * Like adamant_transaction_multimap_put, and says what was there, as adamant_multimap_insert.
 */
int adamant_transaction_multimap_insert(adamant_transaction *transaction,
                                        const adamant_multimap *multimap,
                                        adamant_slice key,
                                        adamant_slice value,
                                        int *is_new);

/**
 * Like adamant_transaction_multimap_delete, and says what was there, as adamant_multimap_remove.
 */
int adamant_transaction_multimap_remove(adamant_transaction *transaction,
                                        const adamant_multimap *multimap,
                                        adamant_slice key,
                                        adamant_slice value);

/**
 * Takes all values from a key, as adamant_multimap_remove_all. All that it has count as read.
 */
int adamant_transaction_multimap_remove_all(adamant_transaction *transaction,
                                            const adamant_multimap *multimap,
                                            adamant_slice key,
                                            uint64_t *values);

/**
 * Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
 */
int adamant_transaction_multimap_contains(const adamant_transaction *transaction,
                                          const adamant_multimap *multimap,
                                          adamant_slice key,
                                          adamant_slice value);

/**
 * How many values a key has, which are counted and count as read.
 */
int adamant_transaction_multimap_count(const adamant_transaction *transaction,
                                       const adamant_multimap *multimap,
                                       adamant_slice key,
                                       uint64_t *values);

/**
 * How many pairs of a key and a value there are. All of them count as read.
 */
int adamant_transaction_multimap_len(const adamant_transaction *transaction,
                                     const adamant_multimap *multimap,
                                     uint64_t *pairs);

/**
 * The lowest value of a key above another value, as adamant_multimap_next_value: a copy, to be
 * freed by adamant_value_free. That there is none between the two counts as read.
 */
int adamant_transaction_multimap_next_value(const adamant_transaction *transaction,
                                            const adamant_multimap *multimap,
                                            adamant_slice key,
                                            adamant_slice above,
                                            adamant_value **value);

/**
 * The lowest key above another one that has a value, as adamant_multimap_next_key: a copy, to be
 * freed by adamant_value_free.
 */
int adamant_transaction_multimap_next_key(const adamant_transaction *transaction,
                                          const adamant_multimap *multimap,
                                          adamant_slice above,
                                          adamant_value **key);

/**
 * A cursor on what a keyspace holds when it comes by; the range may be NULL: all keys. It stands
 * nowhere at first: adamant_cursor_next gives the first entry, adamant_cursor_previous the last
 * one.
 */
int adamant_cursor_new(const adamant_keyspace *keyspace, const adamant_range *range, adamant_cursor **cursor);

/**
 * A cursor on what a keyspace held at the moment of a snapshot, which may be freed before it.
 */
int adamant_snapshot_cursor(const adamant_snapshot *snapshot,
                            const adamant_keyspace *keyspace,
                            const adamant_range *range,
                            adamant_cursor **cursor);

/**
 * A cursor on what a transaction sees, its own writes too. What it gives counts as read, and up to
 * 64 entries more, which it takes ahead. It ends with the transaction: ADAMANT_CLOSED.
 */
int adamant_transaction_cursor(const adamant_transaction *transaction,
                               const adamant_keyspace *keyspace,
                               const adamant_range *range,
                               adamant_cursor **cursor);

/**
 * A cursor on the entries that are not over at this moment, as adamant_cursor_new. When the entry
 * ends on which it stands, adamant_cursor_deadline says. An entry that cannot be read is an error
 * each time that the cursor comes to it, since its deadline lies before its value:
 * adamant_cursor_seek goes past it.
 */
int adamant_expiring_cursor(const adamant_expiring *expiring,
                            const adamant_range *range,
                            adamant_cursor **cursor);

/**
 * A cursor on the entries that a snapshot sees and that are not over at this moment, as
 * adamant_snapshot_cursor.
 */
int adamant_snapshot_expiring_cursor(const adamant_snapshot *snapshot,
                                     const adamant_expiring *expiring,
                                     const adamant_range *range,
                                     adamant_cursor **cursor);

/**
 * A cursor on the entries that a transaction sees and that are not over at this moment, as
 * adamant_transaction_cursor.
 */
int adamant_transaction_expiring_cursor(const adamant_transaction *transaction,
                                        const adamant_expiring *expiring,
                                        const adamant_range *range,
                                        adamant_cursor **cursor);

/**
 * Goes to the next entry and lends it, until the cursor moves or is freed. ADAMANT_END behind the
 * last one, where it stays: from there adamant_cursor_previous gives the last one. `value` may be
 * NULL: then a large value of the engine lsm is not read. If it cannot be read the cursor stands
 * on its entry all the same, and goes on from there.
 */
int adamant_cursor_next(adamant_cursor *cursor, adamant_slice *key, adamant_slice *value);

/**
 * Goes to the entry before and lends it, as adamant_cursor_next. ADAMANT_END before the first one.
 */
int adamant_cursor_previous(adamant_cursor *cursor, adamant_slice *key, adamant_slice *value);

/**
 * Lends the value of the entry on which the cursor stands, as it was when the cursor came there,
 * until it moves or is freed: for who looked at the key first. ADAMANT_NOT_FOUND if it stands on
 * none.
 */
int adamant_cursor_value(const adamant_cursor *cursor, adamant_slice *value);

/**
 * When the entry ends on which the cursor stands; ADAMANT_NEVER for one that does not, as all of a
 * keyspace without deadlines. ADAMANT_NOT_FOUND if it stands on none.
 */
int adamant_cursor_deadline(const adamant_cursor *cursor, uint64_t *deadline_ms);

/**
 * Goes to just before a key, whether it is there or not: adamant_cursor_next gives it, or the
 * first one above it, adamant_cursor_previous the last one below it.
 */
int adamant_cursor_seek(adamant_cursor *cursor, adamant_slice key);

/**
 * Goes to where it stood at first: nowhere.
 */
int adamant_cursor_rewind(adamant_cursor *cursor);

/**
 * Frees a cursor; NULL is none.
 */
void adamant_cursor_free(adamant_cursor *cursor);

/**
 * Has a store that was opened beside a writer (adamant_options_beside_writer) show the last commit
 * that can be found. `later`, which may be NULL, is 1 if that is a later one than before, else 0,
 * as for all other stores. It never goes back.
 *
 * Keyspaces, snapshots, cursors and so on that were made before stay good, and keep what they
 * show: make them anew. It is much faster if there are none left: free them first. Other threads
 * may use the handle of the store meanwhile, and wait for this.
 */
int adamant_refresh(adamant_store *store, int *later);

/**
 * Waits until adamant_refresh would show a later commit, for so many milliseconds at most; with
 * UINT64_MAX for ever. ADAMANT_NOT_FOUND if there is none by then, and at once for a store that
 * was not opened beside a writer. The process that writes ends the wait.
 */
int adamant_wait_for_change(const adamant_store *store, uint64_t time_ms_max);

/**
 * Records what each commit changes from now on, in the store, for adamant_changes_open; whoever
 * opens it. At most so many bytes of history are kept: the oldest commits make room for new ones.
 * Once more it changes the number of bytes.
 */
int adamant_record_changes(adamant_store *store, uint64_t bytes_max);

/**
 * Records no more changes, and removes the history and the cursors.
 */
int adamant_end_changes(adamant_store *store);

/**
 * Which commits the history of changes has: the number of the first one and of the last one; if it
 * has none, `first` is one more than `last`. And the bytes that they take and may take. Each place
 * may be NULL. ADAMANT_CHANGES_NOT_RECORDED if changes are not recorded.
 */
int adamant_changes_info(const adamant_store *store,
                         uint64_t *first,
                         uint64_t *last,
                         uint64_t *bytes,
                         uint64_t *bytes_max);

/**
 * The number of the last commit in the feed of changes; 0 before the first.
 */
int adamant_last_change(const adamant_store *store, uint64_t *number);

/**
 * The number of the last commit in the feed that this thread made in this store since it was
 * opened; ADAMANT_NOT_FOUND if it made none.
 */
int adamant_own_change(const adamant_store *store, uint64_t *number);

/**
 * Waits until the commit of a number survives power loss. ADAMANT_CHANGES_UNKNOWN if there is no
 * such commit yet.
 */
int adamant_wait_durable(const adamant_store *store, uint64_t number);

/**
 * The commits behind the one of a number, in order: those of the past, and those to come. 0 begins
 * with the first, what adamant_last_change gives with the next one to come.
 *
 * Of a store that was opened beside a writer it gives what the other process commits: it is a
 * reader of its own then, and follows by itself, also when that store was closed. Fails with
 * ADAMANT_CHANGES_NOT_RECORDED; with ADAMANT_CHANGES_UNKNOWN if the history does not have all
 * commits behind that one.
 */
int adamant_changes_open(const adamant_store *store, uint64_t after, adamant_changes **changes);

/**
 * Gives the changes of the next commit to a function, one after the other, on this thread. It
 * waits for a commit for so many milliseconds at most, with UINT64_MAX for ever: ADAMANT_NOT_FOUND
 * if there is none by then, and the function was not called.
 *
 * Fails with ADAMANT_CHANGES_UNKNOWN if this reader is so far behind that the commit was removed.
 */
int adamant_changes_next(adamant_changes *changes,
                         uint64_t time_ms_max,
                         adamant_change_reader reader,
                         void *context);

/**
 * The number of the last commit that was given, or behind which the feed began.
 */
int adamant_changes_after(const adamant_changes *changes, uint64_t *number);

/**
 * Frees a feed of changes; NULL is none.
 */
void adamant_changes_free(adamant_changes *changes);

/**
 * Sets a cursor of a name (1 to 255 bytes of UTF-8): the number of the last commit of the feed
 * that its owner is done with. One commit, which is not in the feed. adamant_batch_cursor_set and
 * adamant_transaction_cursor_set do it in the commit of what the owner made of the feed, so that
 * each commit is taken exactly once. ADAMANT_CHANGES_NOT_RECORDED if changes are not recorded.
 */
int adamant_changes_cursor_set(adamant_store *store, const char *name, uint64_t number);

/**
 * The number that a cursor was set to; ADAMANT_NOT_FOUND if there is none of that name.
 */
int adamant_changes_cursor_get(const adamant_store *store, const char *name, uint64_t *number);

/**
 * Removes a cursor, if there is one of that name.
 */
int adamant_changes_cursor_remove(adamant_store *store, const char *name);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ADAMANT_H */
