/* A hash table with chains: many inserts in one transaction against a transaction for each. */
#include "harness.h"

#include <stdlib.h>

/* Buckets are in pages, as in the other program. */
enum { POOL_MIB = 1024, CHAIN = 4, PAGE_BYTES = 4096, PAGE_BUCKETS = PAGE_BYTES / 8 };

/* 64 bytes, as in the other groups. */
struct entry {
	uint64_t key;
	uint64_t next; /* offset in the pool; 0 at the end of a chain */
	uint64_t value[6];
};

struct table {
	PMEMobjpool *pool;
	uint64_t **pages;
	uint64_t mask;
};

static uint64_t *bucket_of(const struct table *table, uint64_t number)
{
	return &table->pages[number / PAGE_BUCKETS][number % PAGE_BUCKETS];
}

static uint64_t scrambled(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15;
	return key ^ (key >> 32);
}

static void insert(struct table *table, uint64_t key)
{
	uint64_t *bucket = bucket_of(table, scrambled(key) & table->mask);
	PMEMoid oid = pmemobj_tx_alloc(sizeof(struct entry), TYPE);
	require(!OID_IS_NULL(oid), "the pool is full");
	struct entry *entry = pmemobj_direct(oid);
	*entry = (struct entry){.key = key, .next = *bucket, .value = {key}};
	require(pmemobj_tx_add_range_direct(bucket, sizeof *bucket) == 0, "add_range");
	*bucket = oid.off;
}

static void begin(PMEMobjpool *pool)
{
	require(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0, "begin");
}

static void commit(void)
{
	pmemobj_tx_commit();
	require(pmemobj_tx_end() == 0, "a transaction was aborted");
}

static void check(const struct table *table, uint64_t count)
{
	uint64_t found = 0;
	char *base = (char *)table->pool;
	for (uint64_t at = 0; at <= table->mask; at++)
		for (uint64_t next = *bucket_of(table, at); next != 0; found++)
			next = ((struct entry *)(base + next))->next;
	require(found == count, "entries are missing");
}

static double insert_all(const struct settings *settings, int together)
{
	uint64_t count = settings->inserts;
	uint64_t buckets = PAGE_BUCKETS;
	while (buckets * CHAIN < count)
		buckets *= 2;
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	struct table table = {pool, memory_for(buckets / PAGE_BUCKETS, sizeof(uint64_t *)),
			      buckets - 1};
	for (uint64_t at = 0; at < buckets / PAGE_BUCKETS; at++) {
		PMEMoid page;
		require(pmemobj_zalloc(pool, &page, PAGE_BYTES, TYPE) == 0, "alloc");
		table.pages[at] = pmemobj_direct(page);
	}
	double start = thread_seconds();
	if (together)
		begin(pool);
	for (uint64_t key = 0; key < count; key++) {
		if (!together)
			begin(pool);
		insert(&table, key);
		if (!together)
			commit();
	}
	if (together)
		commit();
	double seconds = thread_seconds() - start;
	check(&table, count);
	free(table.pages);
	pool_remove(settings, pool);
	return seconds;
}

void group_inserts(const struct settings *settings)
{
	double each = insert_all(settings, 0);
	double together = insert_all(settings, 1);
	row_nanoseconds("inserts.each", settings->inserts, each);
	row_nanoseconds("inserts.together", settings->inserts, together);
	row("inserts.speedup", "ratio", settings->inserts, each / together);
}
