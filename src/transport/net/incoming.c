/* SPDX-License-Identifier: Apache-2.0 */
/** incoming.c - the receiver's half of link.h: messages become steps of the fifo. */
#include "transport/net/link.h"
#include "transport/net/gpu_memory.h"
#include "transport/net/profile.h"

#include "base/error.h"
#include "transport/ll.h"

#include <stdlib.h>
#include <string.h>

static struct kl_net_step *step_at(struct kl_net_link *l, uint64_t step)
{
    return &l->step[step % KL_NET_IN_FLIGHT];
}

static struct kl_fifo_line *line_at(const struct kl_net_link *l, uint64_t step)
{
    return kl_fifo_line(l->fifo, step, &l->in.shape);
}

/* ---- the first message ---- */

static bool has_room(struct kl_net_link *l)
{
    if (l->expected - l->in.head_seen >= l->in.shape.nslots)
        l->in.head_seen = kl_load_acquire(&l->fifo->head); /* pairs with kl_fifo_release */
    return l->expected - l->in.head_seen < l->in.shape.nslots;
}

/* The connection has ended between messages: no more data come. A later wait for more asks for the reason. */
static ncclResult_t lose(struct kl_net_link *l, ncclResult_t rc)
{
    if (rc != ncclRemoteError) return rc;
    int quiet = kl_error_quiet(1);
    (void)kl_net_link_describe(l, rc, l->expected);
    kl_error_quiet(quiet);
    l->loss = strdup(kl_error_text());
    if (!l->loss) return KL_NOMEM("the reason of a lost connection");
    kl_store_release(&l->fifo->sender_left, 1); /* pairs with kl_fifo_sender_gone */
    return ncclSuccess;
}

static ncclResult_t ask_first(struct kl_net_link *l, struct kl_net_step *s)
{
    const struct kl_net_recv recv = {.data = &line_at(l, l->expected)->signature, .bytes = KL_WIRE_MOST};

    if (!has_room(l)) return ncclSuccess;
    int quiet = kl_error_quiet(1);
    if (l->profile) kl_net_profile_hand_over(l);
    ncclResult_t rc = l->net->irecv(l->connection, 1, &recv, &s->first);
    if (l->profile) kl_net_profile_handed_over();
    kl_error_quiet(quiet);
    if (rc) return lose(l, rc);
    if (s->first) s->state = KL_NET_ASKED;
    return ncclSuccess;
}

/* From an untrusted peer: check the header before use. */
static ncclResult_t read_first(struct kl_net_link *l, struct kl_net_step *s, size_t size)
{
    struct kl_fifo_line *line = line_at(l, l->expected);
    size_t bytes = line->bytes & ~KL_FIFO_MORE;
    uint32_t kind = kl_load_relaxed(&line->claim);
    bool inside = bytes <= KL_FIFO_INLINE;

    if (kind == KL_WIRE_GOODBYE && size == sizeof s->wire && !line->bytes) {
        *s = (struct kl_net_step){.state = KL_NET_IDLE};
        l->left = true;
        kl_store_release(&l->fifo->sender_left, 1); /* pairs with kl_fifo_sender_gone */
        return ncclSuccess;
    }
    if (size != sizeof s->wire + (inside ? bytes : 0) || kind > KL_WIRE_LINES || (inside && kind != KL_WIRE_SLOT) ||
        (kind == KL_WIRE_LINES && (line->bytes > KL_LL_BYTES || !l->in.shape.ll_bytes)))
        return KL_FAIL(ncclRemoteError, "a network message of %zu bytes is not the beginning of a step", size);
    if (kind == KL_WIRE_SLOT && !l->long_steps && bytes > l->in.shape.slot_bytes)
        return KL_FAIL(ncclRemoteError, "a step of %zu bytes came from the network, where slots have %zu", bytes,
                       l->in.shape.slot_bytes);
    *s = (struct kl_net_step){
        .state = inside ? KL_NET_COMPLETE : KL_NET_ARRIVED,
        .bytes = inside ? 0 : bytes,
        .wire = {.bytes = line->bytes, .kind = kind},
    };
    return ncclSuccess;
}

static ncclResult_t take_first(struct kl_net_link *l, struct kl_net_step *s)
{
    size_t size;
    bool done;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = l->net->test(s->first, &done, &size);

    kl_error_quiet(quiet);
    if (rc) return lose(l, rc);
    if (!done) return ncclSuccess;
    s->first = NULL;
    return read_first(l, s, size);
}

/* ---- where the data go ---- */

static void begin_in_place(struct kl_net_link *l, const struct kl_fifo_rx *rx)
{
    if (!rx->want || rx->want_step != l->expected) return;
    l->place.step = l->expected;
    l->place.to = rx->want;
    l->place.left = rx->want_bytes;
}

/* The destination of this step's message. A step that does not fit is published without data, to be refused. */
static void put_in_place(struct kl_net_link *l, struct kl_net_step *s)
{
    bool fits = s->bytes <= l->place.left, more = s->wire.bytes & KL_FIFO_MORE;

    s->in_place = true;
    s->data = l->place.to;
    if (!fits) {
        s->state = KL_NET_COMPLETE;
        l->refused = true;
    }
    l->place.step++;
    l->place.to += fits ? s->bytes : 0;
    l->place.left = fits && more ? l->place.left - s->bytes : 0;
}

