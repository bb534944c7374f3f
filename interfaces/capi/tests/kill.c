/*
 * A child writes and says of each commit when it has returned; it is killed in the middle of it. What it has
 * said is there afterwards, in each of two keyspaces, and nothing of a commit without the rest of it.
 */

#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 4, COMMITS_MAX = 100000 };

/* The child: numbered commits for ever, or until it has made more than anybody waits for. */
static void write_until_killed(const char *path, int first, int pipe_in)
{
    adamant_store *store = NULL;
    adamant_keyspace *numbers = NULL, *names = NULL;
    int number;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "numbers", NULL, &numbers));
    OK(adamant_keyspace_open(store, "names", "lsm", &names));
    for (number = first; number < first + COMMITS_MAX; number++) {
        adamant_batch *batch = NULL;
        char text[16];

        snprintf(text, sizeof text, "%08d", number);
        OK(adamant_batch_new(store, &batch));
        OK(adamant_batch_durability(batch, number % 2 == 0 ? ADAMANT_SYNC : ADAMANT_BUFFERED));
        OK(adamant_batch_put(batch, numbers, T(text), adamant_bytes(&number, sizeof number)));
        OK(adamant_batch_put(batch, names, T(text), T("name")));
        OK(adamant_batch_commit(batch));
        adamant_batch_free(batch);
        CHECK(write(pipe_in, &number, sizeof number) == (ssize_t)sizeof number);
    }
    _exit(1);
}

/* The commits that are there are 0, 1, 2 and so on, each of them whole; how many. */
static int count_whole(const char *path)
{
    adamant_store *store = NULL;
    adamant_keyspace *numbers = NULL, *names = NULL;
    adamant_cursor *cursor = NULL;
    adamant_slice key, value;
    uint64_t entries = 0;
    int expected = 0, found;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_check(store, NULL));
    OK(adamant_keyspace_open(store, "numbers", NULL, &numbers));
    OK(adamant_keyspace_open(store, "names", "lsm", &names));
    OK(adamant_cursor_new(numbers, NULL, &cursor));
    while (adamant_cursor_next(cursor, &key, &value) == ADAMANT_OK) {
        CHECK(value.len == sizeof found);
        memcpy(&found, value.data, sizeof found);
        CHECK(found == expected);
        OK(adamant_contains(names, key));
        expected++;
    }
    OK(adamant_len(names, &entries));
    CHECK(entries == (uint64_t)expected);
    adamant_cursor_free(cursor);
    adamant_keyspace_free(numbers);
    adamant_keyspace_free(names);
    OK(adamant_close(store));
    adamant_store_free(store);
    return expected;
}

int main(int argc, char **argv)
{
    char *path;
    int round, whole = 0;

    CHECK(argc == 2);
    path = path_in(argv[1], "store");
    for (round = 0; round < ROUNDS; round++) {
        int ends[2], number, said = whole - 1, status = 0;
        struct timespec time = {0, 20000000L * (round + 1)};
        pid_t child;

        CHECK(pipe(ends) == 0);
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            close(ends[0]);
            write_until_killed(path, whole, ends[1]);
        }
        close(ends[1]);
        /* From its first commit on it is killed at some moment. */
        CHECK(read(ends[0], &number, sizeof number) == (ssize_t)sizeof number);
        said = number;
        nanosleep(&time, NULL);
        CHECK(kill(child, SIGKILL) == 0);
        while (read(ends[0], &number, sizeof number) == (ssize_t)sizeof number) {
            CHECK(number == said + 1);
            said = number;
        }
        close(ends[0]);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        whole = count_whole(path);
        /* One more than it said may have been made. */
        CHECK(whole == said + 1 || whole == said + 2);
    }
    free(path);
    return 0;
}
