/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/exchange.h"

#include "base/error.h"
#include "device/host/bulk_copy.h"
#include "coll/engine/profile.h"
#include "coll/schedule/func.h"
#include "coll/schedule/signature.h"

#include <stdlib.h>
#include <string.h>

enum { HOT = 32, SLICE = 8, COLD_AFTER = 64, SORT_BY_HAND = 32 };

/* ---- life ---- */

static bool allocate(struct kl_exchange *x)
{
    size_t n = (size_t)x->nranks;

    x->send_round = calloc(n, sizeof *x->send_round);
    x->recv_round = calloc(n, sizeof *x->recv_round);
    x->to = calloc(n, sizeof *x->to);
    x->from = calloc(n, sizeof *x->from);
    return x->send_round && x->recv_round && x->to && x->from;
}

ncclResult_t kl_exchange_init(struct kl_exchange *x, int rank, int nranks, struct kl_connections *cs,
                              const struct kl_p2p_round *rounds, const struct kl_zcopy_config *zcopy,
                              struct kl_select *select)
{
    *x = (struct kl_exchange){.rank = rank, .nranks = nranks, .connections = cs};
    x->offers = (struct kl_zcopy_offers){.zcopy = *zcopy, .nranks = nranks, .rank = rank, .select = select};
    if (!allocate(x)) {
        kl_exchange_fini(x);
        return KL_NOMEM("messages");
    }
    for (int i = 0; i < nranks; i++) {
        x->send_round[rounds[i].send] = (uint32_t)i;
        x->recv_round[rounds[i].recv] = (uint32_t)i;
    }
    return ncclSuccess;
}

void kl_exchange_fini(struct kl_exchange *x)
{
    free(x->send_round);
    free(x->recv_round);
    free(x->to);
    free(x->from);
    free(x->active);
    free(x->parcels);
    kl_zcopy_offers_fini(&x->offers);
    *x = (struct kl_exchange){.rank = x->rank};
}

ncclResult_t kl_exchange_reserve(struct kl_exchange *x, size_t messages)
{
    if (messages <= x->room) return ncclSuccess;
    struct kl_exchange_entry **active = realloc(x->active, messages * sizeof(void *));
    if (active) x->active = active;
    struct kl_exchange_entry *parcels = realloc(x->parcels, messages * sizeof *parcels);
    if (parcels) x->parcels = parcels;
    if (!active || !parcels) return KL_NOMEM("the messages of a group");
    x->room = messages;
    return ncclSuccess;
}

/* ---- beginning ---- */

/* A send of this rank to itself meets the earlier receive, or the other way round. */
static void connect_self(struct kl_exchange_entry **waiting, struct kl_exchange_entry **others,
                         struct kl_exchange_entry *p)
{
    struct kl_exchange_entry *other = *others;

    if (!other) {
        struct kl_exchange_entry **end = waiting;
        while (*end) end = &(*end)->next;
        *end = p;
        return;
    }
    *others = other->next;
    struct kl_message *to = p->func == KL_FUNC_SEND ? &other->message : &p->message;
    const struct kl_message *from = p->func == KL_FUNC_SEND ? &p->message : &other->message;
    if (to->bytes && to->data != from->data) kl_copy_bulk(to->data, from->data, to->bytes);
}

static ncclResult_t connect(struct kl_exchange *x, struct kl_exchange_entry *p, struct kl_exchange_end *end)
{
    struct kl_edge edge = {.peer = p->peer, .use = KL_EDGE_MESSAGES, .sends = p->func == KL_FUNC_SEND};

    if (!end->connector) KL_TRY(kl_connections_get(x->connections, &edge, &end->connector));
    p->connector = end->connector;
    x->unready += !p->connector->ready;
    return ncclSuccess;
}

/* Is it first on its connector, small, and done at once? */
static bool is_done_at_once(const struct kl_exchange_end *end, const struct kl_task *task, size_t bytes)
{
    struct kl_connector *c = end->connector;

    if (end->last || !c || !c->ready || c->transport->progress || task->choice.of_gpu) return false;
    const uint64_t signature = kl_message_signature(task->type, task->count);
    return c->sends ? kl_message_try_send(c, task->send, bytes, signature)
                    : kl_message_try_recv(c, task->recv, bytes, signature);
}

bool kl_exchange_presend(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes)
{
    return task->peer != x->rank && is_done_at_once(&x->to[task->peer], task, task->count * elem_bytes);
}

/* Field by field, as in fill_share (exec.c). */
static struct kl_exchange_entry *pack(struct kl_exchange *x, const struct kl_task *task, size_t bytes)
{
    struct kl_exchange_entry *p = &x->parcels[x->added++];

    p->func = task->func;
    p->peer = task->peer;
    p->message = (struct kl_message){
        .data = task->func == KL_FUNC_SEND ? (char *)(uintptr_t)task->send : task->recv,
        .bytes = bytes,
        .signature = kl_message_signature(task->type, task->count),
        .of_gpu = task->choice.of_gpu,
    };
    p->connector = NULL;
    p->next = NULL;
    p->stalls = 0;
    p->profiled = false;
    p->event = x->event;
    return p;
}

