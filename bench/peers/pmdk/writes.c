/* Transactions that overwrite ranges of objects that were there before. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Objects written in turn. */
enum { POOL_MIB = 512, OBJECTS = 64, BYTES_MAX = 1 << 20 };

static void write_ranges(PMEMobjpool *pool, size_t size, uint64_t count, int measured)
{
	PMEMoid oids[OBJECTS];
	allocate_many(pool, oids, OBJECTS, size);
	for (unsigned at = 0; at < OBJECTS; at++)
		pmemobj_memset(pool, pmemobj_direct(oids[at]), 1, size, 0);
	double start = thread_seconds();
	for (uint64_t at = 0; at < count; at++) {
		char *bytes = pmemobj_direct(oids[at % OBJECTS]);
		require(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0, "begin");
		require(pmemobj_tx_add_range_direct(bytes, size) == 0, "add_range");
		memset(bytes, (int)at, size);
		pmemobj_tx_commit();
		require(pmemobj_tx_end() == 0, "a transaction was aborted");
	}
	char name[64];
	snprintf(name, sizeof name, "write.%zu", size);
	if (measured)
		row_nanoseconds(name, count, thread_seconds() - start);
	for (unsigned at = 0; at < OBJECTS; at++)
		pmemobj_free(&oids[at]);
}

void group_writes(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	for (size_t size = 64; size <= BYTES_MAX; size *= 4) {
		/* About as long for each size: the bytes are what takes the time of large ones. */
		uint64_t count = settings->operations * 1024 / (1024 + size) / 2;
		count = count < OBJECTS ? OBJECTS : count;
		/* Not measured: the first touch of the pool's pages. */
		write_ranges(pool, size, OBJECTS, 0);
		write_ranges(pool, size, count, 1);
	}
	pool_remove(settings, pool);
}
