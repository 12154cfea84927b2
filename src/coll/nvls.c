/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per head, lines of 128 bytes:    written by
 *     taken[rank]                  that rank
 *     contribution[rank][slot]     that rank
 *     result[slot]                 the head
 * Per head, chunk_bytes each:
 *     contribution[rank][slot]     that rank
 *     result[slot]                 the head
 *
 * A line signals that a step's data are there and holds them itself when they are small: one line transfer. In an
 * all-gather, ranks count the results they took in taken[rank]; in a reduce-scatter, empty results signal that the
 * contributions have been read.
 *
 * Invariant:    a rank contributes to step t only once it has taken result t - steps, and seen that it was published.
 *               A head publishes step t only once all have taken result t - steps: they contributed to t, or counted it
 *               in taken.
 * Slots:        a contribution belongs to its rank until ready, then to the head until it publishes; a result to the
 *               head until ready, then to each rank until it has contributed to the slot's next step, or counted it in
 *               taken.
 * Memory order: ready is stored with release after the data, loaded with acquire before them; taken is stored with
 *               release after reading, loaded with acquire before a result is overwritten. A contribution is
 *               overwritten after an acquire of the result that the head stored with release after reading it.
 */
#include "coll/nvls.h"

#include "base/error.h"

#include <stdlib.h>

enum { MOST_RANKS = 1 << 12, MOST_STEPS = 1 << 10 };
enum { RANK_SHARE = 1 << 20, LEAST_CHUNK = 1 << 10 }; /* bytes: about half of a core's own cache */
#define MOST_CHUNK ((uint64_t)1 << 30)

uint64_t kl_nvls_chunk_bytes(int nranks, uint64_t wanted)
{
    uint64_t share = RANK_SHARE / KL_NVLS_STEPS / (uint64_t)nranks, chunk = wanted < share ? wanted : share;

    return chunk > LEAST_CHUNK ? chunk / KL_LINE * KL_LINE : LEAST_CHUNK;
}

/* ---- layout ---- */

static bool possible(const struct kl_nvls_shape *s)
{
    return s->nranks && s->nranks <= MOST_RANKS && s->steps && s->steps <= MOST_STEPS && s->chunk_bytes &&
           s->chunk_bytes % KL_LINE == 0 && s->chunk_bytes <= MOST_CHUNK;
}

/* Slots of a head: all ranks' contributions, and the results. */
static size_t slots_per_head(const struct kl_nvls_shape *s)
{
    return ((size_t)s->nranks + 1) * s->steps;
}

static size_t lines_per_head(const struct kl_nvls_shape *s)
{
    return s->nranks + slots_per_head(s);
}

size_t kl_nvls_bytes(const struct kl_nvls_shape *s)
{
    size_t bytes;

    if (!possible(s)) return 0;
    if (__builtin_mul_overflow(s->nranks * slots_per_head(s), s->chunk_bytes, &bytes)) return 0;
    if (__builtin_add_overflow(bytes, s->nranks * lines_per_head(s) * KL_LINE, &bytes)) return 0;
    return bytes;
}

struct kl_nvls_head kl_nvls_head(const struct kl_nvls *nvls, int head)
{
    const struct kl_nvls_shape *s = &nvls->shape;
    struct kl_nvls_line *lines = nvls->lines + (size_t)head * lines_per_head(s);
    unsigned char *data = (unsigned char *)(nvls->lines + s->nranks * lines_per_head(s));

    data += (size_t)head * slots_per_head(s) * s->chunk_bytes;
    return (struct kl_nvls_head){
        .taken = lines,
        .contributions = lines + s->nranks,
        .results = lines + s->nranks + (size_t)s->nranks * s->steps,
        .contributed = data,
        .published = data + (size_t)s->nranks * s->steps * s->chunk_bytes,
        .steps = s->steps,
        .chunk_bytes = s->chunk_bytes,
    };
}

/* ---- life ---- */

ncclResult_t kl_nvls_init(struct kl_nvls *nvls, const struct kl_nvls_shape *shape, int rank)
{
    *nvls = (struct kl_nvls){.shape = *shape, .rank = rank};
    if (!kl_nvls_bytes(shape) || rank < 0 || (uint32_t)rank >= shape->nranks)
        return KL_FAIL(ncclInternalError, "NVLS of %u ranks with slots of %llu bytes for rank %d", shape->nranks,
                       (unsigned long long)shape->chunk_bytes, rank);
    nvls->step = calloc(shape->nranks, sizeof *nvls->step);
    return nvls->step ? ncclSuccess : KL_NOMEM("steps of NVLS");
}

void kl_nvls_attach(struct kl_nvls *nvls, void *memory, const struct kl_arena_mark *mark)
{
    nvls->lines = memory;
    nvls->mark = mark;
}

void kl_nvls_fini(struct kl_nvls *nvls)
{
    free(nvls->step);
    *nvls = (struct kl_nvls){0};
}
