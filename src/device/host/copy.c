/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/copy.h"

#include "device/host/submit.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20 }; /* some 100 microseconds: the thread that runs a stream serves others, too */

enum { ARG_TO, ARG_FROM, ARG_VALUE = ARG_FROM, ARG_LEFT };

ncclResult_t kl_host_copy(void *to, const void *from, size_t bytes)
{
    if (bytes) memmove(to, from, bytes);
    return ncclSuccess;
}

static size_t next_piece(const struct kl_work *work)
{
    size_t left = (size_t)work->arg[ARG_LEFT];

    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* Overlapping ranges are copied from the end whose source is not overwritten. */
static enum kl_progress copy_piece(struct kl_stream *stream, struct kl_work *work)
{
    size_t piece = next_piece(work);
    uint64_t to = work->arg[ARG_TO], from = work->arg[ARG_FROM];
    uint64_t skip = to > from ? work->arg[ARG_LEFT] - piece : 0;

    (void)stream;
    memmove((void *)(uintptr_t)(to + skip), (const void *)(uintptr_t)(from + skip), piece);
    if (to <= from) {
        work->arg[ARG_TO] += piece;
        work->arg[ARG_FROM] += piece;
    }
    work->arg[ARG_LEFT] -= piece;
    return work->arg[ARG_LEFT] ? KL_MOVED : KL_DONE;
}

ncclResult_t kl_host_copy_on(struct kl_stream *stream, void *to, const void *from, size_t bytes)
{
    struct kl_work work = {
        .progress = copy_piece,
        .arg = {[ARG_TO] = (uintptr_t)to, [ARG_FROM] = (uintptr_t)from, [ARG_LEFT] = bytes},
    };

    return bytes ? kl_submit(stream, &work) : ncclSuccess;
}

static enum kl_progress fill_piece(struct kl_stream *stream, struct kl_work *work)
{
    size_t piece = next_piece(work);

    (void)stream;
    memset((void *)(uintptr_t)work->arg[ARG_TO], (int)work->arg[ARG_VALUE], piece);
    work->arg[ARG_TO] += piece;
    work->arg[ARG_LEFT] -= piece;
    return work->arg[ARG_LEFT] ? KL_MOVED : KL_DONE;
}

ncclResult_t kl_host_fill_on(struct kl_stream *stream, void *to, int value, size_t bytes)
{
    struct kl_work work = {
        .progress = fill_piece,
        .arg = {[ARG_TO] = (uintptr_t)to, [ARG_VALUE] = (unsigned char)value, [ARG_LEFT] = bytes},
    };

    return bytes ? kl_submit(stream, &work) : ncclSuccess;
}
