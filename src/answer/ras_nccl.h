/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras_nccl.h - a status of RAS in exactly the bytes of NCCL's service (JSON, releases 2.28.7 to 2.32), with faults that a script names:
 * a double of the service for programs that read it.
 *
 * The report is NCCL's own or comes from `kolo ras --json`. Only keys that NCCL has are written. A fault applies to the ranks of this
 * number in every communicator.
 *
 * Source: the format strings of libnccl 2.32.3.
 */
#ifndef KL_ANSWER_RAS_NCCL_H
#define KL_ANSWER_RAS_NCCL_H

#include "include/nccl.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

enum kl_ras_fault_kind {
    KL_RAS_DEAD,    /* missing, considered dead */
    KL_RAS_SILENT,  /* missing, unresponsive */
    KL_RAS_BEHIND,  /* has called `value` collectives fewer, of each function that was called */
    KL_RAS_INIT,    /* init_state in progress */
    KL_RAS_FAILED,  /* async_error `value` */
    KL_RAS_ABORTED, /* abort_flag */
    KL_RAS_FINALIZED,
    KL_RAS_DESTROYED,
    KL_RAS_FAULTS
};

struct kl_ras_fault {
    int rank;
    enum kl_ras_fault_kind kind;
    int value;
};

/** "3=dead", "2=behind:5", "0=error:6". ncclInvalidArgument, with the kinds there are. */
ncclResult_t kl_ras_fault_read(const char *text, struct kl_ras_fault *fault);

/** Is each fault of a rank that a communicator of the report has? ncclInvalidArgument, with the rank. */
ncclResult_t kl_ras_faults_check(const json_t *report, const struct kl_ras_fault *fault, int n);

/** Write the report; `now` is its time stamp. ncclInvalidUsage: it is none. */
ncclResult_t kl_ras_nccl_print(const json_t *report, const struct kl_ras_fault *fault, int n, time_t now, FILE *to);

#endif
