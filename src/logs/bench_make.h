/* SPDX-License-Identifier: Apache-2.0 */
/** bench_make.h - for the bench_*.c files only. */
#ifndef KL_LOGS_BENCH_MAKE_H
#define KL_LOGS_BENCH_MAKE_H

#include "logs/bench.h"

enum kl_bench_begin {
    KL_BENCH_SAME,  /* go on with the last table */
    KL_BENCH_AGAIN, /* sizes begin anew, as for another type: it has the last one's name and ranks */
    KL_BENCH_NEW    /* another run, which has nothing of the last one */
};

/** The table that rows go to; one without rows is never followed by another. NULL: it is one too many, or no memory. */
struct kl_bench_table *kl_bench_table_at(struct kl_bench *bench, struct kl_log_at at, enum kl_bench_begin begin);

/** A row of this size at the end of the last table, or of another where sizes begin anew; NULL: as above. */
struct kl_bench_row *kl_bench_row_of(struct kl_bench *bench, struct kl_log_at at, int64_t size);

/** Ranks, hosts and GPUs of a table, by the list of ranks above it. */
ncclResult_t kl_bench_read_ranks(const struct kl_bench *bench, struct kl_bench_table *table);

/** Bus over algorithm bandwidth of a table's collective, by its number of ranks; 1 where the name tells none. */
double kl_bench_bus_factor(const struct kl_bench_table *table);

/** Findings of the tables by themselves, and the model's times. */
void kl_bench_judge(struct kl_bench *bench);
ncclResult_t kl_bench_model(struct kl_bench *bench, const struct kl_cluster_request *request);

#endif
