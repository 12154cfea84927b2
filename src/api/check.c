/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <stdint.h>

static bool gathers(const struct kl_task *t)
{
    return t->func == KL_FUNC_ALL_GATHER || t->func == KL_FUNC_REDUCE_SCATTER;
}

/* Without a division, which takes longer than what is sent in a small operation. */
ncclResult_t kl_check_size(const char *function, size_t count, size_t elem_bytes, int parts)
{
    size_t bytes;

    if (!__builtin_mul_overflow(count, elem_bytes * (size_t)parts, &bytes) && bytes <= PTRDIFF_MAX) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s: %zu elements of %zu bytes for %d ranks exceed the address space", function,
                   count, elem_bytes, parts);
}

static bool needs_send(ncclComm_t comm, const struct kl_task *t)
{
    return t->func != KL_FUNC_RECV && (t->func != KL_FUNC_BROADCAST || t->peer == comm->rank);
}

static bool needs_recv(ncclComm_t comm, const struct kl_task *t)
{
    return t->func != KL_FUNC_SEND && (t->func != KL_FUNC_REDUCE || t->peer == comm->rank);
}

ncclResult_t kl_check_task(ncclComm_t comm, const struct kl_task *t, const char *function)
{
    if (t->peer < 0 || t->peer >= comm->nranks)
        return KL_FAIL(ncclInvalidArgument, "%s: %s %d, the communicator has ranks 0 to %d", function,
                       t->func >= KL_FUNC_SEND ? "peer" : "root", t->peer, comm->nranks - 1);
    if ((unsigned)t->type >= ncclNumTypes)
        return KL_FAIL(ncclInvalidArgument, "%s: data type %d, there are 0 to %d", function, (int)t->type,
                       ncclNumTypes - 1);
    if ((unsigned)t->op >= ncclNumOps)
        return KL_FAIL(ncclInvalidArgument, "%s: operation %d, there are 0 to %d", function, (int)t->op,
                       ncclNumOps - 1);
    KL_TRY(kl_check_size(function, t->count, kl_type_bytes(t->type), gathers(t) ? comm->nranks : 1));
    if (t->count && !t->send && needs_send(comm, t))
        return KL_FAIL(ncclInvalidArgument, "%s: the send buffer is NULL", function);
    if (t->count && !t->recv && needs_recv(comm, t))
        return KL_FAIL(ncclInvalidArgument, "%s: the receive buffer is NULL", function);
    return ncclSuccess;
}
