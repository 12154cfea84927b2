/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/exec.h"

#include "base/error.h"
#include "base/log.h"
#include "coll/algorithms.h"
#include "coll/links.h"
#include "coll/negotiation.h"
#include "coll/mover.h"
#include "coll/ordered.h"
#include "coll/signature.h"
#include "device/host/bulk_copy.h"
#include "os/chaos.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OP_ALIGN = 64 };

struct kl_exec {
    struct kl_exec_config config;
    struct kl_chooser chooser; /* the user's */

    /* the runner's */
    struct kl_links *links[KL_ALGORITHM_ROWS][KL_MAX_CHANNELS]; /* made at first use */
    unsigned char *ops;                                         /* one per channel */
    struct kl_share *shares;                                    /* the shares, by channel */
    size_t op_stride;
    const struct kl_algorithm *running; /* NULL: no collective has begun */
    struct kl_negotiation negotiation;
    int negotiating_row; /* row of the algorithm that begins with a negotiation */
    int ops_used, ops_left;
    bool op_done[KL_MAX_CHANNELS];
    int linked[KL_ALGORITHM_ROWS]; /* channels with ready links, from 0 on */
    bool messages;                 /* an exchange is in progress */
    bool wide;
    struct kl_exchange exchange;
    struct kl_redop scaled; /* operator of the running collective, if its scalar was read at its begin */
    alignas(64) unsigned char scratch[KL_SCRATCH_BYTES];
};

/* ---- life ---- */

static size_t largest_op(void)
{
    size_t most = 0;

    for (int i = 0; kl_algorithms[i]; i++)
        if (kl_algorithms[i]->op_bytes > most) most = kl_algorithms[i]->op_bytes;
    return (most + OP_ALIGN - 1) / OP_ALIGN * OP_ALIGN;
}

/* The fields that all operations have alike. */
static ncclResult_t make_shares(struct kl_exec *e, int nchannels)
{
    const struct kl_exec_config *c = &e->config;

    e->shares = kl_chaos_calloc((size_t)nchannels, sizeof *e->shares);
    if (!e->shares) return KL_NOMEM("operations");
    for (int i = 0; i < nchannels; i++)
        e->shares[i] = (struct kl_share){
            .channel = i,
            .processes = c->processes,
            .chain_bytes = c->processes ? c->chain_bytes : 0,
            .lends = c->lending.maps,
            .mark = c->processes && c->lending.copies != KL_KERNEL_COPIES_NEVER ? &e->config.lending.process : NULL,
            .scratch = e->scratch,
            .steps = c->steps.step ? &e->config.steps : NULL,
        };
    return ncclSuccess;
}

static ncclResult_t make_ops(struct kl_exec *e)
{
    const struct kl_exec_config *c = &e->config;
    const int nchannels = c->nranks > 1 ? kl_connect_most_channels(c->graph) : 1;

    e->op_stride = largest_op();
    e->ops = kl_chaos_aligned_alloc(OP_ALIGN, e->op_stride * (size_t)nchannels);
    if (!e->ops) return KL_NOMEM("operations");
    KL_TRY(make_shares(e, nchannels));
    return kl_exchange_init(&e->exchange, c->rank, c->nranks, c->connections, c->rounds, &c->lending);
}

ncclResult_t kl_exec_create(const struct kl_exec_config *config, struct kl_exec **exec)
{
    struct kl_exec *e = kl_chaos_aligned_alloc(OP_ALIGN, (sizeof *e + OP_ALIGN - 1) / OP_ALIGN * OP_ALIGN);

    if (!e) return KL_NOMEM("operations");
    memset(e, 0, sizeof *e);
    e->config = *config;
    e->chooser.tuning = config->tuning;
    e->chooser.memory = config->memory;
    e->chooser.ordered = config->ordered;
    e->negotiation =
        (struct kl_negotiation){.nranks = config->nranks, .rank = config->rank, .lending = config->lending};
    e->negotiating_row = kl_algorithm_find(KL_FUNC_ALL_REDUCE, KL_ALGO_MAPPED, KL_PROTO_SIMPLE, KL_REACH_ALL);
    e->wide = kl_lines_wide_works();
    ncclResult_t rc = make_ops(e);
    if (rc) {
        kl_exec_free(e);
        return rc;
    }
    *exec = e;
    return ncclSuccess;
}

static void free_links(const struct kl_algorithm *a, struct kl_links *links)
{
    if (!links) return;
    if (a->unlink) a->unlink(links);
    kl_links_fini(links);
    free(links);
}

