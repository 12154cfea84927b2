/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/exec.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/engine/profile.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"
#include "coll/schedule/ordered.h"
#include "coll/schedule/signature.h"
#include "device/host/bulk_copy.h"
#include "device/host/copy_out.h"
#include "os/fault_inject.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OP_ALIGN = 64 };

struct kl_exec {
    struct kl_exec_config config;
    struct kl_chooser chooser; /* the user's */

    /* the runner's */
    struct kl_edges *edges[KL_ALGORITHMS][KL_MAX_CHANNELS]; /* made at first use */
    unsigned char *ops;                                     /* one per channel */
    struct kl_channel_work *shares;                         /* the shares, by channel */
    size_t op_stride;
    const struct kl_algorithm *running; /* NULL: no collective has begun */
    struct kl_agreement agreement;
    int peer_direct;  /* index of the algorithm for collectives that are not staged */
    bool notice_sent; /* by the leader, before the collective that begins */
    int notice_from;  /* the rank that a notice waits for; -1: none */
    int ops_used, ops_left;
    bool op_done[KL_MAX_CHANNELS];
    uint8_t way;                  /* kl_exec_way */
    int connected[KL_ALGORITHMS]; /* channels whose edges are ready, from 0 on */
    bool messages;                /* an exchange is under way */
    bool wide;
    struct kl_exchange exchange;
    struct kl_exec_profile profile;
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

