/* Cursors, ranges, snapshots, transactions: what is seen, both ways, while others write. */

#include "check.h"

#define NEXT(cursor, text)                                                                       \
    do {                                                                                         \
        adamant_slice key_, value_;                                                              \
        OK(adamant_cursor_next(cursor, &key_, &value_));                                         \
        CHECK(is_text(key_, text));                                                              \
    } while (0)

#define PREVIOUS(cursor, text)                                                                   \
    do {                                                                                         \
        adamant_slice key_;                                                                      \
        OK(adamant_cursor_previous(cursor, &key_, NULL));                                        \
        CHECK(is_text(key_, text));                                                              \
    } while (0)

#define NO_NEXT(cursor)                                                                          \
    do {                                                                                         \
        adamant_slice key_;                                                                      \
        CODE(ADAMANT_END, adamant_cursor_next(cursor, &key_, NULL));                             \
    } while (0)

#define NO_PREVIOUS(cursor)                                                                      \
    do {                                                                                         \
        adamant_slice key_;                                                                      \
        CODE(ADAMANT_END, adamant_cursor_previous(cursor, &key_, NULL));                         \
    } while (0)

static void fill(adamant_keyspace *keyspace)
{
    static const char *const keys[] = {"b", "d", "f", "h"};
    int at;

    OK(adamant_clear(keyspace));
    for (at = 0; at < 4; at++) {
        OK(adamant_put(keyspace, T(keys[at]), T(keys[at])));
    }
}

/* A cursor over b, d, f, h, of whatever it goes through. */
static void test_cursor(adamant_cursor *cursor)
{
    NEXT(cursor, "b");
    NEXT(cursor, "d");
    PREVIOUS(cursor, "b");
    NO_PREVIOUS(cursor);
    NO_PREVIOUS(cursor);
    NEXT(cursor, "b");
    NEXT(cursor, "d");
    NEXT(cursor, "f");
    NEXT(cursor, "h");
    NO_NEXT(cursor);
    NO_NEXT(cursor);
    PREVIOUS(cursor, "h");
    PREVIOUS(cursor, "f");
    OK(adamant_cursor_seek(cursor, T("d")));
    NEXT(cursor, "d");
    OK(adamant_cursor_seek(cursor, T("d")));
    PREVIOUS(cursor, "b");
    OK(adamant_cursor_seek(cursor, T("e")));
    NEXT(cursor, "f");
    OK(adamant_cursor_seek(cursor, T("e")));
    PREVIOUS(cursor, "d");
    OK(adamant_cursor_seek(cursor, T("z")));
    NO_NEXT(cursor);
    OK(adamant_cursor_rewind(cursor));
    PREVIOUS(cursor, "h");
    OK(adamant_cursor_rewind(cursor));
    NEXT(cursor, "b");
}

static void test_ranges(adamant_keyspace *keyspace)
{
    adamant_range range = adamant_range_between(T("d"), T("h"));
    adamant_range none;
    adamant_cursor *cursor = NULL;

    OK(adamant_cursor_new(keyspace, &range, &cursor));
    NEXT(cursor, "d");
    NEXT(cursor, "f");
    NO_NEXT(cursor);
    OK(adamant_cursor_seek(cursor, T("a")));
    NEXT(cursor, "d");
    OK(adamant_cursor_seek(cursor, T("z")));
    PREVIOUS(cursor, "f");
    adamant_cursor_free(cursor);

    range.lower_excluded = 1;
    range.upper_included = 1;
    OK(adamant_cursor_new(keyspace, &range, &cursor));
    NEXT(cursor, "f");
    NEXT(cursor, "h");
    NO_NEXT(cursor);
    adamant_cursor_free(cursor);

    range = adamant_range_prefix(T("f"));
    OK(adamant_put(keyspace, T("fa"), T("")));
    OK(adamant_cursor_new(keyspace, &range, &cursor));
    PREVIOUS(cursor, "fa");
    PREVIOUS(cursor, "f");
    NO_PREVIOUS(cursor);
    adamant_cursor_free(cursor);

    memset(&none, 0, sizeof none);
    none.lower = T("z");
    none.upper = T("a");
    OK(adamant_cursor_new(keyspace, &none, &cursor));
    NO_NEXT(cursor);
    NO_PREVIOUS(cursor);
    adamant_cursor_free(cursor);

    OK(adamant_delete_range(keyspace, &range));
    check_value(keyspace, "f", NULL);
    check_value(keyspace, "fa", NULL);
    check_value(keyspace, "d", "d");
    OK(adamant_delete_range(keyspace, NULL));
    check_value(keyspace, "d", NULL);
}

