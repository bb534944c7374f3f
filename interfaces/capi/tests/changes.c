/* Comparing and swapping, sorted loads, moves in batches, savepoints, exclusive transactions, transactions that
 * are run again, values that are asked for later. */

#include "check.h"

static void test_compare_and_swap(adamant_keyspace *keyspace)
{
    adamant_slice none = adamant_text(NULL);
    adamant_value *found = NULL;
    int swapped = -1;

    OK(adamant_clear(keyspace));
    OK(adamant_compare_and_swap(keyspace, T("door"), none, T("ada"), &swapped, &found));
    CHECK(swapped == 1 && found == NULL);
    OK(adamant_compare_and_swap(keyspace, T("door"), none, T("bob"), &swapped, &found));
    CHECK(swapped == 0 && is_text(adamant_value_bytes(found), "ada"));
    adamant_value_free(found);
    OK(adamant_compare_and_swap(keyspace, T("door"), T("bob"), none, &swapped, NULL));
    CHECK(swapped == 0);
    OK(adamant_compare_and_swap(keyspace, T("door"), T("ada"), T(""), NULL, NULL));
    check_value(keyspace, "door", "");
    /* No bytes are a value, nothing is none. */
    OK(adamant_compare_and_swap(keyspace, T("door"), none, T("bob"), &swapped, &found));
    CHECK(swapped == 0 && found != NULL && adamant_value_bytes(found).len == 0);
    adamant_value_free(found);
    OK(adamant_compare_and_swap(keyspace, T("door"), T(""), none, &swapped, &found));
    CHECK(swapped == 1 && found == NULL);
    check_value(keyspace, "door", NULL);
    OK(adamant_compare_and_swap(keyspace, T("door"), T("ada"), T("bob"), &swapped, &found));
    CHECK(swapped == 0 && found == NULL);
    /* The empty key is one like any other. */
    OK(adamant_compare_and_swap(keyspace, T(""), none, T("of no byte"), &swapped, NULL));
    CHECK(swapped == 1);
    check_value(keyspace, "", "of no byte");
    OK(adamant_compare_and_swap(keyspace, T(""), T("of no byte"), none, &swapped, NULL));
    check_value(keyspace, "", NULL);
}

struct load {
    int at, end, wrong_at;
    char key[32];
};

static int feed(void *context, adamant_slice *key, adamant_slice *value)
{
    struct load *load = (struct load *)context;

    if (load->at == load->end) {
        return 0;
    }
    snprintf(load->key, sizeof load->key, "%06d", load->at == load->wrong_at ? 0 : load->at);
    *key = T(load->key);
    *value = adamant_bytes(&load->at, sizeof load->at);
    load->at++;
    return 1;
}

static int feed_null(void *context, adamant_slice *key, adamant_slice *value)
{
    *value = T("");
    *key = T("a");
    if (++*(int *)context == 3) {
        key->data = NULL;
    } else {
        static const char *const keys[] = {"a", "b"};
        *key = T(keys[*(int *)context - 1]);
    }
    return 1;
}

static void test_load(adamant_keyspace *keyspace)
{
    struct load load = {0, 5000, -1, ""};
    uint64_t entries = 0, replaced = 1;
    int calls = 0;

    OK(adamant_clear(keyspace));
    OK(adamant_load_sorted(keyspace, feed, &load, &entries, &replaced));
    CHECK(entries == 5000 && replaced == 0);
    load.at = 4000;
    load.end = 6000;
    OK(adamant_load_sorted(keyspace, feed, &load, NULL, &replaced));
    CHECK(replaced == 1000);
    OK(adamant_len(keyspace, &entries));
    CHECK(entries == 6000);
    load.at = 6000;
    load.end = 9000;
    load.wrong_at = 8000;
    CODE(ADAMANT_INVALID, adamant_load_sorted(keyspace, feed, &load, NULL, NULL));
    CODE(ADAMANT_INVALID, adamant_load_sorted(keyspace, NULL, NULL, NULL, NULL));
    CODE(ADAMANT_INVALID, adamant_load_sorted(keyspace, feed_null, &calls, NULL, NULL));
    CHECK(calls == 3);
    OK(adamant_contains(keyspace, T("005999")));
}

static void test_batch_moves(adamant_store *store, adamant_keyspace *keyspace)
{
    static const char long_key[65536] = {0};
    adamant_keyspace *other = NULL;
    adamant_batch *batch = NULL;

    OK(adamant_keyspace_open(store, "other", NULL, &other));
    OK(adamant_clear(keyspace));
    OK(adamant_put(keyspace, T("a"), T("1")));
    OK(adamant_put(keyspace, T("b"), T("2")));
    OK(adamant_batch_new(store, &batch));
    OK(adamant_batch_put(batch, keyspace, T("c"), T("3")));
    OK(adamant_batch_swap(batch, keyspace, T("a"), keyspace, T("c")));
    OK(adamant_batch_move(batch, keyspace, T("b"), other, T("moved")));
    OK(adamant_batch_move(batch, keyspace, T("none"), other, T("none")));
    CODE(ADAMANT_KEY_LENGTH,
         adamant_batch_move(batch, keyspace, T("a"), other, adamant_bytes(long_key, sizeof long_key)));
    CODE(ADAMANT_INVALID, adamant_batch_swap(batch, NULL, T("a"), other, T("b")));
    OK(adamant_batch_commit(batch));
    adamant_batch_free(batch);
    check_value(keyspace, "a", "3");
    check_value(keyspace, "b", NULL);
    check_value(keyspace, "c", "1");
    check_value(other, "moved", "2");
    check_value(other, "none", NULL);
    OK(adamant_clear(other));
    adamant_keyspace_free(other);
}

