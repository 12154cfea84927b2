/* SPDX-License-Identifier: Apache-2.0 */
/**
 * near.c - init runs on the CPUs near its device, so that the memory it touches first is there.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "os/affinity.h"
#include "topo/paths.h"

#include <stdlib.h>

enum { LIST_TEXT = 1024 };

static void log_move(ncclComm_t comm, const struct kl_cpuset *cpus)
{
    char map[LIST_TEXT];
    struct kl_text text = kl_text_over(map, sizeof map);

    kl_cpuset_add_map(&text, cpus);
    KL_INFO(KL_INIT, "Setting affinity for GPU %d to %s", comm->device, map);
}

/* CPUs that only a file knows of are no reason to fail: who runs elsewhere is slower, and that is all. */
static bool pin(const struct kl_cpuset *cpus, struct kl_cpuset *before)
{
    int quiet = kl_error_quiet(1);
    bool pinned = !kl_affinity_pin(cpus, before);

    kl_error_quiet(quiet);
    return pinned;
}

ncclResult_t kl_comm_move_near(ncclComm_t comm)
{
    struct kl_cpuset here, near;

    KL_TRY(kl_affinity_get(&here));
    if (!kl_topo_affinity(comm->topo, kl_topo_gpu_of_rank(comm->topo, comm->rank), &here, &near)) return ncclSuccess;
    if (kl_log_on(KL_LOG_INFO, KL_INIT)) log_move(comm, &near);
    if (kl_cpuset_equal(&near, &here)) return ncclSuccess;
    struct kl_cpuset *home = malloc(sizeof *home);
    if (!home) return KL_NOMEM("the CPUs of a thread");
    if (pin(&near, home))
        comm->init.home = home;
    else
        free(home);
    return ncclSuccess;
}

void kl_comm_move_back(ncclComm_t comm)
{
    if (comm->init.home && !pin(comm->init.home, NULL))
        KL_WARN("rank %d: the thread stays on the CPUs near device %d: %s", comm->rank, comm->device, kl_error_text());
    free(comm->init.home);
    comm->init.home = NULL;
}
