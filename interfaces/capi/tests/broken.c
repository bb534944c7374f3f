/* What goes wrong below the store: a changed byte in a file, a device that refuses to write, and, where the
 * second argument is a small file system, one that is full. */

#define _XOPEN_SOURCE 600

#include <signal.h>
#include <sys/resource.h>

#include "check.h"

static const char VALUE[] = "a value that is found in a file by what it says, of some length";

/* Changes one byte of VALUE where it first lies in a file; whether it does. */
static int change(const char *path)
{
    FILE *file = fopen(path, "r+b");
    char *bytes;
    long len, at;
    int is_there = 0;

    CHECK(file != NULL);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    len = ftell(file);
    bytes = (char *)malloc((size_t)len);
    CHECK(len > 0 && bytes != NULL);
    rewind(file);
    CHECK(fread(bytes, 1, (size_t)len, file) == (size_t)len);
    for (at = 0; !is_there && at + (long)sizeof VALUE - 1 <= len; at++) {
        if (memcmp(bytes + at, VALUE, sizeof VALUE - 1) == 0) {
            CHECK(fseek(file, at + 3, SEEK_SET) == 0 && fputc('X', file) == 'X');
            is_there = 1;
        }
    }
    CHECK(fclose(file) == 0);
    free(bytes);
    return is_there;
}

/* A byte of the pool: a check finds it, and a backup fails; the rest is there. */
static void test_damage(const char *folder)
{
    char *path = path_in(folder, "damaged"), *pool = path_in(path, "pool");
    char *copy = path_in(folder, "copy");
    adamant_store *store = NULL;
    adamant_keyspace *keyspace = NULL;
    adamant_value *report = NULL;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "data", NULL, &keyspace));
    OK(adamant_put(keyspace, T("key"), T(VALUE)));
    OK(adamant_put(keyspace, T("other"), T("whole")));
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    adamant_store_free(store);
    CHECK(change(pool));

    OK(adamant_open(path, NULL, &store));
    CODE(ADAMANT_DAMAGED, adamant_check(store, &report));
    CHECK(strstr((const char *)adamant_value_bytes(report).data, "\"clean\":false") != NULL);
    adamant_value_free(report);
    CODE(ADAMANT_DAMAGED, adamant_backup(store, copy));
    OK(adamant_keyspace_open_existing(store, "data", &keyspace));
    check_value(keyspace, "other", "whole");
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
    free(pool);
    free(copy);
}

/* Files may not be written beyond their first bytes: what was to be durable and is not ends the writing. */
static void test_poisoned(const char *folder)
{
    char *path = path_in(folder, "poisoned");
    adamant_store *store = NULL;
    adamant_keyspace *keyspace = NULL;
    struct rlimit before, few;
    int code = ADAMANT_OK, at;

    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open(store, "data", NULL, &keyspace));
    OK(adamant_put(keyspace, T("key"), T(VALUE)));
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    few = before;
    few.rlim_cur = 512;
    CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
    for (at = 0; at < 3 && code != ADAMANT_POISONED; at++) {
        code = adamant_put(keyspace, T("new"), T(VALUE));
        CHECK(code < 0);
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(code == ADAMANT_POISONED);
    CODE(ADAMANT_POISONED, adamant_put(keyspace, T("new"), T(VALUE)));
    CODE(ADAMANT_POISONED, adamant_delete(keyspace, T("key")));
    check_value(keyspace, "key", VALUE);
    adamant_keyspace_free(keyspace);
    (void)adamant_close(store);
    adamant_store_free(store);

    OK(adamant_open(path, NULL, &store));
    OK(adamant_keyspace_open_existing(store, "data", &keyspace));
    check_value(keyspace, "key", VALUE);
    OK(adamant_put(keyspace, T("new"), T(VALUE)));
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
}

/* A file system that is full: nothing is lost, and there is room again when something was taken out. */
static void test_full(const char *folder, const char *engine)
{
    static char large[100000];
    char *path = path_in(folder, engine);
    char key[16];
    adamant_options *options = NULL;
    adamant_store *store = NULL;
    adamant_keyspace *keyspace = NULL;
    int code = ADAMANT_OK, at, count;

    OK(adamant_options_new(&options));
    OK(adamant_options_set(options, ADAMANT_OPTION_LOG_BYTES_MAX, 4 << 20));
    OK(adamant_open(path, options, &store));
    adamant_options_free(options);
    OK(adamant_keyspace_open(store, "data", engine, &keyspace));
    for (count = 0; code == ADAMANT_OK; count++) {
        CHECK(count < 1000);
        snprintf(key, sizeof key, "%04d", count);
        code = adamant_put(keyspace, T(key), adamant_bytes(large, sizeof large));
    }
    CHECK(code == ADAMANT_OUT_OF_SPACE && count > 10);
    for (at = 0; at < count - 1; at++) {
        snprintf(key, sizeof key, "%04d", at);
        OK(adamant_contains(keyspace, T(key)));
    }
    for (at = 0; at < 10; at++) {
        snprintf(key, sizeof key, "%04d", at);
        OK(adamant_remove(keyspace, T(key)));
    }
    OK(adamant_put(keyspace, T("small"), T(VALUE)));
    check_value(keyspace, "small", VALUE);
    adamant_keyspace_free(keyspace);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    if (argc == 3) {
        test_full(argv[2], "bplus");
        return 0;
    }
    test_damage(argv[1]);
    test_poisoned(argv[1]);
    return 0;
}