static void test_savepoints(adamant_store *store, adamant_keyspace *keyspace)
{
    adamant_transaction *transaction = NULL;
    adamant_cursor *cursor = NULL;
    adamant_slice found;

    OK(adamant_clear(keyspace));
    OK(adamant_transaction_begin(store, &transaction));
    CODE(ADAMANT_MISUSE, adamant_savepoint_undo(transaction));
    CODE(ADAMANT_MISUSE, adamant_savepoint_keep(transaction));
    OK(adamant_transaction_put(transaction, keyspace, T("a"), T("1")));
    OK(adamant_savepoint_set(transaction));
    OK(adamant_transaction_put(transaction, keyspace, T("a"), T("2")));
    OK(adamant_savepoint_set(transaction));
    OK(adamant_transaction_put(transaction, keyspace, T("b"), T("2")));
    OK(adamant_transaction_cursor(transaction, keyspace, NULL, &cursor));
    OK(adamant_cursor_next(cursor, &found, NULL));
    OK(adamant_savepoint_undo(transaction));
    CODE(ADAMANT_END, adamant_cursor_next(cursor, &found, NULL));
    adamant_cursor_free(cursor);
    OK(adamant_savepoint_set(transaction));
    OK(adamant_transaction_put(transaction, keyspace, T("c"), T("3")));
    OK(adamant_savepoint_keep(transaction));
    OK(adamant_transaction_get(transaction, keyspace, T("a"), &found));
    CHECK(is_text(found, "2"));
    OK(adamant_savepoint_undo(transaction));
    OK(adamant_transaction_put(transaction, keyspace, T("d"), T("4")));
    OK(adamant_transaction_commit(transaction));
    CODE(ADAMANT_CLOSED, adamant_savepoint_set(transaction));
    adamant_transaction_free(transaction);
    check_value(keyspace, "a", "1");
    check_value(keyspace, "b", NULL);
    check_value(keyspace, "c", NULL);
    check_value(keyspace, "d", "4");
}

struct deposit {
    adamant_store *store;
    adamant_keyspace *keyspace;
    const char *text;
    int code;
};

static int deposit(void *context, adamant_transaction *transaction)
{
    struct deposit *of = (struct deposit *)context;

    OK(adamant_transaction_put(transaction, of->keyspace, T("account"), T(of->text)));
    CODE(ADAMANT_MISUSE, adamant_put(of->keyspace, T("beside"), T("")));
    CODE(ADAMANT_MISUSE, adamant_exclusive(of->store, deposit, of, NULL));
    return of->code;
}

static int commit(void *context, adamant_transaction *transaction)
{
    (void)context;
    return adamant_transaction_commit(transaction);
}

static void test_exclusive(adamant_store *store, adamant_keyspace *keyspace)
{
    struct deposit of = {store, keyspace, "7", 0};
    int result = -1;

    OK(adamant_clear(keyspace));
    OK(adamant_exclusive(store, deposit, &of, &result));
    CHECK(result == 0);
    check_value(keyspace, "account", "7");
    of.text = "8";
    of.code = 5;
    OK(adamant_exclusive(store, deposit, &of, &result));
    CHECK(result == 5);
    check_value(keyspace, "account", "7");
    of.code = 0;
    OK(adamant_exclusive(store, deposit, &of, NULL));
    check_value(keyspace, "account", "8");
    check_value(keyspace, "beside", NULL);
    /* Nothing was written, so its commit in there does nothing: but it is not there any more. */
    CODE(ADAMANT_CLOSED, adamant_exclusive(store, commit, NULL, &result));
    CHECK(result == ADAMANT_OK);
    CODE(ADAMANT_INVALID, adamant_exclusive(store, NULL, NULL, NULL));
    of.text = "9";
    OK(adamant_exclusive_within(store, 0, deposit, &of, &result));
    CHECK(result == 0);
    check_value(keyspace, "account", "9");
    CODE(ADAMANT_INVALID, adamant_exclusive_within(store, 0, NULL, NULL, NULL));
    CHECK(strcmp(adamant_code_name(ADAMANT_TIMED_OUT), "ADAMANT_TIMED_OUT") == 0);
    OK(adamant_put(keyspace, T("free"), T("again")));
}

struct loser {
    adamant_keyspace *keyspace;
    unsigned runs;
    int code;
};

