/* SPDX-License-Identifier: Apache-2.0 */
/** refuse.h - ncclInvalidUsage with a reason for programs: koloGetLastReason. */
#ifndef KL_DEVICE_HOST_REFUSE_H
#define KL_DEVICE_HOST_REFUSE_H

#include "base/error.h"
#include "include/kolo.h"

/** As KL_FAIL with ncclInvalidUsage; stores the reason for the calling thread. */
#define KL_REFUSE(reason, ...) (kl_refuse(reason), KL_FAIL(ncclInvalidUsage, __VA_ARGS__))

void kl_refuse(koloReason_t reason);
koloReason_t kl_refuse_reason(void);

#endif