void kl_exec_free(struct kl_exec *e)
{
    if (!e) return;
    for (int a = 0; kl_algorithms[a]; a++)
        for (int c = 0; c < KL_MAX_CHANNELS; c++) free_links(kl_algorithms[a], e->links[a][c]);
    kl_exchange_fini(&e->exchange);
    free(e->shares);
    free(e->ops);
    free(e);
}

/* ---- the user's side ---- */

static const char *const algo_names[KL_ALGO_NAMES] = {
    "TREE", "RING",     "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",         "NVLS_TREE",
    "PAT",  "ONE_SHOT", "FLAT",           "ORDERED",       "ORDERED_RING", "MAPPED",
};
static const char *const proto_names[KL_PROTOS] = {"LL", "LL128", "SIMPLE"};

static size_t elem_bytes(const struct kl_exec *e, const struct kl_task *t)
{
    return e->config.redops[t->type][ncclSum].elem_bytes;
}

static void log_choice(const struct kl_exec *e, const struct kl_task *t)
{
    KL_INFO(KL_TUNING, "%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}", kl_func_info[t->func].name,
            t->count * elem_bytes(e, t),
            t->choice.messages ? "MESSAGES" : algo_names[kl_algorithms[t->choice.algorithm]->algo],
            proto_names[t->choice.proto], t->choice.cut.nchannels - 1);
    if (e->chooser.limits && e->chooser.limits->tag)
        KL_INFO(KL_TUNING, "%s: userProfilerTag %#" PRIx64, kl_func_info[t->func].name, e->chooser.limits->tag);
}

/* Rank 0 logs the result of a negotiation. */
static void log_negotiation(const struct kl_exec *e, const struct kl_task *t, enum kl_negotiation_end end)
{
    static const char *const ends[] = {
        [KL_NEGOTIATED_DECLINED] = "not all ranks can map each other's buffers",
        [KL_NEGOTIATED_MAPPED] = "done in the ranks' own buffers (Mapped)",
        [KL_NEGOTIATED_READ] = "copied by the kernel (Mapped)",
        [KL_NEGOTIATED_MENDED] = "begun by the kernel, which does not copy any more: data are staged from now on",
    };

    if (e->config.rank) return;
    KL_INFO(KL_TUNING, "%s: %zu Bytes: %s", kl_func_info[t->func].name, t->count * elem_bytes(e, t), ends[end]);
}

void kl_exec_limit(struct kl_exec *e, const struct kl_limits *limits)
{
    e->chooser.limits = limits;
}

ncclResult_t kl_exec_choose(struct kl_exec *e, struct kl_task *t)
{
    if (e->config.nranks == 1) return ncclSuccess;
    KL_TRY(kl_choose(&e->chooser, t, elem_bytes(e, t)));
    if (!e->config.rank) log_choice(e, t);
    return ncclSuccess;
}

bool kl_exec_is_all_to_all(const struct kl_exec *e, size_t count, ncclDataType_t type)
{
    size_t part = count * e->config.redops[type][ncclSum].elem_bytes;

    return e->config.nranks > 1 && kl_chooser_takes_all_to_all(&e->chooser, part);
}

ncclResult_t kl_exec_reserve(struct kl_exec *e, size_t messages)
{
    return kl_exchange_reserve(&e->exchange, messages);
}

/* ---- links ---- */

static ncclResult_t make_links(struct kl_exec *e, int row, int channel)
{
    const struct kl_exec_config *c = &e->config;

    if (e->links[row][channel]) return ncclSuccess;
    e->links[row][channel] = kl_chaos_calloc(1, sizeof *e->links[row][channel]);
    if (!e->links[row][channel]) return KL_NOMEM("the links of an algorithm");
    return kl_algorithms[row]->link(c->graph, c->connections, channel, e->links[row][channel]);
}

static bool links_ready(struct kl_exec *e, int row, int nchannels)
{
    bool ready = true;

    for (int c = 0; c < nchannels; c++) ready = ready && e->links[row][c] && kl_links_ready(e->links[row][c]);
    return ready;
}

static bool has_links(const struct kl_exec *e, int row, int nchannels)
{
    for (int c = 0; c < nchannels; c++)
        if (!e->links[row][c]) return false;
    return true;
}

/* Request the links once, then connect until all are ready: every rank does the same, at the same operation. */
static enum kl_progress progress_links(struct kl_exec *e, int row, int nchannels, ncclResult_t *rc)
{
    if (!has_links(e, row, nchannels)) {
        for (int c = 0; c < nchannels && !*rc; c++) *rc = make_links(e, row, c);
        if (*rc) return KL_DONE;
        kl_connections_start(e->config.connections);
    }
    enum kl_progress got = kl_connections_progress(e->config.connections, rc);
    if (*rc) return KL_DONE;
    if (!links_ready(e, row, nchannels)) return got == KL_DONE ? KL_MOVED : got;
    e->linked[row] = nchannels;
    return KL_DONE;
}

