/* SPDX-License-Identifier: Apache-2.0 */
/** window.h - buffers that all ranks of a communicator register together. */
#ifndef KL_COMM_WINDOW_H
#define KL_COMM_WINDOW_H

#include "comm/job.h"

/**
 * Every rank calls it, with the same flags (else ncclInvalidUsage): `*window` is written when all have. By a job, which
 * it ends; if one rank fails, all fail, and no window is left.
 */
ncclResult_t kl_comm_open_window(struct ncclComm *comm, void *ptr, size_t bytes, int flags, ncclWindow_t *window);

/** No window of this communicator: ncclInvalidUsage. */
ncclResult_t kl_comm_close_window(struct ncclComm *comm, ncclWindow_t window);

#endif
