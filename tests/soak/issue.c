/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/issue.h"

#include "tests/soak/value.h"
#include "tools/kolo/perf_value.h"

static const ncclRedOp_t operators[SOAK_REDUCTIONS] = {
    [SOAK_SUM] = ncclSum,
    [SOAK_PROD] = ncclProd,
    [SOAK_MAX] = ncclMax,
    [SOAK_MIN] = ncclMin,
    [SOAK_AVG] = ncclAvg,
    [SOAK_BIT_AND] = koloBitAnd,
    [SOAK_BIT_OR] = koloBitOr,
    [SOAK_BIT_XOR] = koloBitXor,
    [SOAK_LOGICAL_AND] = koloLogicalAnd,
    [SOAK_LOGICAL_OR] = koloLogicalOr,
    [SOAK_LOGICAL_XOR] = koloLogicalXor,
};

/* The arguments of a call besides the operation. */
struct call {
    int n, me;
    const struct soak_buffers *b;
    ncclComm_t comm;
    koloStream_t stream;
};

/* ---- operations with parts of different sizes ---- */

static ncclResult_t gather_parts(const struct soak_operation *o, const struct call *c)
{
    size_t counts[SOAK_RANKS], first[SOAK_RANKS], sum = 0;

    for (int r = 0; r < c->n; r++) counts[r] = soak_part(o, r), first[r] = sum, sum += counts[r];
    return koloAllGatherV(c->b->send, counts[c->me], c->b->recv, counts, first, o->type, c->comm, c->stream);
}

static ncclResult_t scatter_parts(const struct soak_operation *o, const struct call *c, ncclRedOp_t op)
{
    size_t counts[SOAK_RANKS];

    for (int r = 0; r < c->n; r++) counts[r] = soak_part(o, r);
    return koloReduceScatterV(c->b->send, c->b->recv, counts, o->type, op, c->comm, c->stream);
}

static ncclResult_t exchange_parts(const struct soak_operation *o, const struct call *c)
{
    size_t out[SOAK_RANKS], to[SOAK_RANKS], in[SOAK_RANKS], from[SOAK_RANKS], sent = 0, got = 0;

    for (int r = 0; r < c->n; r++) {
        out[r] = soak_part_between(o, c->me, r), to[r] = sent, sent += out[r];
        in[r] = soak_part_between(o, r, c->me), from[r] = got, got += in[r];
    }
    return koloAllToAllV(c->b->send, out, to, c->b->recv, in, from, o->type, c->comm, c->stream);
}

/* ---- messages ---- */

static ncclResult_t exchange_messages(const struct soak_operation *o, const struct call *c)
{
    size_t each = kl_value_type(o->type)->bytes, sent = 0, got = 0;
    ncclResult_t rc = o->together ? ncclGroupStart() : ncclSuccess;

    for (int m = 0; m < o->messages; m++) {
        const struct soak_message *x = &o->message[m];
        const unsigned char *out = c->b->send ? c->b->send + sent * each : NULL;
        unsigned char *in = c->b->recv ? c->b->recv + got * each : NULL;
        if (x->from == c->me) {
            rc = soak_worse(rc, ncclSend(out, x->count, o->type, x->to, c->comm, c->stream));
            sent += x->count;
        }
        if (x->to == c->me) {
            rc = soak_worse(rc, ncclRecv(in, x->count, o->type, x->from, c->comm, c->stream));
            got += x->count;
        }
    }
    return o->together ? soak_worse(rc, ncclGroupEnd()) : rc;
}

/* ---- all ---- */

static ncclResult_t issue(const struct soak_operation *o, const struct call *c, ncclRedOp_t op)
{
    const void *send = c->b->send;
    void *recv = c->b->recv;

    switch (o->kind) {
    case SOAK_ALL_REDUCE:
        return ncclAllReduce(send, recv, o->count, o->type, op, c->comm, c->stream);
    case SOAK_REDUCE:
        return ncclReduce(send, recv, o->count, o->type, op, o->root, c->comm, c->stream);
    case SOAK_BROADCAST:
        return ncclBroadcast(send, recv, o->count, o->type, o->root, c->comm, c->stream);
    case SOAK_BCAST:
        return ncclBcast(recv, o->count, o->type, o->root, c->comm, c->stream);
    case SOAK_ALL_GATHER:
        return ncclAllGather(send, recv, o->count, o->type, c->comm, c->stream);
    case SOAK_REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, o->count, o->type, op, c->comm, c->stream);
    case SOAK_ALL_TO_ALL:
        return ncclAlltoAll(send, recv, o->count, o->type, c->comm, c->stream);
    case SOAK_GATHER:
        return ncclGather(send, recv, o->count, o->type, o->root, c->comm, c->stream);
    case SOAK_SCATTER:
        return ncclScatter(send, recv, o->count, o->type, o->root, c->comm, c->stream);
    case SOAK_ALL_GATHER_V:
        return gather_parts(o, c);
    case SOAK_REDUCE_SCATTER_V:
        return scatter_parts(o, c, op);
    case SOAK_ALL_TO_ALL_V:
        return exchange_parts(o, c);
    case SOAK_MESSAGE:
        return exchange_messages(o, c);
    default:
        return koloBarrier(c->comm, c->stream);
    }
}

ncclResult_t soak_issue(const struct soak_operation *o, int n, int me, const struct soak_buffers *b, ncclComm_t comm,
                        koloStream_t stream)
{
    struct call c = {n, me, b, comm, stream};
    unsigned char scalar[8];
    ncclRedOp_t op;

    if (!soak_reduces(o->kind) || o->reduction != SOAK_PREMUL) return issue(o, &c, operators[o->reduction]);
    kl_value_put_int(kl_value_type(o->type), scalar, soak_scalar(o, n, me));
    ncclResult_t rc = ncclRedOpCreatePreMulSum(&op, scalar, o->type, ncclScalarHostImmediate, comm);
    if (rc) return rc;
    rc = issue(o, &c, op);
    if (rc == ncclInProgress) return rc; /* no other call is allowed until it is done; the operator ends with it */
    return soak_worse(rc, ncclRedOpDestroy(op, comm));
}
