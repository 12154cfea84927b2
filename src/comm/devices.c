/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "base/error.h"
#include "device/device.h"
#include "topo/machine.h"
#include "topo/xml.h"

ncclResult_t kl_devices_file(const struct kl_comm_config *config, struct kl_xml **file)
{
    *file = NULL;
    return *config->topo_file ? kl_machine_read_file(config->topo_file, true, file) : ncclSuccess;
}

int kl_devices_count(const struct kl_comm_config *config, const struct kl_xml *file)
{
    struct kl_device_hints hints = {.setting = (int)config->host_devices,
                                    .file_gpus = file ? kl_machine_file_gpus(file) : 0};

    return kl_devices()->count(&hints);
}

ncclResult_t kl_devices_count_now(int *count)
{
    struct kl_comm_config config;
    struct kl_xml *file;

    kl_comm_config_load(&config);
    KL_TRY(kl_devices_file(&config, &file));
    *count = kl_devices_count(&config, file);
    kl_xml_free(file);
    return ncclSuccess;
}
