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

/** Place before the definition of `function`, in the same file. */
#define KL_PNCCL(function)                                                                                             \
    extern __typeof__(function) function __attribute__((weak));                                                        \
    extern __typeof__(function) p##function __attribute__((alias(#function)))

/** The stream of a program's handle in calls without a communicator: the current device's, where the handle stands for
 * one per device. */
static inline ncclResult_t kl_api_stream(koloStream_t handle, struct kl_stream **stream)
{
    return kl_user_stream_of(handle, kl_user_stream_is_devices(handle) ? kl_host_devices.current() : 0, stream);
}

#endif
