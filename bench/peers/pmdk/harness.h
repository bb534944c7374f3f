/*
 * What every group of measurements of libpmemobj shares: arguments, a clock, rows as JSON lines,
 * and pools that are removed at the end. Not thread safe, but for `now` and `require`.
 */
#ifndef ADAMANT_PMDK_HARNESS_H
#define ADAMANT_PMDK_HARNESS_H

#include <libpmemobj.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT "adamant-peers"
#define MIB ((size_t)1 << 20)

/* The row's type number of every object: libpmemobj asks for one and does not look at it. */
enum { TYPE = 1 };

struct settings {
	const char *group;
	const char *path;         /* a directory on a medium that libpmem takes for memory */
	uint64_t operations;      /* single operations of a row */
	uint64_t inserts;         /* inserts of one transaction, and objects of a full pool */
	uint64_t frees_max;       /* objects freed by the largest transaction */
	uint64_t large_pool_mib;  /* size of the pool whose creation is timed */
	uint64_t sizes;           /* how many sizes, of 41,943, are asked for */
};

/* Ends the program, saying what failed and what libpmemobj says, unless `holds`. */
void require(int holds, const char *what);

/* Seconds of a clock that never goes back. */
double now(void);

/*
 * Seconds that this thread has had a processor. Of work that never waits this is the time that it
 * takes on a machine of its own.
 */
double thread_seconds(void);

/* Prints a row. */
void row(const char *name, const char *unit, uint64_t n, double figure);

/* Prints a row of nanoseconds for each of `n` operations that took `seconds`. */
void row_nanoseconds(const char *name, uint64_t n, double seconds);

/* A pool of its own in the directory of the settings, of `mib` mebibytes. */
PMEMobjpool *pool_create(const struct settings *settings, size_t mib);

/* Opens it again. */
PMEMobjpool *pool_open(const struct settings *settings);

/* Bytes that the pool's file takes on the medium. */
uint64_t pool_bytes(const struct settings *settings);

/* Closes and removes it. */
void pool_remove(const struct settings *settings, PMEMobjpool *pool);

/* Allocates `count` objects of `size` bytes, many at a time, into `oids`. */
void allocate_many(PMEMobjpool *pool, PMEMoid *oids, uint64_t count, size_t size);

/* `calloc` that ends the program when there is no memory. */
void *memory_for(uint64_t count, size_t size);

/* The groups, one in each file: see README.md. */
void group_blocks(const struct settings *settings);
void group_actions(const struct settings *settings);
void group_writes(const struct settings *settings);
void group_frees(const struct settings *settings);
void group_inserts(const struct settings *settings);
void group_space(const struct settings *settings);
void group_open(const struct settings *settings);
void group_fences(const struct settings *settings);

#endif
