/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet/request.h"

#include "net/collnet/shares.h"

#include <string.h>

enum { PIECE = 4096 }; /* bytes added up at a time: operands stay in the nearest cache */

/* ---- setting up a request ---- */

static bool has_room(const struct kl_heads *g)
{
    return !g->request[g->requests % KL_COLLNET_REQUESTS].group;
}

static struct kl_heads_request *begin(struct kl_heads *g)
{
    struct kl_heads_request *r = &g->request[g->requests % KL_COLLNET_REQUESTS];
    struct kl_exchange_of *with = r->with;

    memset(with, 0, (size_t)g->me.n * sizeof *with);
    *r = (struct kl_heads_request){.group = g, .number = g->requests++, .with = with};
    return r;
}

static struct kl_transfer transfer(const void *data, size_t bytes)
{
    return (struct kl_transfer){.data = (void *)(uintptr_t)data, .bytes = bytes, .wanted = bytes > 0};
}

/* This member adds up `count` elements: its own and those of the others. */
static void add_up(struct kl_heads_request *r, const void *own, void *sum, size_t count)
{
    if (!count) return;
    r->adds = true;
    r->addition = r->group->additions++;
    r->own = own;
    r->sum = sum;
    r->count = count;
    r->bytes = count * r->redop.elem_bytes;
}

static ncclResult_t check(struct kl_heads *g, size_t bytes)
{
    KL_TRY(kl_heads_report(g));
    if (bytes <= g->me.most) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "CollNet: %zu bytes of a member in one request; the group was made for %zu",
                   bytes, g->me.most);
}

static ncclResult_t redop_of(struct kl_collnet_op op, struct kl_redop *redop)
{
    return kl_redop_init(redop, op.type, op.op == ncclAvg ? ncclSum : op.op, 1);
}

/* ---- transfers ---- */

static ncclResult_t size_differs(const struct kl_heads *g, int member, size_t came, size_t expected)
{
    return KL_FAIL(ncclInvalidUsage,
                   "CollNet: rank %d sends %zu bytes where rank %d expects %zu: do they agree on count and type?",
                   g->me.ranks[member], came, g->me.ranks[g->me.own], expected);
}

/* Post it, and test it. */
static ncclResult_t send(const struct kl_heads *g, int member, struct kl_transfer *t, int tag)
{
    bool done;

    if (!t->wanted) return ncclSuccess;
    if (!t->request) KL_TRY(g->me.net->isend(g->member[member].send, t->data, t->bytes, tag, NULL, &t->request));
    if (!t->request) return ncclSuccess;
    KL_TRY(g->me.net->test(t->request, &done, NULL));
    if (done) *t = (struct kl_transfer){.wanted = false};
    return ncclSuccess;
}

static ncclResult_t receive(const struct kl_heads *g, int member, struct kl_transfer *t)
{
    const struct kl_net_recv recv = {.data = t->data, .bytes = t->bytes, .tag = KL_TAG_RESULT};
    size_t came;
    bool done;

    if (!t->wanted) return ncclSuccess;
    if (!t->request) KL_TRY(g->me.net->irecv(g->member[member].recv, 1, &recv, &t->request));
    if (!t->request) return ncclSuccess;
    KL_TRY(g->me.net->test(t->request, &done, &came));
    if (!done) return ncclSuccess;
    t->wanted = false;
    return came == t->bytes ? ncclSuccess : size_differs(g, member, came, t->bytes);
}

/* Is the member's contribution here? Members are tested in order; contributions of later ones are received
 * meanwhile. */
static ncclResult_t take_contribution(struct kl_heads_request *r, int member, bool *here)
{
    struct kl_heads *g = r->group;
    void **posted = &g->member[member].contribution[r->addition % KL_COLLNET_REQUESTS];
    size_t came;

    *here = false;
    KL_TRY(kl_heads_expect(g, member, r->addition + 1));
    if (!*posted) return ncclSuccess;
    KL_TRY(g->me.net->test(*posted, here, &came));
    if (!*here) return ncclSuccess;
    *posted = NULL;
    return came == r->bytes ? ncclSuccess : size_differs(g, member, came, r->bytes);
}

/* ---- adding up ---- */

