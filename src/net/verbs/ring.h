/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ring.h - the memory that each end of an RDMA connection offers to the other, and the numbers in immediate data.
 *
 * Every write carries immediate data, so that the other end gets a completion and sleepers wake: two bits of kind, and
 * a number of 30 bits.
 *
 *      MESSAGE  a slot of the ring of messages: data of up to KL_VERBS_EAGER bytes, or the announcement of a larger one
 *      CTS      an entry of the ring of requests for data: "write so many bytes there"
 *      DATA     these bytes have been written; the number names the request
 *      CREDIT   nothing else
 *
 * The number of the others is how many messages this end has consumed, which frees as many slots at the peer. So a
 * receive request is always posted for every write that can come: KL_VERBS_RQ of them.
 */
#ifndef KL_NET_VERBS_RING_H
#define KL_NET_VERBS_RING_H

#include <stddef.h>
#include <stdint.h>

enum {
    KL_VERBS_SLOTS = 64,
    KL_VERBS_SLOT_BYTES = 256,
    KL_VERBS_REQUESTED = 32, /* requests for data that are not answered */
    KL_VERBS_CREDITS = 32,   /* messages after which a credit goes alone */
    KL_VERBS_RQ_BATCH = 16,
    KL_VERBS_SQ = 256, /* send requests of a queue pair */
    KL_VERBS_RQ = 192, /* more than slots + 2 * requested + credits on their way + a batch that is not posted again */
};
_Static_assert(KL_VERBS_RQ >
                   KL_VERBS_SLOTS + 2 * KL_VERBS_REQUESTED + KL_VERBS_SLOTS / KL_VERBS_CREDITS + 2 + KL_VERBS_RQ_BATCH,
               "otherwise a write could find no receive request");

enum kl_verbs_slot_kind { KL_VERBS_HAS_DATA = 1, KL_VERBS_ANNOUNCES, KL_VERBS_GOES_BACK, KL_VERBS_LEAVES };

struct kl_verbs_slot {
    uint32_t kind, tag; /* GOES_BACK: tag is the id of the connection in this direction */
    uint64_t bytes;     /* of the message */
    unsigned char data[KL_VERBS_SLOT_BYTES - 16];
};
enum { KL_VERBS_EAGER = KL_VERBS_SLOT_BYTES - 16 };

struct kl_verbs_cts {
    uint64_t addr, bytes;
    uint32_t rkey, number;
};

/** Registered at each end; the peer writes into the first two, the others are copies of its own that it writes from. */
struct kl_verbs_rings {
    struct kl_verbs_slot in[KL_VERBS_SLOTS];
    struct kl_verbs_cts cts_in[KL_VERBS_REQUESTED];
    struct kl_verbs_slot out[KL_VERBS_SLOTS];
    struct kl_verbs_cts cts_out[KL_VERBS_REQUESTED];
};

enum kl_verbs_imm { KL_VERBS_MESSAGE, KL_VERBS_CTS, KL_VERBS_DATA, KL_VERBS_CREDIT };

enum { KL_VERBS_IMM_BITS = 30, KL_VERBS_IMM_MASK = (1 << KL_VERBS_IMM_BITS) - 1 };

static inline uint32_t kl_verbs_imm(enum kl_verbs_imm kind, uint64_t number)
{
    return (uint32_t)kind << KL_VERBS_IMM_BITS | (uint32_t)(number & KL_VERBS_IMM_MASK);
}

static inline enum kl_verbs_imm kl_verbs_imm_kind(uint32_t imm)
{
    return (enum kl_verbs_imm)(imm >> KL_VERBS_IMM_BITS);
}

/** How far a counter has moved, whose lower bits are in `imm`. */
static inline uint64_t kl_verbs_imm_ahead(uint32_t imm, uint64_t of)
{
    return (imm - (uint32_t)of) & KL_VERBS_IMM_MASK;
}

#endif
