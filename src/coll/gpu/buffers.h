/* SPDX-License-Identifier: Apache-2.0 */
/** buffers.h - the buffers of a rank's operation, with their sizes. */
#ifndef KL_COLL_GPU_BUFFERS_H
#define KL_COLL_GPU_BUFFERS_H

#include "coll/engine/task.h"

enum kl_gpu_buffer_kind { KL_GPU_SEND, KL_GPU_RECV, KL_GPU_FACTOR, KL_GPU_BUFFERS };

struct kl_gpu_buffer {
    const void *ptr;
    size_t bytes; /* 0: it is not used */
    const char *name;
};

/** Of a rank among `nranks`, by kind. */
void kl_gpu_buffers_of(const struct kl_task *task, int rank, int nranks, struct kl_gpu_buffer buffer[KL_GPU_BUFFERS]);

#endif
