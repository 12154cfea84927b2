/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peers.c - exchange the ranks' records, check that they fit together, and join the ranks of the same process.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "coll/gpu/names.h"
#include "comm/setup/devices.h"
#include "comm/setup/settings.h"
#include "comm/together.h"
#include "device/cuda/context.h"
#include "device/host/wait.h"
#include "device/host/executor.h"
#include "net/net.h"
#include "os/affinity.h"
#include "os/hostinfo.h"
#include "topo/config.h"
#include "topo/paths.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- my own record ---- */

static uint64_t random_number(void)
{
    uint64_t number;

    randombytes_buf(&number, sizeof number);
    return number;
}

/* Random, drawn once: two ranks with the same number share an address space. A forked child draws again. */
static uint64_t process_number(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t number; /* under lock, as pid */
    static pid_t pid;

    pthread_mutex_lock(&lock);
    if (pid != getpid()) {
        pid = getpid();
        number = random_number();
    }
    uint64_t mine = number;
    pthread_mutex_unlock(&lock);
    return mine;
}

/*
 * Ranks with equal numbers share memory. Without SHM the number is the process's, whose ranks reach each other by P2P;
 * without P2P as well it is the rank's own.
 */
static ncclResult_t find_memory(uint64_t *memory)
{
    struct kl_topo_options options;
    struct kl_topo_config config;

    kl_topo_config_load(&config, &options);
    if (!options.shm_disable) return kl_hostinfo_memory_hash(memory);
    *memory = options.p2p_disable || options.p2p_level == KL_PATH_LOC ? random_number() : process_number();
    return ncclSuccess;
}

/* The memory of another host's devices is reachable where one machine emulates both. */
static ncclResult_t find_fabric(const struct kl_comm_config *config, struct kl_peer *me)
{
    uint64_t memory;
    char name[96];

    me->fabric = me->host;
    if (!config->mnnvl) return ncclSuccess;
    KL_TRY(kl_hostinfo_memory_hash(&memory));
    snprintf(name, sizeof name, "KOLO_MNNVL %lld of %llx, %llx", (long long)config->mnnvl,
             (unsigned long long)me->machine, (unsigned long long)memory);
    return kl_hostinfo_host_hash(name, &me->fabric);
}

/* Where devices were selected, a rank that chose none has the first one, as in CUDA. */
static ncclResult_t choose_device(ncclComm_t comm, int32_t *ordinal)
{
    int count;

    *ordinal = comm->device;
    if (comm->devices != &kl_host_devices || !kl_devices_selected()) return ncclSuccess;
    KL_TRY(kl_devices_count_now(&count));
    if (comm->device < 0 && count) comm->device = 0;
    return comm->device < 0 ? ncclSuccess : kl_devices_ordinal(comm->device, ordinal);
}

static int32_t kind_of(const struct ncclComm *comm)
{
    int32_t kind = 0;

    while (kl_device_kinds[kind] != comm->devices) kind++;
    return kind;
}

/* Its GPU, with Kolo's kernels; the kind of devices is not decided where they cannot be used. */
static ncclResult_t try_device(const struct ncclComm *comm)
{
    const struct kl_device_kind *devices;
    const struct kl_cuda_context *context;

    KL_TRY(kl_devices(&devices));
    if (devices == &kl_host_devices) return ncclSuccess;
    return kl_cuda_context_of(comm->device, kl_kernel_names, KL_KERNEL_COUNT, &context);
}

static ncclResult_t describe_myself(ncclComm_t comm, struct kl_peer *me)
{
    char name[KL_HOSTNAME];
    struct kl_cpuset cpus;

    *me = (struct kl_peer){
        .version = KL_PEER_VERSION << 16 | NCCL_MINOR << 8 | NCCL_PATCH,
        .rank = comm->rank,
        .pid = getpid(),
        .kind = kind_of(comm),
        .process = process_number(),
        .job = random_number(),
        .settings = kl_comm_settings_hash(&comm->nccl_config, KL_ALIKE),
        .host_settings = kl_comm_settings_hash(&comm->nccl_config, KL_HOST_ALIKE),
    };
    KL_TRY(choose_device(comm, &me->device));
    KL_TRY(kl_hostinfo_host_hash(comm->config.hostid, &me->host));
    KL_TRY(kl_hostinfo_host_hash("", &me->machine));
    KL_TRY(find_memory(&me->memory));
    KL_TRY(find_fabric(&comm->config, me));
    KL_TRY(kl_affinity_get(&cpus));
    memcpy(me->cpus, cpus.words, sizeof me->cpus);
    kl_hostinfo_name(name);
    snprintf(me->host_name, sizeof me->host_name, "%s", *comm->config.hostid ? comm->config.hostid : name);
    return ncclSuccess;
}

