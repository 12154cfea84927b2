/* SPDX-License-Identifier: Apache-2.0 */
/**
 * exchanges.c - collectives that are made of other operations in a group: messages between all, or with one rank;
 * reductions of unequal parts.
 */
#include "api/api.h"
#include "api/check.h"
#include "api/issue.h"
#include "comm/queue/gpus.h"
#include "comm/queue/group.h"
#include "comm/job.h"
#include "comm/comm.h"
#include "include/kolo.h"

#include <stdint.h>
#include <stdio.h>

/* The call of each rank. */
struct call {
    const char *function;
    ncclComm_t comm;
    cudaStream_t stream;
    ncclDataType_t type;
    size_t bytes; /* of an element */
    int rank, nranks;
};

/* ---- before anything is issued ---- */

static ncclResult_t begin(struct call *c)
{
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(c->comm, c->function, &comm));
    c->rank = comm->rank;
    c->nranks = comm->nranks;
    c->bytes = kl_type_bytes(c->type);
    kl_handle_leave(comm);
    if (!c->bytes)
        return KL_FAIL(ncclInvalidArgument, "%s: data type %d, there are 0 to %d", c->function, (int)c->type,
                       ncclNumTypes - 1);
    return ncclSuccess;
}

/* `parts` parts of `count` elements from `buffer` on: of this rank, or of all. */
static ncclResult_t check_reach(const struct call *c, const char *argument, const void *buffer, const char *which,
                                size_t count, int parts)
{
    return kl_check_reach(c->function, argument, which, buffer, count, c->bytes, parts);
}

static ncclResult_t check_root(const struct call *c, int root)
{
    if (root >= 0 && root < c->nranks) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s: root %d, the communicator has ranks 0 to %d", c->function, root,
                   c->nranks - 1);
}

static ncclResult_t check_buffer(const struct call *c, const void *buffer, const char *which)
{
    return buffer ? ncclSuccess : KL_FAIL(ncclInvalidArgument, "%s: the %s is NULL", c->function, which);
}

/* ---- messages ---- */

static const char *at(const struct call *c, const void *buffer, size_t element)
{
    return (const char *)buffer + element * c->bytes;
}

static void send(const struct call *c, int peer, const void *from, size_t count)
{
    const struct kl_op_args args = {.func = KL_FUNC_SEND, .send = from, .count = count, .type = c->type, .peer = peer};

    if (count) (void)kl_api_issue(c->comm, &args, c->stream, c->function); /* the group remembers errors */
}

static void receive(const struct call *c, int peer, const void *to, size_t count)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_RECV, .recv = (void *)(uintptr_t)to, .count = count, .type = c->type, .peer = peer};

    if (count) (void)kl_api_issue(c->comm, &args, c->stream, c->function);
}

/* ---- of equal parts ---- */

/* One operation where all ranks share memory. */
static ncclResult_t issue_whole(const struct call *c, const void *from, const void *to, size_t count)
{
    const struct kl_op_args args = {
        .func = KL_FUNC_ALL_TO_ALL, .send = from, .recv = (void *)(uintptr_t)to, .count = count, .type = c->type};

    return kl_api_issue(c->comm, &args, c->stream, c->function);
}

static ncclResult_t send_all(const struct call *c, const void *from, const void *to, size_t count)
{
    KL_TRY(kl_group_start());
    for (int r = 0; r < c->nranks; r++) {
        send(c, r, at(c, from, (size_t)r * count), count);
        receive(c, r, at(c, to, (size_t)r * count), count);
    }
    return kl_group_end();
}

static ncclResult_t is_whole(const struct call *c, size_t count, bool *whole)
{
    struct ncclComm *comm;

    KL_TRY(kl_comm_enter(c->comm, c->function, &comm));
    *whole = (comm->gpus && !comm->gpus_use_engine) || kl_exec_is_all_to_all(comm->exec, count, c->type);
    kl_handle_leave(comm);
    return ncclSuccess;
}

static ncclResult_t all_to_all(struct call *c, const void *from, const void *to, size_t count)
{
    bool whole;

    KL_TRY(begin(c));
    if (!count) return ncclSuccess;
    KL_TRY(check_buffer(c, from, "send buffer"));
    KL_TRY(check_buffer(c, to, "receive buffer"));
    KL_TRY(check_reach(c, "count", from, "send buffer", count, c->nranks));
    KL_TRY(check_reach(c, "count", to, "receive buffer", count, c->nranks));
    KL_TRY(is_whole(c, count, &whole));
    return whole ? issue_whole(c, from, to, count) : send_all(c, from, to, count);
}

