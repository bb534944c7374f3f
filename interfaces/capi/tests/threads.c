/* Threads: readers beside writers, conflicts until all is done, errors of each thread's own. */

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 200 };

static adamant_store *store;
static adamant_keyspace *accounts;

/* Moves 1 from one account to another, ROUNDS times; as often again as it conflicts. */
static void *transfer(void *argument)
{
    int round;
    (void)argument;
    for (round = 0; round < ROUNDS; round++) {
        const char *from = round % 2 == 0 ? "ada" : "bob", *to = round % 2 == 0 ? "bob" : "ada";
        int code, attempts = 0;
        do {
            adamant_transaction *transaction = NULL;
            adamant_slice value;
            int balance;

            CHECK(++attempts < 100000);
            OK(adamant_transaction_begin(store, &transaction));
            OK(adamant_transaction_durability(transaction, ADAMANT_BUFFERED));
            OK(adamant_transaction_get(transaction, accounts, T(from), &value));
            memcpy(&balance, value.data, sizeof balance);
            balance -= 1;
            OK(adamant_transaction_put(transaction, accounts, T(from),
                                       adamant_bytes(&balance, sizeof balance)));
            OK(adamant_transaction_get(transaction, accounts, T(to), &value));
            memcpy(&balance, value.data, sizeof balance);
            balance += 1;
            OK(adamant_transaction_put(transaction, accounts, T(to),
                                       adamant_bytes(&balance, sizeof balance)));
            code = adamant_transaction_commit(transaction);
            CHECK(code == ADAMANT_OK || code == ADAMANT_CONFLICT);
            adamant_transaction_free(transaction);
        } while (code == ADAMANT_CONFLICT);
    }
    return NULL;
}

/* Each snapshot sees both accounts at one moment. */
static void *look(void *argument)
{
    int round;
    (void)argument;
    for (round = 0; round < ROUNDS; round++) {
        adamant_snapshot *snapshot = NULL;
        adamant_slice ada, bob;
        static const char long_key[65536] = {0};
        int one, other;

        OK(adamant_snapshot_new(store, &snapshot));
        OK(adamant_snapshot_get(snapshot, accounts, T("ada"), &ada));
        OK(adamant_snapshot_get(snapshot, accounts, T("bob"), &bob));
        memcpy(&one, ada.data, sizeof one);
        memcpy(&other, bob.data, sizeof other);
        CHECK(one + other == 1000);
        adamant_snapshot_free(snapshot);
        /* The text of an error is that of this thread's last one. */
        CODE(ADAMANT_KEY_LENGTH, adamant_put(accounts, adamant_bytes(long_key, sizeof long_key), T("")));
        CHECK(strstr(adamant_last_error(), "key") != NULL);
    }
    return NULL;
}

/* A handle for one thread at a time: a second one is told so, or comes when the first has left. */
static void *put_into(void *argument)
{
    adamant_batch *batch = (adamant_batch *)argument;
    int round;
    for (round = 0; round < ROUNDS * 10; round++) {
        int code = adamant_batch_put(batch, accounts, T("carl"), T("1"));
        CHECK(code == ADAMANT_OK || code == ADAMANT_BUSY);
    }
    return NULL;
}

static int is_not_called(void *context, adamant_transaction *transaction)
{
    (void)context;
    (void)transaction;
    CHECK(0);
    return 0;
}

/* Others write: it does not wait, or not for longer. */
static void *come_second(void *argument)
{
    (void)argument;
    CODE(ADAMANT_TIMED_OUT, adamant_exclusive_within(store, 0, is_not_called, NULL, NULL));
    CHECK(strstr(adamant_last_error(), "0 ms") != NULL);
    CODE(ADAMANT_TIMED_OUT, adamant_exclusive_within(store, 20, is_not_called, NULL, NULL));
    return NULL;
}

static int come_first(void *context, adamant_transaction *transaction)
{
    pthread_t second;
    (void)context;
    (void)transaction;
    CHECK(pthread_create(&second, NULL, come_second, NULL) == 0);
    CHECK(pthread_join(second, NULL) == 0);
    return 0;
}

static void run(void *(*work)(void *), void *argument, int count, pthread_t *threads)
{
    int at;
    for (at = 0; at < count; at++) {
        CHECK(pthread_create(&threads[at], NULL, work, argument) == 0);
    }
}

static void join(int count, pthread_t *threads)
{
    int at;
    for (at = 0; at < count; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    pthread_t writers[THREADS], readers[THREADS];
    adamant_batch *batch = NULL;
    adamant_value *value = NULL;
    char *path;
    int balance = 500;

    CHECK(argc == 2);
    path = path_in(argv[1], "store");
    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "accounts", NULL, &accounts));
    OK(adamant_put(accounts, T("ada"), adamant_bytes(&balance, sizeof balance)));
    OK(adamant_put(accounts, T("bob"), adamant_bytes(&balance, sizeof balance)));
    CHECK(strcmp(adamant_last_error(), "") == 0);
    run(transfer, NULL, THREADS, writers);
    run(look, NULL, THREADS, readers);
    join(THREADS, writers);
    join(THREADS, readers);
    CHECK(strcmp(adamant_last_error(), "") == 0);
    /* Each thread moved as much there as back. */
    OK(adamant_get(accounts, T("ada"), &value));
    memcpy(&balance, adamant_value_bytes(value).data, sizeof balance);
    CHECK(balance == 500);
    adamant_value_free(value);

    OK(adamant_batch_new(store, &batch));
    run(put_into, batch, THREADS, writers);
    join(THREADS, writers);
    OK(adamant_batch_commit(batch));
    check_value(accounts, "carl", "1");
    adamant_batch_free(batch);
    OK(adamant_exclusive(store, come_first, NULL, NULL));

    adamant_keyspace_free(accounts);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
    return 0;
}