/* Reads what another commit changes then, unless nobody else may write. */
static int lose(void *context, adamant_transaction *transaction)
{
    struct loser *of = (struct loser *)context;
    adamant_slice found;
    uint32_t attempt = 0;
    int code;

    of->runs++;
    OK(adamant_transaction_attempt(transaction, &attempt));
    CHECK(attempt == of->runs);
    code = adamant_transaction_get(transaction, of->keyspace, T("apples"), &found);
    CHECK(code == ADAMANT_OK || code == ADAMANT_NOT_FOUND);
    code = adamant_put(of->keyspace, T("apples"), T("theirs"));
    CHECK(code == ADAMANT_OK || code == ADAMANT_MISUSE);
    OK(adamant_transaction_put(transaction, of->keyspace, T("apples"), T("mine")));
    return of->code;
}

static void test_attempts(adamant_store *store, adamant_keyspace *keyspace)
{
    static const struct {
        uint32_t attempts_max, exclusive_after;
        int code;
        unsigned runs;
    } limits[] = {
        {0, 0, ADAMANT_OK, 9},
        {0, 3, ADAMANT_OK, 4},
        {5, 0, ADAMANT_CONFLICT, 5},
        {0, UINT32_MAX, ADAMANT_CONFLICT, 100},
    };
    adamant_transaction *transaction = NULL;
    uint32_t attempt = 0;
    size_t at;
    int result;

    OK(adamant_clear(keyspace));
    for (at = 0; at < sizeof limits / sizeof limits[0]; at++) {
        struct loser of = {keyspace, 0, 0};

        result = -1;
        CODE(limits[at].code, adamant_transaction_run(store, limits[at].attempts_max,
                                                      limits[at].exclusive_after, 60000, lose, &of,
                                                      &result));
        CHECK(of.runs == limits[at].runs);
        CHECK(result == 0);
        check_value(keyspace, "apples", limits[at].code == ADAMANT_OK ? "mine" : "theirs");
    }
    {
        struct loser of = {keyspace, 0, 7};

        OK(adamant_transaction_run(store, 0, 0, 0, lose, &of, &result));
        CHECK(result == 7 && of.runs == 1);
        check_value(keyspace, "apples", "theirs");
        CODE(ADAMANT_CLOSED, adamant_transaction_run(store, 0, 0, 0, commit, NULL, NULL));
        CODE(ADAMANT_INVALID, adamant_transaction_run(store, 0, 0, 0, NULL, NULL, NULL));
    }
    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_transaction_attempt(transaction, &attempt));
    CHECK(attempt == 1);
    CODE(ADAMANT_INVALID, adamant_transaction_attempt(transaction, NULL));
    adamant_transaction_free(transaction);
}

/* A value that was not asked for with its key is the one of then. */
static void test_values_later(adamant_store *store, adamant_keyspace *keyspace)
{
    adamant_cursor *cursor = NULL;
    adamant_slice key, value;
    char *large = (char *)malloc(20001);

    CHECK(large != NULL);
    memset(large, 'x', 20000);
    large[20000] = 0;
    OK(adamant_clear(keyspace));
    OK(adamant_put(keyspace, T("a"), T("1")));
    OK(adamant_put(keyspace, T("b"), T(large)));
    OK(adamant_cursor_new(keyspace, NULL, &cursor));
    CODE(ADAMANT_NOT_FOUND, adamant_cursor_value(cursor, &value));
    OK(adamant_cursor_next(cursor, &key, NULL));
    OK(adamant_cursor_next(cursor, &key, NULL));
    OK(adamant_clear(keyspace));
    OK(adamant_cursor_value(cursor, &value));
    CHECK(is_text(key, "b") && is_text(value, large));
    OK(adamant_cursor_value(cursor, &value));
    CHECK(is_text(value, large));
    CODE(ADAMANT_INVALID, adamant_cursor_value(cursor, NULL));
    OK(adamant_cursor_rewind(cursor));
    CODE(ADAMANT_NOT_FOUND, adamant_cursor_value(cursor, &value));
    adamant_cursor_free(cursor);
    free(large);
    (void)store;
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"bplus", "btree", "critbit", "redblack", "lsm"};
    adamant_store *store = NULL;
    int at;

    CHECK(argc == 2);
    OK(adamant_open_in_memory(&store));
    for (at = 0; at < 5; at++) {
        adamant_keyspace *keyspace = NULL;

        OK(adamant_keyspace_open(store, engines[at], engines[at], &keyspace));
        test_compare_and_swap(keyspace);
        test_load(keyspace);
        test_batch_moves(store, keyspace);
        test_savepoints(store, keyspace);
        test_exclusive(store, keyspace);
        test_attempts(store, keyspace);
        test_values_later(store, keyspace);
        adamant_keyspace_free(keyspace);
    }
    OK(adamant_check(store, NULL));
    OK(adamant_close(store));
    adamant_store_free(store);
    (void)argv;
    return 0;
}
