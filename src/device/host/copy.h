/* SPDX-License-Identifier: Apache-2.0 */
/** copy.h - copies between host devices, and filling of their memory, for device/device.h. */
#ifndef KL_DEVICE_HOST_COPY_H
#define KL_DEVICE_HOST_COPY_H

#include "device/host/stream.h"

#include <stddef.h>

ncclResult_t kl_host_copy(void *to, const void *from, size_t bytes);
ncclResult_t kl_host_copy_on(struct kl_stream *stream, void *to, const void *from, size_t bytes);
ncclResult_t kl_host_fill_on(struct kl_stream *stream, void *to, int value, size_t bytes);

#endif
