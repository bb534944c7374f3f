/* Multimaps: single calls, beside a table of the pairs that there should be, opened again in between. */

#include "check.h"

#define KEYS 4
#define VALUES 16

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

/* Checks all that there is against the table. */
static void check_all(const adamant_multimap *multimap, unsigned char there[KEYS][VALUES])
{
    uint64_t pairs = 0, found = 0;
    unsigned key, value, last_key = KEYS;
    adamant_value *next = NULL, *before = NULL;
    adamant_slice none = {NULL, 0};

    for (key = 0; key < KEYS; key++) {
        uint64_t values = 0;
        adamant_slice above = none;

        for (value = 0; value < VALUES; value++) {
            CODE(there[key][value] ? ADAMANT_OK : ADAMANT_NOT_FOUND,
                 adamant_multimap_contains(multimap, key_of(key), value_of(value)));
            if (!there[key][value]) {
                continue;
            }
            values++;
            OK(adamant_multimap_next_value(multimap, key_of(key), above, &next));
            CHECK(adamant_value_bytes(next).len == value);
            adamant_value_free(before);
            before = next;
            above = adamant_value_bytes(before);
        }
        CODE(ADAMANT_END, adamant_multimap_next_value(multimap, key_of(key), above, &next));
        CHECK(next == NULL);
        OK(adamant_multimap_count(multimap, key_of(key), &found));
        CHECK(found == values);
        pairs += values;
        if (values > 0) {
            OK(adamant_multimap_next_key(multimap, last_key == KEYS ? none : key_of(last_key), &next));
            CHECK(adamant_value_bytes(next).len == key);
            adamant_value_free(next);
            last_key = key;
        }
    }
    adamant_value_free(before);
    CODE(ADAMANT_END, adamant_multimap_next_key(multimap, last_key == KEYS ? none : key_of(last_key), &next));
    OK(adamant_multimap_len(multimap, &found));
    CHECK(found == pairs);
}

int main(int count, char **arguments)
{
    static const char *engines[] = {"bplus", "lsm", "btree", "critbit", "redblack"};
    unsigned engine, step;
    char *path;

    CHECK(count == 2);
    path = path_in(arguments[1], "store");
    for (engine = 0; engine < 5; engine++) {
        unsigned char there[KEYS][VALUES];
        adamant_store *store = NULL;
        adamant_multimap *multimap = NULL, *quick = NULL;
        adamant_keyspace *plain = NULL;
        unsigned random = 12345 + engine;

        memset(there, 0, sizeof there);
        for (step = 0; step < 400; step++) {
            unsigned key, value;
            int is_new = 7;
            uint64_t gone = 0, values = 0;

            if (store == NULL) {
                OK(adamant_open(path, NULL, &store));
                OK(adamant_multimap_open(store, engines[engine], engines[engine], &multimap));
                OK(adamant_multimap_with_durability(multimap, ADAMANT_DEFERRED, &quick));
            }
            random = random * 1664525u + 1013904223u;
            key = (random >> 16) % KEYS;
            value = (random >> 20) % VALUES;
            switch ((random >> 24) % 8) {
            case 0:
            case 1:
                CODE(there[key][value] ? ADAMANT_OK : ADAMANT_NOT_FOUND,
                     adamant_multimap_remove(quick, key_of(key), value_of(value)));
                there[key][value] = 0;
                break;
            case 2:
                if (step % 5 == 0) {
                    for (value = 0; value < VALUES; value++) {
                        values += there[key][value];
                        there[key][value] = 0;
                    }
                    OK(adamant_multimap_remove_all(quick, key_of(key), &gone));
                    CHECK(gone == values);
                }
                break;
            default:
                OK(adamant_multimap_insert(quick, key_of(key), value_of(value), &is_new));
                CHECK(is_new == !there[key][value]);
                there[key][value] = 1;
            }
            if (step % 20 == 0) {
                check_all(multimap, there);
            }
            if (step % 100 == 99) {
                adamant_multimap_free(quick);
                adamant_multimap_free(multimap);
                OK(adamant_close(store));
                adamant_store_free(store);
                store = NULL;
            }
        }
        OK(adamant_open(path, NULL, &store));
        OK(adamant_multimap_open(store, engines[engine], NULL, &multimap));
        check_all(multimap, there);
        CODE(ADAMANT_WRONG_KIND, adamant_keyspace_open(store, engines[engine], NULL, &plain));
        adamant_multimap_free(multimap);
        OK(adamant_close(store));
        adamant_store_free(store);
    }
    free(path);
    return 0;
}
