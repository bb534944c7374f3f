/*
 * What the tests in C are made with: CHECK, CODE, and a folder of the test's own (its first argument).
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adamant.h"

/* Ends the program, which fails, unless something is so. */
#define CHECK(so)                                                                                \
    do {                                                                                         \
        if (!(so)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #so,            \
                    adamant_last_error());                                                       \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

/* Ends the program, which fails, unless a call returns a code; an error must have a text. */
#define CODE(expected, call)                                                                     \
    do {                                                                                         \
        int code_found = (call);                                                                 \
        if (code_found != (expected)) {                                                          \
            fprintf(stderr, "%s:%d: %s\n  expected %s, found %s: %s\n", __FILE__, __LINE__,      \
                    #call, adamant_code_name(expected), adamant_code_name(code_found),           \
                    adamant_last_error());                                                       \
            exit(1);                                                                             \
        }                                                                                        \
        CHECK(code_found >= 0 || adamant_last_error()[0] != 0);                                  \
    } while (0)

#define OK(call) CODE(ADAMANT_OK, call)

/* A slice of text. */
#define T(text) adamant_text(text)

/* Whether a slice is a text. */
static inline int is_text(adamant_slice found, const char *text)
{
    size_t len = strlen(text);
    return found.len == len && (len == 0 || memcmp(found.data, text, len) == 0);
}

/* A path in the folder of the test; to be freed. */
static inline char *path_in(const char *folder, const char *name)
{
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = (char *)malloc(bytes);
    CHECK(path != NULL);
    snprintf(path, bytes, "%s/%s", folder, name);
    return path;
}

/* Checks the value of a key; NULL: it has none. */
static inline void check_value(const adamant_keyspace *keyspace, const char *key, const char *text)
{
    adamant_value *value = NULL;
    CODE(text == NULL ? ADAMANT_NOT_FOUND : ADAMANT_OK, adamant_get(keyspace, T(key), &value));
    CHECK((value == NULL) == (text == NULL));
    if (value != NULL) {
        CHECK(is_text(adamant_value_bytes(value), text));
        CHECK(adamant_value_bytes(value).data[strlen(text)] == 0);
    }
    adamant_value_free(value);
}

#endif
