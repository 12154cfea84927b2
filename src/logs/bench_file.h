/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench_file.h - tables from files: texts, or the JSON that nccl-tests write with -J, of any nesting.
 *
 * Errors:  ncclSystemError for a file that cannot be read; ncclInvalidUsage for a JSON document that is none, or cut.
 */
#ifndef KL_LOGS_BENCH_FILE_H
#define KL_LOGS_BENCH_FILE_H

#include "logs/bench.h"

/** Add a text of either kind, or a file ("-": standard input). */
ncclResult_t kl_bench_add_any(struct kl_bench *bench, const char *name, const char *text, size_t bytes);
ncclResult_t kl_bench_add_file(struct kl_bench *bench, const char *path);

#endif
