/* SPDX-License-Identifier: Apache-2.0 */
/**
 * together.h - a step of init that may fail on one rank only: then it fails on all of them, with the same sentence.
 *
 * Errors:  the rank's own failure with its code, prefixed by the rank; elsewhere ncclInvalidUsage with the sentence of the
 *          lowest rank that failed.
 * Threads: the rank's own; it waits for all ranks.
 */
#ifndef KL_COMM_TOGETHER_H
#define KL_COMM_TOGETHER_H

#include "comm/comm.h"

/** Every rank calls it with the result of its own step; if that failed, the thread's last sentence says why. */
ncclResult_t kl_comm_fail_together(ncclComm_t comm, ncclResult_t mine);

#endif
