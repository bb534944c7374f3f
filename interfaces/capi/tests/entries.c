/* Single entries, keyspaces, batches, lists, figures, checks and backups: each function as it is meant. */

#include "check.h"

/* A pointer to const is to what a call only reads. Each of these would not compile with the other kind. */
static void test_const(void)
{
    int (*put)(adamant_keyspace *, adamant_slice, adamant_slice) = adamant_put;
    int (*get)(const adamant_keyspace *, adamant_slice, adamant_value **) = adamant_get;
    int (*set)(adamant_options *, int, uint64_t) = adamant_options_set;
    int (*commit)(adamant_batch *) = adamant_batch_commit;
    int (*next)(adamant_cursor *, adamant_slice *, adamant_slice *) = adamant_cursor_next;
    int (*close)(adamant_store *) = adamant_close;
    int (*check)(const adamant_store *, adamant_value **) = adamant_check;

    CHECK(put && get && set && commit && next && close && check);
}

static void test_entries(adamant_store *store)
{
    adamant_keyspace *users = NULL;
    adamant_value *value = NULL;
    uint64_t entries = 7;
    int flag = 7;
    char buffer[8];
    size_t bytes = 7;

    OK(adamant_keyspace_open(store, "users", NULL, &users));
    CHECK(strcmp(adamant_keyspace_name(users), "users") == 0);
    CHECK(strcmp(adamant_keyspace_engine(users), "bplus") == 0);
    OK(adamant_len(users, &entries));
    CHECK(entries == 0);

    OK(adamant_put(users, T("ada"), T("1815")));
    check_value(users, "ada", "1815");
    OK(adamant_insert(users, T("ada"), T("1815-1852"), &flag));
    CHECK(flag == 1);
    OK(adamant_insert(users, T("bob"), T(""), &flag));
    CHECK(flag == 0);
    OK(adamant_insert(users, T("carl"), T("3"), NULL));
    OK(adamant_insert_unique(users, T("bob"), T("other"), &flag));
    CHECK(flag == 0);
    OK(adamant_insert_unique(users, T("dora"), T("4"), &flag));
    CHECK(flag == 1);
    check_value(users, "ada", "1815-1852");
    check_value(users, "bob", "");
    check_value(users, "eve", NULL);
    OK(adamant_contains(users, T("bob")));
    CODE(ADAMANT_NOT_FOUND, adamant_contains(users, T("eve")));

    OK(adamant_get_into(users, T("carl"), buffer, sizeof buffer, &bytes));
    CHECK(bytes == 1 && buffer[0] == '3');
    OK(adamant_get_into(users, T("bob"), NULL, 0, &bytes));
    CHECK(bytes == 0);
    CODE(ADAMANT_TOO_SMALL, adamant_get_into(users, T("ada"), buffer, sizeof buffer, &bytes));
    CHECK(bytes == 9 && buffer[0] == '3');
    CODE(ADAMANT_NOT_FOUND, adamant_get_into(users, T("eve"), buffer, sizeof buffer, NULL));

    OK(adamant_remove(users, T("carl")));
    CODE(ADAMANT_NOT_FOUND, adamant_remove(users, T("carl")));
    OK(adamant_delete(users, T("dora")));
    OK(adamant_delete(users, T("dora")));
    OK(adamant_len(users, &entries));
    CHECK(entries == 2);

    /* Bytes of any values are keys and values. */
    {
        static const unsigned char key[] = {0, 255, 0};
        static const unsigned char data[] = {1, 0, 2};
        OK(adamant_put(users, adamant_bytes(key, sizeof key), adamant_bytes(data, sizeof data)));
        OK(adamant_get(users, adamant_bytes(key, sizeof key), &value));
        CHECK(adamant_value_bytes(value).len == 3);
        CHECK(memcmp(adamant_value_bytes(value).data, data, 3) == 0);
        adamant_value_free(value);
    }
    OK(adamant_clear(users));
    OK(adamant_len(users, &entries));
    CHECK(entries == 0);
    adamant_keyspace_free(users);
}

