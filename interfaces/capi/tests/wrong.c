/* What must be refused: null, handles of another kind, lengths, closed stores, second openers. */

#include "check.h"

#define BAD(call) CODE(ADAMANT_INVALID, call)

static const adamant_slice NOTHING = {NULL, 0};

static void ignore(void *context, adamant_slice value)
{
    (void)context;
    (void)value;
}

/* NULL at each place of each function, where it may not be. */
static void test_null(adamant_store *store, adamant_keyspace *keyspace, const char *folder)
{
    adamant_store *no_store = (adamant_store *)1;
    adamant_keyspace *no_keyspace = (adamant_keyspace *)1;
    adamant_options *options = NULL;
    adamant_batch *batch = NULL;
    adamant_snapshot *snapshot = NULL;
    adamant_transaction *transaction = NULL;
    adamant_cursor *cursor = NULL, *no_cursor = (adamant_cursor *)1;
    adamant_value *value = NULL;
    adamant_keyspace_list *list = NULL;
    adamant_multimap *multimap = NULL, *no_multimap = (adamant_multimap *)1;
    adamant_expiring *expiring = NULL, *no_expiring = (adamant_expiring *)1;
    adamant_slice slice = {NULL, 0};
    uint64_t count;
    char buffer[4];

    BAD(adamant_open(NULL, NULL, &no_store));
    CHECK(no_store == NULL);
    BAD(adamant_open(folder, NULL, NULL));
    BAD(adamant_open_in_memory(NULL));
    BAD(adamant_close(NULL));
    BAD(adamant_sync(NULL));
    BAD(adamant_compact(NULL));
    BAD(adamant_backup(NULL, folder));
    BAD(adamant_backup(store, NULL));
    BAD(adamant_backup_linked(NULL, folder));
    BAD(adamant_backup_linked(store, NULL));
    BAD(adamant_backup_since(NULL, folder, folder));
    BAD(adamant_backup_since(store, NULL, folder));
    BAD(adamant_backup_since(store, folder, NULL));
    BAD(adamant_restore(NULL, folder));
    BAD(adamant_restore(folder, NULL));
    BAD(adamant_restore_with(NULL, folder, NULL));
    BAD(adamant_restore_with(folder, NULL, NULL));
    BAD(adamant_encrypt(NULL, NULL, NULL));
    BAD(adamant_rekey(NULL, "key", 3));
    BAD(adamant_rekey(store, NULL, 32));
    BAD(adamant_is_encrypted(store, NULL));
    BAD(adamant_stats(NULL, &value));
    BAD(adamant_stats(store, NULL));
    BAD(adamant_check(NULL, &value));
    BAD(adamant_options_new(NULL));
    BAD(adamant_options_set(NULL, ADAMANT_OPTION_CREATE, 1));
    BAD(adamant_options_set_compression(NULL, "lz4"));
    BAD(adamant_options_set_encryption_key(NULL, NULL, 0));
    BAD(adamant_keyspace_options_new(NULL));
    BAD(adamant_keyspace_options_set(NULL, ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES, 4096));
    BAD(adamant_keyspace_options_set_compression(NULL, "lz4"));

    BAD(adamant_keyspace_open(NULL, "a", NULL, &no_keyspace));
    CHECK(no_keyspace == NULL);
    BAD(adamant_keyspace_open(store, NULL, NULL, &no_keyspace));
    BAD(adamant_keyspace_open(store, "a", NULL, NULL));
    BAD(adamant_keyspace_open_existing(store, NULL, &no_keyspace));
    BAD(adamant_keyspace_create(store, NULL, NULL, &no_keyspace));
    BAD(adamant_keyspace_open_with(store, "a", NULL, NULL, NULL));
    BAD(adamant_keyspace_create_with(NULL, "a", NULL, NULL, &no_keyspace));
    BAD(adamant_keyspace_with_durability(NULL, ADAMANT_SYNC, &no_keyspace));
    BAD(adamant_keyspace_with_durability(keyspace, 17, &no_keyspace));
    BAD(adamant_keyspace_drop(store, NULL));
    BAD(adamant_keyspace_rename(store, "a", NULL));
    BAD(adamant_keyspace_convert(store, "a", NULL));
    CHECK(adamant_keyspace_name(NULL) == NULL);
    CHECK(adamant_keyspace_engine(NULL) == NULL);
    BAD(adamant_keyspaces(NULL, &list));
    BAD(adamant_keyspaces(store, NULL));
    CHECK(adamant_keyspace_list_count(NULL) == 0);
    BAD(adamant_keyspace_list_get(NULL, 0, NULL, NULL, NULL));
    BAD(adamant_keyspace_list_merge_operator(NULL, 0, NULL));

    BAD(adamant_put(NULL, T("a"), T("b")));
    BAD(adamant_insert(NULL, T("a"), T("b"), NULL));
    BAD(adamant_insert_unique(NULL, T("a"), T("b"), NULL));
    BAD(adamant_delete(NULL, T("a")));
    BAD(adamant_remove(NULL, T("a")));
    BAD(adamant_pop_first(NULL, &value, &value));
    BAD(adamant_pop_first(keyspace, NULL, &value));
    BAD(adamant_pop_last(NULL, &value, &value));
    BAD(adamant_pop_last(keyspace, &value, NULL));
    BAD(adamant_delete_range(NULL, NULL));
    BAD(adamant_clear(NULL));
    BAD(adamant_move(keyspace, T("here"), NULL, T("b")));
    BAD(adamant_swap(NULL, T("here"), keyspace, T("b")));
    BAD(adamant_get(NULL, T("a"), &value));
    BAD(adamant_get(keyspace, T("a"), NULL));
    BAD(adamant_get_into(keyspace, T("here"), NULL, sizeof buffer, NULL));
    BAD(adamant_get_with(keyspace, T("here"), NULL, NULL));
    BAD(adamant_get_with(NULL, T("here"), ignore, NULL));
    BAD(adamant_contains(NULL, T("a")));
    BAD(adamant_len(NULL, &count));
    BAD(adamant_len(keyspace, NULL));
    CHECK(adamant_value_bytes(NULL).data == NULL && adamant_value_bytes(NULL).len == 0);

    BAD(adamant_batch_new(NULL, &batch));
    BAD(adamant_batch_new(store, NULL));
    OK(adamant_batch_new(store, &batch));
    BAD(adamant_batch_put(NULL, keyspace, T("a"), T("b")));
    BAD(adamant_batch_put(batch, NULL, T("a"), T("b")));
    BAD(adamant_batch_delete(batch, NULL, T("a")));
    BAD(adamant_batch_durability(batch, -1));
    BAD(adamant_batch_len(batch, NULL));
    BAD(adamant_batch_commit(NULL));

    BAD(adamant_snapshot_new(NULL, &snapshot));
    BAD(adamant_snapshot_new(store, NULL));
    OK(adamant_snapshot_new(store, &snapshot));
    BAD(adamant_snapshot_get(NULL, keyspace, T("a"), &slice));
    BAD(adamant_snapshot_get(snapshot, NULL, T("a"), &slice));
    BAD(adamant_snapshot_get(snapshot, keyspace, T("a"), NULL));
    BAD(adamant_snapshot_contains(snapshot, NULL, T("a")));
    BAD(adamant_snapshot_len(snapshot, keyspace, NULL));
    BAD(adamant_snapshot_release(NULL));

    BAD(adamant_transaction_begin(NULL, &transaction));
    BAD(adamant_transaction_begin(store, NULL));
    OK(adamant_transaction_begin(store, &transaction));
    BAD(adamant_transaction_get(transaction, keyspace, T("a"), NULL));
    BAD(adamant_transaction_put(transaction, NULL, T("a"), T("b")));
    BAD(adamant_transaction_delete(NULL, keyspace, T("a")));
    BAD(adamant_transaction_durability(transaction, 3));
    BAD(adamant_transaction_commit(NULL));

    BAD(adamant_cursor_new(NULL, NULL, &cursor));
    BAD(adamant_cursor_new(keyspace, NULL, NULL));
    BAD(adamant_snapshot_cursor(NULL, keyspace, NULL, &cursor));
    BAD(adamant_transaction_cursor(transaction, NULL, NULL, &cursor));
    OK(adamant_cursor_new(keyspace, NULL, &cursor));
    BAD(adamant_cursor_next(NULL, &slice, &slice));
    BAD(adamant_cursor_next(cursor, NULL, &slice));
    BAD(adamant_cursor_previous(cursor, NULL, NULL));
    BAD(adamant_cursor_seek(NULL, T("a")));
    BAD(adamant_cursor_rewind(NULL));

    BAD(adamant_multimap_open(NULL, "m", NULL, &no_multimap));
    CHECK(no_multimap == NULL);
    BAD(adamant_multimap_open(store, NULL, NULL, &no_multimap));
    BAD(adamant_multimap_open(store, "m", NULL, NULL));
    BAD(adamant_multimap_with_durability(NULL, ADAMANT_SYNC, &no_multimap));
    BAD(adamant_multimap_insert(NULL, T("a"), T("b"), NULL));
    BAD(adamant_multimap_remove(NULL, T("a"), T("b")));
    BAD(adamant_multimap_remove_all(NULL, T("a"), NULL));
    BAD(adamant_multimap_contains(NULL, T("a"), T("b")));
    BAD(adamant_multimap_count(NULL, T("a"), NULL));
    BAD(adamant_multimap_len(NULL, NULL));
    BAD(adamant_multimap_next_value(NULL, T("a"), T("b"), &value));
    BAD(adamant_multimap_next_key(NULL, T("a"), &value));
    OK(adamant_multimap_open(store, "m", NULL, &multimap));
    BAD(adamant_batch_multimap_put(NULL, multimap, T("a"), T("b")));
    BAD(adamant_batch_multimap_put(batch, NULL, T("a"), T("b")));
    BAD(adamant_batch_multimap_delete(batch, NULL, T("a"), T("b")));
    BAD(adamant_batch_multimap_delete(batch, multimap, T("a"), adamant_bytes(NULL, 1)));
    BAD(adamant_snapshot_multimap_contains(NULL, multimap, T("a"), T("b")));
    BAD(adamant_snapshot_multimap_count(snapshot, multimap, T("a"), NULL));
    BAD(adamant_snapshot_multimap_len(snapshot, NULL, &count));
    BAD(adamant_snapshot_multimap_next_value(snapshot, multimap, T("a"), NOTHING, NULL));
    BAD(adamant_snapshot_multimap_next_key(snapshot, NULL, NOTHING, &value));
    BAD(adamant_transaction_multimap_put(transaction, NULL, T("a"), T("b")));
    BAD(adamant_transaction_multimap_delete(NULL, multimap, T("a"), T("b")));
    BAD(adamant_transaction_multimap_insert(transaction, NULL, T("a"), T("b"), NULL));
    BAD(adamant_transaction_multimap_remove(NULL, multimap, T("a"), T("b")));
    BAD(adamant_transaction_multimap_remove_all(transaction, NULL, T("a"), NULL));
    BAD(adamant_transaction_multimap_contains(transaction, multimap, adamant_bytes(NULL, 1), T("b")));
    BAD(adamant_transaction_multimap_count(transaction, multimap, T("a"), NULL));
    BAD(adamant_transaction_multimap_len(transaction, multimap, NULL));
    BAD(adamant_transaction_multimap_next_value(transaction, NULL, T("a"), NOTHING, &value));
    BAD(adamant_transaction_multimap_next_key(transaction, multimap, NOTHING, NULL));
    BAD(adamant_multimap_len((adamant_multimap *)(void *)keyspace, &count));
    adamant_multimap_free(multimap);
    adamant_multimap_free(NULL);
    BAD(adamant_expiring_open(NULL, "e", NULL, &no_expiring));
    CHECK(no_expiring == NULL);
    BAD(adamant_expiring_open(store, NULL, NULL, &no_expiring));
    BAD(adamant_expiring_open(store, "e", NULL, NULL));
    BAD(adamant_expiring_drop(store, NULL));
    BAD(adamant_expiring_with_durability(NULL, ADAMANT_SYNC, &no_expiring));
    BAD(adamant_expiring_with_clock(NULL, NULL, NULL, &no_expiring));
    CHECK(adamant_expiring_now(NULL) == 0 && adamant_expiring_after(NULL, 1) == 0);
    OK(adamant_expiring_open(store, "e", NULL, &expiring));
    BAD(adamant_expiring_with_durability(expiring, 17, &no_expiring));
    BAD(adamant_expiring_with_clock(expiring, NULL, NULL, &no_expiring));
    BAD(adamant_expiring_put(NULL, T("a"), T("b"), ADAMANT_NEVER));
    BAD(adamant_expiring_delete(NULL, T("a")));
    BAD(adamant_expiring_insert(NULL, T("a"), T("b"), ADAMANT_NEVER, NULL));
    BAD(adamant_expiring_set_deadline(NULL, T("a"), 1));
    BAD(adamant_expiring_remove(NULL, T("a")));
    BAD(adamant_expiring_get(NULL, T("a"), &value, NULL));
    BAD(adamant_expiring_contains(NULL, T("a")));
    BAD(adamant_expiring_len(expiring, NULL));
    BAD(adamant_expiring_next_deadline(expiring, NULL));
    BAD(adamant_expiring_remove_expired(NULL, 1, NULL));
    BAD(adamant_snapshot_expiring_get(snapshot, NULL, T("a"), &slice, NULL));
    BAD(adamant_snapshot_expiring_len(snapshot, expiring, NULL));
    BAD(adamant_transaction_expiring_get(NULL, expiring, T("a"), &slice, NULL));
    BAD(adamant_transaction_expiring_put(transaction, NULL, T("a"), T("b"), 1));
    BAD(adamant_transaction_expiring_delete(transaction, NULL, T("a")));
    BAD(adamant_transaction_expiring_insert(transaction, NULL, T("a"), T("b"), 1, NULL));
    BAD(adamant_transaction_expiring_set_deadline(NULL, expiring, T("a"), 1));
    BAD(adamant_transaction_expiring_remove(transaction, NULL, T("a")));
    BAD(adamant_transaction_expiring_remove_expired(NULL, expiring, 1, NULL));
    BAD(adamant_expiring_cursor(expiring, NULL, NULL));
    BAD(adamant_snapshot_expiring_cursor(NULL, expiring, NULL, &no_cursor));
    CHECK(no_cursor == NULL);
    BAD(adamant_transaction_expiring_cursor(transaction, NULL, NULL, &no_cursor));
    BAD(adamant_cursor_deadline(cursor, NULL));
    BAD(adamant_put((adamant_keyspace *)(void *)expiring, T("a"), T("b")));
    adamant_expiring_free(expiring);
    adamant_expiring_free(NULL);

    /* Another kind of handle is told from the one that is wanted. */
    BAD(adamant_put((adamant_keyspace *)(void *)store, T("a"), T("b")));
    BAD(adamant_sync((adamant_store *)(void *)keyspace));
    BAD(adamant_batch_commit((adamant_batch *)(void *)transaction));
    BAD(adamant_transaction_commit((adamant_transaction *)(void *)batch));

    /* Where it is nothing, nothing happens. */
    adamant_store_free(NULL);
    adamant_keyspace_free(NULL);
    adamant_options_free(NULL);
    adamant_value_free(NULL);
    adamant_keyspace_list_free(NULL);
    adamant_batch_free(NULL);
    adamant_snapshot_free(NULL);
    adamant_transaction_free(NULL);
    adamant_cursor_free(NULL);
    OK(adamant_options_new(&options));
    BAD(adamant_options_set(options, 0, 1));
    BAD(adamant_options_set(options, 9999, 1));
    BAD(adamant_options_set(options, ADAMANT_OPTION_CREATE, 2));
    BAD(adamant_options_set(options, ADAMANT_OPTION_DURABILITY, 1ULL << 32));
    BAD(adamant_options_set(options, 4, 1));
    BAD(adamant_options_set_compression(options, NULL));
    BAD(adamant_options_set_compression(options, "lz5"));
    CHECK(strstr(adamant_last_error(), "expected none, lz4, zstd") != NULL);
    BAD(adamant_options_set_compression(options, ""));
    adamant_options_free(options);
    adamant_keyspace_options_free(NULL);
    adamant_cursor_free(cursor);
    adamant_transaction_free(transaction);
    adamant_snapshot_free(snapshot);
    adamant_batch_free(batch);
}

