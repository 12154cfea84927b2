/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/cma.h"

#include "coll/shm/shm_exchange.h"
#include "coll/zcopy/peer_direct_work.h"
#include "device/host/bulk_copy.h"

enum {
    BLOCKS = 512 << 10, /* of all ranks together */
    MOST_BLOCK = 128 << 10,
    LEAST_BLOCK = 16 << 10,
    GRAIN = 4096 /* slices are multiples of it: the kernel copies page by page */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t block_bytes(int nranks)
{
    const size_t share = (size_t)BLOCKS / (size_t)nranks / GRAIN * GRAIN;

    return share > MOST_BLOCK ? MOST_BLOCK : share < LEAST_BLOCK ? LEAST_BLOCK : share;
}

/* A block of each other rank, and one of results. */
size_t kl_cma_scratch_bytes(int nranks)
{
    return (size_t)nranks * block_bytes(nranks);
}

static size_t part_bytes(const struct kl_channel_work *s)
{
    return s->count * s->elem_bytes;
}

/* ---- one copy ---- */

static bool read_from(struct kl_cma_work *w, int rank, size_t at, void *to, size_t bytes)
{
    const struct kl_cma_buffers *far = &w->far[rank];

    if (!bytes || kl_cma_read(&far->owner, &w->seen[rank], to, far->at[KL_PEER_BUFFER_SEND] + at, bytes)) return true;
    w->lost = rank;
    return false;
}

static bool write_to(struct kl_cma_work *w, int rank, size_t at, const void *from, size_t bytes)
{
    const struct kl_cma_buffers *far = &w->far[rank];

    if (!bytes || kl_cma_write(&far->owner, &w->seen[rank], far->at[KL_PEER_BUFFER_RECV] + at, from, bytes))
        return true;
    w->lost = rank;
    return false;
}

static void copy_own(const struct kl_cma_work *w, void *to, const void *from, size_t bytes)
{
    if (to != from && bytes) kl_copy_result(to, from, bytes, w->share->nt);
}

/* ---- slices ---- */

struct kl_cma_slice kl_cma_slice(const struct kl_cma_work *w, int rank)
{
    const size_t all = part_bytes(w->share), n = (size_t)w->nranks;
    const size_t each = ((all + n - 1) / n + GRAIN - 1) / GRAIN * GRAIN;

    return (struct kl_cma_slice){min_size(each * (size_t)rank, all), min_size(each * ((size_t)rank + 1), all)};
}

/* ---- from all to all: ranks begin with different ones, and end with themselves ---- */

static int peer_of(const struct kl_cma_work *w)
{
    return (w->rank + 1 + w->taken) % w->nranks;
}

static void next_peer(struct kl_cma_work *w)
{
    w->moved = 0;
    w->taken++;
}

static enum kl_cma_progress gather_some(struct kl_cma_work *w)
{
    const struct kl_channel_work *s = w->share;
    const int from = peer_of(w);
    const size_t part = part_bytes(s), some = min_size(part - w->moved, KL_CMA_PIECE);
    const size_t at = w->moved + (kl_func_info[s->func].send_parts ? (size_t)w->rank * part : 0);
    char *to = (char *)s->recv + (size_t)from * part + w->moved;

    if (from == w->rank)
        copy_own(w, to, (const char *)s->send + at, some);
    else if (!read_from(w, from, at, to, some))
        return KL_CMA_LOST;
    w->moved += some;
    if (w->moved == part) next_peer(w);
    return w->taken == w->nranks ? KL_CMA_DONE : KL_CMA_MORE;
}

/* ---- from one to all ---- */

/* The root's: its slice, the last, to one after the other. */
static enum kl_cma_progress spread_some(struct kl_cma_work *w)
{
    const struct kl_channel_work *s = w->share;
    const struct kl_cma_slice last = kl_cma_slice(w, w->nranks - 1);
    const size_t at = last.at + w->moved, some = min_size(last.end - at, KL_CMA_PIECE);
    const int to = peer_of(w);

    if (to == w->rank) {
        copy_own(w, s->recv, s->send, part_bytes(s));
        return KL_CMA_DONE;
    }
    if (!write_to(w, to, at, (const char *)s->send + at, some)) return KL_CMA_LOST;
    w->moved += some;
    if (at + some == last.end) next_peer(w);
    return KL_CMA_MORE;
}

static enum kl_cma_progress fetch_some(struct kl_cma_work *w)
{
    const size_t end = kl_cma_slice(w, w->nranks - 1).at, some = min_size(end - w->moved, KL_CMA_PIECE);

