/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning_measured.h - measured times of operations on one machine, which the tuning model uses instead of its constants.
 *
 * Times are of ranks of one host that are processes, with every algorithm and the protocol Simple, for a few numbers of ranks and sizes.
 * Between these they are straight lines; below the smallest and above the largest size they are extrapolated. `kolo tune` measures them.
 *
 * Units:    microseconds; bytes of the whole (kl_tuning_op).
 * Contents: a text: a first line, the machine, a line for each function, algorithm and number of ranks, and a checksum against
 *           truncated and edited files.
 * Threads:  any; const once read.
 */
#ifndef KL_GRAPH_TUNING_MEASURED_H
#define KL_GRAPH_TUNING_MEASURED_H

#include "graph/tuning.h"

#include <stddef.h>

enum { KL_MEASURED_RANKS = 3, KL_MEASURED_SIZES = 8, KL_MEASURED_TEXT = 16384, KL_MEASURED_MACHINE = 160 };

/** Ascending. */
extern const int kl_measured_ranks[KL_MEASURED_RANKS];
extern const int64_t kl_measured_bytes[KL_MEASURED_SIZES];

struct kl_tuning_measured {
    float us[KL_FUNCS][KL_ALGOS][KL_MEASURED_RANKS][KL_MEASURED_SIZES]; /* 0: not measured; a line is, or is not */
};

/** The time; 0 without a measurement. Up to the largest measured number of ranks it does not fall with the size. */
float kl_tuning_measured_us(const struct kl_tuning_measured *m, int func, int algo, int nranks, int64_t bytes);

/** A checksum: equal on all ranks with the same times; not 0. */
uint32_t kl_tuning_measured_mark(const struct kl_tuning_measured *m);

/** Returns the bytes of the text, or 0 if `room` is too small. `machine`: one line. */
size_t kl_tuning_measured_print(const struct kl_tuning_measured *m, const char *machine, char *text, size_t room);

/**
 * ncclInvalidUsage, with the reason only in `why`, for another text or a text of another machine. On failure `m` is
 * unchanged. On success times are finite and do not fall with the size.
 */
ncclResult_t kl_tuning_measured_parse(const char *text, size_t bytes, const char *machine, struct kl_tuning_measured *m,
                                      const char **why);

#endif