/* Where messages may go to memory of GPUs, no step of one is taken before its message has begun. */
static bool may_use_slot(const struct kl_net_link *l, const struct kl_net_step *s)
{
    return s->bytes <= l->in.shape.slot_bytes && !(l->gpu && s->bytes >= KL_FIFO_STEP_LEAST);
}

static void find_place(struct kl_net_link *l, struct kl_net_step *s, const struct kl_fifo_rx *rx)
{
    if (s->wire.kind == KL_WIRE_LINES) {
        s->data = kl_net_link_whole(l, l->expected);
        return;
    }
    begin_in_place(l, rx);
    if (l->place.left && l->place.step == l->expected)
        put_in_place(l, s);
    else if (may_use_slot(l, s))
        s->data = kl_fifo_slot(l->fifo, l->expected, s->bytes, &l->in.shape);
}

static ncclResult_t ask_data(struct kl_net_link *l, struct kl_net_step *s, const struct kl_fifo_rx *rx)
{
    if (!s->data) find_place(l, s, rx);
    if (!s->data || s->state == KL_NET_COMPLETE) return ncclSuccess;
    const struct kl_net_recv recv = {.data = s->data, .bytes = s->bytes, .mr = kl_net_link_mr(l, s->data)};
    if (l->profile) kl_net_profile_hand_over(l);
    ncclResult_t rc = l->net->irecv(l->connection, 1, &recv, &s->second);
    if (l->profile) kl_net_profile_handed_over();
    if (rc) return rc;
    if (s->second) s->state = KL_NET_ASKED_DATA;
    return ncclSuccess;
}

static ncclResult_t flush(const struct kl_net_link *l, struct kl_net_step *s)
{
    s->state = KL_NET_COMPLETE;
    if (!l->gpu) return ncclSuccess;
    KL_TRY(kl_net_gpu_memory_flush(l->gpu, l->net, l->connection, s->data, s->bytes, &s->second));
    if (s->second) s->state = KL_NET_FLUSHED;
    return ncclSuccess;
}

static ncclResult_t take_flush(const struct kl_net_link *l, struct kl_net_step *s)
{
    bool done;

    KL_TRY(l->net->test(s->second, &done, NULL));
    if (!done) return ncclSuccess;
    s->second = NULL;
    s->state = KL_NET_COMPLETE;
    return ncclSuccess;
}

static ncclResult_t take_data(const struct kl_net_link *l, struct kl_net_step *s)
{
    size_t size;
    bool done;

    KL_TRY(l->net->test(s->second, &done, &size));
    if (!done) return ncclSuccess;
    s->second = NULL;
    if (size == s->bytes) return flush(l, s);
    return KL_FAIL(ncclRemoteError, "a network message has %zu bytes where %zu were announced", size, s->bytes);
}

/* ---- progress ---- */

/* Receive the step that starts with the next message; true: another step is next. */
static bool receive_step(struct kl_net_link *l, const struct kl_fifo_rx *rx, ncclResult_t *rc)
{
    struct kl_net_step *s = step_at(l, l->expected);

    if (l->left || l->loss || l->refused || l->expected - l->in.step >= KL_NET_IN_FLIGHT)
        return false; /* then `s` is a step on its way */
    if (s->state == KL_NET_IDLE) *rc = ask_first(l, s);
    if (!*rc && s->state == KL_NET_ASKED) *rc = take_first(l, s);
    if (!*rc && s->state == KL_NET_ARRIVED) *rc = ask_data(l, s, rx);
    if (*rc || (s->state != KL_NET_ASKED_DATA && s->state != KL_NET_COMPLETE)) return false;
    l->expected++;
    return true;
}

static void publish(struct kl_net_link *l, const struct kl_net_step *s)
{
    size_t bytes = s->wire.bytes & ~KL_FIFO_MORE;
    bool more = s->wire.bytes & KL_FIFO_MORE;

    l->in.signature = line_at(l, l->in.step)->signature; /* as it came */
    if (s->wire.kind == KL_WIRE_LINES)
        kl_ll_publish(&l->in, s->data, bytes, false);
    else if (s->in_place)
        kl_fifo_publish_placed(&l->in, s->data, bytes, more);
    else
        kl_fifo_publish(&l->in, bytes, more);
}

static bool publish_steps(struct kl_net_link *l, ncclResult_t *rc)
{
    bool moved = false;

    for (; l->in.step < l->expected; moved = true) {
        struct kl_net_step *s = step_at(l, l->in.step);
        if (s->state == KL_NET_ASKED_DATA && (*rc = take_data(l, s))) return moved;
        if (s->state == KL_NET_FLUSHED && (*rc = take_flush(l, s))) return moved;
        if (s->state != KL_NET_COMPLETE) return moved;
        s->state = KL_NET_IDLE;
        publish(l, s);
    }
    return moved;
}

enum kl_progress kl_net_incoming_progress(struct kl_net_link *l, const struct kl_fifo_rx *rx, ncclResult_t *rc)
{
    bool moved = false;

    if (l->cancelled) return KL_STALLED;
    while (!*rc && receive_step(l, rx, rc)) moved = true;
    if (!*rc) moved |= publish_steps(l, rc);
    if (l->profile) kl_net_profile_update(l);
    if (*rc) return KL_DONE;
    return moved ? KL_MOVED : KL_STALLED;
}