/* ---- checks ---- */

static ncclResult_t check_peer(ncclComm_t comm, const struct kl_peer *me, const struct kl_peer *p)
{
    if (p->version != me->version)
        return KL_FAIL(ncclInvalidUsage,
                       "rank %d (host %.*s, pid %d) runs another version of Kolo than rank %d: install the same on all "
                       "hosts",
                       p->rank, KL_PEER_HOST_TEXT, p->host_name, p->pid, comm->rank);
    return ncclSuccess;
}

/* All ranks use one kind of devices. */
static ncclResult_t check_kind(ncclComm_t comm, const struct kl_peer *me, const struct kl_peer *p)
{
    if (p->kind == me->kind) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "rank %d (host %.*s, pid %d) uses %s devices, rank %d %s devices: set KOLO_DEVICES to the same for "
                   "all",
                   p->rank, KL_PEER_HOST_TEXT, p->host_name, p->pid, kl_device_kinds[p->kind]->name, comm->rank,
                   comm->devices->name);
}

static ncclResult_t check_peers(ncclComm_t comm, const struct kl_peer *peers)
{
    for (int r = 0; r < comm->nranks; r++) KL_TRY(check_peer(comm, &peers[comm->rank], &peers[r]));
    for (int r = 0; r < comm->nranks; r++) KL_TRY(check_kind(comm, &peers[comm->rank], &peers[r]));
    return kl_comm_check_settings(comm, peers);
}

/* ---- the phase ---- */

/* All ranks answer alike. */
static bool any_lacks(const struct ncclComm *comm, const struct kl_peer *peers)
{
    int r = 0;

    while (r < comm->nranks && !peers[r].lacks) r++;
    return r < comm->nranks;
}

static ncclResult_t join_world(ncclComm_t comm)
{
    struct kl_records *peers;
    struct kl_peer me;

    KL_TRY(describe_myself(comm, &me));
    const ncclResult_t tried = try_device(comm);
    me.lacks = tried != ncclSuccess;
    KL_TRY(kl_bootstrap_gather(comm->bootstrap, &me, sizeof me, &peers));
    ncclResult_t rc = any_lacks(comm, peers->all) ? kl_comm_fail_together(comm, tried) : check_peers(comm, peers->all);
    if (!rc) rc = kl_process_shared_join(peers->all, comm->nranks, comm->rank, &comm->shared);
    kl_records_unref(peers);
    return rc;
}

/* The network is polled by system calls, and the answer may come through a thread of this core: yielding costs little
 * then, and lets that thread run. */
static enum kl_wait_cores cores_of(const struct ncclComm *comm)
{
    bool far = comm->local_ranks < comm->nranks || !comm->shared->one_memory;

    return far || kl_process_shared_is_oversubscribed(comm->shared) ? KL_CORES_SHARED : KL_CORES_OWN;
}

ncclResult_t kl_comm_exchange_peers(ncclComm_t comm)
{
    KL_TRY(join_world(comm));
    kl_store_relaxed(&comm->name, comm->shared->rank_map.peer[0].job);
    comm->peers = comm->shared->rank_map.peer;
    comm->local_ranks = comm->shared->local_ranks;
    if (comm->device < 0) comm->device = comm->peers[comm->rank].device;
    comm->cores = cores_of(comm);
    kl_executor_share(comm->shared->ranks_per_cpu);
    if (comm->params->device < 0) comm->devices->adopt(comm->device);
    kl_log_set_device(comm->device);
    return ncclSuccess;
}

void kl_comm_leave_peers(ncclComm_t comm)
{
    kl_net_unref(comm->net);
    comm->net = NULL;
    kl_process_shared_leave(comm->shared);
    comm->shared = NULL;
    comm->peers = NULL;
}
