/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/peer_direct.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "device/host/bulk_copy.h"

#include <string.h>

enum { TIMEOUT_MS = 10000 }; /* for mapping allocations */

static const char *function(const struct kl_peer_direct_op *op)
{
    return kl_func_info[op->work.share->func].name;
}

/* ---- buffers that other ranks access ---- */

/* Do others read what a rank sends? */
static bool exposes_send(const struct kl_channel_work *s, int rank)
{
    return s->func != KL_FUNC_BROADCAST || rank == s->root;
}

/* Do others write what it receives? */
static bool exposes_recv(const struct kl_channel_work *s, int rank)
{
    return s->func == KL_FUNC_ALL_REDUCE || s->func == KL_FUNC_BROADCAST ||
           (s->func == KL_FUNC_REDUCE && rank == s->root);
}

/* ---- rounds: posts ---- */

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* Of an all-to-all in place others must not read this rank's parts while it overwrites them: they are staged. */
static bool overwrites_own(const struct kl_peer_direct_op *op)
{
    const struct kl_channel_work *s = op->work.share;
    const uint64_t from = address(s->send), to = address(s->recv);

    return s->func == KL_FUNC_ALL_TO_ALL && from < to + kl_peer_direct_recv_bytes(&op->work) &&
           to < from + kl_peer_direct_send_bytes(&op->work);
}

static void post_info(struct kl_peer_direct_op *op)
{
    struct kl_peer_direct *m = op->peer_direct;
    const struct kl_channel_work *s = op->work.share;
    const int me = m->shm.rank;
    struct kl_peer_direct_info *info = kl_shm_exchange_open(&m->shm, sizeof *info);
    const void *const buffer[KL_PEER_BUFFER_BUFFERS] = {exposes_send(s, me) ? s->send : NULL,
                                                        exposes_recv(s, me) ? s->recv : NULL};

    _Static_assert(sizeof *info <= KL_SHM_EXCHANGE_INLINE, "the info travels in a line");
    const bool apart = !overwrites_own(op);
    kl_shm_exchange_copies(&m->shm, info, kl_peer_direct_send_bytes(&op->work));
    *info = (struct kl_peer_direct_info){.readable = s->mark && apart};
    if (!m->broken && s->exposed && apart) kl_peer_buffer_info(&m->buffers, buffer, &info->buffers);
    if (s->mark) info->far = (struct kl_cma_buffers){kl_cma_self(s->mark), {address(s->send), address(s->recv)}};
}

/* Bytes of a post. */
static size_t posted_bytes(const struct kl_peer_direct_op *op)
{
    if (op->stage == KL_PEER_DIRECT_INFO) return sizeof(struct kl_peer_direct_info);
    if (op->stage == KL_PEER_DIRECT_LEFT) return sizeof(struct kl_cma_left);
    if (op->stage == KL_PEER_DIRECT_REPAIR) return op->repair.piece.bytes;
    return op->stage == KL_PEER_DIRECT_HANDLES ? sizeof(struct kl_peer_buffer_handles) : 1;
}

static void post(struct kl_peer_direct_op *op)
{
    struct kl_shm_exchange *b = &op->peer_direct->shm;

    if (op->stage == KL_PEER_DIRECT_INFO)
        post_info(op);
    else if (op->stage == KL_PEER_DIRECT_LEFT)
        memcpy(kl_shm_exchange_open(b, sizeof op->left), &op->left, sizeof op->left);
    else if (op->stage == KL_PEER_DIRECT_REPAIR)
        kl_repair_post(&op->repair, kl_shm_exchange_open(b, posted_bytes(op)));
    else if (op->stage == KL_PEER_DIRECT_HANDLES)
        kl_peer_buffer_handles(&op->peer_direct->buffers, &op->peer_direct->info[b->rank],
                               kl_shm_exchange_open(b, sizeof(struct kl_peer_buffer_handles)));
    else
        *(uint8_t *)kl_shm_exchange_open(b, 1) = !op->failed;
    kl_shm_exchange_announce(b, posted_bytes(op), op->work.share->signature);
}

static bool try_post(struct kl_peer_direct_op *op)
{
    int blocker;

    if (op->posted) return true;
    if (!kl_shm_exchange_may_post(&op->peer_direct->shm, posted_bytes(op), &blocker)) return false;
    post(op);
    return op->posted = true;
}

