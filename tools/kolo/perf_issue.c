/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_issue.h"

#include "base/error.h"

static ncclResult_t send_to(const struct kl_perf_op *o, int peer, size_t first, size_t count)
{
    return ncclSend(o->send + first * o->element_bytes, count, o->type, peer, o->comm, o->stream);
}

static ncclResult_t receive_from(const struct kl_perf_op *o, int peer, size_t first, size_t count)
{
    return ncclRecv(o->recv + first * o->element_bytes, count, o->type, peer, o->comm, o->stream);
}

static ncclResult_t all_reduce(const struct kl_perf_op *o)
{
    return ncclAllReduce(o->send, o->recv, o->shape.count, o->type, o->op, o->comm, o->stream);
}

static ncclResult_t all_gather(const struct kl_perf_op *o)
{
    return ncclAllGather(o->send, o->recv, o->shape.count, o->type, o->comm, o->stream);
}

static ncclResult_t reduce_scatter(const struct kl_perf_op *o)
{
    return ncclReduceScatter(o->send, o->recv, o->shape.count, o->type, o->op, o->comm, o->stream);
}

static ncclResult_t broadcast(const struct kl_perf_op *o)
{
    return ncclBroadcast(o->send, o->recv, o->shape.count, o->type, o->shape.root, o->comm, o->stream);
}

static ncclResult_t reduce(const struct kl_perf_op *o)
{
    return ncclReduce(o->send, o->recv, o->shape.count, o->type, o->op, o->shape.root, o->comm, o->stream);
}

/* The members of the groups below; kl_perf_issue opens and closes the group. */

static ncclResult_t alltoall(const struct kl_perf_op *o)
{
    for (int peer = 0; peer < o->shape.nranks; peer++) {
        size_t first = (size_t)peer * o->shape.count;
        KL_TRY(send_to(o, peer, first, o->shape.count));
        KL_TRY(receive_from(o, peer, first, o->shape.count));
    }
    return ncclSuccess;
}

static ncclResult_t alltoallv(const struct kl_perf_op *o)
{
    for (int peer = 0; peer < o->shape.nranks; peer++) {
        KL_TRY(send_to(o, peer, o->to[peer].send_first, o->to[peer].count));
        KL_TRY(receive_from(o, peer, o->from[peer].recv_first, o->from[peer].count));
    }
    return ncclSuccess;
}

static ncclResult_t gather(const struct kl_perf_op *o)
{
    KL_TRY(send_to(o, o->shape.root, 0, o->shape.count));
    for (int peer = 0; o->rank == o->shape.root && peer < o->shape.nranks; peer++)
        KL_TRY(receive_from(o, peer, (size_t)peer * o->shape.count, o->shape.count));
    return ncclSuccess;
}

static ncclResult_t scatter(const struct kl_perf_op *o)
{
    for (int peer = 0; o->rank == o->shape.root && peer < o->shape.nranks; peer++)
        KL_TRY(send_to(o, peer, (size_t)peer * o->shape.count, o->shape.count));
    return receive_from(o, o->shape.root, 0, o->shape.count);
}

static ncclResult_t sendrecv(const struct kl_perf_op *o)
{
    int n = o->shape.nranks;

    KL_TRY(send_to(o, (o->rank + 1) % n, 0, o->shape.count));
    return receive_from(o, (o->rank + n - 1) % n, 0, o->shape.count);
}

/* The own piece goes to its place by a message to oneself, in stream order, unless it is there. */
static ncclResult_t place_own_piece(const struct kl_perf_op *o)
{
    size_t first = (size_t)o->rank * o->shape.count;

    if (o->send == o->recv + first * o->element_bytes) return ncclSuccess;
    KL_TRY(send_to(o, o->rank, 0, o->shape.count));
    return receive_from(o, o->rank, first, o->shape.count);
}

/* Step k: the 2^(k-1) pieces gathered so far, for as many others. */
static ncclResult_t hypercube(const struct kl_perf_op *o, int step)
{
    if (!step) return place_own_piece(o);
    int mask = 1 << (step - 1), peer = o->rank ^ mask;
    size_t own = (size_t)(o->rank & ~(mask - 1)), other = own ^ (size_t)mask, count = o->shape.count;
    struct kl_perf_op gathered = *o;

    gathered.send = o->recv;
    KL_TRY(send_to(&gathered, peer, own * count, (size_t)mask * count));
    return receive_from(o, peer, other * count, (size_t)mask * count);
}

static ncclResult_t issue_messages(const struct kl_perf_op *o, int step)
{
    switch (o->shape.id) {
    case KL_ALLTOALL:
        return alltoall(o);
    case KL_ALLTOALLV:
        return alltoallv(o);
    case KL_GATHER:
        return gather(o);
    case KL_SCATTER:
        return scatter(o);
    case KL_SENDRECV:
        return sendrecv(o);
    default:
        return hypercube(o, step);
    }
}

/* The group is closed whatever happened inside, or it would swallow all that follows. */
static ncclResult_t issue_group(const struct kl_perf_op *o, int step)
{
    KL_TRY(ncclGroupStart());
    ncclResult_t rc = issue_messages(o, step);
    ncclResult_t end = ncclGroupEnd();

    return rc ? rc : end;
}

ncclResult_t kl_perf_issue(const struct kl_perf_op *o, int step)
{
    switch (o->shape.id) {
    case KL_ALL_REDUCE:
    case KL_BARRIER:
        return all_reduce(o);
    case KL_ALL_GATHER:
        return all_gather(o);
    case KL_REDUCE_SCATTER:
        return reduce_scatter(o);
    case KL_BROADCAST:
        return broadcast(o);
    case KL_REDUCE:
        return reduce(o);
    default:
        return issue_group(o, step);
    }
}