    e->shares = kl_inject_calloc((size_t)nchannels, sizeof *e->shares);
    if (!e->shares) return KL_NOMEM("operations");
    for (int i = 0; i < nchannels; i++)
        e->shares[i] = (struct kl_channel_work){
            .channel = i,
            .processes = c->processes,
            .chain_bytes = c->processes ? c->chain_bytes : 0,
            .exposed = c->zcopy.maps,
            .mark = c->processes && c->zcopy.reads ? &e->config.zcopy.process : NULL,
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
    e->ops = kl_inject_aligned_alloc(OP_ALIGN, e->op_stride * (size_t)nchannels);
    if (!e->ops) return KL_NOMEM("operations");
    KL_TRY(make_shares(e, nchannels));
    KL_TRY(
        kl_exchange_init(&e->exchange, c->rank, c->nranks, c->connections, c->rounds, &c->zcopy, &e->agreement.select));
    e->exchange.profiler = c->profiling.profiler;
    return ncclSuccess;
}

ncclResult_t kl_exec_create(const struct kl_exec_config *config, struct kl_exec **exec)
{
    struct kl_exec *e = kl_inject_aligned_alloc(OP_ALIGN, (sizeof *e + OP_ALIGN - 1) / OP_ALIGN * OP_ALIGN);

    if (!e) return KL_NOMEM("operations");
    memset(e, 0, sizeof *e);
    e->config = *config;
    e->chooser.tuning = config->tuning;
    e->chooser.tuner = config->tuner;
    e->chooser.collnet = config->collnet;
    e->chooser.memory = config->memory;
    e->chooser.ordered = config->ordered;
    kl_agreement_init(&e->agreement, &config->facts);
    e->profile.profiler = config->profiling.profiler;
    e->notice_from = -1;
    e->peer_direct = kl_algorithm_find(KL_FUNC_ALL_REDUCE, KL_ALGO_PEER_DIRECT, KL_PROTO_SIMPLE, KL_REACH_ALL);
    e->wide = kl_ll_wide_works();
    ncclResult_t rc = make_ops(e);
    if (rc) {
        kl_exec_free(e);
        return rc;
    }
    *exec = e;
    return ncclSuccess;
}

static void free_edges(const struct kl_algorithm *a, struct kl_edges *edges)
{
    if (!edges) return;
    if (a->unlink) a->unlink(edges);
    kl_edges_fini(edges);
    free(edges);
}

void kl_exec_free(struct kl_exec *e)
{
    if (!e) return;
    for (int a = 0; kl_algorithms[a]; a++)
        for (int c = 0; c < KL_MAX_CHANNELS; c++) free_edges(kl_algorithms[a], e->edges[a][c]);
    kl_exchange_fini(&e->exchange);
    free(e->shares);
    free(e->ops);
    free(e);
}

/* ---- the user's side ---- */

uint64_t kl_exec_tag(const struct kl_exec *e)
{
    return e->chooser.limits ? e->chooser.limits->tag : 0;
}

const char *kl_exec_algo_name(const struct kl_task *t)
{
    return t->choice.messages ? "MESSAGES" : kl_algo_log_name[kl_algorithms[t->choice.algorithm]->algo];
}

const char *kl_exec_proto_name(const struct kl_task *t)
{
    return kl_proto_log_name[t->choice.proto];
}

static size_t elem_bytes(const struct kl_exec *e, const struct kl_task *t)
{
    return e->config.redops[t->type][ncclSum].elem_bytes;
}

static void log_choice(const struct kl_exec *e, const struct kl_task *t)
{
    KL_INFO(KL_TUNING, "%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}", kl_func_info[t->func].name,
            t->count * elem_bytes(e, t), kl_exec_algo_name(t), kl_exec_proto_name(t),
            t->choice.partition.nchannels - 1);
    if (e->chooser.limits && e->chooser.limits->tag)
        KL_INFO(KL_TUNING, "%s: userProfilerTag %#" PRIx64, kl_func_info[t->func].name, e->chooser.limits->tag);
}

/* Rank 0 gives the reason of the table for staging, and a fact besides. */
static void log_staged(const struct kl_exec *e, const struct kl_task *t, const char *besides)
{
    const struct kl_select_row *row = kl_agreement_row(&e->agreement, t->func, t->bytes);

    if (e->config.rank || !kl_log_on(KL_LOG_INFO, KL_TUNING)) return;
    KL_INFO(KL_TUNING, "%s: %zu Bytes: staged%s: %s (%.0f us; by the kernel %.0f)%s", kl_func_info[t->func].name,
            t->count * elem_bytes(e, t), row->hierarchical ? ", hierarchical" : "",
            e->agreement.unreadable ? kl_select_reason_text[KL_SELECTED_NO_KERNEL] : kl_select_reason_text[row->reason],
            (double)row->us, (double)row->other_us, besides);
}

/* Rank 0 says how a collective is done that might not be staged. */
static void log_agreed(const struct kl_exec *e, const struct kl_task *t, enum kl_agreed agreed)
{
    static const char *const ends[] = {
        [KL_AGREED_REFUSED] = "staged from now on: the kernel does not copy between the ranks",
        [KL_AGREED_DIRECT] = "done in the ranks' own buffers (Mapped, direct)",
        [KL_AGREED_KERNEL] = "copied by the kernel (Mapped, kernel)",
        [KL_AGREED_REPAIRED] = "begun by the kernel, which does not copy any more: data are staged from now on",
    };

    if (agreed == KL_AGREED_STAGED) {
        log_staged(e, t, "; not all ranks can map each other's buffers");
        return;
    }
    if (e->config.rank) return;
    KL_INFO(KL_TUNING, "%s: %zu Bytes: %s", kl_func_info[t->func].name, t->count * elem_bytes(e, t), ends[agreed]);
}

void kl_exec_freeze(struct kl_exec *e)
{
    kl_agreement_freeze(&e->agreement);
}

void kl_exec_limit(struct kl_exec *e, const struct kl_limits *limits)
{
    e->chooser.limits = limits;
}

void kl_exec_use_rows(struct kl_exec *e, bool ll128)
{
    const char *text = e->chooser.tuning->proto;
    int named[KL_FUNCS][KL_ALGOS] = {{0}};

    e->chooser.by_rows = true;
    if (*text) (void)kl_tuning_parse("NCCL_PROTO", text, kl_proto_name, KL_PROTOS, named); /* the tuner has read it */
    for (int f = 0; f < KL_FUNCS; f++)
        if (ll128 || named[f][KL_PROTO_LL128]) e->chooser.ll128 |= 1u << f;
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

/* ---- edges ---- */

static ncclResult_t make_edges(struct kl_exec *e, int algorithm, int channel)
{
    const struct kl_exec_config *c = &e->config;

    if (e->edges[algorithm][channel]) return ncclSuccess;
    e->edges[algorithm][channel] = kl_inject_calloc(1, sizeof *e->edges[algorithm][channel]);
    if (!e->edges[algorithm][channel]) return KL_NOMEM("the edges of an algorithm");
    return kl_algorithms[algorithm]->link(c->graph, c->connections, channel, e->edges[algorithm][channel]);
}

static bool edges_ready(struct kl_exec *e, int algorithm, int nchannels)
{
    bool ready = true;

    for (int c = 0; c < nchannels; c++)
        ready = ready && e->edges[algorithm][c] && kl_edges_ready(e->edges[algorithm][c]);
    return ready;
}

static bool has_edges(const struct kl_exec *e, int algorithm, int nchannels)
{
    for (int c = 0; c < nchannels; c++)
        if (!e->edges[algorithm][c]) return false;
    return true;
}

/* Request the edges once, then connect until all are ready: every rank does the same, at the same operation. */
static enum kl_progress connect_edges(struct kl_exec *e, int algorithm, int nchannels, ncclResult_t *rc)
{
    if (!has_edges(e, algorithm, nchannels)) {
        for (int c = 0; c < nchannels && !*rc; c++) *rc = make_edges(e, algorithm, c);
        if (*rc) return KL_DONE;
        kl_connections_start(e->config.connections);
    }
    enum kl_progress got = kl_connections_progress(e->config.connections, rc);
    if (*rc) return KL_DONE;
    if (!edges_ready(e, algorithm, nchannels)) return got == KL_DONE ? KL_MOVED : got;
    e->connected[algorithm] = nchannels;
    return KL_DONE;
}

static bool is_useful(const struct kl_exec *e, int algorithm)
{
    const struct kl_tuning *t = e->config.tuning;
    const struct kl_algorithm *a = kl_algorithms[algorithm];

    if (algorithm == e->peer_direct) return kl_chooser_takes_all_to_all(&e->chooser, 1);
    if (a->algo >= KL_ALGOS) return e->config.ordered && a->algo == kl_ordered_algo(e->config.nranks);
    for (int f = 0; f < KL_FUNCS; f++)
        for (int p = 0; p < KL_PROTOS; p++)
            if (t->bandwidth[f][a->algo][p] > 0 && kl_algorithm_find(f, a->algo, p, e->config.memory) == algorithm)
                return true;
    return false;
}

enum kl_progress kl_exec_connect_all(struct kl_exec *e, ncclResult_t *rc)
{
    for (int algorithm = 0; kl_algorithms[algorithm]; algorithm++) {
        int n = kl_algorithms[algorithm]->one_channel ? 1 : e->config.graph->coll_channels;
        if (e->config.nranks == 1 || !is_useful(e, algorithm) || e->connected[algorithm] == n) continue;
        enum kl_progress got = connect_edges(e, algorithm, n, rc);
        if (*rc || got != KL_DONE) return *rc ? KL_DONE : got;
    }
    return KL_DONE;
}

/* ---- collectives ---- */

static int index_of(const struct kl_algorithm *a)
{
    int algorithm = 0;

    while (kl_algorithms[algorithm] != a) algorithm++;
    return algorithm;
}

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
                       struct kl_channel_work *share)
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
    share->hierarchical = kl_agreement_row(&e->agreement, t->func, t->bytes)->hierarchical;
}

