/* Creating and opening pools. */
#include "harness.h"

#include <stdlib.h>

enum { POOL_MIB = 512, SIZE = 64, TIMES = 5 };

static double milliseconds_to_open(const struct settings *settings, PMEMobjpool **pool)
{
	double best = 1e300;
	for (unsigned at = 0; at < TIMES; at++) {
		pmemobj_close(*pool);
		double start = now();
		*pool = pool_open(settings);
		double took = (now() - start) * 1e3;
		best = took < best ? took : best;
	}
	return best;
}

void group_open(const struct settings *settings)
{
	double start = now();
	PMEMobjpool *pool = pool_create(settings, (size_t)settings->large_pool_mib);
	row("create.large", "ms", 1, (now() - start) * 1e3);
	row("create.large.used", "MiB", 1, (double)pool_bytes(settings) / (double)MIB);
	row("open.large", "ms", TIMES, milliseconds_to_open(settings, &pool));
	pool_remove(settings, pool);

	pool = pool_create(settings, POOL_MIB);
	PMEMoid *oids = memory_for(settings->inserts, sizeof *oids);
	allocate_many(pool, oids, settings->inserts, SIZE);
	free(oids);
	row("open.objects", "ms", settings->inserts, milliseconds_to_open(settings, &pool));
	pool_remove(settings, pool);
}
