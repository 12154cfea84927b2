/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory order: left is stored with release last, loaded with acquire: all earlier stores of a member are visible then.
 * A toucher announces itself before it reads `revoked`, a revoker the other way round, both sequentially consistent: one
 * of the two sees the other.
 */
#include "channel/arena.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "channel/unreachable.h"
#include "event/fdmap.h"
#include "os/yield.h"
#include "transport/shm/region.h"
#include "transport/tags.h"

#include <stdio.h>
#include <unistd.h>

enum { STOPPED_MS = 1000 }; /* a rank that takes longer for a piece has been stopped or killed */

/** Sent by the first member to the others. Raw bytes between processes of one job. */
struct connect_info {
    uint64_t bytes; /* of the segment */
    struct kl_fd_export_handle handle;
};
_Static_assert(sizeof(struct connect_info) == 32, "wire format");

static size_t marks_bytes(const struct kl_arena *a)
{
    return (size_t)a->config.n * sizeof(struct kl_arena_mark);
}

static size_t segment_bytes(const struct kl_arena *a)
{
    return marks_bytes(a) + a->config.bytes;
}

static void lay_out(struct kl_arena *a, void *base)
{
    a->mark = base;
    a->memory = (unsigned char *)base + marks_bytes(a);
    kl_store_relaxed(&a->mark[a->config.own].process, (int32_t)getpid());
}

/* ---- the first ---- */

static ncclResult_t invite(const struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;
    struct connect_info info = {.bytes = segment_bytes(a), .handle = *kl_shm_region_export_handle(a->region)};

    for (int i = 0; i < c->n; i++)
        if (i != c->own) KL_TRY(kl_bootstrap_post(c->bootstrap, c->ranks[i], c->tag, &info, sizeof info));
    return ncclSuccess;
}

/* Ranks of one process use one map, the first of them as well: the variable that orders them (base/atomic.h) then has
 * one address for tools that watch addresses. */
static ncclResult_t map_own(struct kl_arena *a)
{
    if (a->map) return ncclSuccess;
    KL_TRY(kl_fdmap_get(kl_shm_region_export_handle(a->region), segment_bytes(a),
                        kl_deadline_in_ms(a->config.timeout_ms), &a->request, &a->map));
    kl_shm_region_unmap(a->region); /* its own: an exchange is large */
    lay_out(a, kl_fdmap_base(a->map));
    return ncclSuccess;
}

static ncclResult_t await_replies(struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;

    KL_TRY(map_own(a));
    for (; a->answered < c->n; a->answered++) {
        uint8_t reply;
        bool here;
        if (a->answered == c->own) continue;
        KL_TRY(kl_bootstrap_poll(c->bootstrap, c->ranks[a->answered], c->tag, &reply, sizeof reply, &here));
        if (!here) return ncclInProgress;
    }
    kl_shm_region_settle(a->region);
    return ncclSuccess;
}

/* ---- others ---- */

static ncclResult_t await_connect_info(struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;
    struct connect_info info;
    bool here;

    KL_TRY(kl_bootstrap_poll(c->bootstrap, c->ranks[0], c->tag, &info, sizeof info, &here));
    if (!here) return ncclInProgress;
    if (info.bytes != segment_bytes(a))
        return KL_FAIL(
            ncclInternalError,
            "rank %d shares %llu bytes where rank %d expects %zu: do all ranks have the same NCCL_* settings?",
            c->ranks[0], (unsigned long long)info.bytes, c->ranks[c->own], segment_bytes(a));
    a->handle = info.handle;
    a->invited = true;
    return ncclSuccess;
}

/* A peer with unreachable memory has ended or failed. The bootstrap knows the reason, or will in a moment: report
 * that. */
static ncclResult_t fail_with_reason(struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;
    char nothing;
    bool here;

    if (!a->doubt) a->doubt = kl_deadline_in_ms(KL_UNREACHABLE_MS);
    KL_TRY(kl_bootstrap_poll(c->bootstrap, c->ranks[0], KL_TAG_NONE, &nothing, 0, &here));
    return ncclInProgress;
}