static void *event_of(const struct kl_exec *e, const struct kl_task *t)
{
    return e->config.profiling.event_of(e->config.profiling.ctx, t);
}

static void profile_begin(struct kl_exec *e, const struct kl_task *t, int algorithm, int channel)
{
    e->profile.parent = event_of(e, t);
    kl_exec_profile_begin(&e->profile, channel, kl_algorithms[algorithm], op_of(e, channel),
                          e->edges[algorithm][channel], &e->shares[channel]);
}

static void start(struct kl_exec *e, const struct kl_task *t, int algorithm, bool more)
{
    const struct kl_algorithm *a = kl_algorithms[algorithm];
    const struct kl_redop *redop = kl_func_info[t->func].reduces ? redop_of(e, t) : NULL;
    const int nchannels = a->one_channel ? 1 : t->choice.partition.nchannels;

    for (int c = 0; c < nchannels; c++) {
        struct kl_channel_work *share = &e->shares[c];
        fill_share(e, t, redop, share);
        share->more = more;
        share->first = 0;
        share->end = t->count;
        if (!a->one_channel) kl_partition_range(&t->choice.partition, c, &share->first, &share->end);
        a->start(a, op_of(e, c), e->edges[algorithm][c], share);
        if (e->profile.profiler) profile_begin(e, t, algorithm, c);
        e->op_done[c] = false;
    }
    e->ops_used = e->ops_left = nchannels;
    e->running = a;
    e->way = kl_select_way(KL_COPY_STAGED, a->algo == KL_ALGO_FLAT && e->shares[0].hierarchical, false) |
             (t->choice.by_tuner ? KL_SELECT_BY_TUNER : 0);
}

