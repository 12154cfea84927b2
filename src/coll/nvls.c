/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/nvls.h"

#include "base/error.h"

#include <stdlib.h>

enum { NVLS_MAGIC = 0x736c766e, MOST_RANKS = 1 << 10, MOST_CHANNELS = 1 << 10, MOST_STEPS = 1 << 10 };
enum { RANK_SHARE = 1 << 20, LEAST_CHUNK = 1 << 10 }; /* bytes: about half of a core's own cache */
#define MOST_CHUNK ((uint64_t)1 << 30)

struct kl_nvls_memory {
    alignas(KL_LINE) uint32_t magic; /* constant after kl_nvls_init, as all of this line */
    struct kl_nvls_shape shape;
    struct kl_nvls_line left[]; /* by rank; then the lines of channels and heads, then their data */
};
_Static_assert(sizeof(struct kl_nvls_memory) == KL_LINE, "shared layout: all processes must agree");

uint64_t kl_nvls_chunk_bytes(int nranks, uint64_t wanted)
{
    uint64_t share = RANK_SHARE / KL_NVLS_STEPS / (uint64_t)nranks, chunk = wanted < share ? wanted : share;

    return chunk > LEAST_CHUNK ? chunk / KL_LINE * KL_LINE : LEAST_CHUNK;
}

/* ---- layout ---- */

static bool possible(const struct kl_nvls_shape *s)
{
    return s->nranks && s->nranks <= MOST_RANKS && s->nchannels && s->nchannels <= MOST_CHANNELS && s->steps &&
           s->steps <= MOST_STEPS && s->chunk_bytes && s->chunk_bytes % KL_LINE == 0 && s->chunk_bytes <= MOST_CHUNK;
}

/* Slots of a head on a channel: all ranks' contributions, and the results. */
static size_t slots_per_head(const struct kl_nvls_shape *s)
{
    return ((size_t)s->nranks + 1) * s->steps;
}

static size_t lines_per_head(const struct kl_nvls_shape *s)
{
    return s->nranks + slots_per_head(s);
}

static size_t heads(const struct kl_nvls_shape *s)
{
    return (size_t)s->nchannels * s->nranks;
}

size_t kl_nvls_bytes(const struct kl_nvls_shape *s)
{
    size_t lines, slots, bytes;

    if (!possible(s)) return 0;
    lines = 1 + s->nranks + heads(s) * lines_per_head(s);
    slots = heads(s) * slots_per_head(s);
    if (__builtin_mul_overflow(slots, s->chunk_bytes, &bytes)) return 0;
    return __builtin_add_overflow(bytes, lines * KL_LINE, &bytes) ? 0 : bytes;
}

struct kl_nvls_head kl_nvls_head(const struct kl_nvls *nvls, int channel, int head)
{
    const struct kl_nvls_shape *s = &nvls->shape;
    size_t which = (size_t)channel * s->nranks + (size_t)head;
    struct kl_nvls_line *first = nvls->memory->left + s->nranks, *lines = first + which * lines_per_head(s);
    unsigned char *data = (unsigned char *)(first + heads(s) * lines_per_head(s));

    data += which * slots_per_head(s) * s->chunk_bytes;
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

void kl_nvls_init(void *memory, const struct kl_nvls_shape *shape)
{
    struct kl_nvls_memory *m = memory;

    m->shape = *shape;
    m->magic = NVLS_MAGIC;
}

static bool same(const struct kl_nvls_shape *a, const struct kl_nvls_shape *b)
{
    return a->nranks == b->nranks && a->nchannels == b->nchannels && a->steps == b->steps &&
           a->chunk_bytes == b->chunk_bytes;
}

ncclResult_t kl_nvls_attach(struct kl_nvls *nvls, void *memory, size_t bytes, const struct kl_nvls_shape *shape,
                            int rank)
{
    struct kl_nvls_memory *m = memory;
    size_t needed = kl_nvls_bytes(shape);

    if (!needed || needed > bytes || rank < 0 || (uint32_t)rank >= shape->nranks)
        return KL_FAIL(ncclInternalError, "NVLS of %u ranks and %u channels for rank %d does not fit into %zu bytes",
                       shape->nranks, shape->nchannels, rank, bytes);
    if (m->magic != NVLS_MAGIC || !same(&m->shape, shape))
        return KL_FAIL(ncclInternalError,
                       "the memory shared for NVLS is not laid out as rank %d expects: do all ranks run the same "
                       "library with the same NCCL_NVLS_* settings?",
                       rank);
    *nvls = (struct kl_nvls){.memory = m, .shape = *shape, .rank = rank};
    nvls->step = calloc(heads(shape), sizeof *nvls->step);
    return nvls->step ? ncclSuccess : KL_NOMEM("steps of NVLS");
}

void kl_nvls_detach(struct kl_nvls *nvls)
{
    free(nvls->step);
    *nvls = (struct kl_nvls){0};
}

void kl_nvls_leave(struct kl_nvls *nvls)
{
    kl_store_release(&nvls->memory->left[nvls->rank].ready, 1); /* pairs with kl_nvls_left */
}

bool kl_nvls_left(const struct kl_nvls *nvls, int rank)
{
    return kl_load_acquire(&nvls->memory->left[rank].ready); /* pairs with kl_nvls_leave */
}