ncclResult_t kl_api_all_to_all(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream, const char *function)
{
    struct call c = {.function = function, .comm = comm, .stream = stream, .type = type};

    return kl_group_keep_error(all_to_all(&c, from, to, count));
}

KL_PNCCL(ncclAlltoAll);
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream)
{
    return kl_api_all_to_all(sendbuff, recvbuff, count, datatype, comm, stream, "ncclAlltoAll");
}

/* One rank has parts of all: `whole`; each has its own: `part`. */
static ncclResult_t check_rooted(struct call *c, const void *part, const void *whole, size_t count, int root,
                                 bool gathers)
{
    const char *name_of_part = gathers ? "send buffer" : "receive buffer";
    const char *name_of_whole = gathers ? "receive buffer" : "send buffer";

    KL_TRY(begin(c));
    KL_TRY(check_root(c, root));
    if (!count) return ncclSuccess;
    KL_TRY(check_buffer(c, part, name_of_part));
    KL_TRY(check_reach(c, "count", part, name_of_part, count, 1));
    if (c->rank != root) return ncclSuccess;
    KL_TRY(check_buffer(c, whole, name_of_whole));
    return check_reach(c, "count", whole, name_of_whole, count, c->nranks);
}

static ncclResult_t gather(struct call *c, const void *part, const void *whole, size_t count, int root)
{
    KL_TRY(check_rooted(c, part, whole, count, root, true));
    KL_TRY(kl_group_start());
    send(c, root, part, count);
    for (int r = 0; c->rank == root && r < c->nranks; r++) receive(c, r, at(c, whole, (size_t)r * count), count);
    return kl_group_end();
}

ncclResult_t kl_api_gather(const void *part, void *whole, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream, const char *function)
{
    struct call c = {.function = function, .comm = comm, .stream = stream, .type = type};

    return kl_group_keep_error(gather(&c, part, whole, count, root));
}

KL_PNCCL(ncclGather);
ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return kl_api_gather(sendbuff, recvbuff, count, datatype, root, comm, stream, "ncclGather");
}

static ncclResult_t scatter(struct call *c, const void *part, const void *whole, size_t count, int root)
{
    KL_TRY(check_rooted(c, part, whole, count, root, false));
    KL_TRY(kl_group_start());
    for (int r = 0; c->rank == root && r < c->nranks; r++) send(c, r, at(c, whole, (size_t)r * count), count);
    receive(c, root, part, count);
    return kl_group_end();
}

ncclResult_t kl_api_scatter(const void *whole, void *part, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream, const char *function)
{
    struct call c = {.function = function, .comm = comm, .stream = stream, .type = type};

    return kl_group_keep_error(scatter(&c, part, whole, count, root));
}

KL_PNCCL(ncclScatter);
ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return kl_api_scatter(sendbuff, recvbuff, count, datatype, root, comm, stream, "ncclScatter");
}

/* ---- of unequal parts ---- */

static bool any(const struct call *c, const size_t *counts)
{
    for (int r = 0; r < c->nranks; r++)
        if (counts[r]) return true;
    return false;
}

/* The part of a rank begins, and ends, within the address space. */
static ncclResult_t check_part(const struct call *c, const void *buffer, const char *which, int rank, size_t place,
                               size_t count)
{
    char argument[32];

    snprintf(argument, sizeof argument, "place %d", rank);
    KL_TRY(check_reach(c, argument, buffer, which, place, 1));
    snprintf(argument, sizeof argument, "count %d", rank);
    return check_reach(c, argument, at(c, buffer, place), which, count, 1);
}

/* `places` may be NULL where parts follow each other. */
static ncclResult_t check_places(const struct call *c, const void *buffer, const size_t *counts, const size_t *places,
                                 const char *which)
{
    size_t next = 0;

    for (int r = 0; r < c->nranks; next += counts[r++])
        if (counts[r]) KL_TRY(check_part(c, buffer, which, r, places ? places[r] : next, counts[r]));
    return ncclSuccess;
}

static ncclResult_t check_parts(const struct call *c, const void *buffer, const size_t *counts, const size_t *places,
                                const char *which)
{
    if (!counts || !places) return KL_FAIL(ncclInvalidArgument, "%s: an array of the %s is NULL", c->function, which);
    if (!any(c, counts)) return ncclSuccess;
    KL_TRY(check_buffer(c, buffer, which));
    return check_places(c, buffer, counts, places, which);
}

