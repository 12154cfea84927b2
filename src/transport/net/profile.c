/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/profile.h"

#include <stdlib.h>

enum { OPS = 8, STEPS = 16 };
_Static_assert((int)STEPS > (int)KL_NET_IN_FLIGHT, "a step's event is stopped before its place is used again");

struct op {
    struct kl_profile_event event;
    uint64_t first, end; /* steps; end UINT64_MAX: not known yet */
    bool begun, complete;
};

struct kl_net_profile {
    const struct kl_profiler *profiler;
    bool sends;
    struct op op[OPS]; /* [first, last) modulo the size; steps of the first one are next */
    unsigned first, last;
    uint64_t next; /* step: all before it are stopped */
    struct step {
        struct kl_profile_event event;
        int told;  /* enum phase */
    } step[STEPS]; /* of `next` and those behind it */
};

/* How far a step has come. */
enum phase { UNSEEN, POSTED, KNOWN, FINISHED };

static struct step *step_at(struct kl_net_profile *p, uint64_t number)
{
    return &p->step[number % STEPS];
}

static struct op *first_op(struct kl_net_profile *p)
{
    return p->first < p->last ? &p->op[p->first % OPS] : NULL;
}

/* ---- a step of the link ---- */

static uint32_t line_bytes(const struct kl_net_link *l, uint64_t number, const struct kl_fifo_shape *shape)
{
    return kl_read_once(&kl_fifo_line(l->fifo, number, shape)->bytes);
}

static enum phase sent_phase(const struct kl_net_link *l, uint64_t number)
{
    const struct kl_net_step *s = &l->step[number % KL_NET_IN_FLIGHT];

    if (number < l->released) return FINISHED;
    if (number < l->out.step) return KNOWN;
    return number == l->out.step && s->state == KL_NET_WHOLE ? POSTED : UNSEEN;
}

static enum phase received_phase(const struct kl_net_link *l, uint64_t number)
{
    const struct kl_net_step *s = &l->step[number % KL_NET_IN_FLIGHT];

    if (number < l->in.step) return FINISHED;
    if (number > l->expected || s->state == KL_NET_IDLE) return UNSEEN;
    return s->state == KL_NET_ASKED ? POSTED : KNOWN;
}

static enum phase phase_of(const struct kl_net_profile *p, const struct kl_net_link *l, uint64_t number)
{
    return p->sends ? sent_phase(l, number) : received_phase(l, number);
}

/* Its bytes, with KL_FIFO_MORE. Of a step in flight, as its header has it. */
static uint32_t bytes_of(const struct kl_net_profile *p, const struct kl_net_link *l, uint64_t number)
{
    const struct kl_net_step *s = &l->step[number % KL_NET_IN_FLIGHT];

    if (s->wire.bytes && number >= (p->sends ? l->released : l->in.step)) return s->wire.bytes;
    return line_bytes(l, number, p->sends ? &l->out.shape : &l->in.shape);
}

/* ---- events ---- */

static void start_step(struct kl_net_profile *p, struct op *o, uint64_t number)
{
    const struct kl_profile_descr d = {
        .type = KL_PROFILE_PROXY_STEP, .parent = o->event.handle, .step = (int)(number - o->first)};
    struct step *s = step_at(p, number);

    if (!o->begun) kl_profile_state(&o->event, KL_PROFILE_PROXY_OP_IN_PROGRESS, 0);
    o->begun = true;
    kl_profile_start(p->profiler, &d, &s->event);
    s->told = POSTED;
    kl_profile_state(&s->event, p->sends ? KL_PROFILE_SEND_GPU_WAIT : KL_PROFILE_RECV_WAIT, 0);
    if (p->sends) kl_profile_state(&s->event, KL_PROFILE_SEND_PEER_WAIT, 0);
}

static void tell_bytes(struct kl_net_profile *p, const struct kl_net_link *l, struct op *o, uint64_t number)
{
    struct step *s = step_at(p, number);
    const uint32_t bytes = bytes_of(p, l, number);

    s->told = KNOWN;
    if (o->end == UINT64_MAX && !(bytes & KL_FIFO_MORE)) o->end = number + 1;
    kl_profile_state(&s->event, p->sends ? KL_PROFILE_SEND_WAIT : KL_PROFILE_RECV_FLUSH_WAIT, bytes & ~KL_FIFO_MORE);
}