/* ---- rounds: the posts of others ---- */

/* Map a rank's fresh allocations. False: not yet. A failure is announced to all in the next round. */
static bool import(struct kl_peer_direct_op *op, int from)
{
    struct kl_peer_direct *m = op->peer_direct;
    struct kl_peer_buffer_handles handles;

    if (from == m->shm.rank || !m->info[from].fresh) return true;
    if (!op->deadline) op->deadline = kl_deadline_in_ms(TIMEOUT_MS);
    memcpy(&handles, kl_shm_exchange_data(&m->shm, from, sizeof handles), sizeof handles);
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_peer_buffer_import(&m->buffers, from, &m->info[from], &handles, op->deadline);
    kl_error_quiet(quiet);
    op->failed |= rc && rc != ncclInProgress;
    return rc != ncclInProgress;
}

static void on_info(struct kl_peer_direct_op *op, int from)
{
    struct kl_peer_direct *m = op->peer_direct;
    struct kl_peer_direct_info info;

    memcpy(&info, kl_shm_exchange_data(&m->shm, from, sizeof info), sizeof info);
    m->info[from] = info.buffers;
    m->far[from] = info.far;
    op->all &= info.buffers.reachable;
    op->fresh |= info.buffers.fresh;
    op->readable &= info.readable;
}

static bool on_post(struct kl_peer_direct_op *op, int from)
{
    struct kl_shm_exchange *b = &op->peer_direct->shm;

    if (op->stage == KL_PEER_DIRECT_HANDLES) return import(op, from);
    if (op->stage == KL_PEER_DIRECT_INFO)
        on_info(op, from);
    else if (op->stage == KL_PEER_DIRECT_LEFT)
        memcpy(&op->peer_direct->left[from], kl_shm_exchange_data(b, from, sizeof op->left), sizeof op->left);
    else if (op->stage == KL_PEER_DIRECT_VERDICTS)
        op->all &= *(const uint8_t *)kl_shm_exchange_data(b, from, 1) != 0;
    return true;
}

/* ---- rounds: the next stage ---- */

static bool find_buffers(struct kl_peer_direct_op *op)
{
    struct kl_peer_direct *m = op->peer_direct;
    const struct kl_channel_work *s = op->work.share;

    for (int r = 0; r < m->shm.nranks; r++) {
        m->send[r] =
            kl_peer_buffer_find(&m->buffers, r, &m->info[r], KL_PEER_BUFFER_SEND, kl_peer_direct_send_bytes(&op->work));
        m->recv[r] =
            kl_peer_buffer_find(&m->buffers, r, &m->info[r], KL_PEER_BUFFER_RECV, kl_peer_direct_recv_bytes(&op->work));
        if ((exposes_send(s, r) && !m->send[r]) || (exposes_recv(s, r) && !m->recv[r])) return false;
    }
    return true;
}

static bool reads(const struct kl_peer_direct_op *op)
{
    return op->agreed == KL_AGREED_KERNEL;
}

static void begin_work(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    op->stage = KL_PEER_DIRECT_WORK;
    if (!reads(op) && !find_buffers(op))
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has exported a buffer that is outside of its memory", function(op));
}

static void decline(struct kl_peer_direct_op *op)
{
    op->agreed = KL_AGREED_STAGED;
    op->stage = KL_PEER_DIRECT_END;
}

/* May this rank read the memory of all others? */
static bool may_read_all(const struct kl_peer_direct *m)
{
    for (int r = 0; r < m->shm.nranks; r++)
        if (r != m->shm.rank && !kl_cma_is_permitted(&m->far[r].owner)) return false;
    return true;
}

/* The info of all ranks is here. */
static void after_info(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    struct kl_peer_direct *m = op->peer_direct;

    op->agreed = op->all                                 ? KL_AGREED_DIRECT
                 : op->readable && op->work.share->reads ? KL_AGREED_KERNEL
                                                         : KL_AGREED_STAGED;
    if (op->agreed == KL_AGREED_STAGED) {
        decline(op);
    } else if (reads(op) && !m->proved) {
        op->failed = !may_read_all(m);
        op->stage = KL_PEER_DIRECT_VERDICTS;
        op->all = true;
    } else if (!reads(op) && op->fresh) {
        op->stage = KL_PEER_DIRECT_HANDLES;
    } else {
        begin_work(op, rc);
    }
}

