/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peers.c - tell every rank who and where I am, check that we fit together, and give devices to who chose none.
 */
#include "comm/comm.h"

#include "base/log.h"
#include "device/host/device.h"
#include "device/host/backoff.h"
#include "os/affinity.h"
#include "os/hostinfo.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of one connection: eight slots that fit the caches of two cores together. */
#define DEFAULT_FIFO_BYTES ((uint64_t)512 << 10)

/* ---- my own record ---- */

/* Random, drawn once: two ranks with the same number share an address space. A forked child draws again. */
static uint64_t process_number(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t number; /* under lock, as pid */
    static pid_t pid;

    pthread_mutex_lock(&lock);
    if (pid != getpid()) {
        pid = getpid();
        randombytes_buf(&number, sizeof number);
    }
    uint64_t mine = number;
    pthread_mutex_unlock(&lock);
    return mine;
}

/* Abstract sockets, over which segments are handed out, reach as far as the network namespace. */
static uint64_t memory_reach(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) ? 0 : (uint64_t)st.st_ino;
}

static uint64_t fifo_bytes(const struct kl_comm_config *config)
{
    return config->buffer_bytes > 0 ? (uint64_t)config->buffer_bytes : DEFAULT_FIFO_BYTES;
}

static ncclResult_t describe_myself(ncclComm_t comm, struct kl_peer *me)
{
    char name[KL_HOSTNAME];
    struct kl_cpuset cpus;

    *me = (struct kl_peer){
        .version = KL_PEER_VERSION << 16 | NCCL_MINOR << 8 | NCCL_PATCH,
        .rank = comm->rank,
        .device = comm->device,
        .pid = getpid(),
        .process = process_number(),
        .memory = memory_reach(),
        .fifo_bytes = fifo_bytes(&comm->config),
    };
    KL_TRY(kl_hostinfo_host_hash(comm->config.hostid, &me->host));
    KL_TRY(kl_affinity_get(&cpus));
    memcpy(me->cpus, cpus.words, sizeof me->cpus);
    kl_hostinfo_name(name);
    snprintf(me->host_name, sizeof me->host_name, "%s", *comm->config.hostid ? comm->config.hostid : name);
    return ncclSuccess;
}

/* ---- checks ---- */

static ncclResult_t check_peer(ncclComm_t comm, int rank)
{
    const struct kl_peer *me = &comm->peers[comm->rank], *p = &comm->peers[rank];
    char them[128];

    kl_comm_describe(comm, rank, them, sizeof them);
    if (p->version != me->version)
        return KL_FAIL(ncclInvalidUsage, "%s runs another version of Kolo than rank %d: install the same on all hosts",
                       them, comm->rank);
    if (p->fifo_bytes != me->fifo_bytes)
        return KL_FAIL(ncclInvalidUsage, "%s has NCCL_BUFFSIZE %llu, rank %d has %llu: they must agree", them,
                       (unsigned long long)p->fifo_bytes, comm->rank, (unsigned long long)me->fifo_bytes);
    return ncclSuccess;
}

/* ---- devices ---- */

static bool is_taken(ncclComm_t comm, int rank, int device)
{
    for (int r = 0; r < comm->nranks; r++)
        if (r != rank && comm->peers[r].host == comm->peers[rank].host && comm->peers[r].device == device) return true;
    return false;
}

/* In rank order, the lowest ordinal that nobody on the host has; every rank computes the same. */
static void give_devices(ncclComm_t comm, struct kl_peer *peers)
{
    for (int r = 0; r < comm->nranks; r++) {
        struct kl_peer *p = &peers[r];
        if (p->device >= 0) continue;
        int device = 0;
        while (is_taken(comm, r, device)) device++;
        p->device = device;
    }
}

static void number_replicas(ncclComm_t comm, struct kl_peer *peers)
{
    for (int r = 0; r < comm->nranks; r++)
        for (int q = 0; q < r; q++)
            peers[r].replica += peers[q].host == peers[r].host && peers[q].device == peers[r].device;
}

/* ---- what follows for waiting ---- */

static unsigned count_bits(const uint64_t *words)
{
    unsigned n = 0;

    for (int w = 0; w < KL_PEER_CPU_WORDS; w++) n += (unsigned)__builtin_popcountll(words[w]);
    return n;
}

/* With more ranks than CPUs here, whoever spins keeps the one it waits for from running. */
static void choose_spin(ncclComm_t comm)
{
    const struct kl_peer *me = &comm->peers[comm->rank];
    uint64_t cpus[KL_PEER_CPU_WORDS] = {0};

    comm->local_ranks = 0;
    for (int r = 0; r < comm->nranks; r++) {
        if (comm->peers[r].host != me->host) continue;
        comm->local_ranks++;
        for (int w = 0; w < KL_PEER_CPU_WORDS; w++) cpus[w] |= comm->peers[r].cpus[w];
    }
    comm->spin = (unsigned)comm->local_ranks <= count_bits(cpus) ? KL_SPIN_POLLS : 0;
}

ncclResult_t kl_comm_exchange_peers(ncclComm_t comm)
{
    struct kl_peer *peers = calloc((size_t)comm->nranks, sizeof *peers);

    if (!peers) return KL_NOMEM("peer records");
    comm->peers = peers;
    KL_TRY(describe_myself(comm, &peers[comm->rank]));
    KL_TRY(kl_bootstrap_allgather(comm->bootstrap, peers, sizeof *peers));
    for (int r = 0; r < comm->nranks; r++) KL_TRY(check_peer(comm, r));
    give_devices(comm, peers);
    number_replicas(comm, peers);
    choose_spin(comm);
    comm->device = comm->peers[comm->rank].device;
    kl_device_adopt(comm->device);
    kl_log_set_device(comm->device);
    return ncclSuccess;
}

void kl_comm_forget_peers(ncclComm_t comm)
{
    free((void *)comm->peers);
    comm->peers = NULL;
}