/* Count the parcel in the launch's properties. */
static void note(struct kl_exchange *x, const struct kl_exchange_entry *p)
{
    if (p->func != KL_FUNC_SEND) {
        x->received += p->message.bytes;
        return;
    }
    x->sends++;
    if (p->message.bytes > x->largest) x->largest = p->message.bytes;
}

ncclResult_t kl_exchange_add(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes)
{
    const size_t bytes = task->count * elem_bytes;
    const bool sends = task->func == KL_FUNC_SEND;
    struct kl_exchange_end *end = (sends ? x->to : x->from) + task->peer;

    if (is_done_at_once(end, task, bytes)) return ncclSuccess;
    struct kl_exchange_entry *p = pack(x, task, bytes);
    if (p->peer == x->rank) {
        connect_self(&end->last, &(sends ? x->from : x->to)[p->peer].last, p);
        return ncclSuccess;
    }
    note(x, p);
    p->round = (sends ? x->send_round : x->recv_round)[p->peer];
    p->waits = end->last != NULL;
    if (end->last) end->last->next = p;
    end->last = p;
    if (p->waits) return ncclSuccess;
    x->active[x->n++] = p;
    return connect(x, p, end);
}

static int by_round(const void *a, const void *b)
{
    uint32_t x = (*(struct kl_exchange_entry *const *)a)->round, y = (*(struct kl_exchange_entry *const *)b)->round;

    return (x > y) - (x < y);
}

static void sort(struct kl_exchange *x)
{
    if (x->n > SORT_BY_HAND) {
        qsort(x->active, x->n, sizeof(void *), by_round);
        return;
    }
    for (size_t i = 1; i < x->n; i++) {
        struct kl_exchange_entry *p = x->active[i];
        size_t j = i;
        for (; j && x->active[j - 1]->round > p->round; j--) x->active[j] = x->active[j - 1];
        x->active[j] = p;
    }
}

static void begin(struct kl_exchange *x)
{
    sort(x);
    x->hot = x->n < HOT ? x->n : HOT;
    x->hand = 0;
    x->begun = true;
    kl_zcopy_offers_begin(&x->offers, x->largest, x->sends, x->received);
}

/* ---- going on ---- */

static void swap(struct kl_exchange *x, size_t a, size_t b)
{
    struct kl_exchange_entry *p = x->active[a];

    x->active[a] = x->active[b];
    x->active[b] = p;
}

static void warm(struct kl_exchange *x, size_t i)
{
    x->active[i]->stalls = 0;
    if (i >= x->hot) swap(x, i, x->hot++);
}

/* A hot message that does not move turns cold, once there are enough others. */
static void cool(struct kl_exchange *x, size_t i)
{
    if (++x->active[i]->stalls < COLD_AFTER || x->n <= HOT || i >= x->hot) return;
    x->active[i]->stalls = 0;
    swap(x, i, --x->hot);
}

static void forget_last(struct kl_exchange *x, const struct kl_exchange_entry *p)
{
    struct kl_exchange_end *end = (p->func == KL_FUNC_SEND ? x->to : x->from) + p->peer;

    if (end->last == p) end->last = NULL;
}

/* Done: the next message on the connector takes its place, or the last ones of the lists do. */
static void replace(struct kl_exchange *x, size_t i)
{
    struct kl_exchange_entry *p = x->active[i], *next = p->next;

    if (x->profiler) kl_exec_profile_message_end(p->connector);
    if (p->message.in_use) (void)p->connector->transport->use_gpu(p->connector, NULL, 0);
    forget_last(x, p);
    if (next) {
        next->connector = p->connector;
        next->waits = false;
        x->active[i] = next;
        return;
    }
    if (i < x->hot) {
        swap(x, i, --x->hot);
        i = x->hot;
    }
    x->active[i] = x->active[--x->n];
}

/* Only a network's connection takes memory of GPUs. */
static ncclResult_t use_gpu(struct kl_exchange_entry *p)
{
    const struct kl_connector *c = p->connector;

    if (!c->transport->use_gpu)
        return KL_FAIL(ncclInternalError, "a message with rank %d in memory of a GPU, by %s", p->peer,
                       c->transport->name);
    KL_TRY(c->transport->use_gpu(p->connector, p->message.data, p->message.bytes));
    p->message.in_use = true;
    return ncclSuccess;
}

/* The data that this side has to move itself, through a network. */
static enum kl_progress carry(struct kl_exchange *x, struct kl_exchange_entry *p, ncclResult_t *rc)
{
    struct kl_connector *c = p->connector;
    enum kl_progress carried, got;

    if (p->func == KL_FUNC_SEND) {
        got = kl_message_send(&p->message, c, &x->offers);
        carried = c->transport->progress(c, rc);
        if (!*rc && kl_message_send(&p->message, c, &x->offers) == KL_DONE) got = KL_DONE;
    } else {
        kl_message_set_target(&p->message, c);
        carried = c->transport->progress(c, rc);
        got = *rc ? KL_DONE : kl_message_recv(&p->message, c, &x->offers, rc);
    }
    return *rc ? KL_DONE : got == KL_STALLED ? carried : got;
}