static void check_popped(int code, adamant_value *key, adamant_value *value, const char *expected)
{
    OK(code);
    CHECK(strcmp((const char *)adamant_value_bytes(key).data, expected) == 0);
    CHECK(strcmp((const char *)adamant_value_bytes(value).data, "job") == 0);
    adamant_value_free(key);
    adamant_value_free(value);
}

static void test_pops(adamant_store *store, const char *engine)
{
    adamant_keyspace *jobs = NULL;
    adamant_value *key = NULL, *value = NULL;
    uint64_t entries = 7;
    int code;

    OK(adamant_keyspace_open(store, engine, engine, &jobs));
    OK(adamant_clear(jobs));
    OK(adamant_put(jobs, T("1"), T("job")));
    OK(adamant_put(jobs, T("2"), T("job")));
    OK(adamant_put(jobs, T("3"), T("job")));
    /* Nothing is lost where there is no room for it. */
    CODE(ADAMANT_INVALID, adamant_pop_first(jobs, NULL, &value));
    CODE(ADAMANT_INVALID, adamant_pop_last(jobs, &key, NULL));
    OK(adamant_len(jobs, &entries));
    CHECK(entries == 3);
    code = adamant_pop_first(jobs, &key, &value);
    check_popped(code, key, value, "1");
    code = adamant_pop_last(jobs, &key, &value);
    check_popped(code, key, value, "3");
    code = adamant_pop_last(jobs, &key, &value);
    check_popped(code, key, value, "2");
    CODE(ADAMANT_NOT_FOUND, adamant_pop_first(jobs, &key, &value));
    CHECK(key == NULL && value == NULL);
    adamant_keyspace_free(jobs);
}

static void count_bytes(void *context, adamant_slice value)
{
    *(size_t *)context += value.len;
}

/* Values of all ways to keep one: in the entry, in a block, lent, in parts of a log. */
static void test_large_values(adamant_store *store, const char *engine)
{
    static const size_t sizes[] = {0, 1, 20, 21, 4096, 4097, 16384, 16385, 3000000};
    adamant_keyspace *texts = NULL;
    size_t at;
    char *large = (char *)malloc(3000000);

    CHECK(large != NULL);
    memset(large, 'x', 3000000);
    OK(adamant_keyspace_create(store, engine, engine, &texts));
    CHECK(strcmp(adamant_keyspace_engine(texts), engine) == 0);
    for (at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        adamant_value *value = NULL;
        size_t found = 0, bytes = 0;
        char *copy = (char *)malloc(sizes[at] + 1);
        CHECK(copy != NULL);
        OK(adamant_put(texts, T("text"), adamant_bytes(large, sizes[at])));
        OK(adamant_get(texts, T("text"), &value));
        CHECK(adamant_value_bytes(value).len == sizes[at]);
        CHECK(memcmp(adamant_value_bytes(value).data, large, sizes[at]) == 0);
        OK(adamant_get_into(texts, T("text"), copy, sizes[at], &bytes));
        CHECK(bytes == sizes[at] && memcmp(copy, large, bytes) == 0);
        if (sizes[at] > 0) {
            CODE(ADAMANT_TOO_SMALL, adamant_get_into(texts, T("text"), copy, sizes[at] - 1, NULL));
        }
        OK(adamant_get_with(texts, T("text"), count_bytes, &found));
        CHECK(found == sizes[at]);
        CODE(ADAMANT_NOT_FOUND, adamant_get_with(texts, T("none"), count_bytes, &found));
        CHECK(found == sizes[at]);
        adamant_value_free(value);
        free(copy);
    }
    free(large);
    adamant_keyspace_free(texts);
}