/* Contributions in the order of members; the own one is not in a slot. */
static void sum_piece(const struct kl_heads_request *r, size_t first, size_t count)
{
    const struct kl_heads *g = r->group;
    const size_t at = first * r->redop.elem_bytes;
    char *sum = (char *)r->sum + at;
    const char *own = (const char *)r->own + at;
    const void *first_one = g->me.own ? (const char *)kl_heads_slot(g, 0, r->addition) + at : own;

    if (g->me.n == 1) {
        memcpy(sum, own, count * r->redop.elem_bytes);
        return;
    }
    for (int m = 1; m < g->me.n; m++) {
        const void *other = m == g->me.own ? own : (const char *)kl_heads_slot(g, m, r->addition) + at;
        r->redop.merge(&r->redop, sum, m > 1 ? sum : first_one, other, count);
    }
}

static void tell(struct kl_heads_request *r)
{
    const struct kl_heads *g = r->group;

    for (int m = 0; m < g->me.n && r->tells; m++)
        if (m != g->me.own) r->with[m].result_out = transfer(r->sum, r->bytes);
}

/* Post receives for the slots that are free again. A connection that has ended is an error only for requests that
 * need it. */
static void expect_next(const struct kl_heads_request *r)
{
    struct kl_heads *g = r->group;
    int quiet = kl_error_quiet(1);

    for (int m = 0; m < g->me.n; m++)
        if (m != g->me.own) (void)kl_heads_expect(g, m, r->addition + 1 + KL_COLLNET_REQUESTS);
    kl_error_quiet(quiet);
}

static void sum_all(struct kl_heads_request *r)
{
    const size_t piece = PIECE / r->redop.elem_bytes;

    for (size_t i = 0; i < r->count; i += piece) sum_piece(r, i, r->count - i < piece ? r->count - i : piece);
    tell(r);
    expect_next(r);
}

/* ---- progress ---- */

/* Live requests, the oldest first:  for (uint64_t i = oldest(g); i < g->requests; i++) if (at(g, i)->group)
 * use(at(g, i)) */
static uint64_t oldest(const struct kl_heads *g)
{
    return g->requests < KL_COLLNET_REQUESTS ? 0 : g->requests - KL_COLLNET_REQUESTS;
}

static struct kl_heads_request *at(struct kl_heads *g, uint64_t number)
{
    return &g->request[number % KL_COLLNET_REQUESTS];
}

static bool is_posted(const struct kl_transfer *t)
{
    return !t->wanted || t->request;
}

static ncclResult_t progress_offers(struct kl_heads_request *r, bool *posted)
{
    for (int m = 0; m < r->group->me.n; m++) {
        KL_TRY(send(r->group, m, &r->with[m].offer, KL_TAG_CONTRIBUTION));
        *posted = *posted && is_posted(&r->with[m].offer);
    }
    return ncclSuccess;
}

static ncclResult_t progress_addition(struct kl_heads_request *r)
{
    const struct kl_heads *g = r->group;
    bool here;

    while (r->adds && r->came < g->me.n) {
        if (r->came != g->me.own) {
            KL_TRY(take_contribution(r, r->came, &here));
            if (!here) return ncclSuccess;
        }
        if (++r->came == g->me.n) sum_all(r);
    }
    return ncclSuccess;
}

static ncclResult_t progress_results_out(struct kl_heads_request *r, bool *posted)
{
    KL_TRY(progress_addition(r));
    *posted = !r->adds || r->came == r->group->me.n;
    for (int m = 0; m < r->group->me.n; m++) {
        KL_TRY(send(r->group, m, &r->with[m].result_out, KL_TAG_RESULT));
        *posted = *posted && is_posted(&r->with[m].result_out);
    }
    return ncclSuccess;
}

static ncclResult_t progress_results_in(struct kl_heads_request *r, bool *posted)
{
    for (int m = 0; m < r->group->me.n; m++) {
        KL_TRY(receive(r->group, m, &r->with[m].result_in));
        *posted = *posted && is_posted(&r->with[m].result_in);
    }
    return ncclSuccess;
}

/* Messages of one kind are sent and received in the order of requests: one that cannot be posted delays those behind
 * it. */
static ncclResult_t progress_kind(struct kl_heads *g, ncclResult_t (*kind)(struct kl_heads_request *, bool *))
{
    bool posted = true;

    for (uint64_t i = oldest(g); i < g->requests && posted; i++)
        if (at(g, i)->group) KL_TRY(kind(at(g, i), &posted));
    return ncclSuccess;
}

