/* Transactions that free many objects, also after having written to them. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

/* Objects freed for a row of small transactions. */
enum { SIZE = 64, POOL_MIB = 1024, FREED = 20000 };

/* Seconds of a transaction that frees so many objects. */
static double free_once(PMEMobjpool *pool, PMEMoid *oids, uint64_t count, int written)
{
	allocate_many(pool, oids, count, SIZE);
	double start = thread_seconds();
	require(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0, "begin");
	for (uint64_t at = 0; written && at < count; at++) {
		uint64_t *word = pmemobj_direct(oids[at]);
		require(pmemobj_tx_add_range_direct(word, sizeof *word) == 0, "add_range");
		*word = at;
	}
	for (uint64_t at = 0; at < count; at++)
		require(pmemobj_tx_free(oids[at]) == 0, "free");
	pmemobj_tx_commit();
	require(pmemobj_tx_end() == 0, "a transaction was aborted");
	return thread_seconds() - start;
}

static void free_many(PMEMobjpool *pool, PMEMoid *oids, uint64_t count, int written)
{
	/* Small transactions several times, so that the clock and chance count for little. */
	uint64_t times = FREED / count + 1;
	double seconds = 0;
	for (uint64_t at = 0; at < times; at++)
		seconds += free_once(pool, oids, count, written);
	char name[64];
	snprintf(name, sizeof name, written ? "tx.free.%llu.written" : "tx.free.%llu",
		 (unsigned long long)count);
	row_nanoseconds(name, count * times, seconds);
}

void group_frees(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	PMEMoid *oids = memory_for(settings->frees_max, sizeof *oids);
	/* Not measured: the first touch of the pool's pages. */
	free_once(pool, oids, settings->frees_max, 0);
	for (uint64_t count = 10; count <= settings->frees_max; count *= 10) {
		free_many(pool, oids, count, 0);
		free_many(pool, oids, count, 1);
	}
	free(oids);
	pool_remove(settings, pool);
}
