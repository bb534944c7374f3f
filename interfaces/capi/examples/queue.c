/*
 * A queue between two processes, which nobody polls: a child writes jobs to a store, and this process reads the
 * store beside it, is woken by its commits, and does the jobs. How to compile it: docs/guide/c.md.
 */
#define _POSIX_C_SOURCE 200809L
#include <adamant.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 5, PATIENCE_MS = 60000 };

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", adamant_code_name(code), adamant_last_error());
        exit(1);
    }
}

static void produce(const char *path)
{
    adamant_store *store;
    adamant_keyspace *jobs;
    char room[32];
    int number;

    check(adamant_open(path, NULL, &store));
    check(adamant_keyspace_open(store, "jobs", NULL, &jobs));
    for (number = 0; number < JOBS; number++) {
        snprintf(room, sizeof room, "sweep room %d", number);
        check(adamant_put(jobs, adamant_bytes(&number, sizeof number), adamant_text(room)));
    }
    adamant_keyspace_free(jobs);
    check(adamant_close(store));
    adamant_store_free(store);
}

/* What is lent is there until this returns. */
static void handle(void *context, const adamant_change *change)
{
    int *count = (int *)context;

    if (change->kind == ADAMANT_CHANGE_PUT) {
        printf("commit %d: %.*s\n", (int)change->commit, (int)change->value.len, change->value.data);
        (*count)++;
    }
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "jobs.adamant";
    adamant_store *store;
    adamant_options *options;
    adamant_changes *changes;
    uint64_t last;
    int count = 0, status = 1;
    pid_t child;

    check(adamant_open(path, NULL, &store));
    check(adamant_record_changes(store, 64 << 20));
    check(adamant_last_change(store, &last));
    check(adamant_close(store));
    adamant_store_free(store);

    /* No store is open at the fork. */
    child = fork();
    if (child == 0) {
        produce(path);
        return 0;
    }
    check(adamant_options_new(&options));
    check(adamant_options_set(options, ADAMANT_OPTION_BESIDE_WRITER, 1));
    check(adamant_open(path, options, &store));
    adamant_options_free(options);
    /* A program that is begun again goes on behind the commit that it has kept the number of. */
    check(adamant_changes_open(store, last, &changes));
    check(adamant_close(store));
    adamant_store_free(store);
    while (count < JOBS) {
        int code = adamant_changes_next(changes, PATIENCE_MS, handle, &count);

        check(code);
        if (code == ADAMANT_NOT_FOUND) {
            fputs("no job came\n", stderr);
            return 1;
        }
    }
    adamant_changes_free(changes);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
