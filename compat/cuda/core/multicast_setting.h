/* SPDX-License-Identifier: Apache-2.0 */
/**
 * multicast_setting.h - which devices have multicast: sm_90 and newer behind NVSwitches, or as KOLO_CUDA_MULTICAST says.
 *
 * KOLO_CUDA_MULTICAST=0: none. 1: all. unready: all, but binding memory is error 802, as without a fabric manager.
 * Threads: any.
 */
#ifndef KL_CUDA_MULTICAST_SETTING_H
#define KL_CUDA_MULTICAST_SETTING_H

#include <stdbool.h>

struct kl_cuda_device;

bool kl_cuda_multicast_supported(const struct kl_cuda_device *device);
bool kl_cuda_multicast_ready(void);

#endif
