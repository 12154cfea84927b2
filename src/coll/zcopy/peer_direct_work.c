/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/peer_direct_work.h"

#include "coll/shm/shm_exchange.h"
#include "coll/pipeline/pipeline.h"
#include "device/host/bulk_copy.h"

#include <string.h>

enum {
    BLOCK = KL_PEER_DIRECT_BLOCK,
    PIECE = 256 << 10, /* bytes between two looks at whether somebody has failed, and at others' work */
    GRAIN = 64         /* bytes: slices are multiples of it */
};
_Static_assert(2 * BLOCK <= KL_SCRATCH_BYTES, "two blocks");

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t part_bytes(const struct kl_channel_work *s)
{
    return s->count * s->elem_bytes;
}

size_t kl_peer_direct_send_bytes(const struct kl_peer_direct_work *w)
{
    return part_bytes(w->share) * (kl_func_info[w->share->func].send_parts ? (size_t)w->nranks : 1);
}

size_t kl_peer_direct_recv_bytes(const struct kl_peer_direct_work *w)
{
    return part_bytes(w->share) * (kl_func_info[w->share->func].recv_parts ? (size_t)w->nranks : 1);
}

/* `ahead`: bytes that are read next, as many; or NULL. */
static void put(const struct kl_peer_direct_work *w, char *to, const char *from, size_t bytes, const char *ahead)
{
    if (w->share->nt)
        kl_copy_nontemporal(to, from, bytes, ahead);
    else
        memcpy(to, from, bytes);
}

void kl_peer_direct_reduce(const struct kl_channel_work *share, int n, const void *const *partial, void *to,
                           size_t count)
{
    const struct kl_redop *redop = share->redop;
    char *other = (char *)share->scratch + BLOCK;

    if (!redop->first) {
        kl_redop_merge_all(redop, to, partial, (size_t)n, count);
    } else {
        redop->first(redop, to, partial[0], count);
        for (int r = 1; r < n; r++) {
            redop->first(redop, other, partial[r], count);
            redop->merge(redop, to, to, other, count);
        }
    }
    if (redop->last) redop->last(redop, to, count);
}

/* Element `first` of all inputs reduced, `count` of them. */
static void reduce(const struct kl_peer_direct_work *w, char *to, size_t first, size_t count)
{
    const void *partial[KL_SHM_EXCHANGE_RANKS];

    for (int r = 0; r < w->nranks; r++) partial[r] = w->send[r] + first * w->share->elem_bytes;
    kl_peer_direct_reduce(w->share, w->nranks, partial, to, count);
}

struct slice {
    size_t at, end; /* bytes */
};

/* A rank's share of what is sliced. */
static struct slice slice_of(const struct kl_peer_direct_work *w)
{
    const size_t all = part_bytes(w->share), n = (size_t)w->nranks;
    const size_t each = ((all + n - 1) / n + GRAIN - 1) / GRAIN * GRAIN;

    return (struct slice){min_size(each * (size_t)w->rank, all), min_size(each * ((size_t)w->rank + 1), all)};
}

/* The input that is fetched beside the `i`-th output; NULL: there is none left. */
static const char *input(const struct kl_peer_direct_work *w, int i)
{
    if (w->share->redop) return w->send[i];
    return i ? NULL : w->send[w->share->root];
}

/* To whoever receives it. While stores pass by the caches the next inputs come, one beside each output. */
static void put_to_all(const struct kl_peer_direct_work *w, size_t at, const char *from, size_t bytes)
{
    const bool more = at + 2 * bytes <= part_bytes(w->share);

    for (int r = 0, i = 0; r < w->nranks; r++) {
        char *to = w->recv[(w->rank + r) % w->nranks];
        if (!to || to + at == from) continue;
        const char *next = more ? input(w, i++) : NULL;
        put(w, to + at, from, bytes, next ? next + at + bytes : NULL);
    }
}

static void work_on_slice(const struct kl_peer_direct_work *w, size_t at, size_t end)
{
    const struct kl_channel_work *s = w->share;

    for (size_t some; at < end; at += some) {
        some = min_size(end - at, BLOCK);
        const char *from = s->redop ? s->scratch : w->send[s->root] + at;
        if (s->redop) reduce(w, s->scratch, at / s->elem_bytes, some / s->elem_bytes);
        put_to_all(w, at, from, some);
    }
}

/* True: there is no more. */
static bool slice_some(struct kl_peer_direct_work *w)
{
    const struct slice own = slice_of(w);
    const size_t at = own.at + w->moved, end = min_size(own.end, at + PIECE);

    work_on_slice(w, at, end);
    w->moved += end - at;
    return end == own.end;
}

/* Is the part reduced where it belongs? Not if stores pass by the caches, or if it lies among the inputs. */
static bool reduces_in_place(const struct kl_peer_direct_work *w)
{
    const size_t own = (size_t)w->rank * part_bytes(w->share);

    return !w->share->nt && w->share->recv != (const char *)w->share->send + own;
}

/* Two inputs are reduced in one pass: nothing has to stay in a cache. */
static size_t scatter_bytes(const struct kl_peer_direct_work *w)
{
    const bool one_pass = w->nranks == 2 && !w->share->redop->first;

    return one_pass && reduces_in_place(w) ? PIECE : BLOCK;
}

static void scatter_block(const struct kl_peer_direct_work *w, size_t at, size_t bytes)
{
    const struct kl_channel_work *s = w->share;
    const size_t own = (size_t)w->rank * part_bytes(s) + at;
    const bool more = own + 2 * bytes <= kl_peer_direct_send_bytes(w);
    char *to = (char *)s->recv + at;

    reduce(w, reduces_in_place(w) ? to : s->scratch, own / s->elem_bytes, bytes / s->elem_bytes);
    if (!reduces_in_place(w)) put(w, to, s->scratch, bytes, more ? (const char *)s->send + own + bytes : NULL);
}

static bool scatter_some(struct kl_peer_direct_work *w)
{
    const size_t all = part_bytes(w->share), end = min_size(all, w->moved + PIECE), most = scatter_bytes(w);

    for (size_t some; w->moved < end; w->moved += some) {
        some = min_size(end - w->moved, most);
        scatter_block(w, w->moved, some);
    }
    return end == all;
}

/* Ranks begin with different ones, and end with themselves. */
static bool gather_some(struct kl_peer_direct_work *w)
{
    const struct kl_channel_work *s = w->share;
    const int from = (w->rank + 1 + w->taken) % w->nranks;
    const size_t part = part_bytes(s), some = min_size(part - w->moved, PIECE);
    const size_t skip = kl_func_info[s->func].send_parts ? (size_t)w->rank * part : 0;

    char *to = (char *)s->recv + (size_t)from * part + w->moved;
    const char *lies = w->send[from] + skip + w->moved;

    if (to != lies) put(w, to, lies, some, NULL);
    w->moved += some;
    if (w->moved < part) return false;
    w->moved = 0;
    return ++w->taken == w->nranks;
}

/* Is every rank's work a slice of what one or all send? */
static bool is_sliced(const struct kl_channel_work *s)
{
    return s->func == KL_FUNC_ALL_REDUCE || s->func == KL_FUNC_BROADCAST || s->func == KL_FUNC_REDUCE;
}

bool kl_peer_direct_work(struct kl_peer_direct_work *w)
{
    if (is_sliced(w->share)) return slice_some(w);
    return w->share->redop ? scatter_some(w) : gather_some(w);
}
