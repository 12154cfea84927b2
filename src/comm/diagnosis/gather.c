/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/gather.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/comm.h"
#include "comm/diagnosis/control_msg.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED = 64, HEAD = 1 + 8, RECORDS_MAX = 1 << 20 };

/* A question of the last seconds, and the destination of its answers. */
struct heard {
    uint64_t id;   /* 0: none */
    ncclComm_t by; /* the handle of the communicator that it came by; NULL: our own question */
    int from;
};

struct kl_gathering {
    struct kl_gathering *next;
    uint64_t id, begun;
    struct kl_source *clock;
    void (*done)(void *ctx, const struct kl_gathered *gathered);
    void *ctx;
    struct kl_status *status;
    size_t n, room;
    uint64_t missing; /* ranks of known communicators that have not answered */
};

/* The event loop's. */
static struct heard heard[REMEMBERED];
static unsigned next_heard;
static struct kl_gathering *gatherings;

static struct heard *recall(uint64_t id)
{
    for (int i = 0; i < REMEMBERED; i++)
        if (heard[i].id == id) return &heard[i];
    return NULL;
}

static void remember(uint64_t id, ncclComm_t by, int from)
{
    heard[next_heard++ % REMEMBERED] = (struct heard){.id = id, .by = by, .from = from};
}

/* ---- the question ---- */

struct question {
    uint64_t id;
    const struct kl_bootstrap *by; /* not back to the sender */
    int from;
};

static void pass_on(ncclComm_t comm, void *ctx)
{
    const struct question *q = ctx;
    unsigned char wire[HEAD];
    struct kl_writer w = kl_writer_on(wire, sizeof wire);

    if (kl_load_acquire(&comm->phase)) return; /* its bootstrap is its init's; pairs with run_phases */
    kl_put_u8(&w, KL_CONTROL_MSG_STATUS_ASK);
    kl_put_u64(&w, q->id);
    kl_bootstrap_control_broadcast(comm->bootstrap, comm->bootstrap == q->by ? q->from : -1, wire, sizeof wire);
}

/* ---- collected states ---- */

static int by_rank(const void *a, const void *b)
{
    const struct kl_status *x = a, *y = b;

    if (x->communicator != y->communicator) return x->communicator < y->communicator ? -1 : 1;
    return x->rank - y->rank;
}

/* In order, each once. */
static void tidy(struct kl_gathering *g)
{
    size_t kept = 0;

    if (g->n) qsort(g->status, g->n, sizeof *g->status, by_rank);
    for (size_t i = 0; i < g->n; i++)
        if (!kept || by_rank(&g->status[kept - 1], &g->status[i])) g->status[kept++] = g->status[i];
    g->n = kept;
}

static void forget(struct kl_gathering *g)
{
    struct kl_gathering **at = &gatherings;

    while (*at && *at != g) at = &(*at)->next;
    if (*at) *at = g->next;
    kl_source_remove(g->clock);
    free(g->status);
    free(g);
}

static void finish(struct kl_gathering *g)
{
    tidy(g);
    g->done(g->ctx, &(struct kl_gathered){
                        .status = g->status, .n = g->n, .took_ns = kl_now_ns() - g->begun, .complete = !g->missing});
    forget(g);
}

static void on_clock(void *ctx, uint32_t events)
{
    (void)events;
    finish(ctx);
}

static bool has_communicator(const struct kl_gathering *g, uint64_t communicator)
{
    for (size_t i = g->n; i-- > 0;) /* most likely the last */
        if (g->status[i].communicator == communicator) return true;
    return false;
}

/* A rank in init is not waited for: it cannot answer yet. */
static void add(struct kl_gathering *g, const struct kl_status *s)
{
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 64;
        struct kl_status *grown = room <= RECORDS_MAX ? realloc(g->status, room * sizeof *grown) : NULL;
        if (!grown) return;
        g->status = grown;
        g->room = room;
    }
    bool waited_for = s->state != KL_STATUS_INIT;
    if (waited_for && !has_communicator(g, s->communicator)) g->missing += (uint64_t)s->nranks;
    if (waited_for && g->missing) g->missing--;
    g->status[g->n++] = *s;
}

