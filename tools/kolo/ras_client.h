/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras_client.h - query processes with communicators for their state (comm/diagnosis/ras.h), in NCCL's text protocol.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KOLO_TOOL_RAS_CLIENT_H
#define KOLO_TOOL_RAS_CLIENT_H

#include "include/nccl.h"

#include <stdint.h>
#include <stdio.h>

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

/** The rest of an answer, until the service closes the connection. */
ncclResult_t kl_ras_receive(int fd, uint64_t deadline, const char *who, FILE *to);

#endif
