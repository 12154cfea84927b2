/* SPDX-License-Identifier: Apache-2.0 */
/** limit.h - how much memory an emulated device has. */
#ifndef KL_CUDA_LIMIT_H
#define KL_CUDA_LIMIT_H

#include <stddef.h>

/** KOLO_DEVICE_MEMORY, else the memory of this machine or of the process's control group, divided by `devices`; whole MiB. */
size_t kl_cuda_limit_of_device(int devices);

#endif
