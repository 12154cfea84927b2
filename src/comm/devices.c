/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "base/error.h"
#include "os/affinity.h"
#include "topo/machine.h"
#include "topo/xml.h"

#include <stdlib.h>

ncclResult_t kl_devices_file(const struct kl_comm_config *config, struct kl_xml **file)
{
    *file = NULL;
    return *config->topo_file ? kl_machine_read_file(config->topo_file, true, file) : ncclSuccess;
}

/* As torchrun, kolo run, Open MPI or MPICH say; 0 if none does. */
static int local_size(void)
{
    static const char *const names[] = {"KOLO_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALNRANKS"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        long size = text ? strtol(text, NULL, 10) : 0;
        if (size > 0 && size <= 1 << 20) return (int)size;
    }
    return 0;
}

int kl_devices_count(const struct kl_comm_config *config, const struct kl_xml *file)
{
    int gpus = file ? kl_machine_file_gpus(file) : 0, size = local_size(), cpus = kl_affinity_count();

    if (config->host_devices > 0) return (int)config->host_devices;
    if (gpus > 0) return gpus;
    if (size > 0) return size;
    return cpus > 8 ? cpus : 8;
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
