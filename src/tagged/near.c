/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets to ranks of this host go through a fifo in common memory, once the receiver has mapped it. The sender makes it
 * at its first packet; until then, and where there is no room, packets go over the bootstrap. Both ways count: a packet in
 * the fifo has the number of those that went over the bootstrap before it, and is read behind these; before a packet of
 * the bootstrap all that were in the fifo at its time are read, as later ones have a higher number.
 *
 * A thread that waits for a message looks at the fifos; they stay watched for a while after it. Otherwise a sender calls
 * the receiver's event loop, over the bootstrap.
 */
#include "base/clock.h"
#include "base/log.h"
#include "event/fdmap.h"
#include "tagged/packet_fifo.h"
#include "tagged/state.h"
#include "transport/shm/region.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_MS = 10000, TICK_MS = 1, POLLS = 64, SMALL = 256 /* bytes of a packet that is copied out */ };

enum out_state {
    OUT_NEW,
    OUT_MAPPING, /* this process maps it, as it maps other ranks' fifos: one address for all threads */
    OUT_OFFERED,
    OUT_READY,
    OUT_NEVER
};

/** Follows the head of an offer. */
struct fifo_place {
    struct kl_fd_export_handle handle;
    uint64_t offset, segment_bytes;
};
_Static_assert(sizeof(struct fifo_place) == 40, "wire format");

/** A direction of the packets between this rank and another one. */
struct end {
    struct kl_fd_request *request;
    struct kl_fd_map *map;
    struct kl_packet_fifo *fifo; /* NULL: not mapped */
};

struct kl_tagged_near {
    enum out_state state;
    struct kl_shm_region *region;
    size_t offset;
    struct end out, in;
    bool invited; /* `place` is the other rank's fifo for packets to this one, and it waits for a reply */
    struct fifo_place place;
    uint64_t deadline; /* for mapping it */
};

static void on_timer(void *ctx, uint32_t events);

/* ---- ends ---- */

static struct kl_tagged_near *near_of(struct kl_tagged *m, int peer)
{
    struct kl_tagged_peer *p = &m->peer[peer];

    if (!p->near) p->near = calloc(1, sizeof *p->near);
    return p->near;
}

static ncclResult_t map(struct end *e, const struct fifo_place *place, uint64_t deadline)
{
    KL_TRY(kl_fdmap_get(&place->handle, place->segment_bytes, deadline, &e->request, &e->map));
    e->fifo = (struct kl_packet_fifo *)(void *)((char *)kl_fdmap_base(e->map) + place->offset);
    return ncclSuccess;
}

static void unmap(struct end *e)
{
    kl_fdshare_request_free(e->request);
    if (e->map) kl_fdmap_put(e->map);
    *e = (struct end){.fifo = NULL};
}

/* ---- an outgoing fifo ---- */

/* Without one, packets go over the bootstrap, for ever. */
static void give_up(struct kl_tagged *m, struct kl_tagged_near *n, int peer, const char *cause)
{
    KL_INFO(KL_INIT | KL_SHM, "rank %d: messages with tags to rank %d go over TCP: %s", m->config.rank, peer, cause);
    unmap(&n->out);
    if (n->region) kl_shm_region_release(n->region, false);
    n->region = NULL;
    n->state = OUT_NEVER;
}

static struct fifo_place place_of(const struct kl_tagged_near *n)
{
    return (struct fifo_place){.handle = *kl_shm_region_export_handle(n->region),
                               .offset = n->offset,
                               .segment_bytes = kl_shm_region_bytes(n->region)};
}

static ncclResult_t offer(struct kl_tagged *m, struct kl_tagged_near *n, int peer)
{
    const struct kl_tagged_head head = {.kind = KL_TAGGED_FIFO};
    const struct fifo_place place = place_of(n);

    KL_TRY(map(&n->out, &place, kl_deadline_in_ms(MAP_MS)));
    kl_shm_region_unmap(n->region); /* its own: see OUT_MAPPING */
    n->state = OUT_OFFERED;
    return kl_tagged_post(m, peer, &head, &place, sizeof place);
}

static void make_fifo(struct kl_tagged *m, struct kl_tagged_near *n, int peer)
{
    if (!m->config.shares || !m->config.shares(m->config.ctx, peer)) {
        n->state = OUT_NEVER;
        return;
    }
    n->state = OUT_MAPPING;
    if (kl_shm_slab_take(&m->fifos, sizeof(struct kl_packet_fifo), &n->region, &n->offset)) {
        n->region = NULL;
        give_up(m, n, peer, kl_error_text());
    }
}

/* A fifo that is ready, NULL: none is. */
static struct kl_packet_fifo *outgoing(struct kl_tagged *m, int peer)
{
    struct kl_tagged_near *n = near_of(m, peer);

    if (!n) return NULL;
    if (n->state == OUT_NEW) make_fifo(m, n, peer);
    if (n->state == OUT_MAPPING) {
        ncclResult_t rc = offer(m, n, peer);
        if (rc && rc != ncclInProgress) give_up(m, n, peer, kl_error_text());
    }
    return n->state == OUT_READY ? n->out.fifo : NULL;
}

