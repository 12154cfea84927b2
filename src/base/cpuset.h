/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cpuset.h - a set of CPUs, and the two ways in which the kernel writes one.
 *
 * A list is "0-3,8" (cpulist files), a map is "ff,ffffffff" (cpumap files, NCCL's affinity attribute): hexadecimal
 * words of 32 bits, most significant first. Parsing takes a final newline, either case of hex digits, and the stride
 * notation "0-10:2/4" of the kernel's lists.
 *
 * Sizes:    CPUs 0 to KL_CPUSET_CPUS - 1, the most that Linux can be configured for.
 * Errors:   parsing is silent: false, and the set untouched, for anything that is not such a text.
 * Source:   cpuset(7), "Formats"; the topology specification, 16.
 */
#ifndef KL_BASE_CPUSET_H
#define KL_BASE_CPUSET_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_CPUSET_CPUS = 8192, KL_CPUSET_WORDS = KL_CPUSET_CPUS / 64 };

struct kl_cpuset {
    uint64_t words[KL_CPUSET_WORDS]; /* CPU i is bit i % 64 of word i / 64, as in cpu_set_t */
};

static inline bool kl_cpuset_has(const struct kl_cpuset *set, int cpu)
{
    return cpu >= 0 && cpu < KL_CPUSET_CPUS && set->words[cpu / 64] >> cpu % 64 & 1;
}

static inline void kl_cpuset_add(struct kl_cpuset *set, int cpu)
{
    set->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

int kl_cpuset_count(const struct kl_cpuset *set);

/** The smallest CPU that is at least `cpu`, or -1:  for (int c = -1; (c = kl_cpuset_next(set, c + 1)) >= 0;) */
int kl_cpuset_next(const struct kl_cpuset *set, int cpu);

bool kl_cpuset_equal(const struct kl_cpuset *a, const struct kl_cpuset *b);

/** Intersect `set` with `other`. */
void kl_cpuset_intersect(struct kl_cpuset *set, const struct kl_cpuset *other);

bool kl_cpuset_parse_list(const char *text, struct kl_cpuset *set);
bool kl_cpuset_parse_map(const char *text, struct kl_cpuset *set);

/** "0-3,8"; nothing for an empty set. */
void kl_cpuset_add_list(struct kl_text *text, const struct kl_cpuset *set);

/** "0f,ffff0000", as NCCL logs an affinity: whole bytes, no leading zero bytes; "00" for an empty set. */
void kl_cpuset_add_map(struct kl_text *text, const struct kl_cpuset *set);

#endif
