/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/collnet/link.h"

#include "base/error.h"

#include <stdlib.h>
#include <sys/mman.h>

static const struct kl_transport collnet_transport;

/* ---- life ---- */

/* Slots for the steps of two requests, and no fewer than other edges have. */
static struct kl_fifo_shape shape_for(const struct kl_fifo_shape *shape, int n)
{
    struct kl_fifo_shape s = {.nslots = shape->nslots, .slot_bytes = shape->slot_bytes};

    while (s.nslots < 2 * (uint32_t)n) s.nslots *= 2;
    return s;
}

static ncclResult_t attach(struct kl_collnet_link *l, const struct kl_fifo_shape *shape)
{
    size_t bytes = kl_fifo_size(shape);
    struct kl_fifo *out = l->memory, *in = (struct kl_fifo *)(void *)((unsigned char *)l->memory + bytes);

    kl_fifo_init(out, shape);
    kl_fifo_init(in, shape);
    KL_TRY(kl_fifo_attach_rx(&l->out, out, bytes, true));
    KL_TRY(kl_fifo_attach_tx(&l->in, in, bytes, false));
    KL_TRY(kl_fifo_attach_tx(&l->send.tx, out, bytes, true));
    l->send.tx.zcopy_all = true;
    return kl_fifo_attach_rx(&l->recv.rx, in, bytes, false);
}

