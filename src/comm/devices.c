/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/devices.h"

#include "base/error.h"
#include "comm/config.h"
#include "device/device.h"
#include "device/visible.h"
#include "os/hostinfo.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/xml.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *selection; /* what the variable said when it was first asked for; NULL: it was not set */

static void read_selection(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");

    selection = text ? strdup(text) : NULL;
}

static const char *selected(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_selection);
    return selection;
}

bool kl_devices_selected(void)
{
    return selected() != NULL;
}

int kl_devices_count(const struct kl_xml *file)
{
    struct kl_device_config config;
    int gpus = file ? kl_machine_file_gpus(file) : 0, named = kl_visible_extent(selected());

    kl_param_load(&kl_device_param_set, &config);
    int count = kl_device_count(&config, gpus);
    return config.host_devices || gpus || named < count ? count : named;
}

ncclResult_t kl_devices_count_of_host(int *count)
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

static ncclResult_t host_number(uint64_t *host)
{
    struct kl_comm_config config;

    kl_comm_config_load(&config);
    return kl_hostinfo_host_hash(config.hostid, host);
}

/* The visible devices, which the caller frees. */
static ncclResult_t list_visible(int **list, int *n)
{
    uint64_t host;
    int count;

    KL_TRY(kl_devices_count_of_host(&count));
    KL_TRY(host_number(&host));
    *list = calloc((size_t)count + 1, sizeof **list);
    if (!*list) return KL_NOMEM("a list of devices");
    *n = kl_visible_devices(selected(), count, host, *list);
    return ncclSuccess;
}

ncclResult_t kl_devices_count_now(int *count)
{
    int *list;

    if (!kl_devices_selected()) return kl_devices_count_of_host(count);
    KL_TRY(list_visible(&list, count));
    free(list);
    return ncclSuccess;
}

ncclResult_t kl_devices_ordinal(int device, int *ordinal)
{
    int *list, n;

    KL_TRY(list_visible(&list, &n));
    bool there = device >= 0 && device < n;
    if (there) *ordinal = list[device];
    free(list);
    if (there) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "device %d; there are %d (KOLO_HOST_DEVICES%s%s)", device, n,
                   kl_devices_selected() ? ", CUDA_VISIBLE_DEVICES=" : "", kl_devices_selected() ? selected() : "");
}

ncclResult_t kl_devices_uuid(int device, unsigned char uuid[16])
{
    uint64_t host;
    int ordinal;

    KL_TRY(kl_devices_ordinal(device, &ordinal));
    KL_TRY(host_number(&host));
    kl_uuid_of(host, ordinal, uuid);
    return ncclSuccess;
}
