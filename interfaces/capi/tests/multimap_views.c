/* Multimaps in snapshots, transactions and batches: random work of each beside tables of the pairs that there
 * should be, and what conflicts. */

#include "check.h"

#define KEYS 4
#define VALUES 16

/* Which pairs there are. */
typedef unsigned char table[KEYS][VALUES];

/* Where pairs are looked for: in the store, or in one of these. */
typedef struct {
    const adamant_multimap *multimap;
    const adamant_snapshot *snapshot;
    const adamant_transaction *transaction;
} place;

/* Keys and values with zeros, of which some begin alike; the first ones are empty. */
static adamant_slice key_of(unsigned number)
{
    static const char bytes[] = "a\0\0b";
    return adamant_bytes(bytes, number);
}

static adamant_slice value_of(unsigned number)
{
    static const char bytes[VALUES] = "\0\0\377v";
    return adamant_bytes(bytes, number);
}

static int contains(place in, unsigned key, unsigned value)
{
    if (in.snapshot != NULL) {
        return adamant_snapshot_multimap_contains(in.snapshot, in.multimap, key_of(key), value_of(value));
    }
    if (in.transaction != NULL) {
        return adamant_transaction_multimap_contains(in.transaction, in.multimap, key_of(key), value_of(value));
    }
    return adamant_multimap_contains(in.multimap, key_of(key), value_of(value));
}

static int count(place in, unsigned key, uint64_t *values)
{
    if (in.snapshot != NULL) {
        return adamant_snapshot_multimap_count(in.snapshot, in.multimap, key_of(key), values);
    }
    if (in.transaction != NULL) {
        return adamant_transaction_multimap_count(in.transaction, in.multimap, key_of(key), values);
    }
    return adamant_multimap_count(in.multimap, key_of(key), values);
}

static int len(place in, uint64_t *pairs)
{
    if (in.snapshot != NULL) {
        return adamant_snapshot_multimap_len(in.snapshot, in.multimap, pairs);
    }
    if (in.transaction != NULL) {
        return adamant_transaction_multimap_len(in.transaction, in.multimap, pairs);
    }
    return adamant_multimap_len(in.multimap, pairs);
}

static int next_value(place in, unsigned key, adamant_slice above, adamant_value **next)
{
    if (in.snapshot != NULL) {
        return adamant_snapshot_multimap_next_value(in.snapshot, in.multimap, key_of(key), above, next);
    }
    if (in.transaction != NULL) {
        return adamant_transaction_multimap_next_value(in.transaction, in.multimap, key_of(key), above, next);
    }
    return adamant_multimap_next_value(in.multimap, key_of(key), above, next);
}

static int next_key(place in, adamant_slice above, adamant_value **next)
{
    if (in.snapshot != NULL) {
        return adamant_snapshot_multimap_next_key(in.snapshot, in.multimap, above, next);
    }
    if (in.transaction != NULL) {
        return adamant_transaction_multimap_next_key(in.transaction, in.multimap, above, next);
    }
    return adamant_multimap_next_key(in.multimap, above, next);
}

