/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench.h - tables of nccl-tests, beside the model (logs/bench.h).
 *
 * Errors: as logs/bench_file.h.
 */
#ifndef KL_ANSWER_BENCH_H
#define KL_ANSWER_BENCH_H

#include "answer/texts.h"
#include "logs/bench.h"

#include <stdio.h>

/** Read and judge; `request` as kl_bench_finish takes it. Free with kl_bench_fini, also after a failure. */
ncclResult_t kl_bench_answer_make(const struct kl_named_text *text, int n, const struct kl_cluster_request *request,
                                  struct kl_bench *bench);
ncclResult_t kl_bench_json(const struct kl_bench *bench, FILE *to);

#endif
