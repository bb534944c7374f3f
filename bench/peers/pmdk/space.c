/* Bytes that objects take beyond what was asked for. */
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL_MIB = 512, STEP = 100, SIZES = 41943, POINTS = 1000, SHOWN_EVERY = 37 };

/* The share of an object's usable bytes that was not asked for; its header is not counted. */
static void fragmentation(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	double sum = 0, most = 0;
	uint64_t measured = 0, every = SIZES / settings->sizes;
	printf("{\"curve\":\"fragmentation\",\"engine\":\"libpmemobj\",\"points\":[");
	for (uint64_t at = 0; at < SIZES; at += every, measured++) {
		double asked = (double)(STEP * (at + 1));
		struct pobj_action action;
		PMEMoid oid = pmemobj_reserve(pool, &action, (size_t)asked, TYPE);
		require(!OID_IS_NULL(oid), "the pool is full");
		double usable = (double)action.heap.usable_size;
		pmemobj_cancel(pool, &action, 1);
		double percent = (usable - asked) / usable * 100;
		sum += percent;
		most = percent > most ? percent : most;
		/* All small sizes, and some of the others, on all places within a page. */
		if (at < POINTS || at % SHOWN_EVERY == 0)
			printf("%s[%.0f,%.3f]", at == 0 ? "" : ",", asked, percent);
	}
	printf("]}\n");
	row("fragmentation.average", "%", measured, sum / (double)measured);
	row("fragmentation.maximum", "%", measured, most);
	pool_remove(settings, pool);
}

/* Bytes of all runs, in use or not. */
static uint64_t run_bytes(PMEMobjpool *pool)
{
	uint64_t bytes = 0;
	require(pmemobj_ctl_get(pool, "stats.heap.run_active", &bytes) == 0, "statistics");
	return bytes;
}

static void bytes_of(const struct settings *settings, size_t size)
{
	uint64_t count = settings->inserts;
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	PMEMoid *oids = memory_for(count, sizeof *oids);
	uint64_t before = run_bytes(pool);
	allocate_many(pool, oids, count, size);
	char name[64];
	snprintf(name, sizeof name, "heap.bytes.%zu", size);
	row(name, "B", count, (double)(run_bytes(pool) - before) / (double)count);
	free(oids);
	pool_remove(settings, pool);
}

void group_space(const struct settings *settings)
{
	fragmentation(settings);
	bytes_of(settings, 64);
	bytes_of(settings, 8);
}
