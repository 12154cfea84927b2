/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/follow.h"

#include "device/host/idle.h"

enum { ARG_OTHER, ARG_TICKET };

/* The other stream's head wakes who rests when it moves. */
static enum kl_progress await_other(struct kl_stream *stream, struct kl_work *work)
{
    struct kl_stream *other = (struct kl_stream *)(uintptr_t)work->arg[ARG_OTHER];

    (void)stream;
    if (kl_stream_reached(other, work->arg[ARG_TICKET])) return KL_DONE;
    if (kl_idle_arming()) kl_idle_told();
    return KL_STALLED;
}

void kl_follow(struct kl_stream *stream, struct kl_stream *other, uint64_t ticket)
{
    struct kl_work work = {.progress = await_other, .arg = {[ARG_OTHER] = (uintptr_t)other, [ARG_TICKET] = ticket}};

    if (stream != other && !kl_stream_reached(other, ticket)) kl_stream_push(stream, &work);
}
