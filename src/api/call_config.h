/* SPDX-License-Identifier: Apache-2.0 */
/**
 * call_config.h - ncclCollConfig_t, of every version of NCCL that has one: read, checked, and made limits of.
 *
 * The struct grows at its end; its size says how much may be read.
 *
 * Threads: any; pure but for the errors.
 */
#ifndef KL_API_CALL_CONFIG_H
#define KL_API_CALL_CONFIG_H

#include "coll/schedule/limits.h"
#include "include/nccl.h"

struct ncclComm;

struct kl_call_config {
    struct kl_limits limits;
    bool selects;      /* algorithms are named, whichever function they are named for */
    cudaEvent_t event; /* to be recorded before the operation; NULL: none */
};

/**
 * Read a config for a call of `func` (enum kl_func; KL_FUNC_ALL_TO_ALL: of a function that has no algorithms), named `function` in
 * errors. A value out of range: ncclInvalidArgument. Names of algorithms that do not exist: ncclInvalidUsage.
 */
ncclResult_t kl_call_config_read(const ncclCollConfig_t *config, int func, const char *function,
                                 struct kl_call_config *read);

/**
 * Record the event on `stream`; NULL: nothing. An event of CUDA if the communicator is on GPUs, or the process has CUDA's runtime,
 * else one of kolo.h.
 */
ncclResult_t kl_call_config_record(const struct kl_call_config *config, const struct ncclComm *comm,
                                   cudaStream_t stream, const char *function);

#endif
