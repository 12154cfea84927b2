/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_rank.h"

#include "base/error.h"
#include "device/host/redop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONSENSE = 0xa5 };

static ncclResult_t allocate(const struct kl_perf_rank *r, void **memory, size_t bytes)
{
    return r->registration ? ncclMemAlloc(memory, bytes) : koloMalloc(memory, bytes);
}

static void give_back(const struct kl_perf_rank *r, void *memory)
{
    if (r->registration)
        ncclMemFree(memory);
    else
        koloFree(memory);
}

ncclResult_t kl_perf_rank_open(struct kl_perf_rank *r, size_t room, size_t misalign, const unsigned *stream_flags)
{
    size_t bytes = room + misalign + KL_PERF_GUARD;

    r->room = room;
    r->bytes = bytes;
    KL_TRY(koloSetDevice(r->device));
    if (stream_flags) KL_TRY(koloStreamCreate(&r->stream, *stream_flags));
    KL_TRY(allocate(r, &r->send_memory, bytes));
    KL_TRY(allocate(r, &r->recv_memory, bytes));
    KL_TRY(koloMalloc((void **)&r->scratch, 2 * KL_PERF_SCRATCH * sizeof *r->scratch));
    r->pieces = calloc(2 * (size_t)r->nranks, sizeof *r->pieces);
    if (!r->pieces) return KL_NOMEM("the pieces of a collective");
    memset(r->send_memory, NONSENSE, bytes); /* all pages are there before the clock starts */
    memset(r->recv_memory, NONSENSE, bytes);
    r->send = (char *)r->send_memory + misalign;
    r->recv = (char *)r->recv_memory + misalign;
    return ncclSuccess;
}

ncclResult_t kl_perf_rank_register(struct kl_perf_rank *r, int which)
{
    void *memory = which ? r->recv_memory : r->send_memory;

    if (r->registration == KL_PERF_REGISTERED) return ncclCommRegister(r->comm, memory, r->bytes, &r->handle[which]);
    return ncclCommWindowRegister(r->comm, memory, r->bytes, &r->window[which], NCCL_WIN_COLL_SYMMETRIC);
}

static void deregister(struct kl_perf_rank *r)
{
    for (int i = 0; i < 2; i++) {
        if (r->handle[i]) ncclCommDeregister(r->comm, r->handle[i]);
        if (r->window[i]) ncclCommWindowDeregister(r->comm, r->window[i]);
    }
}

void kl_perf_rank_close(struct kl_perf_rank *r)
{
    deregister(r);
    if (r->stream) koloStreamDestroy(r->stream);
    if (r->comm) ncclCommDestroy(r->comm);
    give_back(r, r->send_memory);
    give_back(r, r->recv_memory);
    koloFree(r->scratch);
    free(r->pieces);
    kl_data_free(&r->own);
    *r = (struct kl_perf_rank){0};
}

