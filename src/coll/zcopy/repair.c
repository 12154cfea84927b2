/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/repair.h"

#include "coll/shm/shm_exchange.h"
#include "coll/zcopy/peer_direct_work.h"

#include <string.h>

enum { ALL = -1 };

static const struct kl_channel_work *share_of(const struct kl_repair *m)
{
    return m->work->share;
}

static size_t part_bytes(const struct kl_repair *m)
{
    return share_of(m)->count * share_of(m)->elem_bytes;
}

/* A piece of `bytes` at most. */
static size_t some(const struct kl_repair *m, size_t bytes)
{
    return bytes < m->most ? bytes : m->most;
}

/* ---- the pieces of one rank's rest ---- */

/* The slice that it has reduced, and then the rest. */
static struct kl_repair_piece slice_piece(struct kl_repair *m)
{
    const struct kl_channel_work *s = share_of(m);
    const struct kl_cma_slice own = kl_cma_slice(m->work, m->of);
    const size_t at = own.at + m->now.moved;
    struct kl_repair_piece p = {.from = m->of,
                                .to = s->func == KL_FUNC_REDUCE ? s->root : ALL,
                                .reduced = m->now.reduced > 0,
                                .reduces = !m->now.reduced,
                                .at = at,
                                .put = at};

    p.bytes = some(m, p.reduced ? m->now.reduced : own.end - at);
    if (p.reduced) p.at = m->left[m->of].reduced - m->now.reduced;
    if (p.reduced) m->now.reduced -= p.bytes;
    m->now.moved += p.bytes;
    return p;
}

static struct kl_repair_piece scatter_piece(struct kl_repair *m)
{
    const size_t part = part_bytes(m), at = m->now.moved;

    m->now.moved += some(m, part - at);
    return (struct kl_repair_piece){
        .reduces = true, .to = m->of, .at = (size_t)m->of * part + at, .put = at, .bytes = m->now.moved - at};
}

/* Its own part comes last. */
static struct kl_repair_piece gather_piece(struct kl_repair *m)
{
    const int n = m->work->nranks, from = (m->of + 1 + (int)m->now.taken) % n;
    const size_t part = part_bytes(m), at = m->now.moved;
    const size_t skip = kl_func_info[share_of(m)->func].send_parts ? (size_t)m->of * part : 0;

    if ((int)m->now.taken == n) return (struct kl_repair_piece){.bytes = 0};
    m->now.moved += some(m, part - at);
    const struct kl_repair_piece p = {
        .from = from, .to = m->of, .at = skip + at, .put = (size_t)from * part + at, .bytes = m->now.moved - at};
    if (m->now.moved == part) {
        m->now.moved = 0;
        m->now.taken++;
    }
    return p;
}

/* The root's slice is the last one. A piece that several ranks lack is posted once, for all. */
static struct kl_repair_piece spread_piece(struct kl_repair *m)
{
    const int root = share_of(m)->root;
    const struct kl_cma_slice last = kl_cma_slice(m->work, m->work->nranks - 1);
    const size_t begin = m->of == root ? last.at : 0, end = m->of == root ? last.end : last.at;
    const size_t at = begin + m->now.moved;

    m->now.moved += some(m, end - at);
    return (struct kl_repair_piece){.from = root, .to = ALL, .at = at, .put = at, .bytes = begin + m->now.moved - at};
}

static struct kl_repair_piece piece_of(struct kl_repair *m)
{
    const struct kl_channel_work *s = share_of(m);

    if (s->func == KL_FUNC_BROADCAST) return spread_piece(m);
    if (s->func == KL_FUNC_REDUCE_SCATTER) return scatter_piece(m);
    return s->redop ? slice_piece(m) : gather_piece(m);
}

/* ---- all pieces ---- */

/* The root of a broadcast writes to one rank after the other: all of its slice is sent anew. Others' rests are one: the
 * longest. */
static struct kl_cma_left rest_of(const struct kl_repair *m, int rank)
{
    const int root = share_of(m)->root;
    struct kl_cma_left rest = m->left[rank];

    if (share_of(m)->func != KL_FUNC_BROADCAST || !rest.lost) return rest;
    if (rank == root) return (struct kl_cma_left){.lost = true};
    for (int r = 0; r < m->work->nranks; r++) {
        if (r == root || !m->left[r].lost) continue;
        if (r < rank) return (struct kl_cma_left){.lost = false};
        if (m->left[r].moved < rest.moved) rest.moved = m->left[r].moved;
    }
    return rest;
}

static void begin_rank(struct kl_repair *m, int rank)
{
    m->of = rank;
    if (rank < m->work->nranks) m->now = rest_of(m, rank);
}

void kl_repair_next(struct kl_repair *m)
{
    m->piece = (struct kl_repair_piece){.bytes = 0};
    for (; m->of < m->work->nranks; begin_rank(m, m->of + 1)) {
        if (!m->now.lost) continue;
        m->piece = piece_of(m);
        if (m->piece.bytes) return;
    }
}

/* The parts that need no other rank: the root of an interrupted broadcast has not written its own output. */
static void repair_own(const struct kl_repair *m)
{
    const struct kl_channel_work *s = share_of(m);

    if (s->func == KL_FUNC_BROADCAST && s->root == m->work->rank && m->left[s->root].lost && s->recv != s->send)
        memcpy(s->recv, s->send, part_bytes(m));
}

void kl_repair_start(struct kl_repair *m, const struct kl_cma_work *work, const struct kl_cma_left *left, size_t most)
{
    *m = (struct kl_repair){.work = work, .left = left};
    m->most = most / share_of(m)->elem_bytes * share_of(m)->elem_bytes;
    repair_own(m);
    begin_rank(m, 0);
    kl_repair_next(m);
}

/* ---- a piece ---- */

void kl_repair_post(const struct kl_repair *m, void *post)
{
    const struct kl_repair_piece *p = &m->piece;
    const char *from = p->reduced ? m->work->scratch : share_of(m)->send;

    if (p->reduces || p->from == m->work->rank) memcpy(post, from + p->at, p->bytes);
}

static void reduce(const struct kl_repair *m, const void *const *posts, char *to)
{
    const size_t block = KL_PEER_DIRECT_BLOCK, elem = share_of(m)->elem_bytes;

    for (size_t at = 0, bytes; at < m->piece.bytes; at += bytes) {
        const void *partial[KL_SHM_EXCHANGE_RANKS];
        bytes = m->piece.bytes - at < block ? m->piece.bytes - at : block;
        for (int r = 0; r < m->work->nranks; r++) partial[r] = (const char *)posts[r] + at;
        kl_peer_direct_reduce(share_of(m), m->work->nranks, partial, to + at, bytes / elem);
    }
}

void kl_repair_take(const struct kl_repair *m, const void *const *posts)
{
    const struct kl_repair_piece *p = &m->piece;
    char *to = (char *)share_of(m)->recv + p->put;

    if (p->to != ALL && p->to != m->work->rank) return;
    if (p->reduces)
        reduce(m, posts, to);
    else
        memcpy(to, posts[p->from], p->bytes);
}
