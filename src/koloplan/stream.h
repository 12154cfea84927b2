/* SPDX-License-Identifier: Apache-2.0 */
/** stream.h - an answer that is written into memory. */
#ifndef KL_KOLOPLAN_STREAM_H
#define KL_KOLOPLAN_STREAM_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdio.h>

struct kl_answer_stream {
    FILE *to;
    char *text;
    size_t bytes;
};

/** ncclSystemError when memory is short. */
ncclResult_t kl_answer_stream_open(struct kl_answer_stream *stream);

/** End the text, and give it to the caller (free()) if `rc` is ncclSuccess and all of it was written. Returns the failure, if any. */
ncclResult_t kl_answer_stream_close(struct kl_answer_stream *stream, ncclResult_t rc, char **text);

#endif
