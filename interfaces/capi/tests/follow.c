/* The feed of changes and its cursors; a store that follows another one, in this process and from another. */

#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void nap(int milliseconds)
{
    struct timespec time;

    time.tv_sec = 0;
    time.tv_nsec = milliseconds * 1000000L;
    nanosleep(&time, NULL);
}

/* The last change that was told, and how many were. */
struct told {
    int count, kind;
    uint64_t commit, left, keyspace_id, target_id, deadline;
    int lower_excluded, upper_included;
    char keyspace[32], key[32], value[32], target[32], target_key[32], lower[32], upper[32], new_name[32];
};

static void copy(char *to, adamant_slice bytes)
{
    CHECK(bytes.len < 32);
    if (bytes.len > 0) {
        memcpy(to, bytes.data, bytes.len);
    }
    to[bytes.len] = 0;
}

static void tell(void *context, const adamant_change *change)
{
    struct told *told = (struct told *)context;

    CHECK(told->count == 0 || told->left == change->left + 1);
    told->count++;
    told->kind = change->kind;
    told->commit = change->commit;
    told->left = change->left;
    told->keyspace_id = change->keyspace_id;
    told->target_id = change->target_id;
    told->deadline = change->deadline;
    told->lower_excluded = change->lower_excluded;
    told->upper_included = change->upper_included;
    copy(told->keyspace, change->keyspace);
    copy(told->key, change->key);
    copy(told->value, change->value);
    copy(told->target, change->target);
    copy(told->target_key, change->target_key);
    copy(told->lower, change->lower);
    copy(told->upper, change->upper);
    copy(told->new_name, change->new_name);
}

/* The next commit, which is there and changed one thing. */
static struct told next(adamant_changes *changes, int kind, const char *keyspace, const char *key)
{
    struct told told;

    memset(&told, 0, sizeof told);
    OK(adamant_changes_next(changes, 60000, tell, &told));
    CHECK(told.count == 1 && told.left == 0 && told.kind == kind);
    CHECK(strcmp(told.keyspace, keyspace) == 0 && strcmp(told.key, key) == 0);
    return told;
}

static void test_each_kind(void)
{
    adamant_store *store;
    adamant_keyspace *towns, *other, *wrong;
    adamant_expiring *sessions;
    adamant_changes *changes;
    adamant_range range = adamant_range_prefix(T("k"));
    struct told told;
    uint64_t id, number = 0;
    int swapped;

    OK(adamant_open_in_memory(&store));
    CODE(ADAMANT_CHANGES_NOT_RECORDED, adamant_changes_open(store, 0, &changes));
    CHECK(changes == NULL);
    OK(adamant_record_changes(store, 1 << 20));
    OK(adamant_changes_open(store, 0, &changes));
    CODE(ADAMANT_NOT_FOUND, adamant_changes_next(changes, 0, tell, &told));
    CODE(ADAMANT_NOT_FOUND, adamant_own_change(store, &number));

    OK(adamant_keyspace_open(store, "towns", "lsm", &towns));
    told = next(changes, ADAMANT_CHANGE_CREATED, "towns", "");
    id = told.keyspace_id;
    CHECK(told.commit == 1 && id != 0);
    OK(adamant_keyspace_open(store, "other", NULL, &other));
    next(changes, ADAMANT_CHANGE_CREATED, "other", "");
    OK(adamant_put(towns, T("Bern"), T("134,000")));
    told = next(changes, ADAMANT_CHANGE_PUT, "towns", "Bern");
    CHECK(strcmp(told.value, "134,000") == 0 && told.deadline == ADAMANT_NEVER);
    CHECK(told.keyspace_id == id && told.commit == 3);
    OK(adamant_own_change(store, &number));
    CHECK(number == 3);
    OK(adamant_move(towns, T("Bern"), other, T("Berne")));
    told = next(changes, ADAMANT_CHANGE_MOVED, "towns", "Bern");
    CHECK(strcmp(told.target, "other") == 0 && strcmp(told.target_key, "Berne") == 0);
    CHECK(told.target_id != 0 && told.target_id != id);
    OK(adamant_put(other, T("Basel"), T("173,000")));
    next(changes, ADAMANT_CHANGE_PUT, "other", "Basel");
    OK(adamant_compare_and_swap(other, T("Basel"), T("173,000"), adamant_text(NULL), &swapped, NULL));
    next(changes, ADAMANT_CHANGE_REMOVED, "other", "Basel");
    OK(adamant_delete_range(towns, &range));
    told = next(changes, ADAMANT_CHANGE_RANGE_REMOVED, "towns", "");
    CHECK(strcmp(told.lower, "k") == 0 && strcmp(told.upper, "l") == 0);
    CHECK(!told.lower_excluded && !told.upper_included);
    OK(adamant_put(towns, T("Biel"), T("55,000")));
    next(changes, ADAMANT_CHANGE_PUT, "towns", "Biel");
    OK(adamant_clear(towns));
    next(changes, ADAMANT_CHANGE_CLEARED, "towns", "");
    OK(adamant_keyspace_rename(store, "other", "places"));
    told = next(changes, ADAMANT_CHANGE_RENAMED, "other", "");
    CHECK(strcmp(told.new_name, "places") == 0);
    OK(adamant_expiring_open(store, "sessions", NULL, &sessions));
    next(changes, ADAMANT_CHANGE_CREATED, "sessions", "");
    OK(adamant_expiring_put(sessions, T("token"), T("ada"), 1900000000000));
    told = next(changes, ADAMANT_CHANGE_PUT, "sessions", "token");
    CHECK(strcmp(told.value, "ada") == 0 && told.deadline == 1900000000000);
    OK(adamant_expiring_put(sessions, T("root"), T(""), ADAMANT_NEVER));
    told = next(changes, ADAMANT_CHANGE_PUT, "sessions", "root");
    CHECK(told.deadline == ADAMANT_NEVER && told.value[0] == 0);

    OK(adamant_changes_after(changes, &number));
    CHECK(number == told.commit);
    OK(adamant_last_change(store, &number));
    CHECK(number == told.commit);
    OK(adamant_wait_durable(store, number));
    CODE(ADAMANT_CHANGES_UNKNOWN, adamant_wait_durable(store, number + 1));
    CODE(ADAMANT_INVALID, adamant_changes_next(changes, 0, NULL, NULL));
    CODE(ADAMANT_INVALID, adamant_changes_next(NULL, 0, tell, &told));
    CODE(ADAMANT_INVALID, adamant_last_change(store, NULL));
    CODE(ADAMANT_WRONG_KIND, adamant_keyspace_open(store, "adamant.changes", NULL, &wrong));
    CHECK(wrong == NULL);
    OK(adamant_close(store));
    CODE(ADAMANT_CLOSED, adamant_changes_next(changes, 1000, tell, &told));
    adamant_changes_free(changes);
    adamant_changes_free(NULL);
    adamant_expiring_free(sessions);
    adamant_keyspace_free(other);
    adamant_keyspace_free(towns);
    adamant_store_free(store);
}

