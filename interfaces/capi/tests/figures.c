/* Durability of a keyspace, its figures, estimates, many keys at once, the path of a store. */

#include "check.h"

static void test_figures(adamant_store *store, const char *path)
{
    adamant_keyspace_options *options = NULL;
    adamant_keyspace *data = NULL, *other = NULL, *quick = NULL;
    adamant_value *values[3] = {NULL, NULL, NULL};
    adamant_value *json = NULL, *where = NULL;
    adamant_store *memory = NULL;
    adamant_slice keys[3] = {T("0002"), T("none"), T("0001")};
    adamant_slice found;
    adamant_range range = adamant_range_between(T("0100"), T("0200"));
    uint64_t entries = 0, bytes = 0;
    int durability = -1, number;
    char key[8];

    OK(adamant_keyspace_options_new(&options));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_DURABILITY, ADAMANT_BUFFERED));
    CODE(ADAMANT_INVALID, adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_DURABILITY, 99));
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_CACHES_DATA, 0));
    OK(adamant_keyspace_open_with(store, "figures", "lsm", options, &data));
    OK(adamant_keyspace_durability(data, &durability));
    CHECK(durability == ADAMANT_BUFFERED);
    OK(adamant_keyspace_with_durability(data, ADAMANT_DEFERRED, &quick));
    OK(adamant_keyspace_durability(quick, &durability));
    CHECK(durability == ADAMANT_DEFERRED);
    OK(adamant_keyspace_options_set(options, ADAMANT_KEYSPACE_OPTION_DURABILITY, UINT64_MAX));
    OK(adamant_keyspace_open_with(store, "figures", NULL, options, &other));
    OK(adamant_keyspace_durability(data, &durability));
    CHECK(durability == ADAMANT_SYNC);
    CODE(ADAMANT_INVALID, adamant_keyspace_durability(data, NULL));
    for (number = 0; number < 1000; number++) {
        snprintf(key, sizeof key, "%04d", number);
        OK(adamant_put(quick, T(key), T(key)));
    }
    OK(adamant_multi_get(data, keys, 3, values));
    found = adamant_value_bytes(values[0]);
    CHECK(found.len == 4 && memcmp(found.data, "0002", 4) == 0);
    CHECK(values[1] == NULL);
    found = adamant_value_bytes(values[2]);
    CHECK(found.len == 4 && memcmp(found.data, "0001", 4) == 0);
    adamant_value_free(values[0]);
    adamant_value_free(values[2]);
    OK(adamant_multi_get(data, NULL, 0, NULL));
    CODE(ADAMANT_INVALID, adamant_multi_get(data, NULL, 3, values));
    CODE(ADAMANT_INVALID, adamant_multi_get(data, keys, 3, NULL));
    OK(adamant_estimate(data, &range, &entries, &bytes));
    CHECK(entries >= 50 && entries <= 200 && bytes >= 8 * entries);
    OK(adamant_estimate(data, NULL, &entries, NULL));
    CHECK(entries == 1000);
    CODE(ADAMANT_INVALID, adamant_estimate(data, NULL, NULL, NULL));
    OK(adamant_keyspace_stats(data, &json));
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"lookups\":3") != NULL);
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"writes\":1000") != NULL);
    CHECK(strstr((const char *)adamant_value_bytes(json).data, "\"cache_misses\":") != NULL);
    adamant_value_free(json);
    OK(adamant_store_path(store, &where));
    found = adamant_value_bytes(where);
    CHECK(strcmp((const char *)found.data, path) == 0);
    adamant_value_free(where);
    OK(adamant_open_in_memory(&memory));
    CODE(ADAMANT_NOT_FOUND, adamant_store_path(memory, &where));
    CHECK(where == NULL);
    OK(adamant_close(memory));
    adamant_store_free(memory);
    adamant_keyspace_options_free(options);
    adamant_keyspace_free(quick);
    adamant_keyspace_free(other);
    adamant_keyspace_free(data);
    OK(adamant_keyspace_drop(store, "figures"));
}

int main(int argc, char **argv)
{
    adamant_store *store = NULL;
    char *path;

    CHECK(argc == 2);
    path = path_in(argv[1], "store");
    OK(adamant_open(path, NULL, &store));
    test_figures(store, path);
    OK(adamant_close(store));
    adamant_store_free(store);
    free(path);
    return 0;
}