static bool is_of_use(const struct kl_exec *e, int row)
{
    const struct kl_tuning *t = e->config.tuning;
    const struct kl_algorithm *a = kl_algorithms[row];

    if (row == e->negotiating_row) return kl_chooser_takes_all_to_all(&e->chooser, 1);
    if (a->algo >= KL_ALGOS) return e->config.ordered && a->algo == kl_ordered_algo(e->config.nranks);
    for (int f = 0; f < KL_FUNCS; f++)
        for (int p = 0; p < KL_PROTOS; p++)
            if (t->bandwidth[f][a->algo][p] > 0 && kl_algorithm_find(f, a->algo, p, e->config.memory) == row)
                return true;
    return false;
}

enum kl_progress kl_exec_connect_all(struct kl_exec *e, ncclResult_t *rc)
{
    for (int row = 0; kl_algorithms[row]; row++) {
        int n = kl_algorithms[row]->one_channel ? 1 : e->config.graph->coll_channels;
        if (e->config.nranks == 1 || !is_of_use(e, row) || e->linked[row] == n) continue;
        enum kl_progress got = progress_links(e, row, n, rc);
        if (*rc || got != KL_DONE) return *rc ? KL_DONE : got;
    }
    return KL_DONE;
}

/* ---- collectives ---- */

static void *op_of(const struct kl_exec *e, int channel)
{
    return e->ops + (size_t)channel * e->op_stride;
}

/* The operator of a collective that reduces. */
static const struct kl_redop *redop_of(struct kl_exec *e, const struct kl_task *t)
{
    if (!t->redop) return &e->config.redops[t->type][t->op];
    if (!t->scalar) return t->redop;
    (void)kl_redop_init_scaled(&e->scaled, t->type, t->scalar); /* the type is valid */
    return &e->scaled;
}

/* With one rank every collective is a copy of its contribution. */
static enum kl_progress copy_alone(struct kl_exec *e, const struct kl_task *t)
{
    const struct kl_redop *redop = t->redop ? redop_of(e, t) : NULL;

    if (redop && redop->first)
        redop->first(redop, t->recv, t->send, t->count);
    else if (t->send != t->recv)
        kl_copy_bulk(t->recv, t->send, t->count * elem_bytes(e, t));
    return KL_DONE;
}

/* Field by field: a copy of a just written struct reads it in other widths than it was written in, and has to wait for
 * the stores. */
static void fill_share(const struct kl_exec *e, const struct kl_task *t, const struct kl_redop *redop,
                       struct kl_share *share)
{
    share->func = t->func;
    share->proto = t->choice.proto;
    share->root = t->peer;
    share->signature = t->signature;
    share->redop = redop;
    share->type = t->type;
    share->op = t->op;
    share->send = t->send;
    share->recv = t->recv;
    share->count = t->count;
    share->elem_bytes = elem_bytes(e, t);
    share->wide = e->wide && t->choice.proto == KL_PROTO_LL128;
}

static void start(struct kl_exec *e, const struct kl_task *t, int row, bool more)
{
    const struct kl_algorithm *a = kl_algorithms[row];
    const struct kl_redop *redop = kl_func_info[t->func].reduces ? redop_of(e, t) : NULL;
    const int nchannels = a->one_channel ? 1 : t->choice.cut.nchannels;

    for (int c = 0; c < nchannels; c++) {
        struct kl_share *share = &e->shares[c];
        fill_share(e, t, redop, share);
        share->more = more;
        share->first = 0;
        share->end = t->count;
        if (!a->one_channel) kl_cut_range(&t->choice.cut, c, &share->first, &share->end);
        a->start(a, op_of(e, c), e->links[row][c], share);
        e->op_done[c] = false;
    }
    e->ops_used = e->ops_left = nchannels;
    e->running = a;
}

enum kl_progress kl_exec_at_once(struct kl_exec *e, const struct kl_task *t, ncclResult_t *rc)
{
    const int row = t->choice.algorithm;
    const struct kl_algorithm *a = kl_algorithms[row];
    struct kl_share *share = e->shares;

    if (!e->linked[row] || !a->at_once || t->choice.mapped || t->choice.messages) return KL_STALLED;
    fill_share(e, t, kl_func_info[t->func].reduces ? redop_of(e, t) : NULL, share);
    share->more = false;
    share->first = 0;
    share->end = t->count;
    const bool done = a->at_once(e->ops, e->links[row][0], share, rc);
    if (done && !*rc) return KL_DONE;
    e->op_done[0] = false;
    e->ops_used = e->ops_left = 1;
    e->running = a;
    return done ? KL_DONE : KL_MOVED;
}

