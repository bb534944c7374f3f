/* Entries that end, by a clock that the test sets: single calls, snapshots, transactions, cursors, and all of
 * it beside a table of what there should be, opened again in between. */

#include "check.h"

#define KEYS 24

/* The clock: its context is the time. */
static uint64_t clock_of(void *context)
{
    return *(uint64_t *)context;
}

/* The keyspace of a name, by a clock of the test's own. */
static adamant_expiring *open_by(adamant_store *store, const char *name, const char *engine,
                                 uint64_t *now)
{
    adamant_expiring *by_system = NULL, *expiring = NULL;

    OK(adamant_expiring_open(store, name, engine, &by_system));
    OK(adamant_expiring_with_clock(by_system, clock_of, now, &expiring));
    adamant_expiring_free(by_system);
    return expiring;
}

/* Checks the value of a key, and when it ends; NULL: it is not there. */
static void check_entry(const adamant_expiring *expiring, const char *key, const char *text,
                        uint64_t ends)
{
    adamant_value *value = (adamant_value *)1;
    uint64_t found = 7;

    CODE(text == NULL ? ADAMANT_NOT_FOUND : ADAMANT_OK,
         adamant_expiring_get(expiring, T(key), &value, &found));
    CODE(text == NULL ? ADAMANT_NOT_FOUND : ADAMANT_OK,
         adamant_expiring_contains(expiring, T(key)));
    if (text == NULL) {
        CHECK(value == NULL && found == 7);
        return;
    }
    CHECK(is_text(adamant_value_bytes(value), text));
    CHECK(found == ends);
    adamant_value_free(value);
}

static void test_single(adamant_store *store, const char *engine)
{
    uint64_t now = 1000, found = 0, count = 7;
    adamant_expiring *expiring = open_by(store, engine, engine, &now), *buffered = NULL;
    int replaced = 7;

    CHECK(adamant_expiring_now(expiring) == 1000);
    CHECK(adamant_expiring_after(expiring, 500) == 1500);
    CHECK(adamant_expiring_after(expiring, UINT64_MAX) == ADAMANT_NEVER);
    OK(adamant_expiring_next_deadline(expiring, &found));
    CHECK(found == ADAMANT_NEVER);

    OK(adamant_expiring_insert(expiring, T("a"), T("1"), 1500, &replaced));
    CHECK(replaced == 0);
    OK(adamant_expiring_insert(expiring, T("a"), T("2"), 1400, &replaced));
    CHECK(replaced == 1);
    OK(adamant_expiring_put(expiring, T("b"), T(""), ADAMANT_NEVER));
    OK(adamant_expiring_insert(expiring, T("over"), T("x"), 1000, NULL));
    OK(adamant_expiring_put(expiring, T("long ago"), T("x"), 0));
    OK(adamant_expiring_with_durability(expiring, ADAMANT_BUFFERED, &buffered));
    OK(adamant_expiring_put(buffered, T("c"), T("3"), 1600));
    adamant_expiring_free(buffered);
    check_entry(expiring, "a", "2", 1400);
    check_entry(expiring, "b", "", ADAMANT_NEVER);
    check_entry(expiring, "c", "3", 1600);
    check_entry(expiring, "over", NULL, 0);
    check_entry(expiring, "long ago", NULL, 0);
    OK(adamant_expiring_get(expiring, T("a"), NULL, NULL));
    OK(adamant_expiring_len(expiring, &count));
    CHECK(count == 3);
    OK(adamant_expiring_next_deadline(expiring, &found));
    CHECK(found == 1);
    OK(adamant_expiring_remove_expired(expiring, 1, &count));
    CHECK(count == 1);
    OK(adamant_expiring_remove_expired(expiring, 100, &count));
    CHECK(count == 1);
    OK(adamant_expiring_next_deadline(expiring, &found));
    CHECK(found == 1400);

    /* From its deadline on it is not there, and not a millisecond before. */
    now = 1399;
    check_entry(expiring, "a", "2", 1400);
    now = 1400;
    check_entry(expiring, "a", NULL, 0);
    CODE(ADAMANT_NOT_FOUND, adamant_expiring_remove(expiring, T("a")));
    CODE(ADAMANT_NOT_FOUND, adamant_expiring_set_deadline(expiring, T("a"), ADAMANT_NEVER));
    OK(adamant_expiring_set_deadline(expiring, T("c"), ADAMANT_NEVER));
    OK(adamant_expiring_set_deadline(expiring, T("b"), 1500));
    now = 2000;
    check_entry(expiring, "c", "3", ADAMANT_NEVER);
    check_entry(expiring, "b", NULL, 0);
    OK(adamant_expiring_remove(expiring, T("c")));
    OK(adamant_expiring_put(expiring, T("c"), T("4"), ADAMANT_NEVER));
    OK(adamant_expiring_delete(expiring, T("c")));
    OK(adamant_expiring_delete(expiring, T("c")));
    check_entry(expiring, "c", NULL, 0);
    OK(adamant_expiring_remove_expired(expiring, 100, NULL));
    OK(adamant_expiring_len(expiring, &count));
    CHECK(count == 0);
    adamant_expiring_free(expiring);

    OK(adamant_expiring_drop(store, engine));
    CODE(ADAMANT_NOT_FOUND, adamant_expiring_drop(store, engine));
}