static void test_bounds_and_cursors(void)
{
    adamant_store *store;
    adamant_keyspace *towns;
    adamant_batch *batch;
    adamant_transaction *transaction;
    adamant_changes *changes;
    struct told told;
    uint64_t first, last, bytes, bytes_max, number = 0;
    int round;

    OK(adamant_open_in_memory(&store));
    OK(adamant_keyspace_open(store, "towns", NULL, &towns));
    CODE(ADAMANT_CHANGES_NOT_RECORDED, adamant_changes_cursor_set(store, "worker", 1));
    CODE(ADAMANT_CHANGES_NOT_RECORDED, adamant_changes_info(store, &first, NULL, NULL, NULL));
    OK(adamant_record_changes(store, 2000));
    OK(adamant_changes_open(store, 0, &changes));
    for (round = 0; round < 100; round++) {
        OK(adamant_put(towns, T("Bern"), T("a value of some bytes that are many times there")));
    }
    CODE(ADAMANT_CHANGES_UNKNOWN, adamant_changes_next(changes, 0, tell, &told));
    adamant_changes_free(changes);
    OK(adamant_changes_info(store, &first, &last, &bytes, &bytes_max));
    CHECK(last == 100 && first > 50 && first < 100 && bytes <= 2000 && bytes_max == 2000);
    OK(adamant_changes_info(store, NULL, NULL, NULL, NULL));
    CODE(ADAMANT_CHANGES_UNKNOWN, adamant_changes_open(store, last + 1, &changes));

    CODE(ADAMANT_NOT_FOUND, adamant_changes_cursor_get(store, "worker", &number));
    OK(adamant_changes_cursor_set(store, "worker", 7));
    OK(adamant_changes_cursor_get(store, "worker", &number));
    CHECK(number == 7);
    OK(adamant_batch_new(store, &batch));
    OK(adamant_batch_put(batch, towns, T("done"), T("7")));
    OK(adamant_batch_cursor_set(batch, "worker", 8));
    OK(adamant_batch_commit(batch));
    adamant_batch_free(batch);
    OK(adamant_changes_cursor_get(store, "worker", &number));
    CHECK(number == 8);
    OK(adamant_transaction_begin(store, &transaction));
    OK(adamant_transaction_cursor_set(transaction, "worker", 9));
    OK(adamant_transaction_commit(transaction));
    adamant_transaction_free(transaction);
    OK(adamant_changes_cursor_get(store, "worker", &number));
    CHECK(number == 9);
    OK(adamant_changes_cursor_remove(store, "worker"));
    OK(adamant_changes_cursor_remove(store, "worker"));
    CODE(ADAMANT_NOT_FOUND, adamant_changes_cursor_get(store, "worker", &number));
    CODE(ADAMANT_NAME, adamant_changes_cursor_set(store, "", 1));
    CODE(ADAMANT_INVALID, adamant_changes_cursor_set(store, NULL, 1));
    OK(adamant_end_changes(store));
    CODE(ADAMANT_CHANGES_NOT_RECORDED, adamant_last_change(store, &number));
    OK(adamant_close(store));
    adamant_keyspace_free(towns);
    adamant_store_free(store);
}