ncclResult_t kl_perf_rank_data(struct kl_perf_rank *r, const struct kl_coll *coll, ncclDataType_t type, ncclRedOp_t op)
{
    int rc;

    r->op = (struct kl_perf_op){
        .type = type,
        .op = op,
        .element_bytes = kl_type_bytes(type),
        .rank = r->rank,
        .comm = r->comm,
        .stream = r->stream,
        .to = r->pieces,
        .from = r->pieces + r->nranks,
    };
    kl_data_free(&r->own);
    if (coll->reduces)
        rc = kl_data_contribution(&r->own, type, op, r->nranks, r->rank);
    else
        rc = kl_data_moved(&r->own, type, r->rank);
    return rc ? KL_NOMEM("test data") : ncclSuccess;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The buffers of an iteration: each iteration uses the part of the room behind the one before. */
static void place(struct kl_perf_rank *r, int iteration)
{
    const struct kl_coll_shape *s = &r->op.shape;
    size_t bytes = r->op.element_bytes, total = larger(s->send, s->recv) * bytes;
    size_t turns = total ? r->room / total : 1, shift = turns ? (size_t)iteration % turns * total : 0;
    size_t rank = (size_t)r->rank;

    r->op.send = r->in_place ? r->recv + shift + rank * s->send_at * bytes : r->send + shift;
    r->op.recv = r->recv + shift + (r->in_place ? rank * s->recv_at * bytes : 0);
}

void kl_perf_rank_shape(struct kl_perf_rank *r, const struct kl_coll_shape *shape, bool in_place)
{
    r->op.shape = *shape;
    r->in_place = in_place;
    place(r, 0);
    if (shape->id != KL_ALLTOALLV) return;
    for (int peer = 0; peer < r->nranks; peer++) {
        r->pieces[peer] = kl_coll_piece(shape, r->rank, peer);
        r->pieces[r->nranks + peer] = kl_coll_piece(shape, peer, r->rank);
    }
}

ncclResult_t kl_perf_rank_issue(struct kl_perf_rank *r, int step, int iteration)
{
    place(r, iteration);
    return kl_perf_issue(&r->op, step);
}

/* The part of a buffer that iteration 0 uses; the guard follows. */
static size_t used_bytes(const struct kl_perf_rank *r)
{
    return larger(r->op.shape.send, r->op.shape.recv) * r->op.element_bytes;
}

void kl_perf_rank_fill(struct kl_perf_rank *r, uint64_t seed)
{
    const struct kl_coll_shape *s = &r->op.shape;
    char *own = r->in_place ? r->recv + (size_t)r->rank * s->send_at * r->op.element_bytes : r->send;

    place(r, 0);
    memset(r->recv, NONSENSE, used_bytes(r) + KL_PERF_GUARD);
    kl_data_fill(&r->own, seed, 0, s->send, own);
}

/* The beginning of every complaint; its size is the one in the table. */
static int say_where(const struct kl_perf_rank *r, char *text, size_t size)
{
    const struct kl_coll *coll = &kl_colls[r->op.shape.id];

    return snprintf(text, size, "rank %d: %s of %zu bytes of %s, %s%s%s: ", r->rank, coll->name, used_bytes(r),
                    kl_type_name(r->op.type), coll->has_op ? kl_redop_name(r->op.op) : "", coll->has_op ? ", " : "",
                    r->in_place ? "in-place" : "out-of-place");
}

static size_t check_part(const struct kl_perf_rank *r, const struct kl_coll_part *part,
                         const struct kl_data_table *table, uint64_t seed, char *complaint, size_t size)
{
    struct kl_data_wrong wrong;
    const char *at = r->op.recv + part->first * r->op.element_bytes;
    size_t nwrong = kl_data_check(table, seed, part->source_first, part->count, at, &wrong);

    if (!nwrong || *complaint) return nwrong;
    int n = say_where(r, complaint, size);
    snprintf(complaint + n, size - (size_t)n, "element %zu is %s, should be %s", part->first + wrong.index, wrong.got,
             wrong.expected);
    return nwrong;
}

static size_t check_guard(const struct kl_perf_rank *r, char *complaint, size_t size)
{
    const unsigned char *guard = (const unsigned char *)r->recv + used_bytes(r);
    size_t touched = 0;

    for (int i = 0; i < KL_PERF_GUARD; i++) touched += guard[i] != NONSENSE;
    if (!touched) return 0;
    if (!*complaint) {
        int n = say_where(r, complaint, size);
        snprintf(complaint + n, size - (size_t)n, "bytes behind the receive buffer were written");
    }
    return (touched + r->op.element_bytes - 1) / r->op.element_bytes;
}

ncclResult_t kl_perf_rank_check(const struct kl_perf_rank *r, const struct kl_data_table *reduced, uint64_t seed,
                                size_t *nwrong, char *complaint, size_t size)
{
    struct kl_coll_part part;
    size_t total = 0;

    complaint[0] = 0;
    for (int i = 0; kl_coll_part(&r->op.shape, r->rank, i, &part); i++) {
        struct kl_data_table moved = {0};

        if (part.source >= 0 && kl_data_moved(&moved, r->op.type, part.source)) return KL_NOMEM("test data");
        total += check_part(r, &part, part.source >= 0 ? &moved : reduced, seed, complaint, size);
        kl_data_free(&moved);
    }
    *nwrong = total + check_guard(r, complaint, size);
    return ncclSuccess;
}