enum kl_progress kl_exec_try_now(struct kl_exec *e, const struct kl_task *t, ncclResult_t *rc)
{
    const int algorithm = t->choice.algorithm;
    const struct kl_algorithm *a = kl_algorithms[algorithm];
    struct kl_channel_work *share = e->shares;

    if (!e->connected[algorithm] || !a->at_once || t->choice.peer_direct || t->choice.messages) return KL_STALLED;
    if (t->number >= e->agreement.next) return KL_STALLED;
    fill_share(e, t, kl_func_info[t->func].reduces ? redop_of(e, t) : NULL, share);
    share->more = false;
    share->first = 0;
    share->end = t->count;
    e->way = kl_select_way(KL_COPY_STAGED, false, false) | (t->choice.by_tuner ? KL_SELECT_BY_TUNER : 0);
    if (e->profile.profiler) profile_begin(e, t, algorithm, 0);
    const bool done = a->at_once(e->ops, e->edges[algorithm][0], share, rc);
    if (done && e->profile.profiler) kl_exec_profile_end(&e->profile, 0, e->edges[algorithm][0]);
    if (done && !*rc) return KL_DONE;
    e->op_done[0] = false;
    e->ops_used = e->ops_left = 1;
    e->running = a;
    return done ? KL_DONE : KL_MOVED;
}

/* Does it begin with an exchange, if none has been held? */
static bool is_asked(const struct kl_exec *e, const struct kl_task *t)
{
    return e->agreement.asks || kl_agreement_reads(&e->agreement, t->func, t->bytes);
}

static bool prepost(struct kl_exec *e, const struct kl_task *t, unsigned later)
{
    const struct kl_algorithm *a = e->running;
    struct kl_channel_work share;

    if (!a || !a->prepost || kl_algorithms[t->choice.algorithm] != a) return false;
    if (t->choice.messages || t->redop || t->scalar) return false;
    if (t->number >= e->agreement.next) return false;
    if (t->choice.peer_direct && is_asked(e, t)) return false;
    fill_share(e, t, kl_func_info[t->func].reduces ? redop_of(e, t) : NULL, &share);
    share.more = false;
    share.first = 0;
    share.end = t->count;
    return a->prepost(e->ops, &share, later);
}