static size_t all_bytes(const struct kl_exec *e, const struct kl_task *t)
{
    return kl_func_bytes(t->func, t->count * elem_bytes(e, t), e->config.nranks);
}

static bool post_ahead(struct kl_exec *e, const struct kl_task *t, unsigned later)
{
    const struct kl_algorithm *a = e->running;
    struct kl_share share;

    if (!a || !a->post_ahead || kl_algorithms[t->choice.algorithm] != a) return false;
    if (t->choice.messages || t->redop || t->scalar) return false;
    if (t->choice.mapped && !kl_negotiation_stages(&e->negotiation, t->func, all_bytes(e, t), later)) return false;
    fill_share(e, t, kl_func_info[t->func].reduces ? redop_of(e, t) : NULL, &share);
    share.more = false;
    share.first = 0;
    share.end = t->count;
    return a->post_ahead(e->ops, &share, later);
}

bool kl_exec_post_ahead(struct kl_exec *e, const struct kl_task *t, unsigned later)
{
    if (!kl_func_is_message(t->func)) return post_ahead(e, t, later);
    if (!e->messages) return false;
    return t->func == KL_FUNC_RECV || kl_exchange_send_ahead(&e->exchange, t, elem_bytes(e, t));
}

static enum kl_progress progress_ops(struct kl_exec *e, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;

    for (int c = 0; c < e->ops_used; c++) {
        if (e->op_done[c]) continue;
        enum kl_progress g = e->running->progress(op_of(e, c), rc);
        if (*rc) return KL_DONE;
        if (g == KL_STALLED) continue;
        got = KL_MOVED;
        if (g != KL_DONE) continue;
        e->op_done[c] = true;
        if (--e->ops_left) continue;
        e->running = NULL;
        return KL_DONE;
    }
    return got;
}

/* ---- messages ---- */

static ncclResult_t begin_messages(struct kl_exec *e, const struct kl_task *ring, uint64_t mask, uint64_t first,
                                   uint64_t end, uint64_t sent)
{
    e->messages = true;
    for (uint64_t i = first; i < end; i++) {
        const struct kl_task *t = &ring[i & mask];
        if (i < sent && t->func == KL_FUNC_SEND) continue;
        KL_TRY(kl_exchange_add(&e->exchange, t, elem_bytes(e, t)));
    }
    return ncclSuccess;
}

static enum kl_progress progress_messages(struct kl_exec *e, ncclResult_t *rc)
{
    enum kl_progress got = kl_exchange_progress(&e->exchange, rc);

    if (got == KL_DONE && !*rc) {
        kl_exchange_reset(&e->exchange);
        e->messages = false;
    }
    return got;
}

enum kl_progress kl_exec_messages(struct kl_exec *e, const struct kl_task *ring, uint64_t mask, uint64_t first,
                                  uint64_t end, uint64_t sent, ncclResult_t *rc)
{
    if (!e->messages) *rc = begin_messages(e, ring, mask, first, end, sent);
    return *rc ? KL_DONE : progress_messages(e, rc);
}

/* ---- an all-to-all as messages ---- */

/* One of its messages, from or to a peer. */
static struct kl_task message_of(const struct kl_exec *e, const struct kl_task *t, int peer, bool sends)
{
    const size_t at = (size_t)peer * t->count * elem_bytes(e, t);

    return (struct kl_task){
        .func = sends ? KL_FUNC_SEND : KL_FUNC_RECV,
        .type = t->type,
        .peer = peer,
        .send = (const char *)t->send + at,
        .recv = (char *)t->recv + at,
        .count = t->count,
    };
}

static ncclResult_t begin_spread(struct kl_exec *e, const struct kl_task *t)
{
    const int messages = 2 * e->config.nranks;

    KL_TRY(kl_exchange_reserve(&e->exchange, (size_t)messages));
    e->messages = true;
    for (int i = 0; i < messages; i++) {
        const struct kl_task message = message_of(e, t, i / 2, i % 2);
        KL_TRY(kl_exchange_add(&e->exchange, &message, elem_bytes(e, &message)));
    }
    return ncclSuccess;
}

static enum kl_progress progress_spread(struct kl_exec *e, const struct kl_task *t, ncclResult_t *rc)
{
    if (!e->messages) *rc = begin_spread(e, t);
    if (*rc) return KL_DONE;
    enum kl_progress got = progress_messages(e, rc);
    if (got == KL_DONE && !*rc && e->negotiation.times) kl_negotiation_ended(&e->negotiation);
    return got;
}