    if (!read_from(w, w->share->root, w->moved, (char *)w->share->recv + w->moved, some)) return KL_CMA_LOST;
    w->moved += some;
    return w->moved == end ? KL_CMA_DONE : KL_CMA_MORE;
}

/* ---- reductions ---- */

/* All ranks' inputs from byte `at` on, here: this rank's where it is, the others' in the scratch. */
static bool fetch_inputs(struct kl_cma_work *w, size_t at, size_t bytes, const void *inputs[KL_SHM_EXCHANGE_RANKS])
{
    char *to = w->scratch + block_bytes(w->nranks); /* the first block is for results */

    for (int i = 0; i < w->nranks; i++) {
        const int from = (w->rank + i) % w->nranks;
        inputs[from] = i ? to : (const char *)w->share->send + at;
        if (!i) continue;
        if (!read_from(w, from, at, to, bytes)) return false;
        to += block_bytes(w->nranks);
    }
    return true;
}

static void reduce(const struct kl_cma_work *w, const void *inputs[KL_SHM_EXCHANGE_RANKS], char *to, size_t bytes)
{
    for (size_t at = 0, some; at < bytes; at += some) {
        const void *partial[KL_SHM_EXCHANGE_RANKS];
        some = min_size(bytes - at, KL_PEER_DIRECT_BLOCK);
        for (int r = 0; r < w->nranks; r++) partial[r] = (const char *)inputs[r] + at;
        kl_peer_direct_reduce(w->share, w->nranks, partial, to + at, some / w->share->elem_bytes);
    }
}

static enum kl_cma_progress scatter_some(struct kl_cma_work *w)
{
    const struct kl_channel_work *s = w->share;
    const size_t part = part_bytes(s), some = min_size(part - w->moved, block_bytes(w->nranks));
    const size_t at = (size_t)w->rank * part + w->moved;
    const void *inputs[KL_SHM_EXCHANGE_RANKS];
    char *to = (char *)s->recv + w->moved;
    const bool in_place = to == (const char *)s->send + at; /* among the inputs */

    if (!fetch_inputs(w, at, some, inputs)) return KL_CMA_LOST;
    reduce(w, inputs, in_place ? w->scratch : to, some);
    if (in_place) copy_own(w, to, w->scratch, some);
    w->moved += some;
    return w->moved == part ? KL_CMA_DONE : KL_CMA_MORE;
}

/* To whoever receives. What is written of others' outputs no rank reads as an input but this one, which has. */
static bool write_result(struct kl_cma_work *w, size_t at, size_t bytes)
{
    const struct kl_channel_work *s = w->share;

    for (int i = 0; i < w->nranks; i++) {
        const int to = (w->rank + i) % w->nranks;
        if (s->func == KL_FUNC_REDUCE && to != s->root) continue;
        if (!i) copy_own(w, (char *)s->recv + at, w->scratch, bytes);
        if (i && !write_to(w, to, at, w->scratch, bytes)) return false;
    }
    return true;
}

static enum kl_cma_progress slice_some(struct kl_cma_work *w)
{
    const struct kl_cma_slice own = kl_cma_slice(w, w->rank);
    const size_t at = own.at + w->moved, some = min_size(own.end - at, block_bytes(w->nranks));
    const void *inputs[KL_SHM_EXCHANGE_RANKS];

    if (!some) return KL_CMA_DONE;
    if (!fetch_inputs(w, at, some, inputs)) return KL_CMA_LOST;
    reduce(w, inputs, w->scratch, some);
    w->reduced = some;
    if (!write_result(w, at, some)) return KL_CMA_LOST;
    w->reduced = 0;
    w->moved += some;
    return at + some == own.end ? KL_CMA_DONE : KL_CMA_MORE;
}

enum kl_cma_progress kl_cma_work(struct kl_cma_work *w)
{
    const struct kl_channel_work *s = w->share;

    if (s->func == KL_FUNC_BROADCAST) return s->root == w->rank ? spread_some(w) : fetch_some(w);
    if (s->func == KL_FUNC_REDUCE_SCATTER) return scatter_some(w);
    return s->redop ? slice_some(w) : gather_some(w);
}