bool kl_exec_prepost(struct kl_exec *e, const struct kl_task *t, unsigned later)
{
    if (!kl_func_is_message(t->func)) return prepost(e, t, later);
    if (!e->messages) return false;
    return t->func == KL_FUNC_RECV || kl_exchange_presend(&e->exchange, t, elem_bytes(e, t));
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
        if (e->profile.profiler) kl_exec_profile_end(&e->profile, c, e->edges[index_of(e->running)][c]);
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
        if (e->profile.profiler) e->exchange.event = event_of(e, t);
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

static ncclResult_t begin_all_to_all(struct kl_exec *e, const struct kl_task *t)
{
    const int messages = 2 * e->config.nranks;

    KL_TRY(kl_exchange_reserve(&e->exchange, (size_t)messages));
    e->messages = true;
    if (e->profile.profiler) e->exchange.event = event_of(e, t);
    for (int i = 0; i < messages; i++) {
        const struct kl_task message = message_of(e, t, i / 2, i % 2);
        KL_TRY(kl_exchange_add(&e->exchange, &message, elem_bytes(e, &message)));
    }
    return ncclSuccess;
}

static enum kl_progress progress_all_to_all(struct kl_exec *e, const struct kl_task *t, ncclResult_t *rc)
{
    if (!e->messages) *rc = begin_all_to_all(e, t);
    if (*rc) return KL_DONE;
    enum kl_progress got = progress_messages(e, rc);
    if (got == KL_DONE) kl_agreement_ended(&e->agreement);
    return got;
}

/* ---- notices of the leader ---- */

/* Are the buffers exported that this rank brings to the collective? */
static bool are_exported(const struct kl_exec *e, const struct kl_task *t)
{
    const void *const buffers[] = {t->send, t->recv};
    struct kl_memory memory;

    for (int i = 0; i < 2 && e->config.processes; i++) {
        if (!buffers[i]) continue;
        kl_host_devices.lookup(buffers[i], &memory);
        if (memory.kind != KL_MEMORY_SHAREABLE) return false;
    }
    return true;
}

static uint32_t word_of(struct kl_agreement_notice notice)
{
    return notice.line_ns << 1 | notice.asks;
}

static bool give_notice(struct kl_exec *e, const struct kl_task *t, struct kl_shm_exchange *shm)
{
    uint32_t lines, line_ns = kl_copy_out_latest(&lines);

    if (e->config.rank || e->notice_sent) return true;
    const struct kl_agreement_notice notice =
        kl_agreement_say(&e->agreement, are_exported(e, t), line_ns, lines, kl_now_coarse_ns());
    return e->notice_sent = kl_shm_exchange_give_notice(shm, e->agreement.heard + 1, word_of(notice), &e->notice_from);
}

static void log_replacement(const struct kl_exec *e, const struct kl_task *t)
{
    if (e->config.rank) return;
    KL_INFO(KL_TUNING, "from collective %" PRIu64 " on the table is for lines of %u ns", t->number,
            e->agreement.select.line_ns[0]);
}

/* False: not yet. */
static bool receive_notice(struct kl_exec *e, const struct kl_task *t)
{
    struct kl_shm_exchange *shm = kl_peer_direct_exchange(e->edges[e->peer_direct][0]);
    uint32_t word;

    e->notice_from = 0;
    if (!give_notice(e, t, shm) || !kl_shm_exchange_receive_notice(shm, e->agreement.heard + 1, &word)) return false;
    e->notice_from = -1;
    e->notice_sent = false;
    const struct kl_agreement_notice notice = {.line_ns = word >> 1, .asks = word & 1};
    if (kl_agreement_on_notice(&e->agreement, notice, t->number, t->bytes)) log_replacement(e, t);
    return true;
}

/* ---- collectives, whole ---- */

/* The algorithm that carries out the collective, as index of kl_algorithms. */
static int algorithm_for(const struct kl_exec *e, const struct kl_task *t)
{
    if (!t->choice.peer_direct || !kl_agreement_due(&e->agreement, t->func, t->bytes)) return t->choice.algorithm;
    return e->peer_direct;
}

/* Also for copies by the kernel. */
static void fill_direct(const struct kl_exec *e, const struct kl_task *t, struct kl_channel_work *share)
{
    share->reads = kl_agreement_reads(&e->agreement, t->func, t->bytes);
    share->nt = kl_select_row(&e->agreement.select, t->func, t->bytes, KL_BUFFERS_EXPORTED)->nt;
}

static void start_algorithm(struct kl_exec *e, const struct kl_task *t, int algorithm, bool more)
{
    if (t->choice.peer_direct && algorithm != e->peer_direct && !e->agreement.over) log_staged(e, t, "");
    if (algorithm == e->peer_direct) fill_direct(e, t, &e->shares[0]);
    start(e, t, algorithm, more);
}

static enum kl_progress begin(struct kl_exec *e, const struct kl_task *t, int algorithm, bool more, ncclResult_t *rc)
{
    const int n = kl_algorithms[algorithm]->one_channel ? 1 : t->choice.partition.nchannels;
    enum kl_progress got = n <= e->connected[algorithm] ? KL_DONE : connect_edges(e, algorithm, n, rc);

    if (!*rc && got == KL_DONE) start_algorithm(e, t, algorithm, more);
    return got;
}

/* The algorithm is done, or its ranks have declined. DONE: the collective is complete. */
static enum kl_progress end_algorithm(struct kl_exec *e, const struct kl_task *t, const struct kl_algorithm *a)
{
    if (a->agreed) {
        const enum kl_agreed agreed = a->agreed(op_of(e, 0));
        log_agreed(e, t, agreed);
        kl_agreement_made(&e->agreement, agreed, t->number);
        if (e->agreement.over) return KL_MOVED; /* on to the one that was chosen */
        e->way = kl_select_way(agreed == KL_AGREED_DIRECT ? KL_COPY_DIRECT : KL_COPY_KERNEL, false, e->shares[0].nt);
    }
    kl_agreement_ended(&e->agreement);
    return KL_DONE;
}

enum kl_progress kl_exec_collective(struct kl_exec *e, const struct kl_task *t, bool more, ncclResult_t *rc)
{
    if (e->config.nranks == 1) return copy_alone(e, t);
    if (!e->running) {
        if (t->number >= e->agreement.next && !e->agreement.over && !receive_notice(e, t)) return KL_STALLED;
        const int algorithm = algorithm_for(e, t);
        if (t->choice.messages && algorithm != e->peer_direct) return progress_all_to_all(e, t, rc);
        enum kl_progress got = begin(e, t, algorithm, more, rc);
        if (*rc || got != KL_DONE) return got;
    }
    const struct kl_algorithm *a = e->running;
    enum kl_progress got = progress_ops(e, rc);
    return got != KL_DONE || *rc || !t->choice.peer_direct ? got : end_algorithm(e, t, a);
}

uint8_t kl_exec_way(const struct kl_exec *e)
{
    return e->way;
}

/* ---- failures ---- */

/* Events of an operation that has failed end as well. */
static void stop_events(struct kl_exec *e)
{
    for (int c = 0; e->running && c < e->ops_used; c++)
        if (!e->op_done[c]) kl_exec_profile_end(&e->profile, c, e->edges[index_of(e->running)][c]);
}

void kl_exec_reset(struct kl_exec *e)
{
    if (e->profile.profiler) stop_events(e);
    kl_exchange_reset(&e->exchange);
    e->messages = false;
    e->running = NULL;
    kl_agreement_ended(&e->agreement);
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

static bool has_left(const struct kl_exec *e, int rank)
{
    return kl_arena_left(e->edges[e->peer_direct][0]->arena->mark, rank);
}

int kl_exec_blocked_on(struct kl_exec *e, bool gone)
{
    int peer = -1;

    if (e->messages) return kl_exchange_blocked_on(&e->exchange, gone);
    if (e->notice_from >= 0) return !gone || has_left(e, e->notice_from) ? e->notice_from : -1;
    if (!e->running) return gone ? -1 : kl_connections_blocked_on(e->config.connections);
    for (int c = 0; c < e->ops_used && peer < 0; c++)
        if (!e->op_done[c]) peer = e->running->blocked_on(op_of(e, c), gone);
    return peer;
}

/* ---- in words ---- */

static void print_operations(struct kl_exec *e, const struct kl_printer *to)
{
    const struct kl_algorithm *a = e->running;
    int algorithm = index_of(a);

    for (int c = 0; c < e->ops_used; c++)
        if (!e->op_done[c])
            kl_print_operation(to, kl_algo_log_name[a->algo], c, a->blocked_on(op_of(e, c), false),
                               e->edges[algorithm][c]);
}

void kl_exec_print(struct kl_exec *e, const struct kl_printer *to)
{
    if (e->messages)
        kl_exchange_print(&e->exchange, to);
    else if (e->running)
        print_operations(e, to);
    else if (e->notice_from >= 0)
        kl_print_line(to, "waits for the notice of rank %d about later collectives", e->notice_from);
    else
        kl_print_line(to, "is being connected, waits for rank %d", kl_connections_blocked_on(e->config.connections));
}
