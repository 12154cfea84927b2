/* SPDX-License-Identifier: Apache-2.0 */
/** bench_print.h - tables of nccl-tests, as text and as JSON. */
#ifndef KOLO_TOOL_BENCH_PRINT_H
#define KOLO_TOOL_BENCH_PRINT_H

#include "logs/bench.h"

#include <stdio.h>

/** `all`: every size of every table. */
void kl_bench_text(const struct kl_bench *bench, bool all, FILE *to);
ncclResult_t kl_bench_json(const struct kl_bench *bench, FILE *to);

#endif
