/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_merge.h - the traces of several ranks on one time axis, and their joint findings.
 *
 * Each rank's trace has its clock's offset to rank 0's. Traces of several communicators may be merged too; each rank of
 * each is a process of the result.
 *
 * Errors: reported with KL_FAIL, naming the file.
 */
#ifndef KOLO_TOOL_TRACE_MERGE_H
#define KOLO_TOOL_TRACE_MERGE_H

#include "include/nccl.h"

#include <jansson.h>
#include <stdio.h>

/** How a rank came to the collectives that all ranks of its communicator have in their traces. */
struct kl_trace_rank {
    char communicator[32];
    int rank;
    long last;         /* of how many it was the last to begin */
    double late_us;    /* by how much it was later than the first, on average over all */
    double waiting_us; /* in all */
    double error_us;   /* of its clock; negative: it is not known */
};

struct kl_trace_findings {
    struct kl_trace_rank *rank;
    int nranks;
    long events, lost;
    long compared; /* collectives */
};

/** Write the merged trace to `out`. `findings` is set in every case; free it with kl_trace_findings_fini. */
ncclResult_t kl_trace_merge(char **files, int n, const char *out, struct kl_trace_findings *findings);
void kl_trace_findings_fini(struct kl_trace_findings *findings);

void kl_trace_findings_text(const struct kl_trace_findings *findings, const char *out, FILE *to);
json_t *kl_trace_findings_json(const struct kl_trace_findings *findings);

#endif
