/* Two keyspaces, one commit, a scan. How to compile it: docs/guide/c.md. */
#include <adamant.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", adamant_code_name(code), adamant_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    adamant_store *store;
    adamant_keyspace *users, *by_mail;
    adamant_batch *batch;
    adamant_cursor *cursor;
    adamant_range range = adamant_range_prefix(adamant_text("ada@"));
    adamant_slice mail, id;

    check(adamant_open(argc > 1 ? argv[1] : "app.adamant", NULL, &store));
    check(adamant_keyspace_open(store, "users", NULL, &users));
    check(adamant_keyspace_open(store, "users by mail", NULL, &by_mail));

    /* One commit over two keyspaces: both changes survive, or neither. */
    check(adamant_batch_new(store, &batch));
    check(adamant_batch_put(batch, users, adamant_text("7"), adamant_text("Ada Lovelace")));
    check(adamant_batch_put(batch, by_mail, adamant_text("ada@example.org"), adamant_text("7")));
    check(adamant_batch_commit(batch));
    adamant_batch_free(batch);

    check(adamant_cursor_new(by_mail, &range, &cursor));
    while (adamant_cursor_next(cursor, &mail, &id) == ADAMANT_OK) {
        adamant_value *name;
        check(adamant_get(users, id, &name));
        printf("%.*s is %s\n", (int)mail.len, mail.data, adamant_value_bytes(name).data);
        adamant_value_free(name);
    }
    adamant_cursor_free(cursor);
    adamant_keyspace_free(by_mail);
    adamant_keyspace_free(users);
    check(adamant_close(store));
    adamant_store_free(store);
    return 0;
}
