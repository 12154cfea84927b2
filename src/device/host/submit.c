/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/submit.h"

#include "device/host/capture.h"
#include "device/host/function.h"
#include "device/host/legacy.h"

ncclResult_t kl_submit(struct kl_stream *stream, const struct kl_work *work)
{
    if (kl_capturing(stream)) return kl_capture_work(stream, work);
    KL_TRY(kl_legacy_order(stream));
    uint64_t ticket = kl_stream_push(stream, work);
    if (kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE) kl_stream_wait(stream, ticket + 1);
    return ncclSuccess;
}

ncclResult_t kl_submit_function(struct kl_stream *stream, kl_function fn, void *arg)
{
    struct kl_work work = kl_function_work(fn, arg);

    return kl_submit(stream, &work);
}