/* What holds other entries is no such keyspace. */
static void test_other(adamant_store *store)
{
    adamant_keyspace *keyspace = NULL;
    adamant_expiring *expiring = (adamant_expiring *)1;

    OK(adamant_keyspace_open(store, "plain", NULL, &keyspace));
    OK(adamant_put(keyspace, T("a"), T("b")));
    CODE(ADAMANT_NOT_EXPIRING, adamant_expiring_open(store, "plain", NULL, &expiring));
    CHECK(expiring == NULL);
    CHECK(strcmp(adamant_code_name(ADAMANT_NOT_EXPIRING), "ADAMANT_NOT_EXPIRING") == 0);
    adamant_keyspace_free(keyspace);

    /* By the clock of the system: what ends in an hour is there. */
    OK(adamant_expiring_open(store, "system", "lsm", &expiring));
    CODE(ADAMANT_WRONG_KIND, adamant_keyspace_open(store, "system", NULL, &keyspace));
    CODE(ADAMANT_WRONG_KIND, adamant_keyspace_open(store, "system.deadlines", NULL, &keyspace));
    CHECK(keyspace == NULL);
    CHECK(strcmp(adamant_code_name(ADAMANT_WRONG_KIND), "ADAMANT_WRONG_KIND") == 0);
    OK(adamant_expiring_insert(expiring, T("a"), T("b"), adamant_expiring_after(expiring, 3600000),
                               NULL));
    OK(adamant_expiring_contains(expiring, T("a")));
    CHECK(adamant_expiring_now(expiring) > 1600000000000);
    adamant_expiring_free(expiring);
    CODE(ADAMANT_WRONG_ENGINE, adamant_expiring_open(store, "system", "btree", &expiring));
    CHECK(expiring == NULL);
}

/* A step onto a key, and when its entry ends. */
#define NEXT(cursor, text, ends)                                                                 \
    do {                                                                                         \
        adamant_slice key_met, value_met, value_again;                                           \
        uint64_t ends_met = 0;                                                                   \
        OK(adamant_cursor_next(cursor, &key_met, &value_met));                                   \
        CHECK(is_text(key_met, text) && is_text(value_met, text));                               \
        OK(adamant_cursor_value(cursor, &value_again));                                          \
        CHECK(value_again.data == value_met.data);                                               \
        OK(adamant_cursor_deadline(cursor, &ends_met));                                          \
        CHECK(ends_met == (ends));                                                               \
    } while (0)

/* A cursor over b, d (which ends at 1500) and e, of what had a and c, too. */
static void test_cursor(adamant_cursor *cursor)
{
    adamant_slice key;
    uint64_t ends;

    CODE(ADAMANT_NOT_FOUND, adamant_cursor_deadline(cursor, &ends));
    NEXT(cursor, "b", ADAMANT_NEVER);
    NEXT(cursor, "d", 1500);
    OK(adamant_cursor_previous(cursor, &key, NULL));
    CHECK(is_text(key, "b"));
    NEXT(cursor, "d", 1500);
    NEXT(cursor, "e", ADAMANT_NEVER);
    CODE(ADAMANT_END, adamant_cursor_next(cursor, &key, NULL));
    OK(adamant_cursor_previous(cursor, &key, NULL));
    CHECK(is_text(key, "e"));
    OK(adamant_cursor_seek(cursor, T("c")));
    NEXT(cursor, "d", 1500);
    OK(adamant_cursor_rewind(cursor));
    OK(adamant_cursor_previous(cursor, &key, NULL));
    CHECK(is_text(key, "e"));
    adamant_cursor_free(cursor);
}

/* Entries a and c that are over, b and e that stay, d that ends at 1500. */
static void fill(adamant_expiring *expiring)
{
    OK(adamant_expiring_put(expiring, T("a"), T("a"), 900));
    OK(adamant_expiring_put(expiring, T("b"), T("b"), ADAMANT_NEVER));
    OK(adamant_expiring_put(expiring, T("c"), T("c"), 1000));
    OK(adamant_expiring_put(expiring, T("d"), T("d"), 1500));
    OK(adamant_expiring_put(expiring, T("e"), T("e"), ADAMANT_NEVER));
}

