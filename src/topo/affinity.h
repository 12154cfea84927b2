/* SPDX-License-Identifier: Apache-2.0 */
/**
 * affinity.h - sets of CPUs, as sysfs and topology files write them, and the set a rank should run on.
 *
 * A set is an array of 64-bit words, CPU 0 in bit 0 of word 0. The text is groups of 32 bits in lower-case hexadecimal,
 * most significant first, separated by commas; reading stops at the first other character.
 * Source: the topology specification, 16.
 */
#ifndef KL_TOPO_AFFINITY_H
#define KL_TOPO_AFFINITY_H

#include "topo/topo.h"

enum { KL_AFFINITY_WORDS = 256 }; /* 16384 CPUs */

/** Read a set; `word` holds KL_AFFINITY_WORDS. Returns the words used; 0 for NULL and for the empty set. */
int kl_affinity_parse(const char *text, uint64_t *word);

/**
 * The CPUs that the thread driving a GPU should run on: those of the GPU's NUMA node, within `allowed` (nallowed words)
 * unless NCCL_IGNORE_CPU_AFFINITY. Returns the words used, 0 when nothing is left: then change nothing.
 */
int kl_affinity_of_gpu(const struct kl_topo *t, int gpu, const uint64_t *allowed, int nallowed, uint64_t *word);

/** For logs: hexadecimal bytes, the most significant that is not zero first, a comma after every 4. Returns `text`. */
char *kl_affinity_text(const uint64_t *word, int nwords, char *text, size_t bytes);

#endif
