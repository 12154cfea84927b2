/* SPDX-License-Identifier: Apache-2.0 */
/**
 * check.h - the arguments of operations: what is wrong with them, said once, before anything is queued. Inline: where the function is known, most of
 * it is decided by the compiler.
 */
#ifndef KL_API_CHECK_H
#define KL_API_CHECK_H

#include "comm/launch.h"

#include <stdint.h>

/**
 * Are `parts` times `count` elements fewer bytes than an address space has? So many are `*bytes`. Without a division, which takes longer than what
 * is sent in a small operation.
 */
static inline ncclResult_t kl_check_size(const char *function, size_t count, size_t elem_bytes, int parts,
                                         size_t *bytes)
{
    if (!__builtin_mul_overflow(count, elem_bytes * (size_t)parts, bytes) && *bytes <= PTRDIFF_MAX) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s: %zu elements of %zu bytes for %d ranks exceed the address space", function,
                   count, elem_bytes, parts);
}

/** Type, operation, root or peer, size and buffers of a task; `function` is named in texts. Fills in its bytes. */
static inline ncclResult_t kl_check_task(ncclComm_t comm, struct kl_task *t, const char *function)
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
    KL_TRY(kl_check_size(function, t->count, kl_comm_elem_bytes(comm, t), kl_func_parts(t->func, comm->nranks),
                         &t->bytes));
    if (!t->send && t->count && kl_task_reads(t, comm->rank))
        return KL_FAIL(ncclInvalidArgument, "%s: the send buffer is NULL", function);
    if (!t->recv && t->count && kl_task_writes(t, comm->rank))
        return KL_FAIL(ncclInvalidArgument, "%s: the receive buffer is NULL", function);
    return ncclSuccess;
}

#endif
