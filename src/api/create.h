/* SPDX-License-Identifier: Apache-2.0 */
/** create.h - shared by the files that make and end communicators. */
#ifndef KL_API_CREATE_H
#define KL_API_CREATE_H

#include "comm/comm.h"

/** ncclCommAbort, for the public function called `function`. */
ncclResult_t kl_api_abort(ncclComm_t handle, const char *function);

/** Join as a rank, by one id; for the public function called `function`. */
ncclResult_t kl_api_join(ncclComm_t *comm, int nranks, int rank, const ncclUniqueId *id, const ncclConfig_t *config,
                         const char *function);

#endif
