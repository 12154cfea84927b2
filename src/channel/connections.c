/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/connections.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "channel/unreachable.h"
#include "os/fault_inject.h"
#include "transport/net/relay.h"
#include "transport/tags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, ARRIVAL_MS = 1000 };

enum state { ASKED, BEGUN, ANSWERED, READY };

struct connection {
    struct kl_edge edge;
    enum state state;
    uint32_t transport; /* index in the table; once begun */
    struct kl_connector connector;
    uint64_t doubt; /* how long to wait for the reason why the peer's memory is unreachable; 0: it is reachable */
    uint64_t left;  /* how long to wait for messages of a peer that has left; 0: it has not */
    union {         /* once answered: the peer's message */
        struct kl_connect_info info;
        struct kl_connect_reply reply;
    };
    struct connection *next; /* in a list of connections that are not ready */
};

/** A queue of connections that are not ready. */
struct list {
    struct connection *first, **last;
};

struct kl_connections {
    struct kl_connections_config config;
    struct kl_common common;
    struct kl_relays *relays;  /* NULL: this rank relays for no other */
    struct connection **table; /* open addressing; room is a power of two, more than half of it free */
    size_t room, used;
    struct kl_arena *arenas;
    uint32_t narenas;
    struct kl_reducer *reducers;
    struct list asked; /* of collectives, not begun */
    struct list begun; /* in progress */
    uint16_t *busy;    /* by peer: connections of collectives in progress; NULL until needed */
    int busy_peers;    /* of them, not zero */
    bool started;      /* the edges in `asked` may begin */
};

/* ---- lists ---- */

