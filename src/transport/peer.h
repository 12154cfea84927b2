/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer.h - the identity and place of a rank, which all ranks exchange before they connect.
 *
 * Records are all-gathered as raw bytes between processes of one job, which run the same library on the same kind of
 * machine; `version` is checked first.
 */
#ifndef KL_TRANSPORT_PEER_H
#define KL_TRANSPORT_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_PEER_VERSION = 10, KL_PEER_HOST_TEXT = 48, KL_PEER_CPU_WORDS = 16 };

struct kl_peer {
    uint64_t version; /* KL_PEER_VERSION and the NCCL API level, see comm/setup/peers.c */
    int32_t rank;
    int32_t device;   /* ordinal on its host; -1: it gets the next free one */
    int32_t pid;      /* for texts only: it means nothing across pid namespaces */
    int32_t replica;  /* k: the k-th further rank on the same device of the same host */
    int32_t kind;     /* of its device, its place in kl_device_kinds */
    int32_t lacks;    /* 1: it cannot use its device; its sentence follows (comm/together.h) */
    uint64_t host;    /* equal on ranks that share a machine (or an emulated host) */
    uint64_t fabric;  /* equal on ranks of hosts in one NVLink domain */
    uint64_t machine; /* equal on ranks that share a machine and its cores, whatever hosts it emulates */
    uint64_t process; /* random per process: equal means the same address space */
    uint64_t job;     /* random; rank 0's names the communicator */
    uint64_t memory;  /* equal on ranks that can, and may, share memory */

    uint64_t settings;      /* hash of the settings that all ranks must share (comm/setup/settings.h) */
    uint64_t host_settings; /* hash of the settings that the ranks of a host must share */

    uint64_t cpus[KL_PEER_CPU_WORDS]; /* affinity mask of the process, lowest CPUs first */
    char host_name[KL_PEER_HOST_TEXT];
};
_Static_assert(sizeof(struct kl_peer) == 272, "record of the all-gather");

/** Can each map memory of the other? */
static inline bool kl_peers_share_memory(const struct kl_peer *a, const struct kl_peer *b)
{
    return a->fabric == b->fabric && a->memory == b->memory;
}

#endif
