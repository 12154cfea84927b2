/* SPDX-License-Identifier: Apache-2.0 */
/**
 * api.h - shared by the public functions: checks of their streams, and their pncclX names.
 *
 * pncclX is the same body under a name that is never replaced. A tool that intercepts calls defines its own ncclX,
 * which is weak here, and calls pncclX.
 */
#ifndef KL_API_API_H
#define KL_API_API_H

#include "device/device.h"

/** Stands before the definition of `function`, which is in the same file. */
#define KL_PNCCL(function)                                                                                             \
    extern __typeof__(function) function __attribute__((weak));                                                        \
    extern __typeof__(function) p##function __attribute__((alias(#function)))

/** The stream that a program's handle names in calls without a communicator: of the current device, where it is one for each. */
static inline ncclResult_t kl_api_stream(koloStream_t handle, struct kl_stream **stream)
{
    const struct kl_device_kind *devices = kl_devices();

    return kl_device_stream_of(devices, handle, kl_user_stream_is_devices(handle) ? devices->current() : 0, stream);
}

#endif
