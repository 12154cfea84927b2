/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "base/error.h"
#include "base/log.h"
#include "device/host/device.h"
#include "os/affinity.h"
#include "topo/machine.h"
#include "topo/xml.h"

#include <unistd.h>

static ncclResult_t check_file(const char *path, struct kl_xml **file)
{
    KL_TRY(kl_xml_check_system(*file));
    if (kl_machine_file_gpus(*file) > 0) return ncclSuccess;
    KL_WARN("%s names no GPU, so it says nothing about host devices: not used", path);
    kl_xml_free(*file);
    *file = NULL;
    return ncclSuccess;
}

ncclResult_t kl_devices_file(const struct kl_comm_config *config, struct kl_xml **file)
{
    const char *path = config->topo_file;
    struct kl_xml *loaded = NULL;

    *file = NULL;
    if (!*path) return ncclSuccess;
    if (access(path, R_OK)) {
        KL_WARN("NCCL_TOPO_FILE=%s cannot be read: this machine is detected instead", path);
        return ncclSuccess;
    }
    KL_TRY(kl_xml_load(path, kl_xml_topo_schema, &loaded));
    ncclResult_t rc = check_file(path, &loaded);
    if (rc)
        kl_xml_free(loaded);
    else
        *file = loaded;
    return rc;
}

int kl_devices_count(const struct kl_comm_config *config, const struct kl_xml *file)
{
    struct kl_device_facts facts = {
        .configured = (int)config->host_devices,
        .file = file ? kl_machine_file_gpus(file) : 0,
        .local_size = kl_device_job_local_size(),
        .cpus = kl_affinity_count(),
    };

    return kl_device_count(&facts);
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