static ncclResult_t map_it(struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;
    char text[KL_ERROR_TEXT];

    if (a->doubt && !kl_deadline_passed(a->doubt)) return fail_with_reason(a);
    int quiet = kl_error_quiet(1);
    ncclResult_t rc =
        kl_fdmap_get(&a->handle, segment_bytes(a), kl_deadline_in_ms(c->timeout_ms), &a->request, &a->map);
    kl_error_quiet(quiet);
    if (!rc || rc == ncclInProgress) return rc;
    if (rc == ncclRemoteError && !a->doubt) return fail_with_reason(a);
    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(rc, "rank %d cannot map the memory that rank %d shares: %.900s", c->ranks[c->own], c->ranks[0],
                   text);
}

static ncclResult_t enter(struct kl_arena *a)
{
    const struct kl_arena_config *c = &a->config;
    const uint8_t reply = 1;

    if (!a->invited) KL_TRY(await_connect_info(a));
    KL_TRY(map_it(a));
    lay_out(a, kl_fdmap_base(a->map));
    return kl_bootstrap_post(c->bootstrap, c->ranks[0], c->tag, &reply, sizeof reply);
}

/* ---- life ---- */

ncclResult_t kl_arena_begin(struct kl_arena *arena, const struct kl_arena_config *config)
{
    *arena = (struct kl_arena){.config = *config};
    if (config->own) return ncclSuccess;
    KL_TRY(kl_shm_region_create(segment_bytes(arena), &arena->region));
    return invite(arena);
}

enum kl_progress kl_arena_progress(struct kl_arena *a, ncclResult_t *rc)
{
    if (a->ready) return KL_DONE;
    ncclResult_t got = a->config.own ? enter(a) : await_replies(a);
    if (got == ncclInProgress) return KL_STALLED;
    a->ready = !got;
    *rc = got;
    return KL_DONE;
}

int kl_arena_blocked_on(const struct kl_arena *a)
{
    if (a->ready) return -1;
    return a->config.ranks[a->config.own ? 0 : a->answered];
}

void kl_arena_leave(struct kl_arena *a)
{
    if (a->mark) kl_store_release(&a->mark[a->config.own].left, 1); /* pairs with kl_arena_left */
}

bool kl_arena_touch(struct kl_arena_mark *mark, int own, int n)
{
    kl_swap_seq_cst(&mark[own].touching, 1);
    for (int m = 0; m < n; m++) {
        if (!kl_load_seq_cst(&mark[m].revoked)) continue; /* pairs with kl_arena_revoke */
        kl_arena_untouch(mark, own);
        return false;
    }
    return true;
}

/* Threads of this process end their piece. Another process may have been stopped or killed in the middle of it: its
 * later writes go into its own map of the memory. */
static void wait_for_toucher(const struct kl_arena_mark *mark)
{
    const bool here = kl_load_relaxed(&mark->process) == (int32_t)getpid();
    const uint64_t deadline = kl_deadline_in_ms(STOPPED_MS);

    while (kl_load_seq_cst(&mark->touching) && (here || !kl_deadline_passed(deadline)))
        kl_yield(); /* pairs with kl_arena_untouch */
}

void kl_arena_revoke(struct kl_arena *a)
{
    if (!a->mark || kl_swap_seq_cst(&a->mark[a->config.own].revoked, 1)) return; /* before anything that follows it */
    for (int m = 0; m < a->config.n; m++)
        if (m != a->config.own) wait_for_toucher(&a->mark[m]);
}

void kl_arena_fini(struct kl_arena *a)
{
    if (a->region) kl_shm_region_release(a->region, a->ready);
    kl_fdshare_request_free(a->request);
    if (a->map) kl_fdmap_put(a->map);
    *a = (struct kl_arena){0};
}
