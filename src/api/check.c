/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include "os/address_space.h"

#include <stdio.h>

ncclResult_t kl_check_closely(const char *function, const char *argument, const char *buffer, const void *at,
                              size_t count, size_t elem_bytes, int parts)
{
    const size_t room = kl_address_space_from(at), most = room / elem_bytes / (size_t)parts;
    char each[64] = "";

    if (count <= most) return ncclSuccess;
    if (parts > 1) snprintf(each, sizeof each, " for each of %d ranks", parts);
    return KL_FAIL(ncclInvalidArgument,
                   "%s: %s is %zu: with %zu byte%s each%s, the %s at %p would end beyond the address space, which has "
                   "room for %zu",
                   function, argument, count, elem_bytes, elem_bytes == 1 ? "" : "s", each, buffer, at, most);
}

/* Its name in the function's declaration. */
static const char *count_of(int func)
{
    return func == KL_FUNC_ALL_GATHER ? "sendcount" : func == KL_FUNC_REDUCE_SCATTER ? "recvcount" : "count";
}

static ncclResult_t check_buffer(ncclComm_t comm, const struct kl_task *t, const char *function, const char *buffer,
                                 const void *at, bool has_parts)
{
    return kl_check_closely(function, count_of(t->func), buffer, at, t->count, kl_comm_elem_bytes(comm, t),
                            has_parts ? comm->nranks : 1);
}

ncclResult_t kl_check_task_reach(ncclComm_t comm, const struct kl_task *t, const char *function)
{
    const struct kl_func_info *info = &kl_func_info[t->func];

    if (kl_task_reads(t, comm->rank)) KL_TRY(check_buffer(comm, t, function, "send buffer", t->send, info->send_parts));
    if (!kl_task_writes(t, comm->rank)) return ncclSuccess;
    return check_buffer(comm, t, function, "receive buffer", t->recv, info->recv_parts);
}