static void test_lengths(adamant_store *store, adamant_keyspace *keyspace)
{
    size_t bytes = 65536;
    char *large = (char *)malloc(bytes);
    char name[300];
    adamant_keyspace *other = NULL;
    adamant_range range;
    adamant_cursor *cursor = NULL;

    CHECK(large != NULL);
    memset(large, 'k', bytes);
    /* The empty key is one like any other, however it is said. */
    OK(adamant_put(keyspace, NOTHING, T("b")));
    check_value(keyspace, "", "b");
    OK(adamant_put(keyspace, T(""), T("c")));
    check_value(keyspace, NULL, "c");
    OK(adamant_remove(keyspace, T(NULL)));
    check_value(keyspace, "", NULL);
    /* Only what writes refuses a key that is too long. */
    CODE(ADAMANT_NOT_FOUND, adamant_contains(keyspace, adamant_bytes(large, bytes)));
    CODE(ADAMANT_KEY_LENGTH, adamant_put(keyspace, adamant_bytes(large, bytes), T("b")));
    OK(adamant_put(keyspace, adamant_bytes(large, bytes - 1), T("b")));
    OK(adamant_remove(keyspace, adamant_bytes(large, bytes - 1)));
    CODE(ADAMANT_INVALID, adamant_put(keyspace, adamant_bytes(NULL, 1), T("b")));
    CODE(ADAMANT_INVALID, adamant_put(keyspace, T("a"), adamant_bytes(NULL, 1)));
    CODE(ADAMANT_INVALID, adamant_put(keyspace, T("a"), adamant_bytes(large, (size_t)-1)));
    CODE(ADAMANT_VALUE_LENGTH, adamant_put(keyspace, T("a"), adamant_bytes(large, (size_t)1 << 32)));
    OK(adamant_put(keyspace, T("a"), NOTHING));
    check_value(keyspace, "a", "");
    OK(adamant_remove(keyspace, T("a")));

    memset(name, 'n', sizeof name);
    name[256] = 0;
    CODE(ADAMANT_NAME, adamant_keyspace_open(store, name, NULL, &other));
    CODE(ADAMANT_NAME, adamant_keyspace_open(store, "", NULL, &other));
    CODE(ADAMANT_NAME, adamant_keyspace_open(store, "\xff\xfe", NULL, &other));
    CHECK(other == NULL);

    /* Bounds are no keys: longer ones leave out what they should, and no more. */
    range = adamant_range_between(adamant_bytes(large, bytes), NOTHING);
    OK(adamant_cursor_new(keyspace, &range, &cursor));
    OK(adamant_cursor_seek(cursor, adamant_bytes(large, bytes)));
    {
        adamant_slice key;
        CODE(ADAMANT_END, adamant_cursor_next(cursor, &key, NULL));
    }
    adamant_cursor_free(cursor);
    range = adamant_range_prefix(adamant_bytes(NULL, 3));
    CODE(ADAMANT_INVALID, adamant_cursor_new(keyspace, &range, &cursor));
    CODE(ADAMANT_INVALID, adamant_delete_range(keyspace, &range));
    OK(adamant_contains(keyspace, T("here")));
    free(large);
}