static ncclResult_t all_gather_v(struct call *c, const void *from, size_t count, const void *to, const size_t *counts,
                                 const size_t *places)
{
    KL_TRY(begin(c));
    KL_TRY(check_parts(c, to, counts, places, "receive buffer"));
    if (count != counts[c->rank])
        return KL_FAIL(ncclInvalidArgument, "%s: rank %d sends %zu elements, and its entry in recvcounts is %zu",
                       c->function, c->rank, count, counts[c->rank]);
    if (count) KL_TRY(check_buffer(c, from, "send buffer"));
    KL_TRY(check_reach(c, "sendcount", from, "send buffer", count, 1));
    KL_TRY(kl_group_start());
    for (int r = 0; r < c->nranks; r++) {
        send(c, r, from, count);
        receive(c, r, at(c, to, places[r]), counts[r]);
    }
    return kl_group_end();
}

ncclResult_t koloAllGatherV(const void *sendbuff, size_t sendcount, void *recvbuff, const size_t *recvcounts,
                            const size_t *displs, ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    struct call c = {.function = "koloAllGatherV", .comm = comm, .stream = stream, .type = datatype};

    return kl_group_keep_error(all_gather_v(&c, sendbuff, sendcount, recvbuff, recvcounts, displs));
}

static ncclResult_t all_to_all_v(struct call *c, const void *from, const size_t *sendcounts, const size_t *sdispls,
                                 const void *to, const size_t *recvcounts, const size_t *rdispls)
{
    KL_TRY(begin(c));
    KL_TRY(check_parts(c, from, sendcounts, sdispls, "send buffer"));
    KL_TRY(check_parts(c, to, recvcounts, rdispls, "receive buffer"));
    KL_TRY(kl_group_start());
    for (int r = 0; r < c->nranks; r++) {
        send(c, r, at(c, from, sdispls[r]), sendcounts[r]);
        receive(c, r, at(c, to, rdispls[r]), recvcounts[r]);
    }
    return kl_group_end();
}

ncclResult_t koloAllToAllV(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls, void *recvbuff,
                           const size_t *recvcounts, const size_t *rdispls, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct call c = {.function = "koloAllToAllV", .comm = comm, .stream = stream, .type = datatype};

    return kl_group_keep_error(all_to_all_v(&c, sendbuff, sendcounts, sdispls, recvbuff, recvcounts, rdispls));
}

/* Each part is a reduction to its rank: this rank needs no room for the others' parts. */
static ncclResult_t reduce_scatter_v(struct call *c, const void *from, void *to, const size_t *counts, ncclRedOp_t op)
{
    size_t first = 0;

    KL_TRY(begin(c));
    if (!counts) return KL_FAIL(ncclInvalidArgument, "%s: the array of counts is NULL", c->function);
    if (any(c, counts)) KL_TRY(check_buffer(c, from, "send buffer"));
    KL_TRY(check_places(c, from, counts, NULL, "send buffer"));
    KL_TRY(kl_group_start());
    for (int r = 0; r < c->nranks; first += counts[r++]) {
        const struct kl_op_args args = {.func = KL_FUNC_REDUCE,
                                        .send = at(c, from, first),
                                        .recv = r == c->rank ? to : NULL,
                                        .count = counts[r],
                                        .type = c->type,
                                        .op = op,
                                        .peer = r};
        (void)kl_api_issue(c->comm, &args, c->stream, c->function);
    }
    return kl_group_end();
}

ncclResult_t koloReduceScatterV(const void *sendbuff, void *recvbuff, const size_t *recvcounts, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    struct call c = {.function = "koloReduceScatterV", .comm = comm, .stream = stream, .type = datatype};

    return kl_group_keep_error(reduce_scatter_v(&c, sendbuff, recvbuff, recvcounts, op));
}

/* No rank has the sum before all ranks have contributed. Barriers of a communicator run one after the other, and share
 * the byte. */
ncclResult_t koloBarrier(ncclComm_t handle, cudaStream_t stream)
{
    struct ncclComm *comm;

    KL_TRY(kl_group_keep_error(kl_comm_enter(handle, "koloBarrier", &comm)));
    const struct kl_op_args args = {.func = KL_FUNC_ALL_REDUCE,
                                    .send = &comm->barrier,
                                    .recv = &comm->barrier,
                                    .count = 1,
                                    .type = ncclUint8,
                                    .op = ncclMax};
    ncclResult_t rc = kl_api_issue(handle, &args, stream, "koloBarrier");
    kl_handle_leave(comm);
    return rc;
}