/* Options stay with a keyspace; what they do is seen by its files, not by what it holds. */
static void test_keyspace_options(adamant_store *store)
{
    adamant_keyspace *small = NULL, *other = NULL;
    adamant_keyspace_options *options = NULL;
    adamant_expiring *expiring = NULL;

    OK(adamant_keyspace_options_new(&options));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES, 16384));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_FILTER_BITS_PER_KEY, 12));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_HASH_INDEX, 1));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_BLOB_BYTES_MIN, UINT64_MAX));
    OK(adamant_keyspace_options_set_compression(options, "none, lz4, last zstd"));
    CODE(ADAMANT_INVALID, adamant_keyspace_options_set_compression(options, "zstd, last"));
    CODE(ADAMANT_INVALID, adamant_keyspace_options_set(options, 99, 1));
    CODE(ADAMANT_INVALID, adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_HASH_INDEX, 2));
    CODE(ADAMANT_WRONG_ENGINE, adamant_keyspace_open_with(store, "small", NULL, options, &small));
    CHECK(small == NULL);
    OK(adamant_keyspace_create_with(store, "small", "lsm", options, &small));
    OK(adamant_put(small, T("1"), T("one")));
    CODE(ADAMANT_KEYSPACE_EXISTS, adamant_keyspace_create_with(store, "small", "lsm", options, &other));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES, 0));
    CODE(ADAMANT_INVALID, adamant_keyspace_open_with(store, "small", "lsm", options, &other));
    CHECK(strstr(adamant_last_error(), "expected 64 to 8388608 bytes, found 0") != NULL);
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES, 4096));
    OK(adamant_keyspace_open_with(store, "small", NULL, options, &other));
    check_value(other, "1", "one");
    adamant_keyspace_free(other);
    OK(adamant_keyspace_open_with(store, "small", "lsm", NULL, &other));
    OK(adamant_expiring_open_with(store, "leases", "lsm", options, &expiring));
    adamant_keyspace_options_free(options);
    adamant_expiring_free(expiring);
    adamant_keyspace_free(other);
    adamant_keyspace_free(small);
    OK(adamant_keyspace_drop(store, "small"));
    OK(adamant_expiring_drop(store, "leases"));
}

