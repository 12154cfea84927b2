/* SPDX-License-Identifier: Apache-2.0 */
/** outgoing.c - the sender's half of link.h: steps of the fifo become messages. */
#include "transport/net/link.h"
#include "transport/net/profile.h"

#include "base/clock.h"
#include "base/error.h"
#include "transport/ll.h"

#include <sched.h>
#include <string.h>

static struct kl_net_step *step_at(struct kl_net_link *l, uint64_t step)
{
    return &l->step[step % KL_NET_IN_FLIGHT];
}

/* ---- a step that was published ---- */

/* Up to KL_FIFO_INLINE bytes travel in the line, also those of zero-copy steps. */
static bool is_in_line(struct kl_net_link *l, struct kl_fifo_line *line, struct kl_net_step *s)
{
    size_t bytes = kl_read_once(&line->bytes) & ~KL_FIFO_MORE; /* another process may write it */
    bool more;

    s->bytes = bytes;
    if (bytes > KL_FIFO_INLINE) return false;
    if (kl_load_relaxed(&line->claim) == KL_CLAIM_NONE) return true;
    const void *data = kl_fifo_open(&l->out, &s->bytes, &more);
    if (!data || s->bytes != bytes) return false;
    memmove(line->payload, data, bytes);
    kl_store_relaxed(&line->claim, (uint32_t)KL_CLAIM_NONE);
    return true;
}

/* The address of the data, in one piece, and their header for the other host. NULL: not there, or revoked. */
static const void *find_data(struct kl_net_link *l, const struct kl_fifo_line *line, struct kl_net_step *s)
{
    bool lines = kl_load_relaxed(&line->claim) == KL_CLAIM_LL, more = false;
    const void *data = NULL;

    if (!lines)
        data = kl_fifo_open(&l->out, &s->bytes, &more);
    else if (kl_ll_ready(&l->out))
        data = kl_ll_open(&l->out, kl_net_link_whole(l, l->out.step), &s->bytes);
    s->wire = (struct kl_wire){.signature = line->signature,
                               .bytes = (uint32_t)s->bytes | (more ? KL_FIFO_MORE : 0),
                               .kind = lines ? KL_WIRE_LINES : KL_WIRE_SLOT};
    return data;
}

/* Is the next step here, with all its data? */
static bool open_step(struct kl_net_link *l, struct kl_net_step *s)
{
    struct kl_fifo_line *line = kl_fifo_line(l->fifo, l->out.step, &l->out.shape);

    if (l->out.step - l->released >= KL_NET_IN_FLIGHT || !kl_fifo_ready(&l->out)) return false;
    *s = (struct kl_net_step){.state = KL_NET_IDLE};
    if (!is_in_line(l, line, s)) {
        const void *data = find_data(l, line, s);
        if (!data) return false;
        s->data = (void *)(uintptr_t)data; /* only read */
    }
    s->state = KL_NET_WHOLE;
    return true;
}

/* ---- its messages ---- */

static ncclResult_t send_first(struct kl_net_link *l, struct kl_net_step *s)
{
    struct kl_fifo_line *line = kl_fifo_line(l->fifo, l->out.step, &l->out.shape);

    if (s->first) return ncclSuccess;
    if (s->data) return l->net->isend(l->connection, &s->wire, sizeof s->wire, 0, NULL, &s->first);
    return l->net->isend(l->connection, &line->signature, sizeof s->wire + s->bytes, 0, NULL, &s->first);
}

static ncclResult_t send_second(struct kl_net_link *l, struct kl_net_step *s)
{
    if (!s->first || !s->data) return ncclSuccess;
    return l->net->isend(l->connection, s->data, s->bytes, 0, kl_net_link_mr(l, s->data), &s->second);
}

static ncclResult_t hand_over(struct kl_net_link *l, struct kl_net_step *s)
{
    if (l->profile) kl_net_profile_hand_over(l);
    ncclResult_t rc = send_first(l, s);
    if (!rc) rc = send_second(l, s);
    if (l->profile) kl_net_profile_handed_over();
    return rc;
}

/* Start as many sends as the net takes. */
static bool send_steps(struct kl_net_link *l, ncclResult_t *rc)
{
    bool moved = false;

    for (;; moved = true) {
        struct kl_net_step *s = step_at(l, l->out.step);
        if (s->state != KL_NET_WHOLE && !open_step(l, s)) return moved;
        if ((*rc = hand_over(l, s))) return moved;
        if (!s->first || (s->data && !s->second)) return moved;
        s->state = KL_NET_COMPLETE;
        l->out.step++;
    }
}

static ncclResult_t test(const struct kl_net_link *l, void **request)
{
    bool done = true;

    if (*request) {
        ncclResult_t rc = l->net->test(*request, &done, NULL);
        if (rc) return rc;
    }
    if (done) *request = NULL;
    return ncclSuccess;
}

/* Release the steps that were sent. */
static bool release_steps(struct kl_net_link *l, ncclResult_t *rc)
{
    bool moved = false;

    for (; l->released < l->out.step; moved = true) {
        struct kl_net_step *s = step_at(l, l->released);
        if ((*rc = test(l, &s->first)) || (*rc = test(l, &s->second)) || s->first || s->second) return moved;
        s->state = KL_NET_IDLE;
        kl_store_release(&l->fifo->head, ++l->released); /* pairs with kl_fifo_can_send and kl_fifo_drained */
    }
    return moved;
}

/* ---- the end ---- */

static bool is_over(const struct kl_net_link *l)
{
    return l->connected && !l->cancelled && l->released == l->out.step &&
           l->step[l->out.step % KL_NET_IN_FLIGHT].state == KL_NET_IDLE && !kl_fifo_ready(&l->out);
}

void kl_net_outgoing_leave(struct kl_net_link *l)
{
    const uint64_t deadline = kl_deadline_in_ms(KL_NET_GOODBYE_MS);
    void *request = NULL;

    if (!l || !is_over(l) || !l->net->wants_goodbye || !l->net->wants_goodbye(l->connection)) return;
    l->goodbye = (struct kl_wire){.kind = KL_WIRE_GOODBYE};
    int quiet = kl_error_quiet(1); /* the receiver may have left first */
    ncclResult_t rc = l->net->isend(l->connection, &l->goodbye, sizeof l->goodbye, 0, NULL, &request);
    while (!rc && request && !(rc = test(l, &request)) && request && !kl_deadline_passed(deadline)) sched_yield();
    kl_error_quiet(quiet);
}

/* ---- progress ---- */

enum kl_progress kl_net_outgoing_progress(struct kl_net_link *l, ncclResult_t *rc)
{
    if (l->cancelled) return KL_STALLED;
    bool moved = send_steps(l, rc);
    if (!*rc) moved |= release_steps(l, rc);
    if (l->profile) kl_net_profile_update(l);
    if (*rc) return KL_DONE;
    return moved ? KL_MOVED : KL_STALLED;
}