static void beside(const char *path, adamant_store **store)
{
    adamant_options *options;

    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_BESIDE_WRITER, 1));
    OK(adamant_open(path, options, store));
    adamant_options_free(options);
}

static void *wait_for(void *context)
{
    OK(adamant_wait_for_change((const adamant_store *)context, UINT64_MAX));
    return NULL;
}

static void test_refresh(const char *path)
{
    adamant_store *writer, *reader;
    adamant_keyspace *towns, *before, *after;
    pthread_t thread;
    int later = -1;

    OK(adamant_open(path, NULL, &writer));
    OK(adamant_keyspace_open(writer, "towns", NULL, &towns));
    OK(adamant_put(towns, T("Bern"), T("1")));
    OK(adamant_refresh(writer, &later));
    CHECK(later == 0);
    CODE(ADAMANT_NOT_FOUND, adamant_wait_for_change(writer, UINT64_MAX));
    beside(path, &reader);
    CODE(ADAMANT_NOT_FOUND, adamant_wait_for_change(reader, 10));
    OK(adamant_put(towns, T("Bern"), T("2")));
    OK(adamant_wait_for_change(reader, 60000));
    OK(adamant_refresh(reader, &later));
    CHECK(later == 1);
    OK(adamant_keyspace_open(reader, "towns", NULL, &before));
    check_value(before, "Bern", "2");
    CHECK(pthread_create(&thread, NULL, wait_for, reader) == 0);
    nap(20);
    OK(adamant_put(towns, T("Bern"), T("3")));
    CHECK(pthread_join(thread, NULL) == 0);
    OK(adamant_refresh(reader, &later));
    CHECK(later == 1);
    OK(adamant_refresh(reader, NULL));
    OK(adamant_keyspace_open(reader, "towns", NULL, &after));
    check_value(before, "Bern", "2");
    check_value(after, "Bern", "3");
    OK(adamant_close(reader));
    CODE(ADAMANT_CLOSED, adamant_refresh(reader, &later));
    CODE(ADAMANT_CLOSED, adamant_wait_for_change(reader, 0));
    OK(adamant_close(writer));
    adamant_keyspace_free(before);
    adamant_keyspace_free(after);
    adamant_keyspace_free(towns);
    adamant_store_free(reader);
    adamant_store_free(writer);
}

/* A process that writes, and this one, which is told what. */
static void test_another_process(const char *path)
{
    adamant_store *store;
    adamant_keyspace *jobs;
    adamant_changes *changes;
    char key[16];
    int number, status;
    pid_t child;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_record_changes(store, 1 << 20));
    OK(adamant_close(store));
    adamant_store_free(store);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        OK(adamant_open(path, NULL, &store));
        OK(adamant_keyspace_open(store, "jobs", NULL, &jobs));
        for (number = 0; number < 20; number++) {
            snprintf(key, sizeof key, "%d", number);
            OK(adamant_put(jobs, T(key), T("sweep")));
            nap(1);
        }
        OK(adamant_close(store));
        adamant_keyspace_free(jobs);
        adamant_store_free(store);
        _exit(0);
    }
    beside(path, &store);
    OK(adamant_changes_open(store, 0, &changes));
    OK(adamant_close(store));
    adamant_store_free(store);
    next(changes, ADAMANT_CHANGE_CREATED, "jobs", "");
    for (number = 0; number < 20; number++) {
        snprintf(key, sizeof key, "%d", number);
        next(changes, ADAMANT_CHANGE_PUT, "jobs", key);
    }
    adamant_changes_free(changes);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    char *followed, *shared;

    CHECK(argc == 2);
    test_each_kind();
    test_bounds_and_cursors();
    followed = path_in(argv[1], "followed");
    test_refresh(followed);
    shared = path_in(argv[1], "shared");
    test_another_process(shared);
    free(followed);
    free(shared);
    return 0;
}