/* A cursor stays good while the keyspace is written to: keys ascend, and what nobody touches is met. */
static void test_writes_beside(adamant_keyspace *keyspace)
{
    adamant_cursor *cursor = NULL;
    adamant_slice key, value;
    char text[16], last[16] = "";
    int met = 0, at, code;

    OK(adamant_clear(keyspace));
    for (at = 0; at < 2000; at++) {
        snprintf(text, sizeof text, "%06d", at);
        OK(adamant_put(keyspace, T(text), T(text)));
    }
    OK(adamant_cursor_new(keyspace, NULL, &cursor));
    while ((code = adamant_cursor_next(cursor, &key, &value)) == ADAMANT_OK) {
        CHECK(key.len == 6 && value.len <= 7);
        snprintf(text, sizeof text, "%.6s", (const char *)key.data);
        CHECK(strcmp(last, text) < 0);
        strcpy(last, text);
        at = atoi(text);
        met += at % 2 == 0;
        /* Odd ones are removed, even ones behind it are overwritten. */
        snprintf(text, sizeof text, "%06d", (at * 7 + 1) % 2000 | 1);
        OK(adamant_delete(keyspace, T(text)));
        snprintf(text, sizeof text, "%06d", at & ~1);
        OK(adamant_put(keyspace, T(text), T("changed")));
    }
    CHECK(code == ADAMANT_END);
    CHECK(met == 1000);
    adamant_cursor_free(cursor);
}

static void test_snapshots(adamant_store *store, adamant_keyspace *keyspace)
{
    adamant_snapshot *snapshot = NULL;
    adamant_cursor *cursor = NULL;
    adamant_slice small, middle, large;
    uint64_t entries = 0;
    char *bytes = (char *)malloc(100000);
    int at;

    CHECK(bytes != NULL);
    fill(keyspace);
    memset(bytes, 'm', 100000);
    OK(adamant_put(keyspace, T("middle"), adamant_bytes(bytes, 1000)));
    OK(adamant_put(keyspace, T("large"), adamant_bytes(bytes, 100000)));
    OK(adamant_snapshot_new(store, &snapshot));
    OK(adamant_snapshot_get(snapshot, keyspace, T("b"), &small));
    OK(adamant_snapshot_get(snapshot, keyspace, T("middle"), &middle));
    OK(adamant_snapshot_get(snapshot, keyspace, T("large"), &large));
    CODE(ADAMANT_NOT_FOUND, adamant_snapshot_get(snapshot, keyspace, T("x"), &small));

    /* What was lent stays, whatever is written over it and lent after it. */
    memset(bytes, 'n', 100000);
    for (at = 0; at < 50; at++) {
        adamant_slice again;
        OK(adamant_put(keyspace, T("b"), T("other")));
        OK(adamant_put(keyspace, T("middle"), adamant_bytes(bytes, 1001)));
        OK(adamant_put(keyspace, T("large"), adamant_bytes(bytes, 100000)));
        OK(adamant_put(keyspace, T("x"), T("new")));
        OK(adamant_snapshot_get(snapshot, keyspace, T("large"), &again));
        CHECK(again.len == 100000 && again.data[99999] == 'm');
    }
    CHECK(is_text(small, "b"));
    CHECK(middle.len == 1000 && middle.data[0] == 'm' && middle.data[999] == 'm');
    CHECK(large.len == 100000 && large.data[0] == 'm' && large.data[99999] == 'm');
    OK(adamant_snapshot_release(snapshot));

    OK(adamant_snapshot_contains(snapshot, keyspace, T("b")));
    CODE(ADAMANT_NOT_FOUND, adamant_snapshot_contains(snapshot, keyspace, T("x")));
    OK(adamant_snapshot_len(snapshot, keyspace, &entries));
    CHECK(entries == 6);
    OK(adamant_delete(keyspace, T("middle")));
    OK(adamant_delete(keyspace, T("large")));
    adamant_snapshot_free(snapshot);

    fill(keyspace);
    OK(adamant_snapshot_new(store, &snapshot));
    OK(adamant_snapshot_cursor(snapshot, keyspace, NULL, &cursor));
    adamant_snapshot_free(snapshot);
    OK(adamant_clear(keyspace));
    OK(adamant_put(keyspace, T("e"), T("")));
    test_cursor(cursor);
    adamant_cursor_free(cursor);
    free(bytes);
}