static void stop_step(struct kl_net_profile *p, uint64_t number)
{
    struct step *s = step_at(p, number);

    if (!p->sends) kl_profile_state(&s->event, KL_PROFILE_RECV_GPU_WAIT, 0);
    kl_profile_stop(&s->event);
    s->told = UNSEEN;
}

/* Tell a step's phase; the steps of an operation are told in their order. */
static void tell(struct kl_net_profile *p, const struct kl_net_link *l, struct op *o, uint64_t number, enum phase phase)
{
    if (step_at(p, number)->told < POSTED) start_step(p, o, number);
    if (phase >= KNOWN && step_at(p, number)->told < KNOWN) tell_bytes(p, l, o, number);
    if (phase != FINISHED || number != p->next) return;
    stop_step(p, number);
    p->next++;
}

/* True: the operation has ended. */
static bool update_op(struct kl_net_profile *p, const struct kl_net_link *l, struct op *o)
{
    if (p->next < o->first) p->next = o->first;
    for (uint64_t s = p->next; s < o->end && s < p->next + STEPS; s++) {
        const enum phase phase = phase_of(p, l, s);
        if (phase == UNSEEN) break;
        tell(p, l, o, s, phase);
    }
    return o->complete && p->next >= o->end;
}

void kl_net_profile_update(struct kl_net_link *l)
{
    struct kl_net_profile *p = l->profile;

    for (struct op *o; (o = first_op(p)) && update_op(p, l, o); p->first++) kl_profile_stop(&o->event);
}

/* ---- the net ---- */

/* The next step, if it is one of the first operation. */
void kl_net_profile_hand_over(struct kl_net_link *l)
{
    struct kl_net_profile *p = l->profile;
    const uint64_t number = p->sends ? l->out.step : l->expected;

    kl_net_profile_update(l);
    struct op *o = first_op(p);
    if (!o || number < p->next || number >= o->end || number >= p->next + STEPS) return;
    if (step_at(p, number)->told < POSTED) start_step(p, o, number);
    kl_profile_parent = &step_at(p, number)->event;
}

void kl_net_profile_handed_over(void)
{
    kl_profile_parent = NULL;
}

/* ---- operations ---- */

static struct kl_net_profile *profile_of(struct kl_net_link *l, const struct kl_profiler *profiler, bool sends)
{
    if (l->profile) return l->profile;
    l->profile = calloc(1, sizeof *l->profile);
    if (!l->profile) return NULL;
    l->profile->profiler = profiler;
    l->profile->sends = sends;
    return l->profile;
}

void kl_net_profile_begin(struct kl_net_link *l, const struct kl_profiler *profiler,
                          const struct kl_profile_descr *descr, uint64_t first)
{
    struct kl_net_profile *p = profile_of(l, profiler, descr->is_send);

    if (!p || p->last - p->first == OPS || !descr->steps) return;
    struct op *o = &p->op[p->last++ % OPS];
    *o = (struct op){.first = first, .end = UINT64_MAX};
    if (descr->steps != KL_NET_PROFILE_STEPS_UNKNOWN) o->end = first + (uint64_t)descr->steps;
    kl_profile_start(profiler, descr, &o->event);
    kl_net_profile_update(l);
}

void kl_net_profile_end(struct kl_net_link *l, uint64_t end)
{
    struct kl_net_profile *p = l->profile;

    if (!p) return;
    if (p->last > p->first) {
        p->op[(p->last - 1) % OPS].complete = true;
        p->op[(p->last - 1) % OPS].end = end;
    }
    kl_net_profile_update(l);
}

void kl_net_profile_free(struct kl_net_profile *p)
{
    if (!p) return;
    for (int i = 0; i < STEPS; i++) kl_profile_stop(&p->step[i].event);
    for (; p->first < p->last; p->first++) kl_profile_stop(&p->op[p->first % OPS].event);
    free(p);
}