static ncclResult_t progress(struct kl_heads *g)
{
    ncclResult_t rc = progress_kind(g, progress_offers);

    if (!rc) rc = progress_kind(g, progress_results_in);
    if (!rc) rc = progress_kind(g, progress_results_out);
    return rc ? kl_heads_fail(g, rc) : ncclSuccess;
}

/* A member with unfinished transfers; -1: none. */
static int missing(const struct kl_heads_request *r)
{
    const struct kl_heads *g = r->group;

    if (r->adds && r->came < g->me.n) return r->came;
    for (int m = 0; m < g->me.n; m++)
        if (r->with[m].offer.wanted || r->with[m].result_out.wanted || r->with[m].result_in.wanted) return m;
    return -1;
}

ncclResult_t kl_heads_test(struct kl_heads_request *r, bool *done)
{
    struct kl_heads *g = r->group;

    *done = false;
    KL_TRY(kl_heads_report(g));
    if (missing(r) >= 0) KL_TRY(progress(g));
    *done = missing(r) < 0;
    if (*done) r->group = NULL;
    return ncclSuccess;
}

int kl_heads_waits_for(const struct kl_heads *g)
{
    int member = -1;

    for (uint64_t i = oldest(g); i < g->requests && member < 0; i++) {
        const struct kl_heads_request *r = &g->request[i % KL_COLLNET_REQUESTS];
        if (r->group) member = missing(r);
    }
    return member < 0 || member == g->me.own ? -1 : g->me.ranks[member];
}

/* ---- requests ---- */

static ncclResult_t post(struct kl_heads_request *r, struct kl_heads_request **request)
{
    KL_TRY(progress(r->group));
    *request = r;
    return ncclSuccess;
}

ncclResult_t kl_heads_allreduce(struct kl_heads *g, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                                struct kl_heads_request **request)
{
    struct kl_redop redop;

    *request = NULL;
    KL_TRY(redop_of(op, &redop));
    const size_t size = redop.elem_bytes;
    const struct kl_shares shares = kl_shares_of(count, size, g->me.n, g->me.id + g->requests);
    KL_TRY(check(g, (count < shares.each ? count : shares.each) * size));
    if (!has_room(g)) return ncclSuccess;
    struct kl_heads_request *r = begin(g);
    r->redop = redop;
    r->tells = true;
    for (int m = 0; m < g->me.n; m++) {
        struct kl_share_range s = kl_share_of(&shares, m);
        const char *own = (const char *)send + s.first * size;
        char *to = (char *)recv + s.first * size;
        if (m == g->me.own) {
            add_up(r, own, to, s.count);
        } else {
            r->with[m].offer = transfer(own, s.count * size);
            r->with[m].result_in = transfer(to, s.count * size);
        }
    }
    return post(r, request);
}

ncclResult_t kl_heads_allgather(struct kl_heads *g, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                                struct kl_heads_request **request)
{
    *request = NULL;
    KL_TRY(check(g, bytes));
    if (!has_room(g)) return ncclSuccess;
    struct kl_heads_request *r = begin(g);
    for (int m = 0; m < g->me.n; m++) {
        if (m == g->me.own) continue;
        r->with[m].result_out = transfer(send, bytes);
        r->with[m].result_in = transfer(recv[m].data, bytes);
    }
    if (bytes) memcpy(recv[g->me.own].data, send, bytes);
    return post(r, request);
}

ncclResult_t kl_heads_reducescatter(struct kl_heads *g, const struct kl_collnet_part *send, void *recv, size_t count,
                                    struct kl_collnet_op op, struct kl_heads_request **request)
{
    struct kl_redop redop;

    *request = NULL;
    KL_TRY(redop_of(op, &redop));
    KL_TRY(check(g, count * redop.elem_bytes));
    if (!has_room(g)) return ncclSuccess;
    struct kl_heads_request *r = begin(g);
    r->redop = redop;
    for (int m = 0; m < g->me.n; m++)
        if (m != g->me.own) r->with[m].offer = transfer(send[m].data, count * redop.elem_bytes);
    add_up(r, send[g->me.own].data, recv, count);
    return post(r, request);
}
