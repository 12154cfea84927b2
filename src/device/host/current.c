/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/current.h"

#include "base/atomic.h"
#include "base/threadlocal.h"
#include "os/affinity.h"

#include <stdlib.h>

enum { FEWEST = 8 };

static KL_THREAD_LOCAL int selected = -1, chosen = -1;
/* for threads that never chose: the device of the process's first communicator */
static _Atomic int first_adopted = -1;

/* As set by torchrun, kolo run, Open MPI or MPICH; 0 if by none. */
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

int kl_host_count(int setting, int file_gpus)
{
    int size = local_size(), cpus = kl_affinity_count();

    if (setting > 0) return setting;
    if (file_gpus > 0) return file_gpus;
    if (size > 0) return size;
    return cpus > FEWEST ? cpus : FEWEST;
}

int kl_host_node(int device, int count, const int *nodes, int nnodes)
{
    if (nnodes <= 1) return nnodes == 1 && nodes[0] > 0 ? nodes[0] : 0;
    return nodes[(long)(device % count) * nnodes / count];
}

void kl_host_select(int device)
{
    selected = chosen = device;
}

int kl_host_chosen(bool selected_only)
{
    return selected_only ? selected : chosen;
}

void kl_host_adopt(int device)
{
    int none = -1;

    if (chosen < 0) chosen = device;
    kl_cas_acq_rel(&first_adopted, &none, device);
}

int kl_host_current(void)
{
    int adopted = kl_load_relaxed(&first_adopted);

    if (chosen >= 0) return chosen;
    return adopted >= 0 ? adopted : 0;
}
