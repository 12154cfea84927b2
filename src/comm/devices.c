/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "base/error.h"
#include "device/device.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/xml.h"

int kl_devices_count(const struct kl_xml *file)
{
    struct kl_device_config config;

    kl_param_load(&kl_device_param_set, &config);
    return kl_device_count(&config, file ? kl_machine_file_gpus(file) : 0);
}

ncclResult_t kl_devices_count_now(int *count)
{
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_xml *file;

    kl_topo_config_load(&config, &options);
    KL_TRY(kl_machine_read_file(config.topo_file, &file));
    *count = kl_devices_count(file);
    kl_xml_free(file);
    return ncclSuccess;
}
