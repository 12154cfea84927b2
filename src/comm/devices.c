/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "comm/config.h"
#include "device/host/device.h"
#include "os/affinity.h"

ncclResult_t kl_devices_count(int *count)
{
    struct kl_comm_config config;

    kl_comm_config_load(&config);
    struct kl_device_facts facts = {
        .configured = (int)config.host_devices,
        .local_size = kl_device_job_local_size(),
        .cpus = kl_affinity_count(),
    };
    *count = kl_device_count(&facts);
    return ncclSuccess;
}
