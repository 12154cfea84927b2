/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/buffers.h"

#include "tests/soak/draw.h"
#include "tests/soak/value.h"
#include "tools/kolo/perf_value.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0x5c, UNTOUCHED = 0xa5 };
enum { MALLOC, KOLO_MALLOC, NCCL_MEM_ALLOC, KINDS_OF_MEMORY };

/* ---- blocks ---- */

static void *allocate(int kind, size_t bytes)
{
    void *p = NULL;

    if (kind == MALLOC) return malloc(bytes);
    if (kind == KOLO_MALLOC) return koloMalloc(&p, bytes) ? NULL : p;
    return ncclMemAlloc(&p, bytes) ? NULL : p;
}

static void give_back(int kind, void *p)
{
    if (kind == MALLOC)
        free(p);
    else if (kind == KOLO_MALLOC)
        koloFree(p);
    else
        ncclMemFree(p);
}

/* In every third operation all ranks have memory that all can map; else each chooses at random. */
static int kind_of_memory(const struct soak_operation *o, uint64_t *seed)
{
    if (o->key % 3 == 0) return NCCL_MEM_ALLOC;
    return soak_pick(seed, 4) ? MALLOC : soak_pick(seed, KINDS_OF_MEMORY);
}

/* Begins at an element, or seldom at any byte. */
static bool make_block(struct soak_block *b, const struct soak_operation *o, size_t elements, uint64_t *seed)
{
    const size_t bytes_each = kl_value_type(o->type)->bytes;
    size_t shift = (size_t)soak_pick(seed, 4) * bytes_each + (soak_once_in(seed, 6) ? (size_t)soak_pick(seed, 9) : 0);

    b->kind = kind_of_memory(o, seed);
    b->bytes = elements * bytes_each;
    b->start = allocate(b->kind, b->bytes + shift + 2 * GUARD);
    if (!b->start) return false;
    b->data = b->start + shift + GUARD;
    memset(b->data - GUARD, GUARD_BYTE, GUARD);
    memset(b->data, UNTOUCHED, b->bytes);
    memset(b->data + b->bytes, GUARD_BYTE, GUARD);
    return true;
}

static bool guards_hold(const struct soak_block *b)
{
    for (size_t i = 0; b->data && i < GUARD; i++)
        if (b->data[-1 - (ptrdiff_t)i] != GUARD_BYTE || b->data[b->bytes + i] != GUARD_BYTE) return false;
    return true;
}

/* ---- where they lie ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The part of the larger side that is the smaller one, in elements. */
static size_t place_within(const struct soak_operation *o, int me)
{
    size_t first = 0;

    if (o->kind <= SOAK_BCAST) return 0;
    if (o->kind != SOAK_ALL_GATHER_V) return (size_t)me * o->count;
    for (int r = 0; r < me; r++) first += soak_part(o, r);
    return first;
}

static bool make_in_place(struct soak_buffers *b, const struct soak_operation *o, int n, int me, uint64_t *seed)
{
    size_t each = kl_value_type(o->type)->bytes, sends = soak_sends(o, n, me), gets = soak_gets(o, n, me);
    size_t within = place_within(o, me) * each;

    if (!make_block(&b->block[1], o, larger(sends, gets), seed)) return false;
    b->send = b->recv = b->block[1].data;
    if (sends < gets) b->send += within;
    if (gets < sends && gets) b->recv += within;
    return true;
}

static bool make_apart(struct soak_buffers *b, const struct soak_operation *o, int n, int me, uint64_t *seed)
{
    size_t sends = soak_sends(o, n, me), gets = soak_gets(o, n, me);

    if (!make_block(&b->block[0], o, sends, seed) || !make_block(&b->block[1], o, gets, seed)) return false;
    b->send = sends || soak_once_in(seed, 2) ? b->block[0].data : NULL;
    b->recv = gets || soak_once_in(seed, 2) ? b->block[1].data : NULL;
    return true;
}

/* Only a root has both sides of these. */
static bool is_in_place(const struct soak_operation *o, int me)
{
    if (o->kind == SOAK_BCAST) return true;
    return o->in_place && ((o->kind != SOAK_GATHER && o->kind != SOAK_SCATTER) || me == o->root);
}

static uint64_t sum_of(const unsigned char *p, size_t bytes)
{
    uint64_t sum = bytes;

    for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return sum;
}

bool soak_buffers_make(struct soak_buffers *b, const struct soak_operation *o, int n, int me, uint64_t *seed)
{
    size_t each = kl_value_type(o->type)->bytes, sends = soak_sends(o, n, me);

    memset(b, 0, sizeof *b);
    if (is_in_place(o, me) ? !make_in_place(b, o, n, me, seed) : !make_apart(b, o, n, me, seed)) {
        soak_buffers_free(b);
        return false;
    }
    for (size_t i = 0; i < sends; i++) soak_contribute(o, n, me, i, b->send + i * each);
    b->sum = sum_of(b->block[0].data, b->block[0].bytes);
    return true;
}

void soak_buffers_free(struct soak_buffers *b)
{
    for (int k = 0; k < 2; k++)
        if (b->block[k].start) give_back(b->block[k].kind, b->block[k].start);
    memset(b, 0, sizeof *b);
}

/* ---- contents afterwards ---- */

static void tell_wrong(const struct soak_operation *o, size_t i, size_t gets, const void *got, const void *want,
                       char *text, size_t size)
{
    const struct kl_value_type *t = kl_value_type(o->type);
    char is[40], should[40];

    kl_value_print(t, got, is, sizeof is);
    kl_value_print(t, want, should, sizeof should);
    snprintf(text, size, "element %zu of %zu is %s, not %s", i, gets, is, should);
}

bool soak_buffers_wrong(const struct soak_buffers *b, const struct soak_operation *o, int n, int me, char *text,
                        size_t size)
{
    size_t each = kl_value_type(o->type)->bytes, gets = soak_gets(o, n, me);
    unsigned char want[8];

    for (size_t i = 0; i < gets; i++) {
        if (soak_is_right(o, n, me, i, b->recv + i * each, want)) continue;
        tell_wrong(o, i, gets, b->recv + i * each, want, text, size);
        return true;
    }
    if (!guards_hold(&b->block[0]) || !guards_hold(&b->block[1])) {
        snprintf(text, size, "memory beside the buffers was written");
        return true;
    }
    if (b->sum == sum_of(b->block[0].data, b->block[0].bytes)) return false;
    snprintf(text, size, "the send buffer was changed");
    return true;
}
