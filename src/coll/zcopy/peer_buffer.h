/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_buffer.h - the buffers of an operation in the memory of other ranks of the host.
 *
 * In one process an address is good for all. Between processes it has to be memory that can be mapped (ncclMemAlloc): a rank keeps a
 * list of its allocations that it has told of, and others keep them mapped. An operation's card says where in them its buffers are:
 *
 *     kl_lent_card      what this rank says of its buffers; `fresh`: of an allocation that others do not know
 *     kl_lent_tickets   of these, so that others can
 *     kl_lent_import    map what is fresh of a rank: again and again until it is no longer in progress
 *     kl_lent_told      all have mapped all: cards with these allocations are not fresh any more
 *     kl_lent_find      a rank's buffer
 *
 * A rank that has freed an allocation, or has too many, begins a new list, with another epoch: others then unmap the old one. What was
 * told of keeps its addresses and its pages until then, so that nothing else can be mistaken for it: at the latest KL_LENT_BLOCKS operations
 * after it was freed, or when the communicator goes.
 *
 * Threads: one at a time per rank.
 */
#ifndef KL_COLL_ZCOPY_PEER_BUFFER_H
#define KL_COLL_ZCOPY_PEER_BUFFER_H

#include "device/device.h"

#include <stdbool.h>

enum { KL_LENT_BLOCKS = 64 }; /* allocations of a rank */

enum kl_lent_which { KL_LENT_SEND, KL_LENT_RECV, KL_LENT_BUFFERS };

/** What a rank says of its buffers; travels in a line of a board. */
struct kl_lent_card {
    uint64_t at[KL_LENT_BUFFERS]; /* in the allocation; or addresses */
    uint32_t epoch;
    uint8_t block[KL_LENT_BUFFERS]; /* of the list */
    bool lends;                     /* both can be reached */
    bool fresh;
};

/** How others get at the allocations of a fresh card. */
struct kl_lent_tickets {
    struct kl_range_export_handle ticket[KL_LENT_BUFFERS];
};

/** A rank's own list. */
struct kl_lent_own {
    const void *base;
    size_t bytes;
    bool told;
    struct kl_range_export_handle ticket;
};

/** What is known of another rank. */
struct kl_lent_far {
    uint32_t epoch;
    struct kl_import *import[KL_LENT_BLOCKS];
    char *base[KL_LENT_BLOCKS]; /* NULL: not mapped */
    uint64_t bytes[KL_LENT_BLOCKS];
};

struct kl_lent {
    const struct kl_device_kind *devices;
    int nranks, rank;
    bool processes; /* the ranks live in several */
    uint32_t epoch;
    int nown, watched;
    struct kl_lent_own own[KL_LENT_BLOCKS];
    struct kl_lent_far **far; /* by rank; NULL: it has lent nothing; owned */
};

ncclResult_t kl_lent_init(struct kl_lent *lent, const struct kl_device_kind *devices, int nranks, int rank);
void kl_lent_fini(struct kl_lent *lent);

/** The card of an operation's buffers; NULL: this one is not lent, which is fine. No operation is under way. */
void kl_lent_card(struct kl_lent *lent, const void *const buffer[KL_LENT_BUFFERS], struct kl_lent_card *card);

/** The card of one buffer, as another rank has told of it. */
struct kl_lent_card kl_lent_card_of(enum kl_lent_which which, uint64_t at, uint32_t epoch, unsigned block);

void kl_lent_tickets(const struct kl_lent *lent, const struct kl_lent_card *card, struct kl_lent_tickets *tickets);

/** Map what a rank's fresh card names. ncclInProgress: call again with the same card and tickets, which may come from anywhere. Never waits. */
ncclResult_t kl_lent_import(struct kl_lent *lent, int rank, const struct kl_lent_card *card,
                            const struct kl_lent_tickets *tickets, uint64_t deadline);

void kl_lent_told(struct kl_lent *lent);

/** A rank's buffer of so many bytes, here; NULL: it is not lent, or not all of it is mapped. */
char *kl_lent_find(struct kl_lent *lent, int rank, const struct kl_lent_card *card, enum kl_lent_which which,
                   size_t bytes);

#endif