static void add_own(ncclComm_t comm, void *ctx)
{
    struct kl_status s;

    kl_status_of(comm, &s);
    add(ctx, &s);
}

ncclResult_t kl_gather_begin(struct kl_loop *loop, uint64_t timeout_ms,
                             void (*done)(void *ctx, const struct kl_gathered *gathered), void *ctx,
                             struct kl_gathering **gathering)
{
    struct kl_gathering *g = calloc(1, sizeof *g);

    if (!g) return KL_NOMEM("the state of a job");
    *g = (struct kl_gathering){.begun = kl_now_ns(), .done = done, .ctx = ctx};
    randombytes_buf(&g->id, sizeof g->id);
    g->id |= 1;
    ncclResult_t rc = kl_loop_add(loop, -1, 0, on_clock, g, &g->clock);
    if (rc) {
        free(g);
        return rc;
    }
    g->next = gatherings;
    gatherings = g;
    *gathering = g;
    remember(g->id, NULL, -1);
    kl_handle_each(add_own, g);
    if (timeout_ms) kl_handle_each(pass_on, &(struct question){.id = g->id, .from = -1});
    kl_source_deadline(g->clock, g->missing ? kl_deadline_in_ms(timeout_ms) : kl_now_ns());
    return ncclSuccess;
}

void kl_gather_cancel(struct kl_gathering *gathering)
{
    if (gathering) forget(gathering);
}

/* ---- answers ---- */

struct answer {
    struct kl_bootstrap *to;
    int from;
    uint64_t id;
};

/* A frame for each rank here. */
static void answer(ncclComm_t comm, void *ctx)
{
    const struct answer *a = ctx;
    unsigned char wire[HEAD + KL_STATUS_WIRE];
    struct kl_writer w = kl_writer_on(wire, sizeof wire);
    struct kl_status s;

    kl_status_of(comm, &s);
    kl_put_u8(&w, KL_CONTROL_MSG_STATUS_ANSWER);
    kl_put_u64(&w, a->id);
    kl_status_put(&w, &s);
    (void)kl_bootstrap_control_send(a->to, a->from, wire, (size_t)(w.at - wire));
}

static void on_question(ncclComm_t comm, struct kl_bootstrap *b, int from, uint64_t id)
{
    if (!id || recall(id)) return;
    remember(id, comm->handle, from);
    kl_handle_each(answer, &(struct answer){.to = b, .from = from, .id = id});
    kl_handle_each(pass_on, &(struct question){.id = id, .by = b, .from = from});
}

static void pass_back(const struct heard *h, const void *data, size_t bytes)
{
    struct ncclComm *comm = kl_handle_try(h->by);

    if (!comm) return; /* it has ended meanwhile */
    if (!kl_load_acquire(&comm->phase)) (void)kl_bootstrap_control_send(comm->bootstrap, h->from, data, bytes);
    kl_handle_leave(comm);
}

static void collect(uint64_t id, struct kl_reader *r)
{
    struct kl_gathering *g = gatherings;
    struct kl_status s;

    while (g && g->id != id) g = g->next;
    if (!g || !kl_status_get(r, &s)) return;
    add(g, &s);
    if (!g->missing) kl_source_deadline(g->clock, kl_now_ns());
}

static void on_answer(uint64_t id, struct kl_reader *r, const void *data, size_t bytes)
{
    const struct heard *h = recall(id);

    if (!h || bytes != HEAD + KL_STATUS_WIRE) return;
    if (h->by)
        pass_back(h, data, bytes);
    else
        collect(id, r);
}

void kl_gather_on_message(ncclComm_t comm, struct kl_bootstrap *b, int from, const void *data, size_t bytes)
{
    struct kl_reader r = kl_reader_on(data, bytes);
    uint8_t what = kl_get_u8(&r);
    uint64_t id = kl_get_u64(&r);

    if (r.bad) return;
    if (what == KL_CONTROL_MSG_STATUS_ASK)
        on_question(comm, b, from, id);
    else
        on_answer(id, &r, data, bytes);
}
