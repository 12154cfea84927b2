/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/device.h"

#include "base/atomic.h"

#include <stdlib.h>

static _Thread_local int asked = -1, chosen = -1;
static _Atomic int first_adopted = -1; /* for threads that never chose: where the process's work is */

int kl_device_count(const struct kl_device_facts *facts)
{
    if (facts->configured > 0) return facts->configured;
    if (facts->file > 0) return facts->file;
    if (facts->local_size > 0) return facts->local_size;
    return facts->cpus > 8 ? facts->cpus : 8;
}

int kl_device_job_local_size(void)
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

void kl_device_set(int device)
{
    asked = chosen = device;
}

int kl_device_asked(void)
{
    return asked;
}

int kl_device_chosen(void)
{
    return chosen;
}

void kl_device_adopt(int device)
{
    int none = -1;

    if (chosen < 0) chosen = device;
    kl_cas_acq_rel(&first_adopted, &none, device);
}

int kl_device_current(void)
{
    int adopted = kl_load_relaxed(&first_adopted);

    if (chosen >= 0) return chosen;
    return adopted >= 0 ? adopted : 0;
}

int kl_device_node(int device, int count, const int *nodes, int nnodes)
{
    if (nnodes <= 1) return nnodes == 1 && nodes[0] > 0 ? nodes[0] : 0;
    return nodes[(long)(device % count) * nnodes / count];
}