/* Checks all that there is in a place against a table. */
static void check_all(place in, table there)
{
    static const adamant_slice none = {NULL, 0};
    uint64_t pairs = 0, found = 0;
    unsigned key, value;
    adamant_value *next = NULL, *last_key = NULL;
    adamant_slice above_key = none;

    for (key = 0; key < KEYS; key++) {
        uint64_t values = 0;
        adamant_value *last = NULL;
        adamant_slice above = none;

        for (value = 0; value < VALUES; value++) {
            CODE(there[key][value] ? ADAMANT_OK : ADAMANT_NOT_FOUND, contains(in, key, value));
            if (!there[key][value]) {
                continue;
            }
            values++;
            OK(next_value(in, key, above, &next));
            CHECK(adamant_value_bytes(next).len == value);
            adamant_value_free(last);
            last = next;
            above = adamant_value_bytes(last);
        }
        CODE(ADAMANT_END, next_value(in, key, above, &next));
        CHECK(next == NULL);
        adamant_value_free(last);
        OK(count(in, key, &found));
        CHECK(found == values);
        pairs += values;
        if (values > 0) {
            OK(next_key(in, above_key, &next));
            CHECK(adamant_value_bytes(next).len == key);
            adamant_value_free(last_key);
            last_key = next;
            above_key = adamant_value_bytes(last_key);
        }
    }
    CODE(ADAMANT_END, next_key(in, above_key, &next));
    CHECK(next == NULL);
    adamant_value_free(last_key);
    OK(len(in, &found));
    CHECK(found == pairs);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* One change within a transaction. */
static void change(adamant_transaction *transaction, const adamant_multimap *multimap, table there, unsigned *random)
{
    unsigned key = next_random(random) % KEYS, value = next_random(random) % VALUES;
    int is_new = 7;
    uint64_t gone = 0, values = 0;

    switch (next_random(random) % 10) {
    case 0:
        OK(adamant_transaction_multimap_delete(transaction, multimap, key_of(key), value_of(value)));
        there[key][value] = 0;
        break;
    case 1:
    case 2:
        CODE(there[key][value] ? ADAMANT_OK : ADAMANT_NOT_FOUND,
             adamant_transaction_multimap_remove(transaction, multimap, key_of(key), value_of(value)));
        there[key][value] = 0;
        break;
    case 3:
        for (value = 0; value < VALUES; value++) {
            values += there[key][value];
            there[key][value] = 0;
        }
        OK(adamant_transaction_multimap_remove_all(transaction, multimap, key_of(key), &gone));
        CHECK(gone == values);
        break;
    case 4:
    case 5:
        OK(adamant_transaction_multimap_put(transaction, multimap, key_of(key), value_of(value)));
        there[key][value] = 1;
        break;
    default:
        OK(adamant_transaction_multimap_insert(transaction, multimap, key_of(key), value_of(value), &is_new));
        CHECK(is_new == !there[key][value]);
        there[key][value] = 1;
    }
}

/* A transaction that is committed or not, whose changes nobody else sees before. */
static void check_transaction(adamant_store *store, const adamant_multimap *multimap, table there, unsigned *random)
{
    adamant_transaction *transaction = NULL;
    place outside = {NULL, NULL, NULL}, inside = {NULL, NULL, NULL};
    table own, before;
    unsigned step;

    outside.multimap = inside.multimap = multimap;
    memcpy(own, there, sizeof own);
    OK(adamant_transaction_begin(store, &transaction));
    inside.transaction = transaction;
    for (step = 0; step < 12; step++) {
        change(transaction, multimap, own, random);
        if (step == 5) {
            OK(adamant_savepoint_set(transaction));
            memcpy(before, own, sizeof before);
        }
    }
    check_all(inside, own);
    check_all(outside, there);
    if (next_random(random) % 3 == 0) {
        OK(adamant_savepoint_undo(transaction));
        memcpy(own, before, sizeof own);
        check_all(inside, own);
    }
    if (next_random(random) % 4 > 0) {
        OK(adamant_transaction_commit(transaction));
        memcpy(there, own, sizeof own);
        CODE(ADAMANT_CLOSED, adamant_transaction_multimap_put(transaction, multimap, T("k"), T("v")));
        CODE(ADAMANT_CLOSED, adamant_transaction_multimap_contains(transaction, multimap, T("k"), T("v")));
    }
    adamant_transaction_free(transaction);
    check_all(outside, there);
}

static void check_batch(adamant_store *store, const adamant_multimap *multimap, table there, unsigned *random)
{
    adamant_batch *batch = NULL;
    place outside = {NULL, NULL, NULL};
    table own;
    uint64_t changes = 0;
    unsigned step;

    outside.multimap = multimap;
    memcpy(own, there, sizeof own);
    OK(adamant_batch_new(store, &batch));
    for (step = 0; step < 10; step++) {
        unsigned key = next_random(random) % KEYS, value = next_random(random) % VALUES;
        int is_put = next_random(random) % 3 > 0;

        if (is_put) {
            OK(adamant_batch_multimap_put(batch, multimap, key_of(key), value_of(value)));
        } else {
            OK(adamant_batch_multimap_delete(batch, multimap, key_of(key), value_of(value)));
        }
        own[key][value] = (unsigned char)is_put;
    }
    OK(adamant_batch_len(batch, &changes));
    CHECK(changes == 10);
    check_all(outside, there);
    if (next_random(random) % 4 > 0) {
        OK(adamant_batch_commit(batch));
        memcpy(there, own, sizeof own);
        CODE(ADAMANT_CLOSED, adamant_batch_multimap_put(batch, multimap, T("k"), T("v")));
    }
    adamant_batch_free(batch);
    check_all(outside, there);
}

/* Reads conflict with what others commit; what is written without reading does not. */
static void check_conflicts(adamant_store *store, adamant_multimap *multimap)
{
    static const adamant_slice none = {NULL, 0};
    adamant_transaction *transaction = NULL;
    adamant_value *value = NULL;
    uint64_t values = 0;
    int is_new = 0;
    unsigned kind;

    for (kind = 0; kind < 5; kind++) {
        OK(adamant_multimap_remove_all(multimap, T("c"), NULL));
        OK(adamant_transaction_begin(store, &transaction));
        switch (kind) {
        case 0:
            CODE(ADAMANT_NOT_FOUND, adamant_transaction_multimap_contains(transaction, multimap, T("c"), T("1")));
            break;
        case 1:
            OK(adamant_transaction_multimap_count(transaction, multimap, T("c"), &values));
            CHECK(values == 0);
            break;
        case 2:
            CODE(ADAMANT_END, adamant_transaction_multimap_next_value(transaction, multimap, T("c"), none, &value));
            break;
        case 3:
            OK(adamant_transaction_multimap_insert(transaction, multimap, T("c"), T("1"), &is_new));
            CHECK(is_new == 1);
            break;
        default:
            /* Without reading. */
            OK(adamant_transaction_multimap_put(transaction, multimap, T("c"), T("1")));
            OK(adamant_transaction_multimap_delete(transaction, multimap, T("c"), T("3")));
        }
        OK(adamant_transaction_multimap_put(transaction, multimap, T("c"), T("2")));
        OK(adamant_multimap_insert(multimap, T("c"), T("1"), NULL));
        CODE(kind < 4 ? ADAMANT_CONFLICT : ADAMANT_OK, adamant_transaction_commit(transaction));
        adamant_transaction_free(transaction);
        OK(adamant_multimap_count(multimap, T("c"), &values));
        CHECK(values == (kind < 4 ? 1u : 2u));
    }
    OK(adamant_multimap_remove_all(multimap, T("c"), NULL));
}

/* Both a keyspace and a multimap, in one batch and in one transaction; and what is too long. */
static void check_together(adamant_store *store, const adamant_multimap *multimap)
{
    adamant_keyspace *names = NULL;
    adamant_transaction *transaction = NULL;
    adamant_batch *batch = NULL;
    char *bytes = (char *)calloc(70000, 1);
    adamant_slice too_long = adamant_bytes(bytes, 40000);

    CHECK(bytes != NULL);
    OK(adamant_keyspace_open(store, "names", NULL, &names));
    OK(adamant_batch_new(store, &batch));
    OK(adamant_batch_put(batch, names, T("1"), T("ada")));
    OK(adamant_batch_multimap_put(batch, multimap, T("by name: ada"), T("1")));
    CODE(ADAMANT_KEY_LENGTH, adamant_batch_multimap_put(batch, multimap, too_long, too_long));
    OK(adamant_batch_commit(batch));
    adamant_batch_free(batch);
    check_value(names, "1", "ada");
    OK(adamant_multimap_contains(multimap, T("by name: ada"), T("1")));

    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_transaction_put(transaction, names, T("1"), T("bob")));
    OK(adamant_transaction_multimap_remove(transaction, multimap, T("by name: ada"), T("1")));
    CODE(ADAMANT_KEY_LENGTH, adamant_transaction_multimap_insert(transaction, multimap, too_long, too_long, NULL));
    OK(adamant_transaction_multimap_put(transaction, multimap, T("by name: bob"), T("1")));
    OK(adamant_transaction_commit(transaction));
    adamant_transaction_free(transaction);
    check_value(names, "1", "bob");
    CODE(ADAMANT_NOT_FOUND, adamant_multimap_contains(multimap, T("by name: ada"), T("1")));
    OK(adamant_multimap_contains(multimap, T("by name: bob"), T("1")));
    adamant_keyspace_free(names);
    free(bytes);
}

