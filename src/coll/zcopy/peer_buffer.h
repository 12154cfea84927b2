/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_buffer.h - the buffers of an operation in the memory of other ranks of the host.
 *
 * In one process an address is good for all. Between processes it has to be memory that can be mapped (ncclMemAlloc): a rank keeps a
 * list of its allocations that it has announced, and others keep them mapped. An operation's info says where in them its buffers are:
 *
 *     kl_peer_buffer_info      describe this rank's buffers; `fresh`: of an allocation unknown to others
 *     kl_peer_buffer_handles   export handles of the fresh allocations
 *     kl_peer_buffer_import    map a rank's fresh allocations; call again until it is no longer in progress
 *     kl_peer_buffers_announced   all have mapped all: these allocations are not fresh any more
 *     kl_peer_buffer_find      a rank's buffer
 *
 * A rank that has freed an allocation, or has too many, begins a new list, with another epoch: others then unmap the old one. An announced
 * allocation keeps its addresses and its pages until then, so that nothing else can be mistaken for it: at the latest KL_PEER_BUFFER_BLOCKS operations
 * after it was freed, or when the communicator goes.
 *
 * Threads: one at a time per rank.
 */
#ifndef KL_COLL_ZCOPY_PEER_BUFFER_H
#define KL_COLL_ZCOPY_PEER_BUFFER_H

#include "device/device.h"

#include <stdbool.h>

enum { KL_PEER_BUFFER_BLOCKS = 64 }; /* allocations of a rank */

enum kl_peer_buffer_which { KL_PEER_BUFFER_SEND, KL_PEER_BUFFER_RECV, KL_PEER_BUFFER_BUFFERS };

/** A rank's description of its buffers; travels in a line of a shared-memory exchange. */
struct kl_peer_buffer_info {
    uint64_t at[KL_PEER_BUFFER_BUFFERS]; /* in the allocation; or addresses */
    uint32_t epoch;
    uint8_t block[KL_PEER_BUFFER_BUFFERS]; /* of the list */
    bool reachable;                        /* both can be reached */
    bool fresh;
};

/** Export handles of the allocations of fresh info. */
struct kl_peer_buffer_handles {
    struct kl_range_export_handle handle[KL_PEER_BUFFER_BUFFERS];
};

/** A rank's own list. */
struct kl_peer_buffer_own {
    const void *base;
    size_t bytes;
    bool announced;
    struct kl_range_export_handle handle;
};

/** The allocations of another rank, as far as they are mapped here. */
struct kl_peer_buffers_remote {
    uint32_t epoch;
    struct kl_import *import[KL_PEER_BUFFER_BLOCKS];
    char *base[KL_PEER_BUFFER_BLOCKS]; /* NULL: not mapped */
    uint64_t bytes[KL_PEER_BUFFER_BLOCKS];
};

struct kl_peer_buffers {
    const struct kl_device_kind *devices;
    int nranks, rank;
    bool processes; /* the ranks live in several */
    uint32_t epoch;
    int nown, watched;
    struct kl_peer_buffer_own own[KL_PEER_BUFFER_BLOCKS];
    struct kl_peer_buffers_remote **far; /* by rank; NULL: it has exported nothing; owned */
};

ncclResult_t kl_peer_buffers_init(struct kl_peer_buffers *buffers, const struct kl_device_kind *devices, int nranks,
                                  int rank);
void kl_peer_buffers_fini(struct kl_peer_buffers *buffers);

/** Describe an operation's buffers; NULL: this one is not exposed, which is fine. No operation is under way. */
void kl_peer_buffer_info(struct kl_peer_buffers *buffers, const void *const buffer[KL_PEER_BUFFER_BUFFERS],
                         struct kl_peer_buffer_info *info);

/** The info of one buffer, as another rank has announced it. */
struct kl_peer_buffer_info kl_peer_buffer_info_of(enum kl_peer_buffer_which which, uint64_t at, uint32_t epoch,
                                                  unsigned block);

void kl_peer_buffer_handles(const struct kl_peer_buffers *buffers, const struct kl_peer_buffer_info *info,
                            struct kl_peer_buffer_handles *handles);

/** Map the allocations of a rank's fresh info. ncclInProgress: call again with the same info and handles, which may come from anywhere. Never waits. */
ncclResult_t kl_peer_buffer_import(struct kl_peer_buffers *buffers, int rank, const struct kl_peer_buffer_info *info,
                                   const struct kl_peer_buffer_handles *handles, uint64_t deadline);

void kl_peer_buffers_announced(struct kl_peer_buffers *buffers);

/** A rank's buffer of so many bytes, here; NULL: it is not exposed, or not all of it is mapped. */
char *kl_peer_buffer_find(struct kl_peer_buffers *buffers, int rank, const struct kl_peer_buffer_info *info,
                          enum kl_peer_buffer_which which, size_t bytes);

#endif
