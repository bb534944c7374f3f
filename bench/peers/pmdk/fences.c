/*
 * Fences and flushed lines of an operation.
 *
 * libpmemobj calls libpmem through the dynamic linker. A build with COUNT_FENCES defines those
 * functions in the program, which the linker prefers: they count, and call libpmem. What libpmem
 * fences within one copy is not seen, so the figures are the least that libpmemobj does.
 */
#include "harness.h"

#ifdef COUNT_FENCES

#define _GNU_SOURCE
#include <dlfcn.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>

/* The library's default visibility rules apply: these must be seen from outside. */
#pragma GCC visibility push(default)

static uint64_t fences;
static uint64_t lines;
/* Calls in progress: what libpmem calls of its own within one is part of that one. */
static unsigned depth;

static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	require(function != NULL, name);
	return function;
}

static void count_fence(void)
{
	fences += depth == 0;
}

static void count_lines(const void *address, size_t length)
{
	if (depth != 0)
		return;
	uintptr_t first = (uintptr_t)address / 64;
	uintptr_t last = ((uintptr_t)address + length + 63) / 64;
	lines += length == 0 ? 0 : last - first;
}

static void count_copy(const void *address, size_t length, unsigned flags)
{
	if (flags & PMEM_F_MEM_NOFLUSH)
		return;
	count_lines(address, length);
	if (!(flags & PMEM_F_MEM_NODRAIN))
		count_fence();
}

void pmem_drain(void)
{
	static void (*real)(void);
	if (real == NULL)
		*(void **)&real = next("pmem_drain");
	count_fence();
	depth++;
	real();
	depth--;
}

void pmem_flush(const void *address, size_t length)
{
	static void (*real)(const void *, size_t);
	if (real == NULL)
		*(void **)&real = next("pmem_flush");
	count_lines(address, length);
	depth++;
	real(address, length);
	depth--;
}

void pmem_persist(const void *address, size_t length)
{
	static void (*real)(const void *, size_t);
	if (real == NULL)
		*(void **)&real = next("pmem_persist");
	count_lines(address, length);
	count_fence();
	depth++;
	real(address, length);
	depth--;
}

void *pmem_memcpy(void *to, const void *from, size_t length, unsigned flags)
{
	static void *(*real)(void *, const void *, size_t, unsigned);
	if (real == NULL)
		*(void **)&real = next("pmem_memcpy");
	count_copy(to, length, flags);
	depth++;
	real(to, from, length, flags);
	depth--;
	return to;
}

void *pmem_memmove(void *to, const void *from, size_t length, unsigned flags)
{
	static void *(*real)(void *, const void *, size_t, unsigned);
	if (real == NULL)
		*(void **)&real = next("pmem_memmove");
	count_copy(to, length, flags);
	depth++;
	real(to, from, length, flags);
	depth--;
	return to;
}

void *pmem_memset(void *to, int byte, size_t length, unsigned flags)
{
	static void *(*real)(void *, int, size_t, unsigned);
	if (real == NULL)
		*(void **)&real = next("pmem_memset");
	count_copy(to, length, flags);
	depth++;
	real(to, byte, length, flags);
	depth--;
	return to;
}

#pragma GCC visibility pop

enum { SIZE = 64, POOL_MIB = 512, BATCH = 100, RANGES = 10, TIMES = 1000 };
/* Bytes between ranges declared at once, and of the object that they are in. */
enum { DISTANCE = 512, OBJECT_BYTES = 16384 };

/* Prints what each of `operations` took since the counters were 0, and sets them to 0. */
static void report(const char *what, uint64_t operations)
{
	char name[64];
	snprintf(name, sizeof name, "fences.%s", what);
	row(name, "fences", operations, (double)fences / (double)operations);
	snprintf(name, sizeof name, "lines.%s", what);
	row(name, "lines", operations, (double)lines / (double)operations);
	fences = 0;
	lines = 0;
}

static void count_blocks(PMEMobjpool *pool)
{
	static PMEMoid oids[TIMES * BATCH];
	struct pobj_action actions[BATCH];
	fences = lines = 0;
	for (unsigned at = 0; at < TIMES; at++)
		require(pmemobj_alloc(pool, &oids[at], SIZE, TYPE, NULL, NULL) == 0, "alloc");
	report("alloc.64", TIMES);
	for (unsigned at = 0; at < TIMES; at++)
		pmemobj_free(&oids[at]);
	report("free.64", TIMES);
	for (unsigned round = 0; round < TIMES; round++) {
		for (unsigned at = 0; at < BATCH; at++)
			pmemobj_reserve(pool, &actions[at], SIZE, TYPE);
		require(pmemobj_publish(pool, actions, BATCH) == 0, "publish");
	}
	report("publish.100", (uint64_t)TIMES * BATCH);
}

/* Transactions that write so many ranges of so many bytes. */
static void count_writes(PMEMobjpool *pool, const char *what, size_t ranges, size_t size)
{
	PMEMoid oid;
	require(pmemobj_zalloc(pool, &oid, OBJECT_BYTES, TYPE) == 0, "alloc");
	char *bytes = pmemobj_direct(oid);
	fences = lines = 0;
	for (unsigned round = 0; round < TIMES; round++) {
		require(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0, "begin");
		for (size_t at = 0; at < ranges; at++)
			require(pmemobj_tx_add_range_direct(bytes + at * DISTANCE, size) == 0,
				"add_range");
		for (size_t at = 0; at < ranges; at++)
			memset(bytes + at * DISTANCE, (int)round, size);
		pmemobj_tx_commit();
		require(pmemobj_tx_end() == 0, "a transaction was aborted");
	}
	report(what, TIMES);
	pmemobj_free(&oid);
}

void group_fences(const struct settings *settings)
{
	PMEMobjpool *pool = pool_create(settings, POOL_MIB);
	count_blocks(pool);
	count_writes(pool, "empty", 0, 0);
	count_writes(pool, "write.8", 1, 8);
	count_writes(pool, "write.8.large", 1, 8);
	count_writes(pool, "write.64", 1, 64);
	count_writes(pool, "write.1024", 1, 1024);
	count_writes(pool, "ranges.10", RANGES, 64);
	pool_remove(settings, pool);
}

#else

void group_fences(const struct settings *settings)
{
	(void)settings;
	require(0, "fences are counted by a build with COUNT_FENCES");
}

#endif
