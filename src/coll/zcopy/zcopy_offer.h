/* SPDX-License-Identifier: Apache-2.0 */
/**
 * zcopy_offer.h - large messages between processes of a host that are not staged: the receiver copies them from the sender's buffer, which it
 * maps (ncclMemAlloc), or lets the kernel copy (os/cma.h).
 *
 * A step of the sender's fifo carries the offer: the place of the data (peer_buffer.h) and how to map it, or the process to copy from. The sender
 * waits until the receiver has returned the step, copied or declined. Declined data are sent another way; after KL_ZCOPY_REFUSALS declined offers
 * in a row, so are all later messages to this receiver. Memory that can be mapped is always offered; for other memory the table decides
 * (select/select.h), by the bytes that a launch sends. Each rank replaces these rows for itself: neither results nor other ranks depend on them.
 *
 * A launch that only sends little data has them staged, as NCCL buffers them: programs that rely on that must not hang. A launch that also
 * receives may wait.
 *
 * Aborts:  a sender revokes its offers without waiting. A receiver that is copying notices that afterwards, and discards the data. Mapped memory
 *          stays mapped.
 * Threads: one at a time per rank.
 */
#ifndef KL_COLL_ZCOPY_ZCOPY_OFFER_H
#define KL_COLL_ZCOPY_ZCOPY_OFFER_H

#include "coll/select/line_watch.h"
#include "coll/select/select.h"
#include "coll/zcopy/peer_buffer.h"
#include "coll/zcopy/zcopy_config.h"
#include "os/cma.h"
#include "transport/fifo.h"

/* Bytes of a step that is offered: least for kernel copies, least for mapped memory, most. */
enum { KL_ZCOPY_LEAST = 16 << 10, KL_ZCOPY_MAPPED_LEAST = 64 << 10, KL_ZCOPY_MOST = 1 << 30 };

/* After so many declined offers in a row a receiver gets no more. */
enum { KL_ZCOPY_REFUSALS = 4 };

enum kl_zcopy_offer_kind { KL_ZCOPY_MAPPED, KL_ZCOPY_READ, KL_ZCOPY_KINDS };

/** State of one peer. */
struct kl_zcopy_offer_peer {
    uint8_t refusals[KL_ZCOPY_KINDS]; /* in a row */
    enum kl_zcopy_offer_kind kind;    /* of the last offer */
    struct kl_cma_cache seen;         /* of its memory */
};

/** The offers of a rank. Must not move after the first offer. */
struct kl_zcopy_offers {
    struct kl_zcopy_config zcopy;
    int nranks, rank;
    struct kl_peer_buffers *buffers;   /* NULL: nothing has been offered yet; owned, as: */
    struct kl_zcopy_offer_peer *peers; /* by rank */

    struct kl_select *select; /* NULL: data that cannot be mapped are staged */
    struct kl_line_watch watch;
    uint32_t launches; /* that the table was asked for */
    bool reads;        /* in this launch the kernel copies, */
    bool nt;           /* and this rank's own copies use non-temporal stores */
};

void kl_zcopy_offers_fini(struct kl_zcopy_offers *offers);

/** A launch begins that sends `messages` of at most `bytes` to other ranks, and receives so many bytes from others. */
void kl_zcopy_offers_begin(struct kl_zcopy_offers *offers, size_t bytes, size_t messages, size_t received);

/** Offer the next step's data to `peer`. False: they can't be, are too few, or the peer has declined before. */
bool kl_zcopy_offer_make(struct kl_zcopy_offers *offers, int peer, struct kl_fifo_tx *tx, const void *data,
                         size_t bytes, bool more);

/** The peer has copied the data, or declined. */
void kl_zcopy_offer_ended(struct kl_zcopy_offers *offers, int peer, bool declined);

enum kl_zcopy_offer_state { KL_ZCOPY_HERE, KL_ZCOPY_NOT_YET, KL_ZCOPY_LOST };

/** The data of an offer: mapped here, or in the peer's memory. */
struct kl_zcopy_offer_data {
    const char *here;            /* NULL: */
    uint64_t there;              /* at this address, */
    struct kl_cma_process owner; /* of that process */
    struct kl_cma_cache *seen;
};

/** Where the `bytes` of the next step are, which a peer offers. LOST: they cannot be reached. Never waits. */
enum kl_zcopy_offer_state kl_zcopy_offer_find(struct kl_zcopy_offers *offers, int peer, const struct kl_fifo_rx *rx,
                                              size_t bytes, struct kl_zcopy_offer_data *data);

#endif
