/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_cases.h - operations of all functions, types and operators for a GPU, and their results, which the functions of
 * device/host/redop.h give, rank after rank.
 */
#ifndef KOLO_TEST_GPU_CASES_H
#define KOLO_TEST_GPU_CASES_H

#include "device/device.h"
#include "device/host/redop.h"
#include "tests/gpu_data.h"
#include "tests/kolo_test.h"

enum { RANKS = 8, COUNT = 1021, GUARD = 64, ARENA = RANKS * COUNT * 8 + 2 * GUARD };

/* ---- cases ---- */

enum func { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, ALL_TO_ALL, GATHER, SCATTER, MESSAGES, FUNCS };
enum { BUILT_IN = ncclNumOps, PREMUL_HOST = BUILT_IN, PREMUL_DEVICE, BITS, OPS = BITS + KL_BITS_OPS };

struct tcase {
    enum func func;
    ncclDataType_t type;
    int op;
    size_t count;
    size_t offset; /* bytes of the buffers from 256-byte alignment */
    bool in_place;
    int root;
    unsigned seed;
};

static bool reduces(enum func f)
{
    return f <= REDUCE_SCATTER;
}

static bool exists(const struct tcase *c)
{
    if (!reduces(c->func)) return c->op == 0 && c->type % 4 == 0;
    return c->op < BITS || c->type < ncclFloat16;
}

/* The cases of one function, type and operator: variants of size and place that take turns. */
static struct tcase case_of(unsigned i, int nranks)
{
    static const size_t sizes[] = {COUNT, 1, 64, 7, COUNT - 13};
    struct tcase c = {.func = (enum func)(i % FUNCS),
                      .type = (ncclDataType_t)(i / FUNCS % ncclNumTypes),
                      .op = (int)(i / FUNCS / ncclNumTypes % OPS),
                      .seed = i};
    const size_t size = kl_type_bytes(c.type);

    c.count = sizes[(i + i / FUNCS) % 5];
    c.offset = i % 3 == 0 ? 0 : i % 3 == 1 ? size : 1; /* aligned, by an element, by a byte */
    c.in_place = i / 7 % 2;
    c.root = (int)(i % (unsigned)nranks);
    return c;
}

enum { CASES = FUNCS * ncclNumTypes * OPS, ALL_FUNCTIONS = (1 << FUNCS) - 1 };

/* ---- data ---- */

/* The buffers of a rank, in elements. */
static size_t send_elements(const struct tcase *c, int n)
{
    return c->func == REDUCE_SCATTER || c->func == ALL_TO_ALL || c->func == SCATTER ? c->count * (size_t)n : c->count;
}

static size_t recv_elements(const struct tcase *c, int n)
{
    return c->func == ALL_GATHER || c->func == ALL_TO_ALL || c->func == GATHER ? c->count * (size_t)n : c->count;
}

static bool has_place(const struct tcase *c)
{
    return c->in_place && c->func <= ALL_TO_ALL;
}

/* In place, where a buffer lies in the other. */
static size_t send_behind(const struct tcase *c, int rank)
{
    return c->func == ALL_GATHER ? c->count * (size_t)rank : 0;
}

static size_t recv_behind(const struct tcase *c, int rank)
{
    return c->func == REDUCE_SCATTER ? c->count * (size_t)rank : 0;
}

static void redop_of(const struct tcase *c, int rank, int n, struct kl_redop *op)
{
    unsigned char scalar[8];

    gpu_factor(c->type, c->seed, rank, scalar);
    if (c->op < BUILT_IN)
        assert_int_equal(kl_redop_init(op, c->type, (ncclRedOp_t)c->op, n), ncclSuccess);
    else if (c->op < BITS)
        assert_int_equal(kl_redop_init_scaled(op, c->type, scalar), ncclSuccess);
    else
        assert_int_equal(kl_redop_init_bits(op, c->type, (enum kl_bits_op)(c->op - BITS)), ncclSuccess);
}

/* Elements [from, from + count) of the reduction. */
static void reduce_on_host(const struct tcase *c, int n, size_t from, unsigned char *to)
{
    static _Thread_local unsigned char in[ARENA];
    const size_t size = kl_type_bytes(c->type);
    struct kl_redop op;

    for (int r = 0; r < n; r++) {
        gpu_fill(in, send_elements(c, n) * size, c->seed, r);
        redop_of(c, r, n, &op);
        if (!r && op.first)
            op.first(&op, to, in + from * size, c->count);
        else if (!r)
            memcpy(to, in + from * size, c->count * size);
        else
            op.combine(&op, to, to, in + from * size, c->count);
    }
    if (op.last) op.last(&op, to, c->count);
}

/* Part `part` of rank `from`'s send buffer. */
static void part_on_host(const struct tcase *c, int n, int from, int part, unsigned char *to)
{
    static _Thread_local unsigned char in[ARENA];
    const size_t size = kl_type_bytes(c->type);

    gpu_fill(in, send_elements(c, n) * size, c->seed, from);
    memcpy(to, in + (size_t)part * c->count * size, c->count * size);
}

/* The rank's receive buffer, as it should be; false: it gets no result. */
static bool result_on_host(const struct tcase *c, int n, int rank, unsigned char *to)
{
    const size_t bytes = c->count * kl_type_bytes(c->type);

    switch (c->func) {
    case ALL_REDUCE:
    case REDUCE:
        reduce_on_host(c, n, 0, to);
        return c->func == ALL_REDUCE || rank == c->root;
    case REDUCE_SCATTER:
        reduce_on_host(c, n, c->count * (size_t)rank, to);
        return true;
    case BROADCAST:
        part_on_host(c, n, c->root, 0, to);
        return true;
    case GATHER:
    case ALL_GATHER:
        for (int r = 0; r < n; r++) part_on_host(c, n, r, 0, to + (size_t)r * bytes);
        return c->func == ALL_GATHER || rank == c->root;
    case ALL_TO_ALL:
        for (int r = 0; r < n; r++) part_on_host(c, n, r, rank, to + (size_t)r * bytes);
        return true;
    case SCATTER:
        part_on_host(c, n, c->root, rank, to);
        return true;
    default:
        part_on_host(c, n, (rank + n - 1) % n, 0, to);
        return true;
    }
}

#endif