static void test_keyspaces(adamant_store *store)
{
    adamant_keyspace *one = NULL, *other = NULL;
    adamant_keyspace_list *list = NULL;
    adamant_keyspace_options *options;
    adamant_keyspace *packed;
    adamant_batch *batch;
    adamant_transaction *transaction;
    adamant_value *dictionary;
    const char *name = NULL, *engine = NULL;
    uint64_t entries = 0;
    size_t index;

    CODE(ADAMANT_UNKNOWN_KEYSPACE, adamant_keyspace_open_existing(store, "a list", &one));
    CHECK(one == NULL);
    OK(adamant_keyspace_create(store, "a list", "critbit", &one));
    CODE(ADAMANT_KEYSPACE_EXISTS, adamant_keyspace_create(store, "a list", NULL, &other));
    CODE(ADAMANT_WRONG_ENGINE, adamant_keyspace_open(store, "a list", "lsm", &other));
    CODE(ADAMANT_UNKNOWN_ENGINE, adamant_keyspace_open(store, "a list", "fast", &other));
    CHECK(other == NULL);
    OK(adamant_keyspace_open_existing(store, "a list", &other));
    OK(adamant_put(one, T("1"), T("one")));
    check_value(other, "1", "one");

    OK(adamant_keyspaces(store, &list));
    CHECK(adamant_keyspace_list_count(list) >= 1);
    OK(adamant_keyspace_list_get(list, 0, &name, &engine, &entries));
    CHECK(strcmp(name, "a list") == 0 && strcmp(engine, "critbit") == 0 && entries == 1);
    OK(adamant_keyspace_list_get(list, 0, NULL, NULL, NULL));
    CODE(ADAMANT_NOT_FOUND, adamant_keyspace_list_get(list, 1000, &name, &engine, &entries));
    adamant_keyspace_list_free(list);

    OK(adamant_keyspace_compress_values(store, "a list", "lz4, from 1", adamant_text(NULL)));
    check_value(other, "1", "one");
    CODE(ADAMANT_INVALID,
         adamant_keyspace_compress_values(store, "a list", "lz5", adamant_text(NULL)));
    CODE(ADAMANT_INVALID, adamant_keyspace_compress_values(store, "a list", "lz4", T("words")));
    CODE(ADAMANT_UNKNOWN_KEYSPACE,
         adamant_keyspace_compress_values(store, "none", "lz4", adamant_text(NULL)));
    CODE(ADAMANT_INVALID, adamant_keyspace_train_dictionary(store, "a list", 1024, &dictionary));
    OK(adamant_keyspace_options_new(&options));
    OK(adamant_keyspace_options_set_value_compression(options, "lz4, from 9"));
    CODE(ADAMANT_INVALID, adamant_keyspace_options_set_value_compression(options, "lz4, of 9"));
    OK(adamant_keyspace_open_with(store, "packed", NULL, options, &packed));
    OK(adamant_put(packed, T("1"), T("one one one one one one one one one one one one one")));
    check_value(packed, "1", "one one one one one one one one one one one one one");
    adamant_keyspace_free(packed);
    OK(adamant_keyspace_drop(store, "packed"));
    CODE(ADAMANT_WRONG_ENGINE, adamant_keyspace_open_with(store, "log", "lsm", options, &packed));
    adamant_keyspace_options_free(options);
    OK(adamant_keyspace_options_new(&options));
    OK(adamant_keyspace_options_set_merge_operator(options, "append"));
    OK(adamant_keyspace_open_with(store, "merged", "lsm", options, &packed));
    OK(adamant_put(packed, T("1"), T("one")));
    OK(adamant_merge(packed, T("1"), T(" and")));
    OK(adamant_batch_new(store, &batch));
    OK(adamant_batch_merge(batch, packed, T("1"), T(" two")));
    OK(adamant_batch_commit(batch));
    adamant_batch_free(batch);
    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_transaction_merge(transaction, packed, T("1"), T(" and three")));
    OK(adamant_transaction_commit(transaction));
    adamant_transaction_free(transaction);
    check_value(packed, "1", "one and two and three");
    OK(adamant_keyspaces(store, &list));
    OK(adamant_keyspace_list_merge_operator(list, 0, &name));
    CHECK(name == NULL);
    for (index = 0; strcmp(name == NULL ? "" : name, "merged") != 0; index++) {
        OK(adamant_keyspace_list_get(list, index, &name, NULL, NULL));
    }
    OK(adamant_keyspace_list_merge_operator(list, index - 1, &name));
    CHECK(name != NULL && strcmp(name, "append") == 0);
    CODE(ADAMANT_NOT_FOUND, adamant_keyspace_list_merge_operator(list, 1000, &name));
    CODE(ADAMANT_INVALID, adamant_keyspace_list_merge_operator(list, 0, NULL));
    adamant_keyspace_list_free(list);
    CODE(ADAMANT_INVALID, adamant_merge(other, T("1"), T("2")));
    adamant_keyspace_free(packed);
    OK(adamant_keyspace_options_set_merge_operator(options, "add"));
    CODE(ADAMANT_INVALID, adamant_keyspace_open_with(store, "merged", NULL, options, &packed));
    OK(adamant_keyspace_drop(store, "merged"));
    adamant_keyspace_options_free(options);
    OK(adamant_keyspace_convert(store, "a list", "redblack"));
    check_value(other, "1", "one");
    OK(adamant_keyspace_rename(store, "a list", "another"));
    check_value(one, "1", "one");
    CODE(ADAMANT_UNKNOWN_KEYSPACE, adamant_keyspace_rename(store, "a list", "another"));
    OK(adamant_keyspace_drop(store, "another"));
    CODE(ADAMANT_NOT_FOUND, adamant_keyspace_drop(store, "another"));
    CODE(ADAMANT_KEYSPACE_DROPPED, adamant_put(one, T("1"), T("one")));
    adamant_keyspace_free(one);
    adamant_keyspace_free(other);
}

