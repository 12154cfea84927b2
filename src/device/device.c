/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

const struct kl_device_kind *const kl_device_kinds[] = {
    &kl_host_devices,
    NULL,
};