/* The verdicts of all ranks are here. */
static void after_verdicts(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    struct kl_peer_direct *m = op->peer_direct;
    const bool by_kernel = reads(op);

    if (by_kernel)
        m->proved = op->all;
    else
        m->broken = !op->all;
    if (!op->all) {
        decline(op);
        if (by_kernel) op->agreed = KL_AGREED_REFUSED;
        return;
    }
    if (!by_kernel) kl_peer_buffers_announced(&m->buffers);
    begin_work(op, rc);
}

/* All ranks have announced their missing data, mostly none; none accesses others' memory any more. */
static void after_left(struct kl_peer_direct_op *op)
{
    struct kl_peer_direct *m = op->peer_direct;
    bool lost = false;

    for (int r = 0; r < m->shm.nranks; r++) lost |= m->left[r].lost;
    op->stage = lost ? KL_PEER_DIRECT_REPAIR : KL_PEER_DIRECT_END;
    if (!lost) return;
    op->agreed = KL_AGREED_REPAIRED;
    kl_repair_start(&op->repair, &op->cma, m->left, m->shm.slot_bytes);
    if (!op->repair.piece.bytes) op->stage = KL_PEER_DIRECT_END;
}

/* A piece is there. */
static void take_piece(struct kl_peer_direct_op *op)
{
    const struct kl_shm_exchange *b = &op->peer_direct->shm;
    const void *posts[KL_SHM_EXCHANGE_RANKS];

    for (int r = 0; r < b->nranks; r++) posts[r] = kl_shm_exchange_data(b, r, op->repair.piece.bytes);
    kl_repair_take(&op->repair, posts);
}

/* All ranks see the same posts, and so go on alike. */
static void next_stage(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    if (op->stage == KL_PEER_DIRECT_INFO)
        after_info(op, rc);
    else if (op->stage == KL_PEER_DIRECT_HANDLES)
        op->stage = KL_PEER_DIRECT_VERDICTS;
    else if (op->stage == KL_PEER_DIRECT_VERDICTS)
        after_verdicts(op, rc);
    else if (op->stage == KL_PEER_DIRECT_LEFT)
        after_left(op);
    else if (kl_repair_next(&op->repair), !op->repair.piece.bytes)
        op->stage = KL_PEER_DIRECT_END;
}

/* False: not yet, or *rc says why not. */
static bool progress_round(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    struct kl_shm_exchange *b = &op->peer_direct->shm;

    if (!try_post(op)) return false;
    for (; op->arrived < b->nranks; op->arrived++) {
        const enum kl_comparison got =
            kl_shm_exchange_has_come(b, op->arrived, posted_bytes(op), op->work.share->signature);
        if (got == KL_OTHER) *rc = kl_shm_exchange_refuse(b, op->arrived, function(op));
        if (got != KL_SAME || !on_post(op, op->arrived)) return false;
    }
    if (op->stage == KL_PEER_DIRECT_REPAIR) take_piece(op);
    b->compared = b->round + 1;
    kl_shm_exchange_next_round(b);
    op->posted = false;
    op->arrived = 0;
    next_stage(op, rc);
    return !*rc;
}

/* ---- work ---- */

static void note_lost(struct kl_peer_direct_op *op)
{
    const struct kl_cma_work *w = &op->cma;

    KL_INFO(KL_COLL, "%s: rank %d cannot reach the memory of rank %d any more, and goes on without", function(op),
            w->rank, w->lost);
    op->left = (struct kl_cma_left){.lost = true, .taken = w->taken, .moved = w->moved, .reduced = w->reduced};
}

/* By the kernel's copies. True: there is no more, or not this way. */
static bool read_some(struct kl_peer_direct_op *op)
{
    const enum kl_cma_progress got = kl_cma_work(&op->cma);

    if (got == KL_CMA_LOST) note_lost(op);
    return got != KL_CMA_MORE;
}

static bool map_some(struct kl_peer_direct_op *op)
{
    const bool done = kl_peer_direct_work(&op->work);

    if (op->work.share->nt) kl_nontemporal_fence();
    return done;
}