static void test_batches(adamant_store *store)
{
    static const int durabilities[] = {ADAMANT_SYNC, ADAMANT_BUFFERED, ADAMANT_DEFERRED};
    adamant_keyspace *accounts = NULL, *log = NULL, *quick = NULL;
    adamant_batch *batch = NULL;
    uint64_t changes = 0;
    int at;

    OK(adamant_keyspace_open(store, "accounts", NULL, &accounts));
    OK(adamant_keyspace_open(store, "log", "lsm", &log));
    for (at = 0; at < 3; at++) {
        OK(adamant_batch_new(store, &batch));
        OK(adamant_batch_durability(batch, durabilities[at]));
        OK(adamant_batch_put(batch, accounts, T("ada"), T("90")));
        OK(adamant_batch_put(batch, log, T("0001"), T("ada gave 10")));
        OK(adamant_batch_put(batch, accounts, T("eve"), T("1")));
        OK(adamant_batch_delete(batch, accounts, T("eve")));
        OK(adamant_batch_len(batch, &changes));
        CHECK(changes == 4);
        OK(adamant_batch_commit(batch));
        CODE(ADAMANT_CLOSED, adamant_batch_commit(batch));
        CODE(ADAMANT_CLOSED, adamant_batch_put(batch, accounts, T("ada"), T("0")));
        CODE(ADAMANT_CLOSED, adamant_batch_len(batch, &changes));
        adamant_batch_free(batch);
        check_value(accounts, "ada", "90");
        check_value(accounts, "eve", NULL);
        check_value(log, "0001", "ada gave 10");
        OK(adamant_keyspace_with_durability(accounts, durabilities[at], &quick));
        OK(adamant_put(quick, T("ada"), T("80")));
        adamant_keyspace_free(quick);
        OK(adamant_sync(store));
    }
    OK(adamant_compact(store));
    check_value(accounts, "ada", "80");
    OK(adamant_move(accounts, T("ada"), log, T("moved")));
    CODE(ADAMANT_NOT_FOUND, adamant_move(accounts, T("ada"), log, T("moved")));
    check_value(accounts, "ada", NULL);
    check_value(log, "moved", "80");
    OK(adamant_put(accounts, T("ada"), T("70")));
    OK(adamant_swap(accounts, T("ada"), log, T("moved")));
    CODE(ADAMANT_NOT_FOUND, adamant_swap(accounts, T("eve"), log, T("moved")));
    check_value(accounts, "ada", "80");
    check_value(log, "moved", "70");
    /* One that is not committed is not done. */
    OK(adamant_batch_new(store, &batch));
    OK(adamant_batch_put(batch, accounts, T("ada"), T("0")));
    adamant_batch_free(batch);
    check_value(accounts, "ada", "80");
    adamant_keyspace_free(accounts);
    adamant_keyspace_free(log);
}

static void test_inspection(adamant_store *store, const char *folder)
{
    adamant_value *json = NULL;
    adamant_store *copy = NULL;
    adamant_keyspace *accounts = NULL;
    char *path = path_in(folder, "copy"), *restored, *linked;

    OK(adamant_stats(store, &json));
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"pool_bytes\":") != NULL);
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"name\":\"accounts\"") != NULL);
    adamant_value_free(json);
    OK(adamant_check(store, &json));
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"clean\":true") != NULL);
    adamant_value_free(json);
    OK(adamant_check(store, NULL));

    OK(adamant_backup(store, path));
    CODE(ADAMANT_TARGET, adamant_backup(store, path));
    CODE(ADAMANT_TARGET, adamant_backup_linked(store, path));
    linked = path_in(folder, "linked");
    OK(adamant_backup_linked(store, linked));
    free(linked);
    linked = path_in(folder, "increment");
    OK(adamant_backup_since(store, path, linked));
    CODE(ADAMANT_TARGET, adamant_backup_since(store, path, linked));
    CODE(ADAMANT_INVALID, adamant_backup_since(store, folder, linked));
    CODE(ADAMANT_NOT_A_STORE, adamant_open(linked, NULL, &copy));
    restored = path_in(folder, "restored increment");
    CODE(ADAMANT_MISSING, adamant_backup_since(store, restored, path));
    OK(adamant_restore(linked, restored));
    OK(adamant_open(restored, NULL, &copy));
    OK(adamant_keyspace_open_existing(copy, "accounts", &accounts));
    check_value(accounts, "ada", "80");
    adamant_keyspace_free(accounts);
    OK(adamant_close(copy));
    adamant_store_free(copy);
    copy = NULL;
    accounts = NULL;
    free(restored);
    free(linked);
    restored = path_in(folder, "restored");
    OK(adamant_restore(path, restored));
    CODE(ADAMANT_TARGET, adamant_restore(path, restored));
    OK(adamant_open(restored, NULL, &copy));
    free(restored);
    OK(adamant_keyspace_open_existing(copy, "accounts", &accounts));
    check_value(accounts, "ada", "80");
    adamant_keyspace_free(accounts);
    OK(adamant_close(copy));
    adamant_store_free(copy);
    free(path);
}