static void clear(struct list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void append(struct list *list, struct connection *c)
{
    c->next = NULL;
    *list->last = c;
    list->last = &c->next;
}

/* ---- the table ---- */

static uint64_t key_of(const struct kl_edge *e)
{
    return (uint64_t)(uint32_t)e->peer << 16 | (uint64_t)e->channel << 8 | (uint64_t)e->use << 1 | e->sends;
}

static struct connection **slot_of(struct connection **table, size_t room, const struct kl_edge *edge)
{
    uint64_t key = key_of(edge);
    size_t i = (key * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

    while (table[i] && key_of(&table[i]->edge) != key) i = (i + 1) & (room - 1);
    return &table[i];
}

static ncclResult_t grow(struct kl_connections *cs)
{
    size_t room = cs->room ? 2 * cs->room : FIRST_ROOM;
    struct connection **table = kl_inject_calloc(room, sizeof(void *));

    if (!table) return KL_NOMEM("connections");
    for (size_t i = 0; i < cs->room; i++)
        if (cs->table[i]) *slot_of(table, room, &cs->table[i]->edge) = cs->table[i];
    free(cs->table);
    cs->table = table;
    cs->room = room;
    return ncclSuccess;
}

static uint32_t tag_of(const struct kl_edge *e, uint32_t what)
{
    return what | (uint32_t)e->use << 8 | e->channel;
}

static void join_opposite(struct kl_connections *cs, struct connection *c)
{
    struct kl_edge other = c->edge;

    other.sends = !other.sends;
    struct connection *o = *slot_of(cs->table, cs->room, &other);
    if (!o) return;
    c->connector.opposite = &o->connector;
    o->connector.opposite = &c->connector;
}

static ncclResult_t add(struct kl_connections *cs, const struct kl_edge *edge, struct connection **added)
{
    if (2 * cs->used >= cs->room) KL_TRY(grow(cs));
    struct connection *c = kl_inject_aligned_alloc(KL_LINE, (sizeof *c + KL_LINE - 1) / KL_LINE * KL_LINE);
    if (!c) return KL_NOMEM("a connection");
    *c = (struct connection){.edge = *edge};
    c->connector = (struct kl_connector){
        .peer = edge->peer,
        .sends = edge->sends,
        .messages = edge->use == KL_EDGE_MESSAGES,
        .shape = &cs->config.shape[edge->use],
        .number = tag_of(edge, 0),
        .common = &cs->common,
    };
    join_opposite(cs, c);
    *slot_of(cs->table, cs->room, edge) = c;
    cs->used++;
    *added = c;
    return ncclSuccess;
}

/* ---- connecting ---- */

static ncclResult_t set_up(struct kl_connections *cs, struct connection *c)
{
    const struct kl_transport *transport = c->connector.transport;
    struct kl_connect_info info = {.transport = c->transport, .version = KL_CONNECT_INFO_VERSION};

    KL_TRY(transport->setup(&c->connector, c->connector.shape, &info));
    return kl_bootstrap_post(cs->config.bootstrap, c->edge.peer, tag_of(&c->edge, KL_TAG_CONNECT_INFO), &info,
                             sizeof info);
}

static ncclResult_t begin(struct kl_connections *cs, struct connection *c)
{
    KL_TRY(cs->config.choose(cs->config.ctx, &c->edge, &c->connector, &c->transport));
    KL_TRY(c->edge.sends ? kl_bootstrap_watch(cs->config.bootstrap, c->edge.peer) : set_up(cs, c));
    c->state = BEGUN;
    append(&cs->begun, c);
    return ncclSuccess;
}

static uint64_t deadline_of(const struct kl_connections *cs)
{
    return kl_deadline_in_ms(cs->config.timeout_ms);
}

static ncclResult_t check_info(const struct kl_connections *cs, const struct connection *c,
                               const struct kl_connect_info *info)
{
    if (info->version == KL_CONNECT_INFO_VERSION && info->transport == c->transport) return ncclSuccess;
    return KL_FAIL(ncclInternalError,
                   "rank %d chose transport %u for the connection from rank %d, which chose %s: do NCCL_P2P_* and "
                   "NCCL_SHM_* agree on all ranks?",
                   c->edge.peer, info->transport, cs->config.rank, c->connector.transport->name);
}

/* Has the peer's message arrived? ncclInProgress: not yet. */
static ncclResult_t await(struct kl_connections *cs, struct connection *c, uint32_t what, void *message, size_t bytes)
{
    bool here;

    if (c->state == ANSWERED) return ncclSuccess;
    KL_TRY(kl_bootstrap_poll(cs->config.bootstrap, c->edge.peer, tag_of(&c->edge, what), message, bytes, &here));
    if (!here) return ncclInProgress;
    c->state = ANSWERED;
    return ncclSuccess;
}

/* No message of the peer has arrived: has it ended, or failed? */
static ncclResult_t ask_after(struct kl_connections *cs, const struct connection *c)
{
    char nothing;
    bool here;

    KL_TRY(kl_bootstrap_poll(cs->config.bootstrap, c->edge.peer, KL_TAG_NONE, &nothing, 0, &here));
    return ncclInProgress;
}

/* A peer with unreachable memory has ended or failed. The bootstrap knows the reason, or will in a moment: report
 * that. */
static ncclResult_t fail_with_reason(struct kl_connections *cs, struct connection *c)
{
    if (!c->doubt) c->doubt = kl_deadline_in_ms(KL_UNREACHABLE_MS);
    return ask_after(cs, c);
}

/* Connect, or settle: the step that maps the peer's memory. */
static ncclResult_t reach(struct kl_connections *cs, struct connection *c, struct kl_connect_reply *reply)
{
    const struct kl_transport *t = c->connector.transport;
    char text[KL_ERROR_TEXT];

    if (c->doubt && !kl_deadline_passed(c->doubt)) return fail_with_reason(cs, c);
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = c->edge.sends
                          ? t->connect(&c->connector, &c->info, deadline_of(cs), reply)
                          : t->settle(&c->connector, t->progress ? KL_NO_DEADLINE : deadline_of(cs), &c->reply);
    kl_error_quiet(quiet);
    if (!rc || rc == ncclInProgress) return rc;
    if (rc == ncclRemoteError && !c->doubt) return fail_with_reason(cs, c);
    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(rc, "cannot connect with rank %d: %.900s", c->edge.peer, text);
}

static ncclResult_t try_to_send(struct kl_connections *cs, struct connection *c)
{
    struct kl_connect_reply reply = {.pool_bytes = 0};

    KL_TRY(await(cs, c, KL_TAG_CONNECT_INFO, &c->info, sizeof c->info));
    KL_TRY(check_info(cs, c, &c->info));
    KL_TRY(reach(cs, c, &reply));
    if (c->connector.transport->progress) return ncclSuccess;
    return kl_bootstrap_post(cs->config.bootstrap, c->edge.peer, tag_of(&c->edge, KL_TAG_CONNECT_REPLY), &reply,
                             sizeof reply);
}

/*
 * A peer may have connected, sent all, and left. Its goodbye arrives by another connection and may be first: only when
 * nothing arrives for a while after it, nothing will.
 */
static ncclResult_t ask_after_sender(struct kl_connections *cs, struct connection *c)
{
    if (!c->left) {
        int quiet = kl_error_quiet(1);
        ncclResult_t rc = ask_after(cs, c);
        kl_error_quiet(quiet);
        if (rc == ncclInProgress) return rc;
        if (!kl_bootstrap_has_left(cs->config.bootstrap, c->edge.peer)) return ask_after(cs, c);
        c->left = kl_deadline_in_ms(ARRIVAL_MS);
    }
    return kl_deadline_passed(c->left) ? ask_after(cs, c) : ncclInProgress;
}

static ncclResult_t try_to_receive(struct kl_connections *cs, struct connection *c)
{
    if (!c->connector.transport->progress) {
        KL_TRY(await(cs, c, KL_TAG_CONNECT_REPLY, &c->reply, sizeof c->reply));
        return reach(cs, c, NULL);
    }
    ncclResult_t rc = reach(cs, c, NULL);
    return rc == ncclInProgress ? ask_after_sender(cs, c) : rc;
}

/* ---- rounds ---- */

static bool may_begin(const struct kl_connections *cs, int peer)
{
    return cs->busy[peer] || cs->busy_peers < cs->config.round_peers;
}

static void count_busy(struct kl_connections *cs, const struct connection *c, int by)
{
    if (c->edge.use == KL_EDGE_MESSAGES) return;
    uint16_t before = cs->busy[c->edge.peer];
    cs->busy[c->edge.peer] = (uint16_t)(before + by);
    cs->busy_peers += (before == 0) - (before + by == 0);
}

static ncclResult_t begin_round(struct kl_connections *cs)
{
    while (cs->started && cs->asked.first && may_begin(cs, cs->asked.first->edge.peer)) {
        struct connection *c = cs->asked.first;
        cs->asked.first = c->next;
        if (!c->next) clear(&cs->asked);
        count_busy(cs, c, 1);
        KL_TRY(begin(cs, c));
    }
    if (!cs->asked.first) cs->started = false;
    return ncclSuccess;
}

/*
 * The position of an edge in an order that all ranks compute alike: by distance, by channel, every other one along the
 * ranks, by sender. All ranks need the edges of collectives at about the same time: in this order both ends of the first
 * missing edge work on it. Of edges with equal distances every other one comes first, so that one peer at a time is enough
 * for half of them at once.
 */
static void place_of(const struct kl_connections *cs, const struct kl_edge *e, int place[4])
{
    int from = e->sends ? cs->config.rank : e->peer, to = e->sends ? e->peer : cs->config.rank;
    int distance = (to - from + cs->config.nranks) % cs->config.nranks;

    place[0] = distance;
    place[1] = e->channel;
    place[2] = distance ? from / distance % 2 : 0;
    place[3] = from;
}

static bool comes_before(const struct kl_connections *cs, const struct connection *a, const struct connection *b)
{
    int x[4], y[4], i = 0;

    place_of(cs, &a->edge, x);
    place_of(cs, &b->edge, y);
    while (i < 3 && x[i] == y[i]) i++;
    return x[i] < y[i];
}

/* Insertion sort: an algorithm has few edges per channel, and mostly asks for near ones first. */
static void insert(const struct kl_connections *cs, struct list *sorted, struct connection *c)
{
    struct connection **link = &sorted->first;

    while (*link && comes_before(cs, *link, c)) link = &(*link)->next;
    c->next = *link;
    *link = c;
    if (!c->next) sorted->last = &c->next;
}

void kl_connections_start(struct kl_connections *cs)
{
    struct list sorted;

    clear(&sorted);
    for (struct connection *c = cs->asked.first, *next; c; c = next) {
        next = c->next;
        insert(cs, &sorted, c);
    }
    cs->asked = sorted;
    if (!sorted.first) clear(&cs->asked);
    cs->started = true;
}

/* ---- shared memory ---- */

ncclResult_t kl_connections_get_arena(struct kl_connections *cs, const int32_t *ranks, int n, int own, size_t bytes,
                                      struct kl_arena **arena)
{
    struct kl_arena_config config = {
        .bootstrap = cs->config.bootstrap,
        .ranks = ranks,
        .n = n,
        .own = own,
        .tag = KL_TAG_ARENA + cs->narenas,
        .bytes = bytes,
        .timeout_ms = cs->config.timeout_ms,
    };
    struct kl_arena *a = kl_inject_calloc(1, sizeof *a);

    if (!a) return KL_NOMEM("memory that ranks share");
    ncclResult_t rc = kl_arena_begin(a, &config);
    if (rc) {
        kl_arena_fini(a);
        free(a);
        return rc;
    }
    a->next = cs->arenas;
    cs->arenas = a;
    cs->narenas++;
    *arena = a;
    return ncclSuccess;
}

/* MOVED: some became ready; DONE: all are. */
static enum kl_progress progress_arenas(struct kl_connections *cs, ncclResult_t *rc)
{
    bool moved = false, all = true;

    for (struct kl_arena *a = cs->arenas; a; a = a->next) {
        if (a->ready) continue;
        moved |= kl_arena_progress(a, rc) == KL_DONE;
        if (*rc) return KL_DONE;
        all = all && a->ready;
    }
    return all ? KL_DONE : moved ? KL_MOVED : KL_STALLED;
}

/* ---- networks that reduce ---- */

static struct kl_reducer *find_reducer(const struct kl_connections *cs, enum kl_edge_use use, int channel)
{
    struct kl_reducer *r = cs->reducers;

    while (r && (r->edge.use != use || r->edge.channel != channel)) r = r->next;
    return r;
}

static ncclResult_t add_reducer(struct kl_connections *cs, struct kl_reducer *r)
{
    struct kl_connector *c = &r->link->send;

    r->next = cs->reducers;
    cs->reducers = r;
    c->common = r->link->recv.common = &cs->common;
    KL_TRY(cs->config.choose(cs->config.ctx, &r->edge, c, NULL));
    r->link->recv.route = c->route;
    return kl_reducer_begin(r, c->route.device);
}

ncclResult_t kl_connections_get_reducer(struct kl_connections *cs, enum kl_edge_use use, int channel,
                                        const int32_t *ranks, int n, int own, struct kl_collnet_link **link)
{
    const struct kl_edge edge = {.peer = ranks[own], .channel = (uint8_t)channel, .use = (uint8_t)use, .sends = true};
    struct kl_reducer_config config = {
        .bootstrap = cs->config.bootstrap,
        .collnet = cs->config.collnet,
        .net = &kl_net_socket, /* its members tag messages that others overtake: no plugin need know that */
        .secret = cs->common.net.secret,
        .ranks = ranks,
        .n = n,
        .own = own,
        .id = tag_of(&edge, 0),
        .tag = tag_of(&edge, KL_TAG_REDUCER),
        .shape = &cs->config.shape[KL_EDGE_COLL],
        .timeout_ms = cs->config.timeout_ms,
    };
    struct kl_reducer *r = find_reducer(cs, use, channel);

    ncclResult_t rc = r ? ncclSuccess : kl_reducer_create(&config, &r);
    kl_key_wipe(&config.secret);
    KL_TRY(rc);
    *link = r->link;
    if (r->edge.sends) return ncclSuccess; /* it was made before */
    r->edge = edge;
    return add_reducer(cs, r);
}

static void log_reducer(const struct kl_connections *cs, const struct kl_reducer *r)
{
    struct kl_edge in = r->edge;

    if (!cs->config.tell) return;
    in.sends = false;
    cs->config.tell(cs->config.ctx, &in, &r->link->recv);
    cs->config.tell(cs->config.ctx, &r->edge, &r->link->send);
}

/* MOVED: some became ready; DONE: all are. */
static enum kl_progress progress_reducers(struct kl_connections *cs, ncclResult_t *rc)
{
    bool moved = false, all = true;

    for (struct kl_reducer *r = cs->reducers; r; r = r->next) {
        if (r->ready) continue;
        bool done = kl_reducer_progress(r, rc) == KL_DONE;
        if (*rc) return KL_DONE;
        if (done) log_reducer(cs, r);
        moved |= done;
        all = all && done;
    }
    return all ? KL_DONE : moved ? KL_MOVED : KL_STALLED;
}

/* ---- life ---- */

static ncclResult_t relay(struct kl_connections *cs)
{
    const struct kl_connections_config *c = &cs->config;
    const struct kl_relays_config config = {
        .bootstrap = c->bootstrap,
        .net = c->net,
        .secret = c->net_key,
        .rank = c->rank,
        .nranks = c->nranks,
        .senders = c->senders,
        .nsenders = c->nsenders,
        .timeout_ms = c->timeout_ms,
        .fail = c->fail,
        .ctx = c->ctx,
    };

    KL_TRY(kl_relays_create(&config, &cs->relays));
    cs->common.net.proxy = kl_relays_proxy(cs->relays);
    return ncclSuccess;
}

ncclResult_t kl_connections_create(const struct kl_connections_config *config, struct kl_connections **connections)
{
    struct kl_connections *cs = kl_inject_calloc(1, sizeof *cs);

    if (cs) cs->busy = kl_inject_calloc((size_t)config->nranks, sizeof *cs->busy);
    if (!cs || !cs->busy) {
        free(cs);
        return KL_NOMEM("connections");
    }
    cs->config = *config;
    cs->common.cache_ranks = config->cache_ranks;
    cs->common.net = (struct kl_net_context){
        .net = config->net, .secret = config->net_key, .rank = config->rank, .bootstrap = config->bootstrap};
    clear(&cs->asked);
    clear(&cs->begun);
    ncclResult_t rc = config->nsenders ? relay(cs) : ncclSuccess;
    if (rc)
        kl_connections_free(cs, true);
    else
        *connections = cs;
    return rc;
}

static void free_arenas(struct kl_connections *cs)
{
    for (struct kl_arena *a = cs->arenas, *next; a; a = next) {
        next = a->next;
        kl_arena_fini(a);
        free(a);
    }
}

static void free_reducers(struct kl_connections *cs)
{
    for (struct kl_reducer *r = cs->reducers, *next; r; r = next) {
        next = r->next;
        kl_reducer_free(r);
    }
}

static void free_halves(struct kl_connections *cs, bool sends)
{
    for (size_t i = 0; i < cs->room; i++) {
        struct connection *c = cs->table[i];
        if (!c || c->connector.sends != sends) continue;
        kl_connector_free(&c->connector);
        free(c);
        cs->table[i] = NULL;
    }
}

void kl_connections_free(struct kl_connections *cs, bool failed)
{
    if (!cs) return;
    free_arenas(cs);
    free_reducers(cs);
    free_halves(cs, true); /* first: receivers may wait for the senders' end */
    free_halves(cs, false);
    kl_relays_end(cs->relays, failed);
    kl_common_fini(&cs->common);
    kl_key_wipe(&cs->config.net_key);
    free(cs->table);
    free(cs->busy);
    free(cs);
}

ncclResult_t kl_connections_get(struct kl_connections *cs, const struct kl_edge *edge, struct kl_connector **connector)
{
    struct connection *c = cs->room ? *slot_of(cs->table, cs->room, edge) : NULL;

    if (!c) {
        KL_TRY(add(cs, edge, &c));
        if (edge->use == KL_EDGE_MESSAGES)
            KL_TRY(begin(cs, c));
        else
            append(&cs->asked, c);
    }
    *connector = &c->connector;
    return ncclSuccess;
}

static ncclResult_t advance(struct kl_connections *cs, struct connection *c)
{
    ncclResult_t rc = c->edge.sends ? try_to_send(cs, c) : try_to_receive(cs, c);

    if (rc) return rc == ncclInProgress ? ncclSuccess : rc;
    c->state = READY;
    c->connector.ready = true;
    count_busy(cs, c, -1);
    if (cs->config.tell) cs->config.tell(cs->config.ctx, &c->edge, &c->connector);
    return ncclSuccess;
}

enum kl_progress kl_connections_progress(struct kl_connections *cs, ncclResult_t *rc)
{
    enum kl_progress got = KL_STALLED;
    struct list left;

    *rc = begin_round(cs);
    clear(&left);
    for (struct connection *c = cs->begun.first, *next; c; c = next) {
        next = c->next;
        if (!*rc) *rc = advance(cs, c);
        if (c->state == READY)
            got = KL_MOVED;
        else
            append(&left, c);
    }
    cs->begun = left;
    if (!left.first) clear(&cs->begun);
    enum kl_progress shared = *rc ? KL_DONE : progress_arenas(cs, rc);
    enum kl_progress reduced = *rc ? KL_DONE : progress_reducers(cs, rc);
    bool pairs = cs->begun.first || (cs->started && cs->asked.first);
    if (*rc || (!pairs && shared == KL_DONE && reduced == KL_DONE)) return KL_DONE;
    return got == KL_MOVED || shared == KL_MOVED || reduced == KL_MOVED ? KL_MOVED : KL_STALLED;
}

int kl_connections_blocked_on(const struct kl_connections *cs)
{
    int peer = cs->begun.first ? cs->begun.first->edge.peer : -1;

    for (const struct kl_arena *a = cs->arenas; a && peer < 0; a = a->next) peer = kl_arena_blocked_on(a);
    for (const struct kl_reducer *r = cs->reducers; r && peer < 0; r = r->next) peer = kl_reducer_blocked_on(r);
    return peer;
}

const char *kl_connections_loss_reason(const struct kl_connections *cs, int peer)
{
    for (size_t i = 0; i < cs->room; i++) {
        const struct connection *c = cs->table[i];
        if (!c || c->edge.peer != peer || c->state != READY || !c->connector.transport->loss) continue;
        const char *loss = c->connector.transport->loss(&c->connector);
        if (loss) return loss;
    }
    return NULL;
}

int kl_connections_steps(const struct kl_connections *cs)
{
    return (int)cs->config.shape[KL_EDGE_COLL].nslots;
}

uint64_t kl_connections_step_bytes(const struct kl_connections *cs)
{
    return cs->config.shape[KL_EDGE_COLL].slot_bytes;
}

/* Fifos are the receiver's; through a network each end has one. */
static uint64_t bytes_of(const struct kl_connections *cs, const struct connection *c)
{
    bool own = !c->edge.sends || c->connector.transport == &kl_transport_net;
    int use = c->edge.use < KL_EDGE_COLLNET_CHAIN ? (int)c->edge.use : KL_EDGE_COLL;

    return own && c->state != ASKED ? kl_fifo_size(&cs->config.shape[use]) : 0;
}

uint64_t kl_connections_bytes(const struct kl_connections *cs)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < cs->room; i++)
        if (cs->table[i]) bytes += bytes_of(cs, cs->table[i]);
    for (const struct kl_arena *a = cs->arenas; a; a = a->next) bytes += a->config.bytes / (size_t)a->config.n;
    return bytes;
}

size_t kl_connections_count(const struct kl_connections *cs)
{
    return cs->used;
}

enum kl_progress kl_connections_relay(struct kl_connections *cs)
{
    if (!kl_relays_busy(cs->relays)) return KL_STALLED;
    return kl_proxy_help(kl_relays_proxy(cs->relays)) == KL_MOVED ? KL_MOVED : KL_STALLED;
}

/* ---- the end ---- */

void kl_connections_revoke(struct kl_connections *cs)
{
    for (size_t i = 0; i < cs->room; i++)
        if (cs->table[i] && cs->table[i]->state == READY) kl_connector_revoke(&cs->table[i]->connector);
    for (struct kl_reducer *r = cs->reducers; r; r = r->next) kl_connector_revoke(&r->link->send);
    for (struct kl_arena *a = cs->arenas; a; a = a->next) kl_arena_revoke(a);
}

void kl_connections_leave(struct kl_connections *cs)
{
    for (struct kl_arena *a = cs->arenas; a; a = a->next) kl_arena_leave(a);
    for (size_t i = 0; i < cs->room; i++)
        if (cs->table[i] && cs->table[i]->state == READY) kl_connector_leave(&cs->table[i]->connector);
}
