/* The child of a fork is refused, and what it does harms nothing; the parent goes on. */

#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void ignore(void *context, const adamant_change *change)
{
    CHECK(context == NULL && change->kind == ADAMANT_CHANGE_PUT);
}

int main(int argc, char **argv)
{
    adamant_store *store = NULL;
    adamant_keyspace *words = NULL;
    adamant_value *value = NULL;
    adamant_snapshot *snapshot = NULL;
    adamant_cursor *cursor = NULL;
    adamant_changes *changes = NULL;
    uint64_t number;
    adamant_slice key, bytes;
    char *path;
    pid_t child;
    int status = 0;

    CHECK(argc == 2);
    path = path_in(argv[1], "store");
    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "words", NULL, &words));
    OK(adamant_put(words, T("here"), T("1")));
    OK(adamant_cursor_new(words, NULL, &cursor));
    OK(adamant_record_changes(store, 1 << 20));
    OK(adamant_changes_open(store, 0, &changes));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CODE(ADAMANT_MISUSE, adamant_get(words, T("here"), &value));
        CODE(ADAMANT_MISUSE, adamant_put(words, T("here"), T("2")));
        CODE(ADAMANT_MISUSE, adamant_sync(store));
        CODE(ADAMANT_MISUSE, adamant_compact(store));
        CODE(ADAMANT_MISUSE, adamant_stats(store, &value));
        CODE(ADAMANT_MISUSE, adamant_check(store, &value));
        CODE(ADAMANT_MISUSE, adamant_snapshot_new(store, &snapshot));
        CODE(ADAMANT_MISUSE, adamant_cursor_next(cursor, &key, &bytes));
        CODE(ADAMANT_MISUSE, adamant_refresh(store, NULL));
        CODE(ADAMANT_MISUSE, adamant_wait_for_change(store, 0));
        CODE(ADAMANT_MISUSE, adamant_last_change(store, &number));
        CODE(ADAMANT_MISUSE, adamant_changes_next(changes, 1000, ignore, NULL));
        CODE(ADAMANT_MISUSE, adamant_close(store));
        CHECK(strstr(adamant_last_error(), "fork") != NULL);
        adamant_changes_free(changes);
        adamant_cursor_free(cursor);
        adamant_keyspace_free(words);
        adamant_store_free(store);
        /* An end at which nobody looks for leaks: what other threads alone pointed to is lost in a child. */
        kill(getpid(), SIGKILL);
        _exit(2);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_value(words, "here", "1");
    OK(adamant_put(words, T("here"), T("3")));
    OK(adamant_changes_next(changes, 0, ignore, NULL));
    adamant_changes_free(changes);
    adamant_cursor_free(cursor);
    adamant_keyspace_free(words);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
    return 0;
}