static void test_transactions(adamant_store *store, adamant_keyspace *keyspace)
{
    adamant_transaction *one = NULL, *other = NULL;
    adamant_cursor *cursor = NULL;
    adamant_slice value;
    char text[16];
    int at;

    fill(keyspace);
    OK(adamant_transaction_begin(store, &one));
    OK(adamant_transaction_durability(one, ADAMANT_BUFFERED));
    OK(adamant_transaction_get(one, keyspace, T("b"), &value));
    CHECK(is_text(value, "b"));
    OK(adamant_transaction_put(one, keyspace, T("b"), T("B")));
    OK(adamant_transaction_delete(one, keyspace, T("h")));
    CHECK(is_text(value, "b"));
    OK(adamant_transaction_get(one, keyspace, T("b"), &value));
    CHECK(is_text(value, "B"));
    CODE(ADAMANT_NOT_FOUND, adamant_transaction_get(one, keyspace, T("h"), &value));
    check_value(keyspace, "b", "b");

    /* A cursor sees own writes, also those that come when it is under way. */
    OK(adamant_transaction_cursor(one, keyspace, NULL, &cursor));
    NEXT(cursor, "b");
    OK(adamant_transaction_put(one, keyspace, T("c"), T("")));
    NEXT(cursor, "c");
    NEXT(cursor, "d");
    OK(adamant_transaction_delete(one, keyspace, T("f")));
    NO_NEXT(cursor);
    OK(adamant_transaction_delete(one, keyspace, T("c")));
    OK(adamant_transaction_put(one, keyspace, T("f"), T("")));
    OK(adamant_transaction_put(one, keyspace, T("h"), T("")));
    OK(adamant_cursor_rewind(cursor));
    test_cursor(cursor);
    OK(adamant_transaction_commit(one));
    check_value(keyspace, "b", "B");
    CODE(ADAMANT_CLOSED, adamant_transaction_commit(one));
    CODE(ADAMANT_CLOSED, adamant_transaction_put(one, keyspace, T("b"), T("")));
    CODE(ADAMANT_CLOSED, adamant_cursor_next(cursor, &value, NULL));
    adamant_transaction_free(one);
    CODE(ADAMANT_CLOSED, adamant_cursor_next(cursor, &value, NULL));
    adamant_cursor_free(cursor);

    /* Two that read what the other writes: one of them conflicts, and can be done again. */
    OK(adamant_transaction_begin(store, &one));
    OK(adamant_transaction_begin(store, &other));
    OK(adamant_transaction_get(one, keyspace, T("b"), &value));
    OK(adamant_transaction_get(other, keyspace, T("b"), &value));
    OK(adamant_transaction_put(one, keyspace, T("b"), T("1")));
    OK(adamant_transaction_put(other, keyspace, T("b"), T("2")));
    OK(adamant_transaction_commit(one));
    CODE(ADAMANT_CONFLICT, adamant_transaction_commit(other));
    check_value(keyspace, "b", "1");
    adamant_transaction_free(one);
    adamant_transaction_free(other);

    /* One whose cursor went over a gap in which another one wrote. */
    OK(adamant_transaction_begin(store, &one));
    OK(adamant_transaction_cursor(one, keyspace, NULL, &cursor));
    NEXT(cursor, "b");
    NEXT(cursor, "d");
    OK(adamant_put(keyspace, T("c"), T("between")));
    OK(adamant_transaction_put(one, keyspace, T("b"), T("3")));
    CODE(ADAMANT_CONFLICT, adamant_transaction_commit(one));
    adamant_transaction_free(one);
    adamant_cursor_free(cursor);

    /* One that is not committed is not done; a longer one, to and fro. */
    OK(adamant_transaction_begin(store, &one));
    for (at = 0; at < 500; at++) {
        snprintf(text, sizeof text, "k%04d", at);
        OK(adamant_transaction_put(one, keyspace, T(text), T(text)));
    }
    {
        adamant_range range = adamant_range_prefix(T("k"));
        OK(adamant_transaction_cursor(one, keyspace, &range, &cursor));
    }
    for (at = 0; at < 500; at++) {
        snprintf(text, sizeof text, "k%04d", at);
        NEXT(cursor, text);
    }
    NO_NEXT(cursor);
    for (at = 499; at >= 0; at--) {
        snprintf(text, sizeof text, "k%04d", at);
        PREVIOUS(cursor, text);
    }
    NO_PREVIOUS(cursor);
    adamant_cursor_free(cursor);
    adamant_transaction_free(one);
    check_value(keyspace, "k0000", NULL);
}

/* Handles of stores that were closed keep nothing of these: with a tebibyte of addresses each, some 144 were all. */
static void test_closed(const char *folder)
{
    enum { STORES = 200 };
    static adamant_store *stores[STORES];
    static adamant_keyspace *keyspaces[STORES];
    adamant_value *value = NULL;
    char *path = path_in(folder, "closed");
    int at;

    for (at = 0; at < STORES; at++) {
        OK(adamant_open(path, NULL, &stores[at]));
        OK(adamant_keyspace_open(stores[at], "words", NULL, &keyspaces[at]));
        OK(adamant_close(stores[at]));
    }
    for (at = 0; at < STORES; at++) {
        CODE(ADAMANT_CLOSED, adamant_get(keyspaces[at], T("here"), &value));
        adamant_keyspace_free(keyspaces[at]);
        adamant_store_free(stores[at]);
    }
    free(path);
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
        adamant_cursor *cursor = NULL;

        OK(adamant_keyspace_open(store, engines[at], engines[at], &keyspace));
        fill(keyspace);
        OK(adamant_cursor_new(keyspace, NULL, &cursor));
        test_cursor(cursor);
        adamant_cursor_free(cursor);
        test_ranges(keyspace);
        test_writes_beside(keyspace);
        test_snapshots(store, keyspace);
        test_transactions(store, keyspace);
        adamant_keyspace_free(keyspace);
    }
    OK(adamant_check(store, NULL));
    OK(adamant_close(store));
    adamant_store_free(store);
    test_closed(argv[1]);
    return 0;
}
