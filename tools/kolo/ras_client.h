/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras_client.h - query processes with communicators for their state (comm/watch/ras.h), in NCCL's text protocol.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KOLO_TOOL_RAS_CLIENT_H
#define KOLO_TOOL_RAS_CLIENT_H

#include "include/nccl.h"

/** A process that listens. */
struct kl_ras_process {
    int pid; /* 0: an address, of whatever process */
    char name[108];
};

/** The processes of this network namespace, by pid; free(*process). */
ncclResult_t kl_ras_processes(struct kl_ras_process **process, int *n);

/**
 * Send `question` (lines), and receive the whole answer; free(*answer). ncclRemoteError: nothing came within
 * `timeout_ms`.
 */
ncclResult_t kl_ras_ask(const struct kl_ras_process *process, const char *question, int timeout_ms, char **answer);

#endif
