/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/devices.h"

#include "base/atomic.h"
#include "base/error.h"
#include "comm/config.h"
#include "device/device.h"
#include "device/visible.h"
#include "os/hostinfo.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/xml.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *selection; /* the variable when it was first read; NULL: it was not set */

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

/* ---- how many ---- */

static int count_with(int gpus)
{
    struct kl_device_config config;
    int named = kl_visible_extent(selected());

    kl_param_load(&kl_device_param_set, &config);
    int count = kl_device_count(&config, gpus);
    return config.host_devices || gpus || named < count ? count : named;
}

int kl_devices_count(const struct kl_xml *file)
{
    return count_with(file ? kl_machine_file_gpus(file) : 0);
}

/* The topologies read so far: programs ask for devices frequently, and the file does not change meanwhile. Only
 * grows. */
struct known_machine {
    struct known_machine *next;
    int gpus;
    char path[KL_PARAM_TEXT], name[KL_PARAM_TEXT];
};

static _Atomic(struct known_machine *) known_machines;

static const struct known_machine *find_machine(const struct kl_topo_config *c)
{
    const struct known_machine *m = kl_load_acquire(&known_machines);

    while (m && (strcmp(m->path, c->topo_file) != 0 || strcmp(m->name, c->machine) != 0)) m = m->next;
    return m;
}

/* Two threads may both add a machine, with the same number. */
static ncclResult_t read_gpus(const struct kl_topo_config *c, int *gpus)
{
    struct kl_xml *file;

    KL_TRY(kl_machine_read_file(c->topo_file, c->machine, NULL, &file));
    *gpus = file ? kl_machine_file_gpus(file) : 0;
    kl_xml_free(file);
    struct known_machine *m = malloc(sizeof *m);
    if (!m) return ncclSuccess; /* read again at the next call */
    m->gpus = *gpus;
    snprintf(m->path, sizeof m->path, "%s", c->topo_file);
    snprintf(m->name, sizeof m->name, "%s", c->machine);
    m->next = kl_load_relaxed(&known_machines);
    while (!kl_cas_acq_rel(&known_machines, &m->next, m)) {
    }
    return ncclSuccess;
}

static ncclResult_t gpus_of(const struct kl_topo_config *c, int *gpus)
{
    const struct known_machine *m = find_machine(c);

    *gpus = m ? m->gpus : 0;
    return m || !(*c->topo_file || *c->machine) ? ncclSuccess : read_gpus(c, gpus);
}

ncclResult_t kl_devices_count_of_host(int *count)
{
    struct kl_topo_config config;
    struct kl_topo_options options;
    int gpus;

    kl_topo_config_load(&config, &options);
    KL_TRY(gpus_of(&config, &gpus));
    *count = count_with(gpus);
    return ncclSuccess;
}

/* ---- which ---- */

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

ncclResult_t kl_devices_count_of_kind(const struct kl_device_kind *devices, int *count)
{
    const struct kl_device_hints none = {0};

    if (devices == &kl_host_devices) return kl_devices_count_now(count);
    *count = devices->count(&none);
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
