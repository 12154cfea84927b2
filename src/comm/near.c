/* SPDX-License-Identifier: Apache-2.0 */
/**
 * near.c - binds a rank's thread: during init on the CPUs near its device, so that the memory it touches first is
 * there; then, where ranks share CPUs, at first on one of them in turn.
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

/* CPUs that only a file names are no reason to fail: ranks that run elsewhere are slower. */
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

static void come_back(ncclComm_t comm, const struct kl_cpuset *home)
{
    if (!pin(home, NULL))
        KL_WARN("rank %d: the thread stays on fewer CPUs than it had: %s", comm->rank, kl_error_text());
}

void kl_comm_move_back(ncclComm_t comm)
{
    if (comm->init.home) come_back(comm, comm->init.home);
    free(comm->init.home);
    comm->init.home = NULL;
}

/* Number of ranks before this one on its machine. */
static int place_on_machine(ncclComm_t comm)
{
    int place = 0;

    for (int r = 0; r < comm->rank; r++) place += comm->peers[r].machine == comm->peers[comm->rank].machine;
    return place;
}

void kl_comm_spread(ncclComm_t comm)
{
    struct kl_cpuset home, one = {{0}};
    int cpu = -1, quiet = kl_error_quiet(1);
    bool known = !kl_affinity_get(&home);

    kl_error_quiet(quiet);
    if (!known || kl_cpuset_count(&home) < 2) return;
    for (int i = place_on_machine(comm) % kl_cpuset_count(&home); i >= 0; i--) cpu = kl_cpuset_next(&home, cpu + 1);
    kl_cpuset_add(&one, cpu);
    if (pin(&one, NULL)) come_back(comm, &home);
}
