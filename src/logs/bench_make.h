/* SPDX-License-Identifier: Apache-2.0 */
/** bench_make.h - for the bench_*.c files only. */
#ifndef KL_LOGS_BENCH_MAKE_H
#define KL_LOGS_BENCH_MAKE_H

#include "logs/bench.h"

/** The table that rows go to; a new one at `at` if `fresh` or none. NULL: no memory. */
struct kl_bench_table *kl_bench_table_at(struct kl_bench *bench, struct kl_log_at at, bool fresh);

/** A zeroed row at the end of the last table, which must be there; NULL: no memory. */
struct kl_bench_row *kl_bench_new_row(struct kl_bench *bench, struct kl_log_at at);

/** Read a text that begins with "{" or "[". */
void kl_bench_read_json(struct kl_bench *bench, int file, const char *text, size_t bytes);

/** What the tables show, and what the model says. */
void kl_bench_judge(struct kl_bench *bench);
ncclResult_t kl_bench_model(struct kl_bench *bench, const struct kl_cluster_request *request);

#endif
