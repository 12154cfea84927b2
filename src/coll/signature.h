/* SPDX-License-Identifier: Apache-2.0 */
/**
 * signature.h - distinguishes calls, and words the error where ranks made different ones.
 *
 * All ranks make the same collectives in the same order: the n-th collective of a communicator is the same call
 * everywhere. A *call* holds all that has to be the same, in 16 bytes; its *signature* is 8 bytes, which travel with
 * every step of it (transport/fifo.h). A receiver compares before it touches data. A signature shows that calls differ,
 * not how: the ranks then send each other their calls (comm/inquest.h), and the verdict is made here.
 *
 *      what     number           root  operator  type  configured  function         count
 *               24 (the lowest)  24    6         5     1           4 bits           64 bits
 *
 * A collective with limits of its own (limits.h) is configured: then 8 bits of their hash stand above 16 bits of the root.
 *
 * Calls that differ in one of the fields have different signatures; calls that differ in several have, but for one in
 * 2^64. Messages have no number: the k-th send to a rank has to match the k-th receive from it. Their signature is type
 * and count themselves.
 *
 * Threads: pure functions.
 */
#ifndef KL_COLL_SIGNATURE_H
#define KL_COLL_SIGNATURE_H

#include "coll/func.h"
#include "include/nccl.h"

/** A collective, the same on all ranks; of a message: `root` is the other rank. */
struct kl_call {
    uint64_t what, count;
};

/* The first bits of the fields of `what`. */
enum {
    KL_CALL_CONFIGURED = 4,
    KL_CALL_TYPE = 5,
    KL_CALL_OP = 10,
    KL_CALL_ROOT = 16,
    KL_CALL_NUMBER = 40,
    KL_CALL_NUMBER_BITS = 24
};

/* Operators: NCCL's own numbers, then the operators of kolo.h from koloBitAnd on, and one number for all user-made
 * ones. */
enum { KL_CALL_BITS_OP = 32, KL_CALL_USER_OP = 63 };

/**
 * `number`: 1 is the first collective of a communicator. `op`: below KL_CALL_USER_OP. `peer`: the root, or the other end of a message; 0 for
 * others.
 */
static inline struct kl_call kl_call_of(int func, ncclDataType_t type, unsigned op, int peer, size_t count,
                                        uint64_t number)
{
    return (struct kl_call){
        .what = number << KL_CALL_NUMBER | (uint64_t)(unsigned)peer << KL_CALL_ROOT | (uint64_t)op << KL_CALL_OP |
                (uint64_t)type << KL_CALL_TYPE | (uint64_t)(unsigned)func,
        .count = count,
    };
}

_Static_assert(KL_FUNC_ROWS <= 1 << KL_CALL_CONFIGURED, "functions are told apart below it");

/** The same with limits whose kl_limits_hash this is. */
static inline struct kl_call kl_call_configured(struct kl_call call, uint16_t limits)
{
    call.what |= 1u << KL_CALL_CONFIGURED;
    call.what ^= (uint64_t)(limits & 0xff) << (KL_CALL_NUMBER - 8);
    return call;
}

/** Counts are spread over all bits: an odd factor keeps different ones different. */
static inline uint64_t kl_call_signature(const struct kl_call *c)
{
    return c->what ^ c->count * 0x9e3779b97f4a7c15u;
}

/** The short form for lines with 4 bytes for it. */
static inline uint32_t kl_call_short(uint64_t signature)
{
    return (uint32_t)(signature ^ signature >> 32);
}

/** The signature of a message, on both sides. */
static inline uint64_t kl_message_signature(ncclDataType_t type, size_t count)
{
    return (uint64_t)(0xa0 | type) << 56 | (count & (((uint64_t)1 << 56) - 1));
}

/* ---- in words ---- */

enum { KL_CALL_TEXT = 160 };

/** Name of an operator's common code (kl_task_op_code); never NULL. */
const char *kl_call_op_name(unsigned code);

/**
 * "AllReduce #17 of 1000 float (sum)", "Send of 8 int8 to rank 3". A call has the lowest bits of its number: the others
 * come from `near`, the number of a collective less than 2^23 calls away. Returns `text`.
 */
const char *kl_call_text(struct kl_call call, uint64_t near, char text[KL_CALL_TEXT]);

/** Of messages, by their signatures: "rank 1 sends 500 float where 1000 float are received". Returns `text`. */
const char *kl_message_differs(uint64_t theirs, int from, uint64_t mine, char text[KL_CALL_TEXT]);

/** A rank's call, if known. */
struct kl_called {
    struct kl_call call;
    bool known;
};

/**
 * Did ranks make different calls as the collective `number`? Then the sentence: "rank 3 called Broadcast(root 1) as #17
 * where the others called AllReduce", and `*culprit` is the first rank of the fewest. False: all known calls are the
 * same.
 */
bool kl_call_verdict(const struct kl_called *by_rank, int nranks, uint64_t number, char *text, size_t size,
                     int *culprit);

#endif