static void test_views(adamant_store *store, const char *engine)
{
    uint64_t now = 1000, count = 0, ends = 0;
    adamant_expiring *expiring = open_by(store, engine, engine, &now);
    adamant_snapshot *snapshot = NULL;
    adamant_transaction *transaction = NULL;
    adamant_cursor *cursor = NULL;
    adamant_slice value;
    int replaced = 7;

    fill(expiring);
    OK(adamant_expiring_cursor(expiring, NULL, &cursor));
    /* What is over is verified by the moment at which the cursor was made. */
    now = 1600;
    test_cursor(cursor);
    now = 1000;

    OK(adamant_snapshot_new(store, &snapshot));
    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_expiring_remove(expiring, T("b")));
    OK(adamant_snapshot_expiring_get(snapshot, expiring, T("b"), &value, NULL));
    CHECK(is_text(value, "b"));
    OK(adamant_snapshot_expiring_get(snapshot, expiring, T("d"), NULL, &ends));
    CHECK(ends == 1500);
    CODE(ADAMANT_NOT_FOUND, adamant_snapshot_expiring_get(snapshot, expiring, T("c"), &value, NULL));
    OK(adamant_snapshot_expiring_len(snapshot, expiring, &count));
    CHECK(count == 3);
    OK(adamant_snapshot_expiring_cursor(snapshot, expiring, NULL, &cursor));
    test_cursor(cursor);
    /* Time goes on for a snapshot, too. */
    now = 1500;
    CODE(ADAMANT_NOT_FOUND, adamant_snapshot_expiring_get(snapshot, expiring, T("d"), &value, NULL));
    now = 1000;
    adamant_snapshot_free(snapshot);

    OK(adamant_transaction_expiring_cursor(transaction, expiring, NULL, &cursor));
    test_cursor(cursor);
    OK(adamant_transaction_expiring_get(transaction, expiring, T("d"), &value, &ends));
    CHECK(is_text(value, "d") && ends == 1500);
    CODE(ADAMANT_NOT_FOUND,
         adamant_transaction_expiring_get(transaction, expiring, T("a"), &value, &ends));
    /* It has read b, which is gone. */
    OK(adamant_transaction_expiring_put(transaction, expiring, T("f"), T("f"), 1200));
    CODE(ADAMANT_CONFLICT, adamant_transaction_commit(transaction));
    adamant_transaction_free(transaction);
    check_entry(expiring, "f", NULL, 0);

    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_transaction_expiring_cursor(transaction, expiring, NULL, &cursor));
    NEXT(cursor, "d", 1500);
    OK(adamant_transaction_expiring_insert(transaction, expiring, T("b"), T("b"), 3000, &replaced));
    CHECK(replaced == 0);
    OK(adamant_transaction_expiring_insert(transaction, expiring, T("dd"), T("dd"), 2000, &replaced));
    CHECK(replaced == 0);
    NEXT(cursor, "dd", 2000);
    OK(adamant_transaction_expiring_set_deadline(transaction, expiring, T("d"), ADAMANT_NEVER));
    OK(adamant_transaction_expiring_remove(transaction, expiring, T("e")));
    CODE(ADAMANT_NOT_FOUND, adamant_transaction_expiring_remove(transaction, expiring, T("e")));
    OK(adamant_transaction_expiring_delete(transaction, expiring, T("e")));
    CODE(ADAMANT_NOT_FOUND,
         adamant_transaction_expiring_set_deadline(transaction, expiring, T("e"), 1));
    OK(adamant_transaction_expiring_remove_expired(transaction, expiring, 10, &count));
    CHECK(count == 2);
    check_entry(expiring, "b", NULL, 0);
    OK(adamant_transaction_commit(transaction));
    CODE(ADAMANT_CLOSED, adamant_transaction_expiring_remove(transaction, expiring, T("b")));
    CODE(ADAMANT_CLOSED, adamant_cursor_next(cursor, &value, NULL));
    adamant_cursor_free(cursor);
    adamant_transaction_free(transaction);
    now = 2500;
    check_entry(expiring, "b", "b", 3000);
    check_entry(expiring, "d", "d", ADAMANT_NEVER);
    check_entry(expiring, "dd", NULL, 0);
    check_entry(expiring, "e", NULL, 0);
    adamant_expiring_free(expiring);
}

/* What should be there: a number as the value, and when it ends; 0: nothing. */
static struct {
    int number;
    uint64_t ends;
} model[KEYS];

static uint32_t state = 41;

/* A number below another one: the same ones each time. */
static uint32_t below(uint32_t bound)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
}

static int is_living(int at, uint64_t now)
{
    return model[at].number != 0 && model[at].ends > now;
}