bool kl_tagged_on_fifo_reply(struct kl_tagged *m, int from, bool mapped)
{
    struct kl_tagged_near *n = m->peer[from].near;

    if (!n || n->state != OUT_OFFERED) return false;
    if (mapped) {
        kl_shm_region_settle(n->region);
        n->state = OUT_READY;
        KL_INFO(KL_INIT | KL_SHM, "rank %d: messages with tags to rank %d go via SHM", m->config.rank, from);
    } else {
        give_up(m, n, from, "it cannot map this rank's memory");
    }
    return true;
}

/* ---- sending ---- */

static ncclResult_t post_over_bootstrap(struct kl_tagged *m, int peer, const struct kl_tagged_head *head,
                                        const void *data, size_t bytes)
{
    ncclResult_t rc = m->config.post(m->config.ctx, peer, head, sizeof *head, data, bytes);

    if (!rc && head->kind != KL_TAGGED_CALL) m->peer[peer].sent++;
    return rc;
}

ncclResult_t kl_tagged_post(struct kl_tagged *m, int peer, const struct kl_tagged_head *head, const void *data,
                            size_t bytes)
{
    const struct kl_tagged_head call = {.kind = KL_TAGGED_CALL};
    struct kl_packet_fifo *fifo = outgoing(m, peer);

    if (!fifo || !kl_packet_fifo_put(fifo, m->peer[peer].sent, head, sizeof *head, data, bytes))
        return post_over_bootstrap(m, peer, head, data, bytes);
    return kl_packet_fifo_must_call(fifo) ? post_over_bootstrap(m, peer, &call, NULL, 0) : ncclSuccess;
}

/* ---- an incoming fifo ---- */

static void watch(struct kl_tagged *m, bool watches)
{
    if (m->watches == watches) return;
    m->watches = watches;
    for (uint32_t i = 0; i < kl_load_relaxed(&m->nincoming); i++) kl_packet_fifo_watch(m->incoming[i].fifo, watches);
}

/* Nothing is in it before the reply. */
static void add_incoming(struct kl_tagged *m, int peer, struct kl_packet_fifo *fifo)
{
    uint32_t n = kl_load_relaxed(&m->nincoming); /* written under the lock */

    kl_packet_fifo_watch(fifo, m->watches);
    m->incoming[n] = (struct kl_tagged_incoming){.peer = peer, .fifo = fifo};
    kl_store_release(&m->nincoming, n + 1); /* pairs with has_packets */
}

static void arm(struct kl_tagged *m)
{
    if (m->armed) return;
    m->armed = true;
    kl_source_deadline(m->timer, kl_deadline_in_ms(TICK_MS));
}

static void reply(struct kl_tagged *m, int peer, bool mapped)
{
    const struct kl_tagged_head head = {.kind = KL_TAGGED_FIFO_REPLY, .bytes = mapped};
    ncclResult_t rc = m->peer[peer].left ? ncclSuccess : kl_tagged_post(m, peer, &head, NULL, 0);

    if (rc && rc != ncclInProgress) kl_tagged_trouble(m, peer, rc);
}

/* Try to map a fifo that was offered: another process answers, so it takes some tries, of the timer's. */
static void accept(struct kl_tagged *m, int peer)
{
    struct kl_tagged_near *n = m->peer[peer].near;

    if (!n || !n->invited) return;
    ncclResult_t rc = map(&n->in, &n->place, n->deadline);
    if (rc == ncclInProgress) return;
    n->invited = false;
    m->invites--;
    if (rc)
        KL_INFO(KL_INIT | KL_SHM, "rank %d: messages with tags from rank %d come over TCP: %s", m->config.rank, peer,
                kl_error_text());
    else
        add_incoming(m, peer, n->in.fifo);
    reply(m, peer, !rc);
}

static ncclResult_t make_timer(struct kl_tagged *m)
{
    if (m->timer) return ncclSuccess;
    if (!m->incoming) m->incoming = calloc((size_t)m->config.nranks, sizeof *m->incoming);
    if (!m->incoming) return KL_NOMEM("messages");
    if (!m->loop) KL_TRY(kl_loop_ref(&m->loop));
    return kl_loop_add(m->loop, -1, 0, on_timer, m, &m->timer);
}

bool kl_tagged_on_fifo(struct kl_tagged *m, int from, const void *data, size_t bytes)
{
    struct kl_tagged_near *n = near_of(m, from);
    struct fifo_place place;

    if (bytes != sizeof place || (n && (n->invited || n->in.fifo))) return false;
    memcpy(&place, data, sizeof place);
    if (place.offset % KL_LINE || place.segment_bytes < sizeof(struct kl_packet_fifo) ||
        place.offset > place.segment_bytes - sizeof(struct kl_packet_fifo))
        return false;
    if (!n || make_timer(m)) {
        reply(m, from, false);
        return true;
    }
    n->place = place;
    n->invited = true;
    n->deadline = kl_deadline_in_ms(MAP_MS);
    m->invites++;
    accept(m, from);
    if (m->invites) arm(m);
    return true;
}