static void work_some(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    struct kl_peer_direct *m = op->peer_direct;

    if (!kl_arena_touch(m->mark, m->shm.rank, m->shm.nranks)) {
        *rc = KL_FAIL(ncclRemoteError, "%s: a rank has failed, and takes back its buffers", function(op));
        return;
    }
    const bool done = reads(op) ? read_some(op) : map_some(op);
    kl_arena_untouch(m->mark, m->shm.rank);
    if (!done) return;
    op->stage = reads(op) ? KL_PEER_DIRECT_LEFT : KL_PEER_DIRECT_END;
}

/* ---- an operation ---- */

void kl_peer_direct_start(struct kl_peer_direct_op *op, struct kl_peer_direct *peer_direct,
                          const struct kl_channel_work *share)
{
    *op = (struct kl_peer_direct_op){.peer_direct = peer_direct, .all = true, .readable = true};
    op->work = (struct kl_peer_direct_work){.share = share,
                                            .rank = peer_direct->shm.rank,
                                            .nranks = peer_direct->shm.nranks,
                                            .send = peer_direct->send,
                                            .recv = peer_direct->recv};
    op->cma = (struct kl_cma_work){.share = share,
                                   .rank = peer_direct->shm.rank,
                                   .nranks = peer_direct->shm.nranks,
                                   .far = peer_direct->far,
                                   .seen = peer_direct->seen,
                                   .scratch = peer_direct->scratch};
    peer_direct->buffers.processes = share->processes;
}

/* Mapped buffers are in use until all have come to the end. */
static bool is_mapped(const struct kl_peer_direct_op *op)
{
    return op->agreed == KL_AGREED_DIRECT;
}

/* The last round only marks that this rank has come to it: others may still read its buffers. */
static enum kl_progress end(struct kl_peer_direct_op *op)
{
    struct kl_shm_exchange *b = &op->peer_direct->shm;
    int blocker;

    if (!is_mapped(op)) return KL_DONE;
    if (!op->posted) {
        if (!kl_shm_exchange_may_post(b, 0, &blocker)) return KL_STALLED;
        kl_shm_exchange_call(b, op->work.share->signature);
        b->compared = b->round + 1;
        kl_shm_exchange_next_round(b);
        op->posted = true;
    }
    return kl_shm_exchange_all_done(b, &blocker) ? KL_DONE : KL_STALLED;
}

enum kl_progress kl_peer_direct_progress(struct kl_peer_direct_op *op, ncclResult_t *rc)
{
    const enum kl_peer_direct_stage before = op->stage;
    const int arrived = op->arrived;
    const bool posted = op->posted;

    while (op->stage < KL_PEER_DIRECT_END) {
        if (op->stage == KL_PEER_DIRECT_WORK) {
            work_some(op, rc);
            if (*rc) return KL_DONE;
            if (op->stage == KL_PEER_DIRECT_WORK) return KL_MOVED;
        } else if (!progress_round(op, rc)) {
            if (*rc) return KL_DONE;
            return op->stage != before || op->arrived != arrived || op->posted != posted ? KL_MOVED : KL_STALLED;
        }
    }
    enum kl_progress got = end(op);
    return got == KL_STALLED && op->stage != before ? KL_MOVED : got;
}

/* ---- diagnosis ---- */

static int blocker(struct kl_peer_direct_op *op)
{
    struct kl_shm_exchange *b = &op->peer_direct->shm;
    int rank = -1;

    if (op->stage == KL_PEER_DIRECT_WORK) return -1;
    if (op->stage == KL_PEER_DIRECT_END) return !is_mapped(op) || kl_shm_exchange_all_done(b, &rank) ? -1 : rank;
    if (!op->posted) return kl_shm_exchange_may_post(b, posted_bytes(op), &rank) ? -1 : rank;
    if (op->arrived == b->nranks) return -1;
    return kl_shm_exchange_is_there(b, op->arrived, posted_bytes(op)) ? -1 : op->arrived;
}

int kl_peer_direct_blocked_on(struct kl_peer_direct_op *op, bool gone)
{
    int rank = blocker(op);

    if (!gone || rank < 0) return rank;
    /* What a rank did before it left is visible when its mark is. */
    return kl_arena_left(op->peer_direct->mark, rank) && blocker(op) == rank ? rank : -1;
}