int main(int arguments_count, char **arguments)
{
    static const char *engines[] = {"bplus", "lsm", "btree", "critbit", "redblack"};
    unsigned engine, round;
    adamant_store *store = NULL;
    char *path;

    CHECK(arguments_count == 2);
    path = path_in(arguments[1], "store");
    for (engine = 0; engine < 5; engine++) {
        unsigned random = 54321 + engine;
        adamant_multimap *multimap = NULL, *others = NULL;
        adamant_snapshot *snapshot = NULL;
        place then = {NULL, NULL, NULL}, now = {NULL, NULL, NULL};
        table there, at_snapshot;

        memset(there, 0, sizeof there);
        memset(at_snapshot, 0, sizeof at_snapshot);
        OK(adamant_open(path, NULL, &store));
        OK(adamant_multimap_open(store, engines[engine], engines[engine], &multimap));
        then.multimap = now.multimap = multimap;
        for (round = 0; round < 24; round++) {
            if (round % 6 == 0) {
                adamant_snapshot_free(snapshot);
                OK(adamant_snapshot_new(store, &snapshot));
                then.snapshot = snapshot;
                memcpy(at_snapshot, there, sizeof there);
            }
            if (round % 3 == 2) {
                check_batch(store, multimap, there, &random);
            } else {
                check_transaction(store, multimap, there, &random);
            }
            check_all(then, at_snapshot);
        }
        adamant_snapshot_free(snapshot);
        OK(adamant_multimap_open(store, "apart", engines[engine], &others));
        check_conflicts(store, others);
        check_together(store, others);
        adamant_multimap_free(others);
        OK(adamant_keyspace_drop(store, "apart"));
        adamant_multimap_free(multimap);
        OK(adamant_close(store));
        adamant_store_free(store);

        OK(adamant_open(path, NULL, &store));
        OK(adamant_multimap_open(store, engines[engine], NULL, &multimap));
        now.multimap = multimap;
        check_all(now, there);
        adamant_multimap_free(multimap);
        OK(adamant_close(store));
        adamant_store_free(store);
    }
    free(path);
    return 0;
}