static void use_within(void *context, adamant_slice value)
{
    adamant_value *again = NULL;
    (void)value;
    CODE(ADAMANT_REENTRANT, adamant_get((adamant_keyspace *)context, T("here"), &again));
}

/* A reader beside the writer. */
static void check_beside(const char *path)
{
    adamant_options *options;
    adamant_store *reader;
    adamant_keyspace *keyspace;

    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_BESIDE_WRITER, 1));
    OK(adamant_options_set(options, ADAMANT_OPTION_READER_BYTES_MAX, 1 << 20));
    OK(adamant_open(path, options, &reader));
    OK(adamant_keyspace_open(reader, "words", NULL, &keyspace));
    check_value(keyspace, "here", "1");
    CODE(ADAMANT_READ_ONLY, adamant_put(keyspace, T("here"), T("2")));
    adamant_keyspace_free(keyspace);
    OK(adamant_close(reader));
    adamant_store_free(reader);
    adamant_options_free(options);
}

static void test_openers(const char *folder)
{
    char *path = path_in(folder, "store"), *file = path_in(folder, "file");
    char *missing = path_in(folder, "missing");
    adamant_store *store = NULL, *second = NULL, *reader = NULL;
    adamant_keyspace *keyspace = NULL;
    adamant_options *options = NULL;
    FILE *made = fopen(file, "w");

    CHECK(made != NULL && fclose(made) == 0);
    CODE(ADAMANT_NOT_A_STORE, adamant_open(file, NULL, &store));
    CODE(ADAMANT_NOT_A_STORE, adamant_open(folder, NULL, &store));
    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_CREATE, 0));
    CODE(ADAMANT_MISSING, adamant_open(missing, options, &store));
    CHECK(store == NULL);
    adamant_options_free(options);

    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_DURABILITY, ADAMANT_BUFFERED));
    OK(adamant_options_set(options, ADAMANT_OPTION_LOG_BYTES_MAX, 16 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_DEFERRED_MS_MAX, 50));
    OK(adamant_options_set(options, ADAMANT_OPTION_DEFERRED_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_VERIFY_FIRST_TOUCH, 1));
    OK(adamant_options_set(options, ADAMANT_OPTION_IMAGE, 1));
    CODE(ADAMANT_INVALID, adamant_options_set(options, ADAMANT_OPTION_IMAGE, 2));
    OK(adamant_options_set(options, ADAMANT_OPTION_MEMORY_BYTES_MAX, 1 << 30));
    OK(adamant_options_set(options, ADAMANT_OPTION_HUGE_BYTES_MAX, 0));
    OK(adamant_options_set(options, ADAMANT_OPTION_SNAPSHOT_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_CACHE_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_PINNED_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_OPEN_FILES_MAX, 16));
    OK(adamant_options_set(options, ADAMANT_OPTION_LSM_MEMTABLE_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_LSM_TABLE_BYTES_MAX, 1 << 20));
    OK(adamant_options_set(options, ADAMANT_OPTION_LSM_COMPRESSION, 0));
    OK(adamant_options_set_compression(options, "none, lz4, last zstd:5"));
    OK(adamant_options_set(options, ADAMANT_OPTION_LSM_BLOB_BYTES_MIN, UINT64_MAX));
    OK(adamant_options_set(options, ADAMANT_OPTION_FLUSHING, 0));
    OK(adamant_open(path, options, &store));
    CODE(ADAMANT_LOCKED, adamant_open(path, NULL, &second));
    CHECK(second == NULL);
    OK(adamant_keyspace_open(store, "words", "lsm", &keyspace));
    OK(adamant_put(keyspace, T("here"), T("1")));
    check_beside(path);
    CODE(ADAMANT_TARGET, adamant_backup(store, folder));
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    CODE(ADAMANT_CLOSED, adamant_close(store));
    adamant_store_free(store);

    OK(adamant_options_set(options, ADAMANT_OPTION_READ_ONLY, 1));
    OK(adamant_open(path, options, &reader));
    OK(adamant_open(path, options, &second));
    CODE(ADAMANT_LOCKED, adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(reader, "words", NULL, &keyspace));
    check_value(keyspace, "here", "1");
    CODE(ADAMANT_READ_ONLY, adamant_put(keyspace, T("here"), T("2")));
    CODE(ADAMANT_READ_ONLY, adamant_keyspace_drop(second, "words"));
    adamant_keyspace_free(keyspace);
    OK(adamant_close(reader));
    OK(adamant_close(second));
    adamant_store_free(reader);
    adamant_store_free(second);
    adamant_options_free(options);
    free(path);
    free(file);
    free(missing);
}