/* ---- collectives, whole ---- */

/* The row for the task that begins. */
static int row_for(struct kl_exec *e, const struct kl_task *t)
{
    if (!t->choice.mapped || !kl_negotiation_due(&e->negotiation, t->func, all_bytes(e, t))) return t->choice.algorithm;
    return e->negotiating_row;
}

static void start_row(struct kl_exec *e, const struct kl_task *t, int row, bool more)
{
    if (row == e->negotiating_row) e->shares[0].word = kl_negotiation_word(&e->negotiation);
    start(e, t, row, more);
}

static enum kl_progress begin(struct kl_exec *e, const struct kl_task *t, int row, bool more, ncclResult_t *rc)
{
    const int n = kl_algorithms[row]->one_channel ? 1 : t->choice.cut.nchannels;
    enum kl_progress got = n <= e->linked[row] ? KL_DONE : progress_links(e, row, n, rc);

    if (!*rc && got == KL_DONE) start_row(e, t, row, more);
    return got;
}

/* The algorithm is done; for one that begins with a negotiation, the negotiation is. DONE: the collective is
 * complete. */
static enum kl_progress end_algorithm(struct kl_exec *e, const struct kl_task *t, const struct kl_algorithm *a)
{
    if (!a->outcome) {
        kl_negotiation_ended(&e->negotiation);
        return KL_DONE;
    }
    const struct kl_negotiation_outcome outcome = a->outcome(op_of(e, 0));
    log_negotiation(e, t, outcome.end);
    kl_negotiation_held(&e->negotiation, outcome);
    if (outcome.end == KL_NEGOTIATED_DECLINED) return KL_MOVED; /* continue with the chosen algorithm */
    if (outcome.end != KL_NEGOTIATED_MAPPED) kl_negotiation_ended(&e->negotiation);
    return KL_DONE;
}

enum kl_progress kl_exec_collective(struct kl_exec *e, const struct kl_task *t, bool more, ncclResult_t *rc)
{
    if (e->config.nranks == 1) return copy_alone(e, t);
    if (!e->running) {
        const int row = row_for(e, t);
        if (t->choice.messages && row != e->negotiating_row) return progress_spread(e, t, rc);
        enum kl_progress got = begin(e, t, row, more, rc);
        if (*rc || got != KL_DONE) return got;
    }
    const struct kl_algorithm *a = e->running;
    enum kl_progress got = progress_ops(e, rc);
    return got != KL_DONE || *rc || !t->choice.mapped ? got : end_algorithm(e, t, a);
}

/* ---- failures ---- */

void kl_exec_reset(struct kl_exec *e)
{
    kl_exchange_reset(&e->exchange);
    e->messages = false;
    e->running = NULL;
    kl_negotiation_reset(&e->negotiation);
    e->ops_used = e->ops_left = 0;
}

bool kl_exec_sleep_on(struct kl_exec *e)
{
    bool all = true;

    if (e->messages) return kl_exchange_sleep_on(&e->exchange);
    if (!e->running || !e->running->sleep_on) return false;
    for (int c = 0; c < e->ops_used; c++)
        if (!e->op_done[c]) all &= e->running->sleep_on(op_of(e, c));
    return all;
}

int kl_exec_blocked_on(struct kl_exec *e, bool gone)
{
    int peer = -1;

    if (e->messages) return kl_exchange_blocked_on(&e->exchange, gone);
    if (!e->running) return gone ? -1 : kl_connections_blocked_on(e->config.connections);
    for (int c = 0; c < e->ops_used && peer < 0; c++)
        if (!e->op_done[c]) peer = e->running->blocked_on(op_of(e, c), gone);
    return peer;
}

/* ---- in words ---- */

static int row_of(const struct kl_algorithm *a)
{
    int row = 0;

    while (kl_algorithms[row] != a) row++;
    return row;
}

static void tell_operations(struct kl_exec *e, const struct kl_teller *to)
{
    const struct kl_algorithm *a = e->running;
    int row = row_of(a);

    for (int c = 0; c < e->ops_used; c++)
        if (!e->op_done[c])
            kl_tell_operation(to, algo_names[a->algo], c, a->blocked_on(op_of(e, c), false), e->links[row][c]);
}

void kl_exec_tell(struct kl_exec *e, const struct kl_teller *to)
{
    if (e->messages)
        kl_exchange_tell(&e->exchange, to);
    else if (e->running)
        tell_operations(e, to);
    else
        kl_tell(to, "is being connected, waits for rank %d", kl_connections_blocked_on(e->config.connections));
}