static void test_savepoints(const char *folder)
{
    adamant_store *store = NULL, *savepoint = NULL;
    adamant_keyspace *prices = NULL, *old = NULL;
    adamant_savepoint_list *list = NULL;
    char *path = path_in(folder, "savepoints");
    const char *name = NULL;
    uint64_t commit = 0, made_ms = 0, bytes = 0;
    int state = -1;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "prices", NULL, &prices));
    OK(adamant_put(prices, T("tea"), T("3")));
    OK(adamant_create_savepoint(store, "one"));
    CODE(ADAMANT_INVALID, adamant_create_savepoint(store, "one"));
    CODE(ADAMANT_INVALID, adamant_create_savepoint(store, ""));
    OK(adamant_put(prices, T("tea"), T("4")));
    CODE(ADAMANT_MISSING, adamant_open_savepoint(store, "two", &savepoint));
    OK(adamant_open_savepoint(store, "one", &savepoint));
    OK(adamant_keyspace_open_existing(savepoint, "prices", &old));
    check_value(old, "tea", "3");
    CODE(ADAMANT_READ_ONLY, adamant_put(old, T("tea"), T("5")));
    adamant_keyspace_free(old);
    OK(adamant_close(savepoint));
    adamant_store_free(savepoint);
    OK(adamant_savepoints(store, &list));
    CHECK(adamant_savepoint_list_count(list) == 1);
    OK(adamant_savepoint_list_get(list, 0, &name, &commit, &made_ms, &bytes, &state));
    CHECK(strcmp(name, "one") == 0 && commit > 0 && made_ms > 0 && bytes > 0);
    CHECK(state == ADAMANT_SAVEPOINT_WHOLE);
    CODE(ADAMANT_NOT_FOUND, adamant_savepoint_list_get(list, 1, NULL, NULL, NULL, NULL, NULL));
    adamant_savepoint_list_free(list);
    CODE(ADAMANT_LOCKED, adamant_go_back(path, "one", NULL));
    adamant_keyspace_free(prices);
    OK(adamant_close(store));
    adamant_store_free(store);

    OK(adamant_go_back(path, "one", NULL));
    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open_existing(store, "prices", &prices));
    check_value(prices, "tea", "3");
    OK(adamant_delete_savepoint(store, "one"));
    CODE(ADAMANT_NOT_FOUND, adamant_delete_savepoint(store, "one"));
    adamant_keyspace_free(prices);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"bplus", "btree", "critbit", "redblack", "lsm"};
    adamant_store *store = NULL, *again = NULL;
    adamant_keyspace *accounts = NULL;
    char *path;
    int at;

    CHECK(argc == 2);
    CHECK(adamant_abi() == ADAMANT_ABI);
    CHECK(strchr(adamant_version(), '.') != NULL);
    CHECK(strcmp(adamant_code_name(ADAMANT_CONFLICT), "ADAMANT_CONFLICT") == 0);
    CHECK(strcmp(adamant_code_name(-12345), "?") == 0);
    CHECK(strcmp(adamant_last_error(), "") == 0);
    path = path_in(argv[1], "store");
    OK(adamant_open(path, NULL, &store));
    test_const();
    test_entries(store);
    for (at = 0; at < 5; at++) {
        test_large_values(store, engines[at]);
        test_pops(store, engines[at]);
    }
    test_keyspace_options(store);
    test_keyspaces(store);
    test_batches(store);
    test_inspection(store, argv[1]);
    test_savepoints(argv[1]);
    OK(adamant_close(store));
    adamant_store_free(store);

    OK(adamant_open(path, NULL, &again));
    OK(adamant_keyspace_open_existing(again, "accounts", &accounts));
    check_value(accounts, "ada", "80");
    adamant_keyspace_free(accounts);
    OK(adamant_close(again));
    adamant_store_free(again);
    free(path);
    return 0;
}
