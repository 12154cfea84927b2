/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/status.h"

#include "base/clock.h"
#include "comm/comm.h"

#include <stdio.h>
#include <unistd.h>

/* ---- of a communicator ---- */

enum { MOST_RANKS = 1 << 24 }; /* a bootstrap's limit */

static enum kl_status_state state_of(ncclComm_t comm, const char *phase)
{
    if (kl_load_acquire(&comm->failed)) return KL_STATUS_FAILED;
    if (phase) return KL_STATUS_INIT;
    return kl_load_relaxed(&comm->finalized) ? KL_STATUS_FINALIZED : KL_STATUS_RUNNING;
}

static uint64_t time_since(uint64_t ticks)
{
    struct kl_ticks_scale scale = kl_ticks_scale();
    uint64_t now = kl_now_ns(), then = kl_ticks_ns(&scale, ticks);

    return now > then ? now - then : 0;
}

/* The running operation; else the next one; else the last one. */
static void add_operation(ncclComm_t comm, struct kl_status *s)
{
    struct kl_flight *f = comm->flight;
    uint64_t issued = kl_flight_issued(f), ended = kl_load_relaxed(&f->ended);
    struct kl_flight_op op;

    if (!kl_flight_read(f, ended < issued ? ended + 1 : issued, &op)) return;
    s->number = op.number;
    s->collective = op.collective;
    s->count = op.count;
    s->bytes = op.count * comm->redops[op.type][ncclSum].elem_bytes;
    s->func = (uint8_t)op.func;
    s->type = (uint8_t)op.type;
    s->op = (uint8_t)op.op;
    s->op_state = (uint8_t)op.state;
    s->peer = op.peer;
    if (op.state == KL_FLIGHT_ENDED) return;
    s->waits_for = kl_load_relaxed(&f->waits_for);
    if (op.begun) s->for_ns = time_since(op.begun);
}

void kl_status_of(ncclComm_t comm, struct kl_status *s)
{
    const char *phase = kl_load_acquire(&comm->phase); /* pairs with run_phases: after it, the device is known */
    struct kl_flight *f = comm->flight;

    *s = (struct kl_status){.communicator = kl_load_relaxed(&comm->name),
                            .rank = comm->rank,
                            .nranks = comm->nranks,
                            .device = phase ? -1 : comm->device,
                            .pid = getpid(),
                            .waits_for = -1,
                            .failed = (int32_t)kl_load_acquire(&comm->failed)};
    kl_comm_config_host(&comm->config, s->host, sizeof s->host);
    s->state = (uint8_t)state_of(comm, phase);
    if (phase) snprintf(s->phase, sizeof s->phase, "%s", phase);
    if (s->failed) snprintf(s->text, sizeof s->text, "%s", comm->failure.text);
    for (int func = 0; func < KL_FUNC_ROWS; func++) s->issued[func] = kl_load_relaxed(&f->issued[func]);
    s->ended = kl_load_relaxed(&f->ended);
    s->collectives_ended = kl_load_relaxed(&f->collectives_ended);
    s->collectives_issued = kl_load_relaxed(&f->collectives);
    add_operation(comm, s);
}

/* ---- as bytes ---- */

void kl_status_put(struct kl_writer *w, const struct kl_status *s)
{
    kl_put_u64(w, s->communicator);
    kl_put_u32(w, (uint32_t)s->rank);
    kl_put_u32(w, (uint32_t)s->nranks);
    kl_put_u32(w, (uint32_t)s->device);
    kl_put_u32(w, (uint32_t)s->pid);
    kl_put_bytes(w, s->host, sizeof s->host);
    kl_put_u8(w, s->state);
    kl_put_bytes(w, s->phase, sizeof s->phase);
    kl_put_u32(w, (uint32_t)s->failed);
    kl_put_bytes(w, s->text, sizeof s->text);
    for (int func = 0; func < KL_FUNC_ROWS; func++) kl_put_u64(w, s->issued[func]);
    kl_put_u64(w, s->ended);
    kl_put_u64(w, s->collectives_issued);
    kl_put_u64(w, s->collectives_ended);
    kl_put_u64(w, s->number);
    kl_put_u64(w, s->collective);
    kl_put_u64(w, s->count);
    kl_put_u64(w, s->bytes);
    kl_put_u8(w, s->func);
    kl_put_u8(w, s->type);
    kl_put_u8(w, s->op);
    kl_put_u8(w, s->op_state);
    kl_put_u32(w, (uint32_t)s->peer);
    kl_put_u32(w, (uint32_t)s->waits_for);
    kl_put_u64(w, s->for_ns);
}

static void get_text(struct kl_reader *r, char *text, size_t bytes)
{
    kl_get_bytes(r, text, bytes);
    text[bytes - 1] = 0;
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

static bool is_sound(const struct kl_status *s)
{
    return s->nranks > 0 && s->nranks <= MOST_RANKS && s->rank >= 0 && s->rank < s->nranks &&
           s->state < KL_STATUS_STATES && s->func < KL_FUNC_ROWS && s->type < ncclNumTypes && s->op_state <= 2 &&
           s->peer >= -1 && s->peer < s->nranks && s->waits_for >= -1 && s->waits_for < s->nranks && s->failed >= 0 &&
           s->failed < ncclNumResults;
}

bool kl_status_get(struct kl_reader *r, struct kl_status *s)
{
    s->communicator = kl_get_u64(r);
    s->rank = (int32_t)kl_get_u32(r);
    s->nranks = (int32_t)kl_get_u32(r);
    s->device = (int32_t)kl_get_u32(r);
    s->pid = (int32_t)kl_get_u32(r);
    get_text(r, s->host, sizeof s->host);
    s->state = kl_get_u8(r);
    get_text(r, s->phase, sizeof s->phase);
    s->failed = (int32_t)kl_get_u32(r);
    get_text(r, s->text, sizeof s->text);
    for (int func = 0; func < KL_FUNC_ROWS; func++) s->issued[func] = kl_get_u64(r);
    s->ended = kl_get_u64(r);
    s->collectives_issued = kl_get_u64(r);
    s->collectives_ended = kl_get_u64(r);
    s->number = kl_get_u64(r);
    s->collective = kl_get_u64(r);
    s->count = kl_get_u64(r);
    s->bytes = kl_get_u64(r);
    s->func = kl_get_u8(r);
    s->type = kl_get_u8(r);
    s->op = kl_get_u8(r);
    s->op_state = kl_get_u8(r);
    s->peer = (int32_t)kl_get_u32(r);
    s->waits_for = (int32_t)kl_get_u32(r);
    s->for_ns = kl_get_u64(r);
    return !r->bad && is_sound(s);
}
