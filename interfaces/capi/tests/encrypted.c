/* Encrypted stores: keys, their errors, other keys, encryption of what is there, copies. */
#include "check.h"

static const unsigned char monday[32] = {1, 2, 3};
static const char friday[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/* Options with a key; to be freed. */
static adamant_options *with_key(const void *key, size_t len)
{
    adamant_options *options = NULL;
    OK(adamant_options_new(&options));
    OK(adamant_options_set_encryption_key(options, key, len));
    return options;
}

/* Opens a store, and checks what it holds and whether it is encrypted. */
static void check_store(const char *path, const adamant_options *options, int expected)
{
    adamant_store *store = NULL;
    adamant_keyspace *patients = NULL;
    int encrypted = -1;
    OK(adamant_open(path, options, &store));
    OK(adamant_is_encrypted(store, &encrypted));
    CHECK(encrypted == expected);
    OK(adamant_keyspace_open_existing(store, "patients", &patients));
    check_value(patients, "4711", "Smith");
    adamant_keyspace_free(patients);
    OK(adamant_close(store));
    adamant_store_free(store);
}

static void test_keys(const char *path, const adamant_options *first, const adamant_options *second)
{
    adamant_store *store = NULL;
    adamant_options *options = NULL;
    adamant_keyspace *patients = NULL;

    OK(adamant_options_new(&options));
    CODE(ADAMANT_INVALID, adamant_options_set_encryption_key(options, "secret", 6));
    CHECK(strstr(adamant_last_error(), "32 bytes") != NULL);
    CHECK(strstr(adamant_last_error(), "secret") == NULL);
    OK(adamant_options_set_encryption_key(options, monday, sizeof monday));
    OK(adamant_options_set_encryption_key(options, NULL, 0));

    OK(adamant_open(path, first, &store));
    OK(adamant_keyspace_open(store, "patients", NULL, &patients));
    OK(adamant_put(patients, T("4711"), T("Smith")));
    adamant_keyspace_free(patients);
    OK(adamant_close(store));
    adamant_store_free(store);
    store = NULL;

    check_store(path, first, 1);
    CODE(ADAMANT_KEY_NEEDED, adamant_open(path, NULL, &store));
    CODE(ADAMANT_KEY_NEEDED, adamant_open(path, options, &store));
    CODE(ADAMANT_WRONG_KEY, adamant_open(path, second, &store));
    CHECK(store == NULL);

    OK(adamant_open(path, first, &store));
    CODE(ADAMANT_INVALID, adamant_rekey(store, friday, 63));
    OK(adamant_rekey(store, friday, 64));
    OK(adamant_close(store));
    adamant_store_free(store);
    store = NULL;
    CODE(ADAMANT_WRONG_KEY, adamant_open(path, first, &store));
    check_store(path, second, 1);
    adamant_options_free(options);
}

static void test_copies(const char *folder, const char *path, const adamant_options *key)
{
    char *backup = path_in(folder, "backup"), *restored = path_in(folder, "restored");
    adamant_store *store = NULL;
    OK(adamant_open(path, key, &store));
    OK(adamant_backup(store, backup));
    OK(adamant_close(store));
    adamant_store_free(store);
    CODE(ADAMANT_KEY_NEEDED, adamant_restore(backup, restored));
    OK(adamant_restore_with(backup, restored, key));
    check_store(restored, key, 1);
    free(backup);
    free(restored);
}

int main(int argc, char **argv)
{
    adamant_options *first, *second;
    adamant_store *store = NULL;
    char *path;

    CHECK(argc == 2);
    path = path_in(argv[1], "store");
    first = with_key(monday, sizeof monday);
    second = with_key(friday, 64);
    test_keys(path, first, second);
    test_copies(argv[1], path, second);

    CODE(ADAMANT_KEY_NEEDED, adamant_encrypt(path, NULL, first));
    OK(adamant_encrypt(path, second, NULL));
    check_store(path, NULL, 0);
    CODE(ADAMANT_NOT_ENCRYPTED, adamant_open(path, first, &store));
    OK(adamant_open(path, NULL, &store));
    CODE(ADAMANT_NOT_ENCRYPTED, adamant_rekey(store, monday, sizeof monday));
    OK(adamant_close(store));
    adamant_store_free(store);
    OK(adamant_encrypt(path, NULL, first));
    check_store(path, first, 1);

    adamant_options_free(first);
    adamant_options_free(second);
    free(path);
    return 0;
}
