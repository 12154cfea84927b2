/* SPDX-License-Identifier: Apache-2.0 */
/** bench_print.h - the answer about tables of nccl-tests (answer/bench.h), for people. */
#ifndef KOLO_TOOL_BENCH_PRINT_H
#define KOLO_TOOL_BENCH_PRINT_H

#include "answer/bench.h"

#include <stdbool.h>

/** `all`: every size of every table. */
void kl_bench_text(const struct kl_bench *bench, bool all, FILE *to);

#endif
