/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_buffer.h - the buffers of an operation in the memory of other ranks of the host.
 *
 * In one process an address is good for all. Between processes it has to be memory that can be mapped (ncclMemAlloc): a rank keeps a
 * list of its allocations that it has told of, and others keep them mapped. An operation's card says where in them its buffers are:
 *
 *     kl_peer_buffer_info      the description of this rank's buffers; `fresh`: of an allocation unknown to others
 *     kl_peer_buffer_handles   of these, so that others can
 *     kl_peer_buffer_import    map a rank's fresh allocations; call again until it is no longer in progress
 *     kl_peer_buffers_announced      all have mapped all: cards with these allocations are not fresh any more
 *     kl_peer_buffer_find      a rank's buffer
 *
 * A rank that has freed an allocation, or has too many, begins a new list, with another epoch: others then unmap the old one. What was
 * told of keeps its addresses and its pages until then, so that nothing else can be mistaken for it: at the latest KL_PEER_BUFFER_BLOCKS operations
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

/** What a rank says of its buffers; travels in a line of a board. */
struct kl_peer_buffer_info {
    uint64_t at[KL_PEER_BUFFER_BUFFERS]; /* in the allocation; or addresses */
    uint32_t epoch;
    uint8_t block[KL_PEER_BUFFER_BUFFERS]; /* of the list */
    bool lends;                            /* both can be reached */
    bool fresh;
};

/** How others get at the allocations of a fresh card. */
struct kl_peer_buffer_handles {
    struct kl_range_export_handle ticket[KL_PEER_BUFFER_BUFFERS];
};

/** A rank's own list. */
struct kl_peer_buffer_own {
    const void *base;
    size_t bytes;
    bool told;
    struct kl_range_export_handle ticket;
};

/** What is known of another rank. */
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
    struct kl_peer_buffers_remote **far; /* by rank; NULL: it has lent nothing; owned */
};

ncclResult_t kl_peer_buffers_init(struct kl_peer_buffers *lent, const struct kl_device_kind *devices, int nranks,
                                  int rank);
void kl_peer_buffers_fini(struct kl_peer_buffers *lent);

/** The card of an operation's buffers; NULL: this one is not lent, which is fine. No operation is under way. */
void kl_peer_buffer_info(struct kl_peer_buffers *lent, const void *const buffer[KL_PEER_BUFFER_BUFFERS],
                         struct kl_peer_buffer_info *card);

/** The card of one buffer, as another rank has told of it. */
struct kl_peer_buffer_info kl_peer_buffer_info_of(enum kl_peer_buffer_which which, uint64_t at, uint32_t epoch,
                                                  unsigned block);

void kl_peer_buffer_handles(const struct kl_peer_buffers *lent, const struct kl_peer_buffer_info *card,
                            struct kl_peer_buffer_handles *tickets);

/** Map what a rank's fresh card names. ncclInProgress: call again with the same card and tickets, which may come from anywhere. Never waits. */
ncclResult_t kl_peer_buffer_import(struct kl_peer_buffers *lent, int rank, const struct kl_peer_buffer_info *card,
                                   const struct kl_peer_buffer_handles *tickets, uint64_t deadline);

void kl_peer_buffers_announced(struct kl_peer_buffers *lent);

/** A rank's buffer of so many bytes, here; NULL: it is not lent, or not all of it is mapped. */
char *kl_peer_buffer_find(struct kl_peer_buffers *lent, int rank, const struct kl_peer_buffer_info *card,
                          enum kl_peer_buffer_which which, size_t bytes);

#endif