static void compare(const adamant_expiring *expiring, uint64_t now)
{
    adamant_cursor *cursor = NULL;
    adamant_slice key, value;
    uint64_t ends, count = 0;
    char text[16];
    int at;

    OK(adamant_expiring_cursor(expiring, NULL, &cursor));
    for (at = 0; at < KEYS; at++) {
        if (is_living(at, now)) {
            OK(adamant_cursor_next(cursor, &key, &value));
            snprintf(text, sizeof text, "k%03d", at);
            CHECK(is_text(key, text));
            snprintf(text, sizeof text, "%d", model[at].number);
            CHECK(is_text(value, text));
            OK(adamant_cursor_deadline(cursor, &ends));
            CHECK(ends == model[at].ends);
            count++;
        }
    }
    CODE(ADAMANT_END, adamant_cursor_next(cursor, &key, NULL));
    adamant_cursor_free(cursor);
    OK(adamant_expiring_len(expiring, &ends));
    CHECK(ends == count);
}

/* One change at random, there and in the table. */
static void change(adamant_expiring *expiring, uint64_t *now, int number)
{
    int at = (int)below(KEYS), replaced = 7, was_there = is_living(at, *now), code;
    uint64_t ends = below(3) == 0 ? ADAMANT_NEVER : *now + below(60), count = 0;
    char key[16], value[16];

    snprintf(key, sizeof key, "k%03d", at);
    snprintf(value, sizeof value, "%d", number);
    switch (below(6)) {
    case 0:
    case 1:
        OK(adamant_expiring_insert(expiring, T(key), T(value), ends, &replaced));
        CHECK(replaced == was_there);
        model[at].number = number;
        model[at].ends = ends;
        break;
    case 2:
        code = adamant_expiring_set_deadline(expiring, T(key), ends);
        CHECK(code == (was_there ? ADAMANT_OK : ADAMANT_NOT_FOUND));
        if (was_there) {
            model[at].ends = ends;
        }
        break;
    case 3:
        code = adamant_expiring_remove(expiring, T(key));
        CHECK(code == (was_there ? ADAMANT_OK : ADAMANT_NOT_FOUND));
        model[at].number = 0;
        break;
    case 4:
        OK(adamant_expiring_remove_expired(expiring, KEYS, &count));
        for (at = 0; at < KEYS; at++) {
            if (model[at].number != 0 && model[at].ends <= *now) {
                model[at].number = 0;
                count--;
            }
        }
        CHECK(count == 0);
        break;
    default:
        *now += below(20);
    }
}

/* Any changes in any order, and the store opened again now and then: deadlines go on meanwhile. */
static void test_model(const char *folder, const char *engine)
{
    char *path = path_in(folder, engine);
    uint64_t now = 10000;
    int round, number = 0;

    memset(model, 0, sizeof model);
    for (round = 0; round < 6; round++) {
        adamant_options *options = NULL;
        adamant_store *store = NULL;
        adamant_expiring *expiring;
        int step;

        OK(adamant_options_new(&options));
        OK(adamant_options_set(options, ADAMANT_OPTION_DURABILITY, ADAMANT_BUFFERED));
        /* Entries expire by the clock of the test alone. */
        OK(adamant_options_set(options, ADAMANT_OPTION_SWEEP_EXPIRED, 0));
        CODE(ADAMANT_INVALID, adamant_options_set(options, ADAMANT_OPTION_SWEEP_EXPIRED, 2));
        OK(adamant_open(path, options, &store));
        adamant_options_free(options);
        expiring = open_by(store, "all", engine, &now);
        compare(expiring, now);
        for (step = 0; step < 120; step++) {
            change(expiring, &now, ++number);
        }
        compare(expiring, now);
        OK(adamant_check(store, NULL));
        adamant_expiring_free(expiring);
        OK(adamant_close(store));
        adamant_store_free(store);
        now += 15;
    }
    free(path);
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"bplus", "critbit", "lsm"};
    adamant_options *options = NULL;
    adamant_store *store = NULL;
    char *path;
    int at;

    CHECK(argc == 2);
    path = path_in(argv[1], "all engines");
    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_DURABILITY, ADAMANT_BUFFERED));
    OK(adamant_options_set(options, ADAMANT_OPTION_SWEEP_EXPIRED, 0));
    OK(adamant_open(path, options, &store));
    adamant_options_free(options);
    free(path);
    for (at = 0; at < 3; at++) {
        test_single(store, engines[at]);
        test_views(store, engines[at]);
        test_model(argv[1], engines[at]);
    }
    test_other(store);
    OK(adamant_check(store, NULL));
    OK(adamant_close(store));
    adamant_store_free(store);
    return 0;
}