/* Every use after closing is told so, and handles are freed in any order. */
static void test_closed(void)
{
    adamant_store *store = NULL, *other = NULL;
    adamant_keyspace *keyspace = NULL, *of_other = NULL, *late = NULL;
    adamant_batch *batch = NULL;
    adamant_snapshot *snapshot = NULL;
    adamant_transaction *transaction = NULL;
    adamant_cursor *cursor = NULL;
    adamant_value *value = NULL;
    adamant_slice slice;
    uint64_t count;

    OK(adamant_open_in_memory(&store));
    OK(adamant_open_in_memory(&other));
    OK(adamant_keyspace_open(store, "a", NULL, &keyspace));
    OK(adamant_keyspace_open(other, "a", NULL, &of_other));
    OK(adamant_put(keyspace, T("here"), T("1")));
    OK(adamant_batch_new(store, &batch));
    OK(adamant_snapshot_new(store, &snapshot));
    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_cursor_new(keyspace, NULL, &cursor));

    CODE(ADAMANT_OTHER_STORE, adamant_batch_put(batch, of_other, T("a"), T("b")));
    CODE(ADAMANT_OTHER_STORE, adamant_snapshot_get(snapshot, of_other, T("a"), &slice));
    CODE(ADAMANT_OTHER_STORE, adamant_transaction_put(transaction, of_other, T("a"), T("b")));
    OK(adamant_batch_put(batch, keyspace, T("a"), T("b")));
    OK(adamant_transaction_put(transaction, keyspace, T("a"), T("b")));
    OK(adamant_get_with(keyspace, T("here"), use_within, keyspace));

    OK(adamant_close(store));
    CODE(ADAMANT_CLOSED, adamant_put(keyspace, T("a"), T("b")));
    CODE(ADAMANT_CLOSED, adamant_get(keyspace, T("a"), &value));
    CODE(ADAMANT_CLOSED, adamant_len(keyspace, &count));
    CODE(ADAMANT_CLOSED, adamant_sync(store));
    CODE(ADAMANT_CLOSED, adamant_compact(store));
    CODE(ADAMANT_CLOSED, adamant_keyspace_open(store, "b", NULL, &late));
    CODE(ADAMANT_CLOSED, adamant_batch_commit(batch));
    CODE(ADAMANT_CLOSED, adamant_snapshot_get(snapshot, keyspace, T("here"), &slice));
    CODE(ADAMANT_CLOSED, adamant_transaction_commit(transaction));
    CODE(ADAMANT_CLOSED, adamant_cursor_next(cursor, &slice, NULL));
    CODE(ADAMANT_CLOSED, adamant_check(store, &value));
    CHECK(late == NULL && value == NULL);
    CHECK(strstr(adamant_last_error(), "closed") != NULL);

    adamant_store_free(store);
    adamant_cursor_free(cursor);
    adamant_keyspace_free(keyspace);
    adamant_transaction_free(transaction);
    adamant_snapshot_free(snapshot);
    adamant_batch_free(batch);
    adamant_store_free(other);
    /* The store is open for as long as something of it is. */
    OK(adamant_put(of_other, T("a"), T("b")));
    adamant_keyspace_free(of_other);
}

int main(int argc, char **argv)
{
    adamant_store *store = NULL;
    adamant_keyspace *keyspace = NULL;

    CHECK(argc == 2);
    OK(adamant_open_in_memory(&store));
    OK(adamant_keyspace_open(store, "words", NULL, &keyspace));
    OK(adamant_put(keyspace, T("here"), T("1")));
    test_null(store, keyspace, argv[1]);
    test_lengths(store, keyspace);
    test_openers(argv[1]);
    test_closed();
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    adamant_store_free(store);
    return 0;
}
