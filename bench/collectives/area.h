/* SPDX-License-Identifier: Apache-2.0 */
/**
 * area.h - memory that all ranks of a measurement map: a barrier, the largest of numbers, a few bytes from rank 0 to all, and a cache line
 * that two ranks pass. The same for every library that is measured, so that none is measured by means of its own.
 *
 * Threads: each rank, which may be a thread, has an `area_end` of its own.
 * Errors:  a rank that waits for others for two minutes ends its process with status 1.
 */
#ifndef KOLO_BENCH_AREA_H
#define KOLO_BENCH_AREA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AREA_RANKS = 64, AREA_NUMBERS = 512, AREA_NOTE_BYTES = 256 };

struct area;

struct area_end {
    struct area *area;
    int rank, nranks;
    unsigned round; /* barriers passed */
    unsigned turn;  /* of the line that is passed */
};

/** For ranks that are threads or forked children of this process. NULL after an error message: no memory. */
struct area *area_create(void);
/** For ranks that another program starts: map an existing file of zeros, at least area_bytes long. NULL after an error message. */
struct area *area_open(const char *path);
size_t area_bytes(void);

void area_barrier(struct area_end *end);
/** numbers[i], i < count <= AREA_NUMBERS, become the largest of all ranks. */
void area_largest(struct area_end *end, double *numbers, int count);
/** The same, but their sum. */
void area_sum(struct area_end *end, double *numbers, int count);
/** `bytes` <= AREA_NOTE_BYTES of rank 0 reach the others. */
void area_tell(struct area_end *end, void *note, size_t bytes);
/** Ranks 0 and 1 pass a cache line to each other, `turns` times together, an even number. Only they call it. */
void area_pass(struct area_end *end, unsigned turns);

#ifdef __cplusplus
}
#endif
#endif