/* ---- reading ---- */

/* The lock may be released while a packet is handled: a small one is out of the fifo by then, and others never do. */
static void handle(struct kl_tagged *m, int from, struct kl_packet_fifo *fifo, const struct kl_packet *p)
{
    unsigned char copy[SMALL];

    if (p->bytes > sizeof copy) {
        m->handle(m, from, p->data, p->bytes);
        kl_packet_fifo_take(fifo, p);
        return;
    }
    memcpy(copy, p->data, p->bytes);
    kl_packet_fifo_take(fifo, p);
    m->handle(m, from, copy, p->bytes);
}

bool kl_tagged_read_from(struct kl_tagged *m, int from)
{
    struct kl_tagged_peer *peer = &m->peer[from];
    struct kl_packet packet;
    bool broken = false, read = false;

    while (!m->failed && peer->near && peer->near->in.fifo &&
           kl_packet_fifo_first(peer->near->in.fifo, &packet, &broken) &&
           (int32_t)(packet.before - peer->received) <= 0) {
        handle(m, from, peer->near->in.fifo, &packet);
        read = true;
    }
    if (broken)
        kl_tagged_trouble(m, from,
                          KL_FAIL(ncclRemoteError,
                                  "rank %d: rank %d has written invalid packets for messages with tags", m->config.rank,
                                  from));
    return read;
}

static bool read_all(struct kl_tagged *m)
{
    bool read = false;

    for (uint32_t i = 0; i < kl_load_relaxed(&m->nincoming); i++) read |= kl_tagged_read_from(m, m->incoming[i].peer);
    return read;
}

/* ---- watching ---- */

/* Without the lock. */
static bool has_packets(struct kl_tagged *m)
{
    const uint32_t n = kl_load_acquire(&m->nincoming); /* pairs with add_incoming */

    for (uint32_t i = 0; i < n; i++)
        if (!kl_packet_fifo_is_empty(m->incoming[i].fifo)) return true;
    return false;
}

static bool is_watched_for(const struct kl_tagged *m, const struct kl_tagged_request *r)
{
    const int from = r->sends || r->peer != KL_TAGGED_ANY ? r->peer : r->queued ? -1 : r->status.source;

    if (from < 0) return kl_load_relaxed(&m->nincoming);
    return m->peer[from].near && m->peer[from].near->in.fifo;
}

/* The fifos stay watched until the event loop finds that nothing has looked for a tick. */
static void linger(struct kl_tagged *m)
{
    m->looked = m->lingers = true;
    watch(m, true);
    arm(m);
}

static void on_timer(void *ctx, uint32_t events)
{
    struct kl_tagged *m = ctx;

    (void)events;
    kl_tagged_lock(m);
    m->armed = false;
    for (int r = 0; !m->failed && m->invites && r < m->config.nranks; r++) accept(m, r);
    if (!m->failed && m->lingers && !m->looked) (void)kl_tagged_rest(m);
    m->looked = false;
    if (!m->failed && (m->invites || m->lingers)) arm(m);
    kl_tagged_unlock(m);
}

bool kl_tagged_rest(struct kl_tagged *m)
{
    m->lingers = false;
    if (!m->watches || m->watchers) return false;
    watch(m, false);
    return read_all(m);
}

void kl_tagged_on_call(struct kl_tagged *m, int from)
{
    struct kl_tagged_near *n = m->peer[from].near;

    if (n && n->in.fifo) kl_packet_fifo_watch(n->in.fifo, m->watches);
}

void kl_tagged_look(struct kl_tagged *m)
{
    if (m->failed || !kl_load_relaxed(&m->nincoming)) return;
    linger(m);
    (void)read_all(m);
}

bool kl_tagged_watch_for(struct kl_tagged *m, const struct kl_tagged_request *r, struct kl_poll_wait *wait)
{
    if (wait->sleep_us || m->failed || !is_watched_for(m, r)) return false;
    const uint32_t ends = kl_load_relaxed(&m->ends);
    const enum kl_wait_cores cores = m->config.cores(m->config.ctx);

    m->watchers++;
    watch(m, true);
    kl_tagged_unlock(m);
    for (int i = 0; i < POLLS && !wait->sleep_us && !has_packets(m) && kl_load_relaxed(&m->ends) == ends; i++)
        kl_wait_pause(wait, cores);
    kl_tagged_lock(m);
    m->watchers--;
    if (m->failed) return true;
    linger(m);
    if (read_all(m)) kl_wait_reset(wait);
    return true;
}

/* ---- life ---- */

void kl_tagged_near_free(struct kl_tagged *m)
{
    kl_source_remove(m->timer);
    kl_loop_unref(m->loop);
    for (int r = 0; r < m->config.nranks; r++) {
        struct kl_tagged_near *n = m->peer[r].near;
        if (!n) continue;
        unmap(&n->in);
        unmap(&n->out);
        if (n->region) kl_shm_region_release(n->region, n->state == OUT_READY);
        free(n);
    }
    kl_shm_slab_free(m->fifos);
    free(m->incoming);
}
