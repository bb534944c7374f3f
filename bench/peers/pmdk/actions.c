/* Reservations: alone, on several threads, and published in batches. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 64, POOL_MIB = 1024, THREADS_MAX = 8, BATCH_MAX = 100 };

static void publish(PMEMobjpool *pool, size_t batch, uint64_t count, int fill)
{
	struct pobj_action actions[BATCH_MAX];
	PMEMoid *oids = memory_for(count, sizeof *oids);
	uint64_t whole = count / batch * batch;
	double start = thread_seconds();
	for (uint64_t done = 0; done < whole; done += batch) {
		for (size_t at = 0; at < batch; at++) {
			PMEMoid oid = pmemobj_reserve(pool, &actions[at], SIZE, TYPE);
			require(!OID_IS_NULL(oid), "the pool is full");
			oids[done + at] = oid;
			if (fill)
				pmemobj_memset(pool, pmemobj_direct(oid), (int)at, SIZE,
					       PMEMOBJ_F_MEM_NODRAIN);
		}
		require(pmemobj_publish(pool, actions, batch) == 0, "publish");
	}
	char name[64];
	snprintf(name, sizeof name, fill ? "publish.%zu.filled" : "publish.%zu", batch);
	row_nanoseconds(name, whole, thread_seconds() - start);
	for (uint64_t at = 0; at < whole; at++)
		pmemobj_free(&oids[at]);
	free(oids);
}

struct reserving {
	PMEMobjpool *pool;
	struct pobj_action *actions;
	uint64_t count;
	pthread_barrier_t *ready;
	double seconds;
};

static void *reserving(void *argument)
{
	struct reserving *work = argument;
	pthread_barrier_wait(work->ready);
	double start = thread_seconds();
	for (uint64_t at = 0; at < work->count; at++) {
		PMEMoid oid = pmemobj_reserve(work->pool, &work->actions[at], SIZE, TYPE);
		require(!OID_IS_NULL(oid), "the pool is full");
	}
	work->seconds = thread_seconds() - start;
	return NULL;
}

/* Nanoseconds of a processor for each, over all threads. */
static void reserve_on(PMEMobjpool *pool, unsigned threads, uint64_t count)
{
	pthread_t ids[THREADS_MAX];
	struct reserving work[THREADS_MAX];
	pthread_barrier_t ready;
	uint64_t each = count / threads;
	pthread_barrier_init(&ready, NULL, threads);
	for (unsigned at = 0; at < threads; at++) {
		struct pobj_action *actions = memory_for(each, sizeof *actions);
		work[at] = (struct reserving){pool, actions, each, &ready, 0};
		require(pthread_create(&ids[at], NULL, reserving, &work[at]) == 0, "no thread");
	}
	double seconds = 0;
	for (unsigned at = 0; at < threads; at++) {
		pthread_join(ids[at], NULL);
		seconds += work[at].seconds;
	}
	pthread_barrier_destroy(&ready);
	for (unsigned at = 0; at < threads; at++) {
		pmemobj_cancel(pool, work[at].actions, (size_t)each);
		free(work[at].actions);
	}
	char name[64];
	snprintf(name, sizeof name, "reserve.%ut", threads);
	row_nanoseconds(name, each * threads, seconds);
}

void group_actions(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	uint64_t count = settings->operations;
	/* Not measured: the first touch of the pool's pages. */
	PMEMoid *oids = memory_for(count, sizeof *oids);
	allocate_many(pool, oids, count, SIZE);
	for (uint64_t at = 0; at < count; at++)
		pmemobj_free(&oids[at]);
	free(oids);

	for (size_t batch = 1; batch <= BATCH_MAX; batch *= 10) {
		publish(pool, batch, count, 0);
		publish(pool, batch, count, 1);
	}
	for (unsigned threads = 1; threads <= THREADS_MAX; threads *= 2)
		reserve_on(pool, threads, count);
	pool_remove(settings, pool);
}