ncclResult_t kl_collnet_link_create(const struct kl_collnet *collnet, const int32_t *ranks, int n, int own,
                                    const struct kl_fifo_shape *shape, struct kl_collnet_link **link)
{
    const struct kl_fifo_shape s = shape_for(shape, n);
    /* A wait for the network is a wait for another head: for any of them, until the head is known. */
    const struct kl_connector end = {.transport = &collnet_transport, .peer = ranks[own ? 0 : n - 1]};
    struct kl_collnet_link *l = aligned_alloc(KL_LINE, (sizeof *l + KL_LINE - 1) / KL_LINE * KL_LINE);

    if (!l) return KL_NOMEM("a connection of CollNet");
    *l = (struct kl_collnet_link){.send = end, .recv = end, .collnet = collnet, .n = n, .ranks = ranks};
    l->send.sends = true;
    l->mapped = 2 * kl_fifo_size(&s);
    l->part = calloc((size_t)n, sizeof *l->part);
    /* Zero pages, allocated at the first touch. */
    l->memory = mmap(NULL, l->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (l->memory == MAP_FAILED) l->memory = NULL;
    ncclResult_t rc = l->part && l->memory ? attach(l, &s) : KL_NOMEM("the buffers of CollNet");
    if (rc)
        kl_collnet_link_free(l);
    else
        *link = l;
    return rc;
}

void kl_collnet_link_begin(struct kl_collnet_link *l, enum kl_collnet_what what, struct kl_collnet_op op,
                           size_t elem_bytes, uint64_t signature)
{
    l->what = what;
    l->op = op;
    l->elem_bytes = elem_bytes;
    l->in.signature = signature;
}

void kl_collnet_link_free(struct kl_collnet_link *l)
{
    if (!l) return;
    if (l->group) l->collnet->close(l->group);
    if (l->memory) munmap(l->memory, l->mapped);
    free(l->part);
    free(l);
}

/* ---- steps ---- */

static int steps_taken(const struct kl_collnet_link *l)
{
    return l->what == KL_COLLNET_REDUCE_SCATTER ? l->n : 1;
}

static int steps_made(const struct kl_collnet_link *l)
{
    return l->what == KL_COLLNET_ALL_GATHER ? l->n : 1;
}

/* Open the steps that the next request takes. True: all of them are here. */
static bool collect(struct kl_collnet_link *l, ncclResult_t *rc)
{
    bool more;

    for (; l->collected < steps_taken(l); l->collected++, l->out.step++) {
        if (!kl_fifo_ready(&l->out)) return false;
        size_t bytes;
        const void *data = kl_fifo_open(&l->out, &bytes, &more);
        if (!data) return false;
        if (l->collected && bytes != l->part_bytes) {
            *rc = KL_FAIL(ncclInternalError, "CollNet: parts of %zu and %zu bytes", l->part_bytes, bytes);
            return false;
        }
        l->part[l->collected].data = (void *)(uintptr_t)data; /* only read */
        l->part_bytes = bytes;
    }
    return true;
}

static bool has_room(struct kl_collnet_link *l)
{
    uint64_t end = l->expected + (uint64_t)steps_made(l);

    if (end - l->in.head_seen > l->in.shape.nslots)
        l->in.head_seen = kl_load_acquire(&l->in.fifo->head); /* pairs with kl_fifo_release */
    return end - l->in.head_seen <= l->in.shape.nslots;
}

/* The address for the data of a step before it is published. */
static void *place(const struct kl_collnet_link *l, uint64_t step, size_t bytes)
{
    if (bytes <= KL_FIFO_INLINE) return kl_fifo_line(l->in.fifo, step, &l->in.shape)->payload;
    return kl_fifo_slot(l->in.fifo, step, bytes, &l->in.shape);
}

/* ---- requests ---- */

static ncclResult_t gather(struct kl_collnet_link *l, void **request)
{
    struct kl_collnet_part own = l->part[0], *to = l->part;

    for (int m = 0; m < l->n; m++)
        to[m] = (struct kl_collnet_part){.data = place(l, l->expected + (uint64_t)m, l->part_bytes)};
    ncclResult_t rc = l->collnet->iallgather(l->group, own.data, to, l->part_bytes, request);
    l->part[0] = own;
    return rc;
}

static ncclResult_t ask(struct kl_collnet_link *l, void **request)
{
    const size_t count = l->part_bytes / l->elem_bytes;
    void *to = place(l, l->expected, l->part_bytes);

    if (l->what == KL_COLLNET_ALL_GATHER) return gather(l, request);
    if (l->what == KL_COLLNET_REDUCE_SCATTER)
        return l->collnet->ireducescatter(l->group, l->part, to, count, l->op, request);
    return l->collnet->iallreduce(l->group, l->part[0].data, to, count, l->op, request);
}

/* Start as many requests as the network takes. */
static bool ask_all(struct kl_collnet_link *l, ncclResult_t *rc)
{
    bool moved = false;

    for (; l->asked - l->done < KL_COLLNET_REQUESTS; moved = true) {
        struct kl_collnet_step *s = &l->pending[l->asked % KL_COLLNET_REQUESTS];
        if (!collect(l, rc) || !has_room(l)) return moved;
        if ((*rc = ask(l, &s->request)) || !s->request) return moved;
        s->bytes = l->part_bytes;
        l->expected += (uint64_t)steps_made(l);
        l->collected = 0;
        l->asked++;
    }
    return moved;
}

static void finish(struct kl_collnet_link *l, struct kl_collnet_step *s)
{
    for (int i = 0; i < steps_made(l); i++) kl_fifo_publish(&l->in, s->bytes, false);
    l->released += (uint64_t)steps_taken(l);
    kl_store_release(&l->out.fifo->head, l->released); /* pairs with kl_fifo_can_send and kl_fifo_drained */
    l->done++;
}

/* Publish the results of finished requests. */
static bool finish_all(struct kl_collnet_link *l, ncclResult_t *rc)
{
    bool moved = false, done;

    for (; l->done < l->asked; moved = true) {
        struct kl_collnet_step *s = &l->pending[l->done % KL_COLLNET_REQUESTS];
        if ((*rc = l->collnet->test(s->request, &done)) || !done) return moved;
        finish(l, s);
    }
    return moved;
}

/* ---- the transport: no row of the table, as it joins no pair ---- */

static struct kl_collnet_link *link_of(struct kl_connector *c)
{
    return c->sends ? (struct kl_collnet_link *)(void *)((char *)c - offsetof(struct kl_collnet_link, send))
                    : (struct kl_collnet_link *)(void *)((char *)c - offsetof(struct kl_collnet_link, recv));
}

static enum kl_progress progress(struct kl_connector *c, ncclResult_t *rc)
{
    struct kl_collnet_link *l = link_of(c);
    bool moved = false;

    if (l->cancelled) return KL_STALLED;
    moved = c->sends ? ask_all(l, rc) : finish_all(l, rc);
    if (*rc) return KL_DONE;
    int waits_for = moved ? -1 : l->collnet->waits_for(l->group);
    if (waits_for >= 0) c->peer = waits_for;
    return moved ? KL_MOVED : KL_STALLED;
}

static void revoke(struct kl_connector *c)
{
    struct kl_collnet_link *l = link_of(c);

    if (l->connected && !l->cancelled) l->collnet->cancel(l->group);
    l->cancelled = true;
}

static const struct kl_transport collnet_transport = {
    .name = "COLLNET", .via = "COLLNET", .progress = progress, .revoke = revoke};
