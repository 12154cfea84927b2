/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_json.h - the results as JSON, with the keys of nccl-tests' output file.
 *
 * Contents: {version, start_time, end_time, args[], env[], nccl_version, config{}, devices[], results[],
 *           average_bus_bandwidth{}, out_of_bounds{}, errors[]}. Of the environment only NCCL_* and KOLO_*, without
 *           secrets.
 * Errors:   -1 with errno set; a document that could not be kept complete for lack of memory is an error when written.
 */
#ifndef KOLO_TOOL_PERF_JSON_H
#define KOLO_TOOL_PERF_JSON_H

#include "tools/kolo/perf_table.h"

struct kl_perf_json;

/** A new document for `file`, which is created now, so that an unwritable place shows before the measurement. */
struct kl_perf_json *kl_perf_json_open(const char *file, int argc, char *const *argv);

void kl_perf_json_config(struct kl_perf_json *json, const struct kl_perf_config *config);
void kl_perf_json_devices(struct kl_perf_json *json, const struct kl_perf_device *devices, int nranks);
void kl_perf_json_row(struct kl_perf_json *json, const struct kl_perf_config *config, const struct kl_perf_row *row,
                      int nprocesses);

/** Write the document and free it. NULL is fine. */
int kl_perf_json_close(struct kl_perf_json *json, const struct kl_perf_summary *summary);

#endif