static void profile(const struct kl_exchange *x, struct kl_exchange_entry *p)
{
    p->profiled = true;
    kl_exec_profile_message_begin(x->profiler, p->event, p->connector);
}

static enum kl_progress move(struct kl_exchange *x, struct kl_exchange_entry *p, ncclResult_t *rc)
{
    if (!p->connector->ready) return KL_STALLED;
    if (x->profiler && !p->profiled) profile(x, p);
    if (p->message.of_gpu && !p->message.in_use && (*rc = use_gpu(p))) return KL_DONE;
    if (p->connector->transport->progress) return carry(x, p, rc);
    if (p->func == KL_FUNC_SEND) return kl_message_send(&p->message, p->connector, &x->offers);
    return kl_message_recv(&p->message, p->connector, &x->offers, rc);
}

/* Poll one message. MOVED also when it is done. */
static enum kl_progress look(struct kl_exchange *x, size_t i, ncclResult_t *rc)
{
    enum kl_progress got = move(x, x->active[i], rc);

    if (*rc) return KL_DONE;
    if (got == KL_DONE)
        replace(x, i);
    else if (got == KL_MOVED)
        warm(x, i);
    else
        cool(x, i);
    return got == KL_STALLED ? got : KL_MOVED;
}

static bool is_hot_of(const struct kl_exchange *x, size_t i, bool sends)
{
    return i < x->hot && (x->active[i]->func == KL_FUNC_SEND) == sends;
}

static enum kl_progress look_at_hot_of(struct kl_exchange *x, bool sends, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    for (size_t i = x->hot; i-- > 0 && !*rc;)
        if (is_hot_of(x, i, sends) && look(x, i, rc) == KL_MOVED) got = KL_MOVED;
    return got;
}

/* Sends first: a receive may take long to copy, while others wait for this rank's sends. */
static enum kl_progress look_at_hot(struct kl_exchange *x, ncclResult_t *rc)
{
    enum kl_progress got = look_at_hot_of(x, true, rc);

    if (!*rc && look_at_hot_of(x, false, rc) == KL_MOVED) got = KL_MOVED;
    return got;
}

static enum kl_progress look_at_cold(struct kl_exchange *x, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    for (int k = 0; k < SLICE && x->hot < x->n && !*rc; k++) {
        size_t cold = x->n - x->hot;
        if (look(x, x->hot + x->hand++ % cold, rc) == KL_MOVED) got = KL_MOVED;
    }
    return got;
}

static size_t count_unready(const struct kl_exchange *x)
{
    size_t unready = 0;

    for (size_t i = 0; i < x->n; i++) unready += !x->active[i]->connector->ready;
    return unready;
}

/* Connectors become ready while others are used already. */
static enum kl_progress connect_more(struct kl_exchange *x, ncclResult_t *rc)
{
    enum kl_progress got = kl_connections_progress(x->connections, rc);

    if (!*rc && got != KL_STALLED) x->unready = count_unready(x);
    return got == KL_STALLED ? got : KL_MOVED;
}

enum kl_progress kl_exchange_progress(struct kl_exchange *x, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    if (!x->n) return KL_DONE;
    if (!x->begun) begin(x);
    if (x->unready) got = connect_more(x, rc);
    if (!*rc && look_at_hot(x, rc) == KL_MOVED) got = KL_MOVED;
    if (!*rc && x->hot < x->n && look_at_cold(x, rc) == KL_MOVED) got = KL_MOVED;
    return !*rc && x->n ? got : KL_DONE;
}

void kl_exchange_reset(struct kl_exchange *x)
{
    for (size_t i = 0; i < x->n; i++)
        for (struct kl_exchange_entry *p = x->active[i]; p; p = p->next) forget_last(x, p);
    if (x->to) x->to[x->rank].last = x->from[x->rank].last = NULL;
    x->n = x->added = x->hot = x->unready = 0;
    x->sends = x->largest = x->received = 0;
    x->begun = false;
}

/* ---- sleeping ---- */

bool kl_exchange_sleep_on(struct kl_exchange *x)
{
    bool all = !x->unready;

    for (size_t i = 0; i < x->n; i++) {
        struct kl_connector *c = x->active[i]->connector;
        all &= c->ready && c->transport->sleep_on && c->transport->sleep_on(c);
    }
    return all;
}

/* ---- diagnosis ---- */

static bool departed_rank(const struct kl_exchange_entry *p)
{
    return p->connector->ready && kl_message_waits_for_departed(&p->message, p->connector);
}

int kl_exchange_blocked_on(const struct kl_exchange *x, bool gone)
{
    for (size_t i = 0; i < x->n; i++)
        if (!gone || departed_rank(x->active[i])) return x->active[i]->peer;
    return -1;
}

void kl_exchange_print(const struct kl_exchange *x, const struct kl_printer *to)
{
    for (size_t i = 0; i < x->n; i++) {
        const struct kl_exchange_entry *p = x->active[i];
        kl_print_message(to, p->func == KL_FUNC_SEND, p->peer, &p->message, p->connector);
    }
}
