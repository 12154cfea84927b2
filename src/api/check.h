/* SPDX-License-Identifier: Apache-2.0 */
/**
 * check.h - checks of the arguments of operations, with one message per error, before anything is queued. Inline: where
 * the function is known, most of it is decided by the compiler.
 */
#ifndef KL_API_CHECK_H
#define KL_API_CHECK_H

#include "comm/queue/launch.h"

/** Larger operations are checked further: whether their pointers reach that far. A wild pointer of a smaller one
 * faults. */
#define KL_CHECK_CLOSELY ((size_t)1 << 30)

/**
 * ncclInvalidArgument where `parts` times `count` elements from `at` on end beyond the address space. For the text,
 * `argument` names the count and `buffer` names `at`.
 */
ncclResult_t kl_check_closely(const char *function, const char *argument, const char *buffer, const void *at,
                              size_t count, size_t elem_bytes, int parts);

static inline ncclResult_t kl_check_reach(const char *function, const char *argument, const char *buffer,
                                          const void *at, size_t count, size_t elem_bytes, int parts)
{
    size_t bytes;

    if (!__builtin_mul_overflow(count, elem_bytes * (size_t)parts, &bytes) && bytes <= KL_CHECK_CLOSELY)
        return ncclSuccess;
    return kl_check_closely(function, argument, buffer, at, count, elem_bytes, parts);
}

/** kl_check_closely of the buffers that this rank uses. */
ncclResult_t kl_check_task_reach(ncclComm_t comm, const struct kl_task *t, const char *function);

/** Type, operation, root or peer, size and buffers of a task; `function` is for error texts. Fills in its bytes. */
static inline __attribute__((always_inline)) ncclResult_t kl_check_task(ncclComm_t comm, struct kl_task *t,
                                                                        const char *function)
{
    if ((unsigned)t->peer >= (unsigned)comm->nranks)
        return KL_FAIL(ncclInvalidArgument, "%s: %s %d, the communicator has ranks 0 to %d", function,
                       t->func >= KL_FUNC_SEND ? "peer" : "root", t->peer, comm->nranks - 1);
    if ((unsigned)t->type >= ncclNumTypes)
        return KL_FAIL(ncclInvalidArgument, "%s: data type %d, there are 0 to %d", function, (int)t->type,
                       ncclNumTypes - 1);
    if ((unsigned)t->op >= ncclNumOps)
        return KL_FAIL(ncclInvalidArgument, "%s: operation %d, there are 0 to %d", function, (int)t->op,
                       ncclNumOps - 1);
    /* Without a division, which takes longer than sending the data of a small operation. */
    if (__builtin_mul_overflow(t->count, kl_comm_elem_bytes(comm, t) * (size_t)kl_func_parts(t->func, comm->nranks),
                               &t->bytes) ||
        t->bytes > KL_CHECK_CLOSELY)
        KL_TRY(kl_check_task_reach(comm, t, function));
    if (!t->send && t->count && kl_task_reads(t, comm->rank))
        return KL_FAIL(ncclInvalidArgument, "%s: the send buffer is NULL", function);
    if (!t->recv && t->count && kl_task_writes(t, comm->rank))
        return KL_FAIL(ncclInvalidArgument, "%s: the receive buffer is NULL", function);
    return ncclSuccess;
}

#endif
