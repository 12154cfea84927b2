/* SPDX-License-Identifier: Apache-2.0 */
/**
 * func.h - the functions of the API that move data: one row each. Functions of the tuning model come first, in its
 * order.
 */
#ifndef KL_COLL_SCHEDULE_FUNC_H
#define KL_COLL_SCHEDULE_FUNC_H

#include "graph/tuning.h"

enum {
    KL_FUNC_ALL_TO_ALL = KL_FUNCS, /* through shared memory (flat.h); without it the operation consists of messages */
    KL_FUNC_SEND,
    KL_FUNC_RECV,
    KL_FUNC_ROWS
};

struct kl_func_info {
    const char *name; /* as NCCL prints it */
    bool reduces, rooted;
    bool send_parts, recv_parts; /* the buffer has one part of `count` elements for each rank */
};

extern const struct kl_func_info kl_func_info[KL_FUNC_ROWS];

static inline bool kl_func_is_message(int func)
{
    return func >= KL_FUNC_SEND;
}

/** Number of parts of a rank's larger buffer. */
static inline int kl_func_parts(int func, int nranks)
{
    return kl_func_info[func].send_parts || kl_func_info[func].recv_parts ? nranks : 1;
}

/** The tuning model's size of the whole, for `bytes` of one part (or of the buffer). */
static inline size_t kl_func_bytes(int func, size_t bytes, int nranks)
{
    return bytes * (size_t)kl_func_parts(func, nranks);
}

#endif
