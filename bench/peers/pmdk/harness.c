#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Objects of a batch of `allocate_many`. */
enum { BATCH = 100 };

void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "pmdk: %s: %s\n", what, pmemobj_errormsg());
	exit(1);
}

static double seconds_of(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double thread_seconds(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

void row(const char *name, const char *unit, uint64_t n, double figure)
{
	printf("{\"bench\":\"heap\",\"row\":\"%s\",\"engine\":\"libpmemobj\",\"unit\":\"%s\","
	       "\"n\":%" PRIu64 ",\"median\":%.6g}\n",
	       name, unit, n, figure);
}

void row_nanoseconds(const char *name, uint64_t n, double seconds)
{
	row(name, "ns", n, seconds * 1e9 / (double)n);
}

/* The pool's file, in memory that is kept until the next call. */
static const char *pool_path(const struct settings *settings)
{
	static char path[4096];
	int length = snprintf(path, sizeof path, "%s/pool", settings->path);
	require(length > 0 && (size_t)length < sizeof path, "the path is too long");
	return path;
}

PMEMobjpool *pool_create(const struct settings *settings, size_t mib)
{
	const char *path = pool_path(settings);
	PMEMobjpool *pool = pmemobj_create(path, LAYOUT, mib * MIB, 0600);
	require(pool != NULL, "a pool could not be created");
	return pool;
}

PMEMobjpool *pool_open(const struct settings *settings)
{
	PMEMobjpool *pool = pmemobj_open(pool_path(settings), LAYOUT);
	require(pool != NULL, "a pool could not be opened");
	return pool;
}

uint64_t pool_bytes(const struct settings *settings)
{
	struct stat stat_of_pool;
	require(stat(pool_path(settings), &stat_of_pool) == 0, "the pool's file is not there");
	return (uint64_t)stat_of_pool.st_blocks * 512;
}

void pool_remove(const struct settings *settings, PMEMobjpool *pool)
{
	pmemobj_close(pool);
	require(unlink(pool_path(settings)) == 0, "the pool could not be removed");
}

void allocate_many(PMEMobjpool *pool, PMEMoid *oids, uint64_t count, size_t size)
{
	struct pobj_action actions[BATCH];
	for (uint64_t done = 0; done < count;) {
		size_t some = count - done < BATCH ? (size_t)(count - done) : BATCH;
		for (size_t at = 0; at < some; at++) {
			oids[done + at] = pmemobj_reserve(pool, &actions[at], size, TYPE);
			require(!OID_IS_NULL(oids[done + at]), "the pool is full");
		}
		require(pmemobj_publish(pool, actions, some) == 0, "publish failed");
		done += some;
	}
}

void *memory_for(uint64_t count, size_t size)
{
	void *memory = calloc((size_t)count, size);
	require(memory != NULL, "out of memory");
	/* Touched, so that no page fault is part of a measurement. */
	memset(memory, 1, (size_t)count * size);
	return memory;
}
