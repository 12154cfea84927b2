/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/legacy.h"

#include "device/host/capture.h"
#include "device/host/follow.h"

/* Once for each new ticket; `waited` belongs to the stream that waits. */
static void follow(struct kl_stream *stream, struct kl_stream *other, _Atomic uint64_t *waited)
{
    uint64_t tail = kl_fetch_add_seq_cst(&other->tail, 0);

    if (kl_load_relaxed(waited) == tail) return;
    kl_follow(stream, other, tail);
    /* after the wait was queued: another thread may wait twice, but never too little */
    kl_store_relaxed(waited, tail);
}

static struct kl_stream *next_blocking(int device, struct kl_stream *s)
{
    do {
        s = kl_streams_next_of(device, s);
    } while (s && !(kl_load_relaxed(&s->flags) & KOLO_STREAM_BLOCKING));
    return s;
}

static ncclResult_t order_default(struct kl_stream *own)
{
    int device = kl_stream_device(own);

    for (struct kl_stream *s = next_blocking(device, NULL); s; s = next_blocking(device, s))
        if (kl_capturing(s)) return kl_capture_refuse_implicit(s);
    for (struct kl_stream *s = next_blocking(device, NULL); s; s = next_blocking(device, s))
        follow(own, s, &s->waited_for);
    return ncclSuccess;
}

ncclResult_t kl_legacy_put_in_order(struct kl_stream *stream)
{
    struct kl_stream *own;

    if (kl_stream_is_default(stream)) return order_default(stream);
    KL_TRY(kl_stream_default(kl_stream_device(stream), &own));
    follow(stream, own, &stream->waits_for);
    return ncclSuccess;
}
