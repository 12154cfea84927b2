/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/trace.h"

#include "base/error.h"

#include <stdlib.h>
#include <sys/mman.h>

/* An event in a line of its own. */
struct slot {
    alignas(64) _Atomic uint64_t use; /* the event's number + 1; 0: being written */
    _Atomic uint64_t
        what; /* bytes, low first: kind, function, type, operator, algorithm, protocol, channels, and channel, or way */
    _Atomic uint64_t ranks; /* from, to << 32 */
    _Atomic uint64_t number, collective, count, begin, end;
};

struct ring {
    alignas(KL_LINE) _Atomic uint64_t count;
    struct slot *slot;
};

struct kl_trace {
    struct ring ring[KL_TRACE_WRITERS];
    size_t room;
};

static size_t slots_bytes(size_t room)
{
    return KL_TRACE_WRITERS * room * sizeof(struct slot);
}

ncclResult_t kl_trace_create(size_t events, struct kl_trace **trace)
{
    struct kl_trace *t = aligned_alloc(KL_LINE, sizeof *t);
    struct slot *slots = mmap(NULL, slots_bytes(events), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!t || slots == MAP_FAILED) {
        free(t);
        if (slots != MAP_FAILED) munmap(slots, slots_bytes(events));
        return KL_NOMEM("a trace; KOLO_TRACE_EVENTS says how long it is");
    }
    for (int w = 0; w < KL_TRACE_WRITERS; w++) {
        kl_store_relaxed(&t->ring[w].count, 0);
        t->ring[w].slot = slots + (size_t)w * events;
    }
    t->room = events;
    *trace = t;
    return ncclSuccess;
}

void kl_trace_free(struct kl_trace *trace)
{
    if (!trace) return;
    munmap(trace->ring[0].slot, slots_bytes(trace->room));
    free(trace);
}

static uint64_t byte_at(int value, int place)
{
    return (uint64_t)(uint8_t)value << (8 * place);
}

void kl_trace_add(struct kl_trace *trace, enum kl_trace_writer writer, const struct kl_trace_event *e)
{
    struct ring *r = &trace->ring[writer];
    uint64_t n = kl_load_relaxed(&r->count);
    struct slot *s = &r->slot[n & (trace->room - 1)];

    kl_store_relaxed(&s->use, 0);
    kl_store_release(&s->what, byte_at((int)e->kind, 0) | byte_at(e->func, 1) | byte_at(e->type, 2) |
                                   byte_at(e->op, 3) | byte_at(e->algorithm, 4) | byte_at(e->proto, 5) |
                                   byte_at(e->channels, 6) |
                                   byte_at(e->kind == KL_TRACE_STEP ? e->channel : e->way, 7));
    kl_store_release(&s->ranks, (uint32_t)e->from | (uint64_t)(uint32_t)e->to << 32);
    kl_store_release(&s->number, e->number);
    kl_store_release(&s->collective, e->collective);
    kl_store_release(&s->count, e->count);
    kl_store_release(&s->begin, e->begin);
    kl_store_release(&s->end, e->end);
    kl_store_release(&s->use, n + 1);
    kl_store_release(&r->count, n + 1);
}

uint64_t kl_trace_count(struct kl_trace *trace, enum kl_trace_writer writer)
{
    return kl_load_acquire(&trace->ring[writer].count);
}

size_t kl_trace_room(const struct kl_trace *trace)
{
    return trace->room;
}

static int byte_of(uint64_t what, int place)
{
    return (uint8_t)(what >> (8 * place));
}

bool kl_trace_read(struct kl_trace *trace, enum kl_trace_writer writer, uint64_t number, struct kl_trace_event *e)
{
    struct slot *s = &trace->ring[writer].slot[number & (trace->room - 1)];

    if (kl_load_acquire(&s->use) != number + 1) return false;
    uint64_t what = kl_load_acquire(&s->what), ranks = kl_load_acquire(&s->ranks);
    *e = (struct kl_trace_event){
        .kind = (enum kl_trace_kind)byte_of(what, 0),
        .func = byte_of(what, 1),
        .type = byte_of(what, 2),
        .op = byte_of(what, 3),
        .algorithm = byte_of(what, 4),
        .proto = byte_of(what, 5),
        .channels = byte_of(what, 6),
        .channel = byte_of(what, 0) == KL_TRACE_STEP ? byte_of(what, 7) : 0,
        .way = byte_of(what, 0) == KL_TRACE_STEP ? 0 : (uint8_t)byte_of(what, 7),
        .from = (int32_t)(uint32_t)ranks,
        .to = (int32_t)(uint32_t)(ranks >> 32),
        .number = kl_load_acquire(&s->number),
        .collective = (uint32_t)kl_load_acquire(&s->collective),
        .count = kl_load_acquire(&s->count),
        .begin = kl_load_acquire(&s->begin),
        .end = kl_load_acquire(&s->end),
    };
    return kl_load_relaxed(&s->use) == number + 1;
}

struct kl_trace_event kl_trace_task(enum kl_trace_kind kind, const struct kl_task *t)
{
    bool to_one = kl_func_info[t->func].rooted || kl_func_is_message(t->func);

    return (struct kl_trace_event){.kind = kind,
                                   .func = t->func,
                                   .type = t->type,
                                   .op = (int)kl_task_op_code(t),
                                   .algorithm = t->choice.algorithm,
                                   .proto = t->choice.proto,
                                   .channels = t->choice.partition.nchannels,
                                   .from = -1,
                                   .to = to_one ? t->peer : -1,
                                   .count = t->count};
}
