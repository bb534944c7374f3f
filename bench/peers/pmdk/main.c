/*
 * Measures libpmemobj as `adamant-bench heap` measures Adamant: the same rows, as JSON lines.
 * One process measures one group, so that two libraries can take turns.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	void (*run)(const struct settings *settings);
} GROUPS[] = {
	{"blocks", group_blocks}, {"actions", group_actions}, {"writes", group_writes},
	{"frees", group_frees},   {"inserts", group_inserts}, {"space", group_space},
	{"open", group_open},     {"fences", group_fences},
};

static int usage(void)
{
	fputs("usage: pmdk GROUP DIRECTORY OPERATIONS INSERTS FREES_MAX LARGE_POOL_MIB SIZES\n"
	      "Needs PMEM_IS_PMEM_FORCE=1 where the directory is no persistent memory.\n",
	      stderr);
	return 2;
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "version") == 0) {
		printf("libpmemobj, interface %d.%d\n", PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION);
		return 0;
	}
	if (count != 8)
		return usage();
	uint64_t numbers[5];
	for (int at = 0; at < 5; at++) {
		char *end;
		numbers[at] = strtoull(arguments[at + 3], &end, 10);
		if (*end != '\0' || numbers[at] == 0)
			return usage();
	}
	struct settings settings = {
		.group = arguments[1],
		.path = arguments[2],
		.operations = numbers[0],
		.inserts = numbers[1],
		.frees_max = numbers[2],
		.large_pool_mib = numbers[3],
		.sizes = numbers[4] < 41943 ? numbers[4] : 41943,
	};
	for (size_t at = 0; at < sizeof GROUPS / sizeof GROUPS[0]; at++) {
		if (strcmp(settings.group, GROUPS[at].name) == 0) {
			GROUPS[at].run(&settings);
			return 0;
		}
	}
	fprintf(stderr, "pmdk: there is no group %s\n", settings.group);
	return 2;
}
