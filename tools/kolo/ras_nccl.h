/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras_nccl.h - NCCL's RAS service: asked, and doubled for programs that read it.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KOLO_TOOL_RAS_NCCL_H
#define KOLO_TOOL_RAS_NCCL_H

#include "answer/ras_nccl.h"

/**
 * Ask the service at HOST[:PORT] (28028) for its status, in JSON where the release speaks it (2.28.7), else as text. free(*answer).
 * Blocks for `timeout_ms` at most.
 */
ncclResult_t kl_ras_nccl_ask(const char *address, int timeout_s, int timeout_ms, char **answer);

/** Answer clients at an address with the report, one after the other, until the process ends; port 0: any, which is printed. */
ncclResult_t kl_ras_nccl_serve(const char *address, const json_t *report, const struct kl_ras_fault *fault, int n);

#endif
