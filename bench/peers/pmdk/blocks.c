/* Single allocations and frees of 64 bytes, and objects allocated by transactions. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 64, POOL_MIB = 1024, THREADS = 2 };

static void allocate_and_free(PMEMobjpool *pool, uint64_t count)
{
	PMEMoid *oids = memory_for(count, sizeof *oids);
	double start = thread_seconds();
	for (uint64_t at = 0; at < count; at++)
		require(pmemobj_alloc(pool, &oids[at], SIZE, TYPE, NULL, NULL) == 0, "alloc");
	row_nanoseconds("alloc.64", count, thread_seconds() - start);
	start = thread_seconds();
	for (uint64_t at = 0; at < count; at++)
		pmemobj_free(&oids[at]);
	row_nanoseconds("free.64", count, thread_seconds() - start);
	free(oids);
}

struct pairs {
	PMEMobjpool *pool;
	uint64_t count;
	pthread_barrier_t *ready;
	double start;
	double end;
	double own;
};

static void *pairs(void *argument)
{
	struct pairs *work = argument;
	pthread_barrier_wait(work->ready);
	double start = thread_seconds();
	work->start = now();
	for (uint64_t at = 0; at < work->count; at++) {
		PMEMoid oid;
		require(pmemobj_alloc(work->pool, &oid, SIZE, TYPE, NULL, NULL) == 0, "alloc");
		pmemobj_free(&oid);
	}
	work->end = now();
	work->own = thread_seconds() - start;
	return NULL;
}

/*
 * Seconds from the start of the first of so many threads to the end of the last; those that one
 * thread alone had a processor.
 */
static double pairs_on(PMEMobjpool *pool, unsigned threads, uint64_t count)
{
	pthread_t ids[THREADS];
	struct pairs work[THREADS];
	pthread_barrier_t ready;
	pthread_barrier_init(&ready, NULL, threads);
	for (unsigned at = 0; at < threads; at++) {
		work[at] = (struct pairs){.pool = pool, .count = count, .ready = &ready};
		require(pthread_create(&ids[at], NULL, pairs, &work[at]) == 0, "no thread");
	}
	double start = 1e300, end = 0;
	for (unsigned at = 0; at < threads; at++) {
		pthread_join(ids[at], NULL);
		start = work[at].start < start ? work[at].start : start;
		end = work[at].end > end ? work[at].end : end;
	}
	pthread_barrier_destroy(&ready);
	return threads == 1 ? work[0].own : end - start;
}

static void transactions(PMEMobjpool *pool, uint64_t objects, uint64_t count)
{
	PMEMoid *oids = memory_for(count, sizeof *oids);
	uint64_t whole = count / objects * objects;
	double start = thread_seconds();
	for (uint64_t done = 0; done < whole; done += objects) {
		require(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0, "begin");
		for (uint64_t at = 0; at < objects; at++) {
			oids[done + at] = pmemobj_tx_alloc(SIZE, TYPE);
			require(!OID_IS_NULL(oids[done + at]), "the pool is full");
		}
		pmemobj_tx_commit();
		require(pmemobj_tx_end() == 0, "a transaction was aborted");
	}
	char name[64];
	snprintf(name, sizeof name, "tx.objects.%llu", (unsigned long long)objects);
	row_nanoseconds(name, whole, thread_seconds() - start);
	for (uint64_t at = 0; at < whole; at++)
		pmemobj_free(&oids[at]);
	free(oids);
}

void group_blocks(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	uint64_t count = settings->operations;
	/* Not measured: the first touch of the pool's pages. */
	PMEMoid *oids = memory_for(count, sizeof *oids);
	allocate_many(pool, oids, count, SIZE);
	for (uint64_t at = 0; at < count; at++)
		pmemobj_free(&oids[at]);
	free(oids);

	allocate_and_free(pool, count);
	row_nanoseconds("pair.64.1t", count, pairs_on(pool, 1, count));
	double seconds = pairs_on(pool, THREADS, count);
	row("pair.64.2t", "M/s", THREADS * count, THREADS * (double)count / seconds / 1e6);
	for (uint64_t objects = 1; objects <= 10000; objects *= 10)
		transactions(pool, objects, count < objects ? objects : count);
	pool_remove(settings, pool);
}
