/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/follow.h"

#include "device/host/idle.h"

enum { ARG_OTHER, ARG_TICKET };

/* The other stream wakes sleepers when its head gets there: see announce. */
static enum kl_progress await_other(struct kl_stream *stream, struct kl_work *work)
{
    struct kl_stream *other = (struct kl_stream *)(uintptr_t)work->arg[ARG_OTHER];

    (void)stream;
    if (kl_stream_reached(other, work->arg[ARG_TICKET])) return KL_DONE;
    if (kl_idle_arming()) kl_idle_told();
    return KL_STALLED;
}

/* From now on the other stream wakes sleepers when its head reaches the ticket. */
static void announce(struct kl_stream *other, uint64_t ticket)
{
    uint64_t before = kl_load_relaxed(&other->followed);

    while (before < ticket && !kl_cas_acq_rel(&other->followed, &before, ticket)) continue;
}

void kl_follow(struct kl_stream *stream, struct kl_stream *other, uint64_t ticket)
{
    struct kl_work work = {.progress = await_other, .arg = {[ARG_OTHER] = (uintptr_t)other, [ARG_TICKET] = ticket}};

    if (stream == other || kl_stream_reached(other, ticket)) return;
    announce(other, ticket);
    kl_stream_push(stream, &work);
}
